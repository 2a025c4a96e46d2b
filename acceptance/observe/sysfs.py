"""Small files of the kernel: text, numbers and lists of CPUs, under any root."""

from __future__ import annotations

import re
from pathlib import Path

_CPUS = re.compile(r"(\d+)(?:-(\d+))?")


KERNEL_CURE = "the driver, the kernel or rigproof is at fault: please report it"


class SysfsError(Exception):
    """The kernel said something that was not expected; the message names the file and quotes it."""


def text(path: Path) -> str | None:
    """The file's text without the white space around it.

    None where there is none: no such file, nothing in it, or the kernel refuses to tell (a link
    that is down, a file only root may read).
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\0 \t\r\n") or None
    except OSError:
        return None


def content(path: Path) -> bytes | None:
    """The file's bytes, None where it cannot be read or is empty."""
    try:
        return path.read_bytes() or None
    except OSError:
        return None


def number(path: Path) -> int | None:
    """The whole number in a file, decimal or `0x...`; None where there is none.

    Raises SysfsError for anything else.
    """
    value = text(path)
    if value is None:
        return None
    if not re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", value):
        raise SysfsError(f"{path} holds {value[:80]!r}, which is not a number: {KERNEL_CURE}")
    return int(value, 16 if value.startswith("0x") else 10)


def cpus(path: Path) -> tuple[int, ...] | None:
    """The CPUs that a file lists as `0-3,8`, in order; None where there is none.

    Raises SysfsError for anything else.
    """
    value = text(path)
    if value is None:
        return None
    found: set[int] = set()
    for part in value.split(","):
        match = _CPUS.fullmatch(part.strip())
        if match is None:
            raise SysfsError(
                f"{path} holds {value[:80]!r}, which is not a list of CPUs: {KERNEL_CURE}"
            )
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(found))


def entries(folder: Path) -> tuple[Path, ...]:
    """What is in a folder, by name; nothing where the folder cannot be read."""
    try:
        return tuple(sorted(folder.iterdir()))
    except OSError:
        return ()


def target(link: Path) -> str | None:
    """The name of what a symbolic link (such as `driver`) points to; None where
    there is no link.
    """
    try:
        return link.readlink().name
    except OSError:
        return None
