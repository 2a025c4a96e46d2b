"""Builds the image where it is not here yet, from inputs to a reference."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from acceptance.core import version as versions
from acceptance.core.message import SetupError
from acceptance.journal import provenance
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.station.image import engine as engines
from acceptance.station.image import inputs, network, progress, recipe, record, stages
from acceptance.station.image.base import ANSWER_S, Bases, Bootstrap
from acceptance.station.image.engine import BuildEngine, gigabytes
from acceptance.station.image.record import ImageRef
from acceptance.wording import words

NAME = "rigproof"


@dataclass(frozen=True, slots=True)
class WantedImage:
    """The image of this rigproof: its tag, the digest of its inputs, the version of the harness in
    it, and what it is built from.
    """

    tag: str
    digest: str
    version: str
    context: dict[str, Path]
    bases: Bases


def wanted(base: str | None = None, tools_base: str | None = None) -> WantedImage:
    """The image of this rigproof, on the pinned bases or those named. Raises SetupError."""
    context = inputs.files()
    pins = inputs.read_pins(context[inputs.PINS].read_text(encoding="utf-8"))
    bases = Bases(
        base or inputs.pinned_version(pins, "image", "base"),
        tools_base or inputs.pinned_version(pins, "image", "tools-base"),
    )
    version = versions.of_image(provenance.version())
    settings = {"base": bases.base, "tools_base": bases.tools_base, "version": version}
    digest = inputs.digest(context, settings)
    return WantedImage(f"{NAME}:{digest[:12]}", digest, version, context, bases)


def build(
    *,
    log_dir: Path,
    say: Callable[[str], None],
    deadline: Deadline,
    base: str | None = None,
    tools_base: str | None = None,
    root: Path = Path("/"),
    answer_s: float = ANSWER_S,
) -> ImageRef:
    """The image of this rigproof's inputs: found, or built from nothing.

    `base` and `tools_base` replace the pinned ones. `say` receives lines for the user. Logs go to
    `log_dir`. The host's certificates, name servers and package sources are read under `root`.
    `answer_s` is how long a registry may be silent, in seconds.

    Raises SetupError, one sentence with its cure; for a failed build with the last lines and the
    log's path.
    """
    began = time.monotonic()
    want = wanted(base, tools_base)
    engine = engines.find()
    tag = want.tag
    if engine.image_id(tag):
        return record.inspect(engine, tag)
    log = log_dir / f"image-{want.digest[:12]}.log"
    pins = inputs.digest({inputs.PINS: want.context[inputs.PINS]}, {})
    say(f"building the image {tag}, {_announced(engine, pins, root)}; its log: {log}")
    log_dir.mkdir(parents=True, exist_ok=True)
    bootstrap = Bootstrap(engine, log, say, deadline, root, answer_s)
    bases = bootstrap.bases(want.bases.base, want.bases.tools_base, named=base is not None)
    labels = recipe.labels(
        inputs=want.digest,
        pins=pins,
        base=bases.base,
        commit=provenance.commit(),
    )
    with stages.build_lock(root) as lock:
        _build(engine, want, bases, tag, labels, log, say, deadline, root)
        stages.tidy(engine, lock, say)
    return replace(record.inspect(engine, tag), built=True, seconds=time.monotonic() - began)


def _announced(engine: BuildEngine, pins: str, root: Path) -> str:
    """What the build costs, for the user. Raises SetupError where the disk has no room for it.

    An image of the same pins alone does not tell that the stages are here: it may come from a file.
    """
    again = bool(engine.images(f"{recipe.LABELS}.pins={pins}")) and (
        engine.build_cache() >= recipe.STAGES_BYTES
        if engine.buildkit
        else engine.image_id(f"{stages.NAME}:python") is not None
    )
    needed = recipe.REBUILD_BYTES if again else recipe.IMAGE_BYTES + recipe.STAGES_BYTES
    disk = engine.disk(root)
    if disk is not None:
        disk.require(needed, "the image cannot be built")
    where = f" in {disk.folder}, where {gigabytes(disk.free_bytes)} are free" if disk else ""
    if again:
        return (
            "of which an earlier one is here: seconds where only rigproof has changed and its "
            "stages are kept, else as long as the first one, with about "
            f"{gigabytes(recipe.DOWNLOAD_BYTES)} to download{where and f' (it goes{where})'}"
        )
    return (
        f"once: it downloads about {gigabytes(recipe.DOWNLOAD_BYTES)} and takes about 6 minutes "
        "(with a network of 10 Mbit/s about an hour more), and occupies about "
        f"{gigabytes(needed)}{where}, more than half of it to make the next build quick"
    )


def _build(
    engine: BuildEngine,
    want: WantedImage,
    bases: Bases,
    tag: str,
    labels: dict[str, str],
    log: Path,
    say: Callable[[str], None],
    deadline: Deadline,
    root: Path,
) -> None:
    handed_in = recipe.proxies(os.environ) | recipe.mirrors(os.environ)
    bridge, bridge_mtu = engine.bridge_mtu()
    chosen, why = network.choose(
        network.NetworkFacts(
            local=engine.local,
            bridge=bridge,
            bridge_mtu=bridge_mtu,
            host_mtu=network.host_mtu(root),
            resolvers=network.resolvers(root),
            proxies=recipe.proxies(os.environ),
        )
    )
    if why:
        say(f"the build takes the host's network: {why}")
    with tempfile.TemporaryDirectory(prefix="rigproof-image-") as folder:
        inputs.lay_out(want.context, want.version, recipe.ca_bundle(os.environ, root), Path(folder))
        argv = recipe.build(
            docker=engine.docker,
            buildkit=engine.buildkit,
            context=Path(folder),
            tag=tag,
            base=bases.base,
            tools_base=bases.tools_base,
            network=chosen,
            handed_in=tuple(handed_in),
            labels=labels,
        )
        environment = handed_in | recipe.builder_environment(engine.buildkit)
        running = command.start(argv, deadline=deadline, log=log, env=environment)
        done = progress.follow(running, log, progress.Progress(say))
    if done.returncode != 0:
        last = progress.tail((done.stdout, done.stderr))
        raise SetupError(
            f"the image could not be built: `docker build` {words.message(done.describe())}; "
            f"the whole log: {log}\n{last}"
        )
