"""Builds the image where it is not here yet, from inputs to a reference."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from acceptance.journal import provenance
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.station.image import engine as engines
from acceptance.station.image import inputs, network, progress, recipe, record
from acceptance.station.image.base import ANSWER_S, Bases, Bootstrap
from acceptance.station.image.engine import BuildEngine, ImageError
from acceptance.station.image.record import ImageRef

NAME = "rigproof"


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
    """The image of this checkout's inputs: found, or built from nothing.

    `base` and `tools_base` replace the pinned ones. `say` receives lines for the user. Logs go to
    `log_dir`. The host's certificates, name servers and package sources are read under `root`.
    `answer_s` is how long a registry may be silent, in seconds.

    Raises ImageError, one sentence with its cure; for a failed build with the last lines and the
    log's path.
    """
    began = time.monotonic()
    checkout = inputs.checkout()
    context = inputs.files(checkout)
    pins = inputs.read_pins(context[inputs.PINS].read_text(encoding="utf-8"))
    wanted = Bases(
        base or inputs.pinned_version(pins, "image", "base"),
        tools_base or inputs.pinned_version(pins, "image", "tools-base"),
    )
    digest = inputs.digest(context, {"base": wanted.base, "tools_base": wanted.tools_base})
    engine = engines.find()
    tag = f"{NAME}:{digest[:12]}"
    if engine.image_id(tag):
        return record.inspect(engine, tag)
    log_dir.mkdir(parents=True, exist_ok=True)
    log = log_dir / f"image-{digest[:12]}.log"
    say(f"building the image {tag}: minutes, once; its log: {log}")
    bootstrap = Bootstrap(engine, log, say, deadline, root, answer_s)
    bases = bootstrap.bases(wanted.base, wanted.tools_base, named=base is not None)
    labels = recipe.labels(
        inputs=digest,
        pins=inputs.digest({inputs.PINS: context[inputs.PINS]}, {}),
        base=bases.base,
        commit=provenance.commit(),
    )
    _build(engine, context, bases, tag, labels, log, say, deadline, root)
    return replace(record.inspect(engine, tag), built=True, seconds=time.monotonic() - began)


def _build(
    engine: BuildEngine,
    context: dict[str, Path],
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
        inputs.lay_out(context, recipe.ca_bundle(os.environ, root), Path(folder))
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
        raise ImageError(
            f"the image could not be built: `docker build` {done.describe()}; the whole log: "
            f"{log}\n{last}"
        )
