"""Builds the image where it is not here yet, from inputs to a reference.

What a build with the classic builder leaves behind: an unnamed image for each stage.

Those that make the next build quick get a name, and the others are removed. Ours are known by the
label that the Dockerfile gives each stage; other unnamed images are somebody else's. BuildKit keeps
its stages in a cache of its own.

The image as a file, for machines without a network.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from acceptance.core import version as versions
from acceptance.core.message import SetupError
from acceptance.journal import provenance
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.station.image import base as image_base
from acceptance.station.image import engine as engines
from acceptance.station.image import inputs, network, recipe, record
from acceptance.station.image.base import ANSWER_S, Bases, Bootstrap
from acceptance.station.image.engine import BuildEngine, gigabytes
from acceptance.station.image.record import ImageRef
from acceptance.wording import words

STAGE_NAME = "rigproof-stage"
# Their packages are downloaded; `system` decides whether the layers above it are made again.
KEPT = ("tools", "python", "system")
# Those that are made from the others come first.
STAGES = ("proof", "suite", "harness", "python", "packager", "system", "distribution", "tools")
LOCK = "run/lock/rigproof-image.lock"
_STAGE = f"{recipe.LABELS}.stage"
_INPUTS = f"{recipe.LABELS}.inputs"
_REMOVE_S = 300.0


@contextlib.contextmanager
def build_lock(root: Path) -> Iterator[int | None]:
    """A lock that builds share; None where the host has no place for one.

    A build waits while another one tidies up: an unnamed image may be a stage of it.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    file = None
    for more in (0, os.O_CREAT):  # a sticky folder may refuse O_CREAT for another user's file
        with contextlib.suppress(OSError):
            file = os.open(root / LOCK, flags | more, 0o666) if file is None else file
    try:
        if file is not None:
            with contextlib.suppress(OSError):
                os.fchmod(file, 0o666)
            fcntl.flock(file, fcntl.LOCK_SH)
        yield file
    finally:
        if file is not None:
            os.close(file)


def tidy(engine: BuildEngine, lock: int | None, say: Callable[[str], None]) -> None:
    """Name the stages that are worth keeping, and remove our other unnamed images.

    While another build goes on, nothing is done: it tidies up when it ends.
    """
    if lock is not None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
    for stage in KEPT:
        # The stage of this name so far, if there is one, becomes unnamed.
        for newest in _unnamed(engine, stage)[:1]:
            engine.ask("tag", newest, f"{STAGE_NAME}:{stage}")
    left = 0
    for old in [*_finals(engine), *(old for stage in STAGES for old in _unnamed(engine, stage))]:
        # Without force: an image that a container or another image uses stays.
        done = engine.ask("image", "rm", old, seconds=_REMOVE_S)
        left += done.returncode != 0 and engine.image_id(old) is not None
    if left:
        say(f"unnamed images of earlier builds that are in use and were not removed: {left}")


def _unnamed(engine: BuildEngine, stage: str) -> tuple[str, ...]:
    return engine.images(f"{_STAGE}={stage}", unnamed=True)


def _finals(engine: BuildEngine) -> Iterator[str]:
    """Unnamed images that once were rigproof's own.

    Images of other people that are built on it inherit its labels, so the last step decides.
    """
    for identity in engine.images(_INPUTS, unnamed=True):
        done = engine.ask("history", "--no-trunc", "--format", "{{.CreatedBy}}", identity)
        if f"LABEL {recipe.LABELS}." in done.stdout.partition("\n")[0]:
            yield identity


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
    with build_lock(root) as lock:
        _build(engine, want, bases, tag, labels, log, say, deadline, root)
        tidy(engine, lock, say)
    return replace(record.inspect(engine, tag), built=True, seconds=time.monotonic() - began)


def _announced(engine: BuildEngine, pins: str, root: Path) -> str:
    """What the build costs, for the user. Raises SetupError where the disk has no room for it.

    An image of the same pins alone does not tell that the stages are here: it may come from a file.
    """
    again = bool(engine.images(f"{recipe.LABELS}.pins={pins}")) and (
        engine.build_cache() >= recipe.STAGES_BYTES
        if engine.buildkit
        else engine.image_id(f"{STAGE_NAME}:python") is not None
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
        done = image_base.follow(running, image_base.Progress(say))
    if done.returncode != 0:
        last = image_base.tail((done.stdout, done.stderr))
        raise SetupError(
            f"the image could not be built: `docker build` {words.message(done.describe())}; "
            f"the whole log: {log}\n{last}"
        )


_INDEX = "manifest.json"
_INDEX_BYTES = 1 << 20


def save(file: Path, log_dir: Path, say: Callable[[str], None], deadline: Deadline) -> ImageRef:
    """Write the image of this rigproof to a file, whole or not at all.

    The image is built first where it is not here. Only a plain file is replaced. Raises SetupError.
    """
    folder = file.absolute().parent
    if file.is_symlink() or (file.exists() and not file.is_file() and not file.is_dir()):
        raise SetupError(
            f"{file}: is no plain file, and is not replaced: give the name of a file in a folder "
            "of yours, such as `rigproof image save rigproof.tar`"
        )
    if file.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise SetupError(f"{file}: cannot be written: give the name of a file in a folder of yours")
    image = build(log_dir=log_dir, say=say, deadline=deadline)
    engine = engines.find()
    size, free = engine.size(image.tag), shutil.disk_usage(folder).free
    if size is not None and free < size:
        raise SetupError(
            f"{file}: the image has {gigabytes(size)}, and {gigabytes(free)} are free there: "
            "make room, or give a file on another disk"
        )
    draft = folder / f".{file.name}.{os.getpid()}"
    try:
        _run(engine, ["save", "--output", str(draft), image.tag], file, deadline)
        draft.replace(file)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
    return image


def load(file: Path, deadline: Deadline) -> ImageRef:
    """Load the image of this rigproof from a file that `save` has written.

    A file that does not hold it is not loaded. Raises SetupError.
    """
    want = wanted()
    held = _tags(file)
    if want.tag not in held:
        raise SetupError(
            f"{file}: holds {', '.join(held) or 'no image with a name'}, and this rigproof needs "
            f"{want.tag}: save it with the same version of rigproof"
        )
    if others := [tag for tag in held if tag != want.tag]:
        raise SetupError(f"{file}: also holds {', '.join(others)}: save it with `rigproof image`")
    engine = engines.find()
    if disk := engine.disk():  # the engine unpacks the file before it takes the image from it
        needed = file.stat().st_size + recipe.IMAGE_BYTES
        disk.require(needed, f"{file}: the image cannot be loaded")
    _run(engine, ["load", "--quiet", "--input", str(file)], file, deadline)
    image = record.inspect(engine, want.tag)
    if image.inputs != want.digest:
        raise SetupError(
            f"{file}: the image in it was made from other inputs ({image.inputs[:12]}) than its "
            f"name says: remove it with `docker image rm {want.tag}`, and save it again"
        )
    return image


def _tags(file: Path) -> tuple[str, ...]:
    """The names of the images in a file of `docker save`. Raises SetupError for another file."""
    if not file.is_file():
        raise SetupError(f"{file}: is no file: give the one that `rigproof image save` wrote")
    try:
        with tarfile.open(file, "r:") as archive:
            # A link is not followed: it may lead to itself.
            index = archive.getmember(_INDEX)
            member = archive.extractfile(index) if index.isreg() else None
            text = member.read(_INDEX_BYTES) if member is not None else b""
        found = [tag for one in json.loads(text) for tag in one["RepoTags"] or ()]
    except (OSError, tarfile.TarError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise SetupError(
            f"{file}: is no image, or not a whole one ({error}): save it again with "
            "`rigproof image save`"
        ) from error
    return tuple(map(str, found))


def _run(engine: BuildEngine, argv: list[str], file: Path, deadline: Deadline) -> None:
    done = command.run([engine.docker, *argv], deadline=deadline)
    if done.returncode != 0:
        raise SetupError(
            f"{file}: `docker {argv[0]}` {words.message(done.describe())}: {done.last_lines(1)}"
        )
