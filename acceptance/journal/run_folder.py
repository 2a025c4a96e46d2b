"""Files of a run that are views of its journal, and writing such a file whole or not at all.

Files that root left in a folder of the user, and the command that gives them back.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
from pathlib import Path

from acceptance.core.message import Listed, Message, Text, Values, english
from acceptance.journal import segment

_SHOWN = 3  # names in a message


def left_by_root(path: Path) -> Path | None:
    """The topmost place on this path that root owns, in a folder of this user.

    None where the user is root, or where no such place is: what lies in a folder of root's own is
    root's by right.
    """
    if os.geteuid() == 0:
        return None
    here = path.absolute()
    for place in (here, *here.parents):
        try:
            if _owner(place) == 0 and _owner(place.parent.resolve()) == os.geteuid():
                return place
        except OSError:  # it is not there, or may not be looked at
            continue
    return None


def _owner(path: Path) -> int:
    return path.lstat().st_uid


def reason(error: OSError, path: Path) -> Text:
    """Why a file cannot be read or written; the cure with it where root left the file."""
    why = error.strerror or str(error)
    theirs = left_by_root(path) if error.errno in (errno.EACCES, errno.EPERM) else None
    return (
        why
        if theirs is None
        else Message(
            english(
                "left_by_root",
                "{why}; root left it there: `sudo chown -R $USER: {path}` makes it yours",
            ),
            {"why": why, "path": shlex.quote(str(theirs))},
        )
    )


def left_in(out: Path) -> Message | None:
    """What tells of root's files directly in the output folder that this user cannot change."""
    if os.geteuid() == 0:
        return None
    names = sorted(
        found.name
        for found in out.iterdir()
        # A link can be replaced, whoever owns it.
        if not found.is_symlink() and _owner(found) == 0 and not os.access(found, os.W_OK)
    )
    values: Values = {"names": Listed.first(names, _SHOWN), "out": shlex.quote(str(out))}
    return (
        Message(
            english(
                "root_left_files",
                "root left files in {out} that you cannot change ({names}): `sudo chown -R $USER: "
                "{out}` makes them yours",
            ),
            values,
        )
        if names
        else None
    )


VERDICT = "verdict.json"
JUNIT = "junit.xml"
PAGE = "report.html"
# What to do after making room for a file that is no view of the journal.
START_AGAIN = Message(english("start_again", "start again"))
# Room on the disk does not cure these.
_PLACE = {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS}


def write_whole(
    path: Path, content: bytes, then: Text | None = None, mode: int | None = None
) -> None:
    """Write a file whole or not at all. Raises JournalError when the disk does not take it.

    `then` tells the user what to do after making room; without it the advice is to write the views
    of the journal again. `mode` is the file's permissions; without it the umask decides.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    # root would replace the device by a file
    if path.is_char_device() or path.is_block_device():
        raise segment.JournalError(
            english(
                "is_device",
                "{path}: cannot be written (it is a device, not a file): give the name of a file",
            ),
            path=str(path),
        )
    try:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()  # left by an earlier process with the same process id
        with draft.open("xb") as file:  # "x": never follow a link that somebody placed there
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        cure = then or Message(
            english("report_again", "run `rigproof report {run}`"), {"run": str(path.parent)}
        )
        why = reason(error, path)
        code = (
            english(
                "view_misplaced",
                "{path}: cannot be written ({why}): make sure that its folder exists and that you "
                "may write to it, then {then}",
            )
            if error.errno in _PLACE
            else english(
                "view_unwritten", "{path}: cannot be written ({why}): make room, then {then}"
            )
        )
        raise segment.JournalError(code, path=str(path), why=why, then=cure) from error
