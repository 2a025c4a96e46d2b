"""The image as a file, for machines without a network."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from acceptance.core.message import SetupError
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.station.image import build, recipe, record
from acceptance.station.image import engine as engines
from acceptance.station.image.engine import BuildEngine, gigabytes
from acceptance.station.image.record import ImageRef
from acceptance.wording import words

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
    image = build.build(log_dir=log_dir, say=say, deadline=deadline)
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
    want = build.wanted()
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
