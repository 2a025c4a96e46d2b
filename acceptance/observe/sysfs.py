"""Small files of the kernel: text, numbers and lists of CPUs, under any root directory."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from acceptance.core.message import Unmeasured, english
from acceptance.wording.errors import WordedError

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EOPNOTSUPP})
_REFUSED = frozenset({errno.EACCES, errno.EPERM})
_NUMBER = re.compile(r"-?\d+|0x[0-9a-fA-F]+")
_CPUS = re.compile(r"(\d+)(?:-(\d+))?")


class SysfsError(WordedError):
    """The kernel gave an unexpected value; the message names the file and quotes it."""


def unexpected(code: str, path: Path, value: str) -> SysfsError:
    """The error for a file that holds something else than it should."""
    return SysfsError(code, path=str(path), value=repr(value[:80]))


def text(path: Path) -> str | None:
    """The file's text without surrounding white space.

    None if there is no such file, if it is empty, or if the kernel refuses to read it (a link that
    is down, a file that only root may read).
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\0 \t\r\n") or None
    except OSError:
        return None


def lack(paths: Iterable[Path]) -> Unmeasured:
    """Why files give no value: an error of any of them first, then a refusal; else it has none.

    A file that can be read and gives no value (`Unknown`) says that the kernel has none.
    """
    found = set()
    for path in paths:
        try:
            path.read_bytes()
        except OSError as error:
            if error.errno in _REFUSED:
                found.add(Unmeasured.NOT_PERMITTED)
            elif error.errno not in _ABSENT:
                found.add(Unmeasured.NO_ANSWER)
    worst = (Unmeasured.NO_ANSWER, Unmeasured.NOT_PERMITTED)
    return next((one for one in worst if one in found), Unmeasured.NOT_OFFERED)


Value = TypeVar("Value")


def needed(read: Callable[[Path], Value | None], path: Path) -> Value:
    """What `read` makes of a file. Raises SysfsError where it cannot be read too."""
    value = read(path)
    if value is None:
        raise SysfsError("sys_unread", path=str(path))
    return value


def content(path: Path) -> bytes | None:
    """The file's bytes; None if it cannot be read or is empty."""
    try:
        return path.read_bytes() or None
    except OSError:
        return None


def matched(code: str, path: Path, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """The file's whole text as this pattern has it; None if `text` is None.

    Raises SysfsError with this code for anything else.
    """
    value = text(path)
    if value is None:
        return None
    match = pattern.fullmatch(value)
    if match is None:
        raise unexpected(code, path, value)
    return match


def number(path: Path) -> int | None:
    """The whole number in a file, decimal or `0x...`; None if `text` is None.

    Raises SysfsError for anything else.
    """
    match = matched("no_number_in_file", path, _NUMBER)
    return None if match is None else int(match[0], 16 if match[0].startswith("0x") else 10)


def cpus(path: Path) -> tuple[int, ...] | None:
    """The CPUs that a file lists as `0-3,8`, in order; None if `text` is None.

    Raises SysfsError for anything else.
    """
    value = text(path)
    if value is None:
        return None
    found: set[int] = set()
    for part in value.split(","):
        match = _CPUS.fullmatch(part.strip())
        if match is None:
            raise unexpected(
                english(
                    "no_cpus_in_file",
                    "{path} holds {value}, which is not a list of CPUs: the driver, the kernel or "
                    "rigproof is at fault: please report it",
                ),
                path,
                value,
            )
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(found))


def entries(folder: Path) -> tuple[Path, ...]:
    """The entries of a folder, by name; empty if the folder cannot be read."""
    try:
        return tuple(sorted(folder.iterdir()))
    except OSError:
        return ()


def target(link: Path) -> str | None:
    """The name of a symbolic link's target (of `driver`, for example); None without a link."""
    try:
        return link.readlink().name
    except OSError:
        return None
