"""What a build with the classic builder leaves behind: an unnamed image for each stage.

Those that make the next build quick get a name, and the others are removed. Ours are known by the
label that the Dockerfile gives each stage; other unnamed images are somebody else's. BuildKit keeps
its stages in a cache of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from acceptance.station.image import recipe
from acceptance.station.image.engine import BuildEngine

NAME = "rigproof-stage"
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
            engine.ask("tag", newest, f"{NAME}:{stage}")
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
