"""A cache of the checks that pytest collected, so that a plan needs no pytest.

What pytest collects depends only on rigproof's own files, on Python and on pytest, so these three
are the key. The cache is in a folder that only this user can write to. An entry is used only where
it is whole and was written by this rigproof; otherwise the checks are collected again. The sessions
of a run collect for themselves, and refuse a plan that was made from other files.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sys
from pathlib import Path

import msgspec

from acceptance.core.regular_file import MIB
from acceptance.run import site_folder
from acceptance.run.site_folder import open_folder
from acceptance.session.context import Answer

# Maximum number of lists: for several checkouts and Pythons side by side.
MOST = 8
PREFIX = "checks-"
# A missing folder or file, or another user's; no home; no pytest.
_TROUBLE = (OSError, RuntimeError, ImportError)


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a cache file: the list, and the versions that collected it."""

    python: str
    pytest: str
    answer: Answer


def folder() -> Path:
    """The cache folder. Raises RuntimeError where this user has no home."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / ".cache") / "rigproof"


def read(digest: str) -> Answer | None:
    """The list of the package with this digest; None where there is no valid one."""
    with contextlib.suppress(*_TROUBLE, ValueError), open_folder(folder(), _require_own) as place:
        checksum, _, text = place.read(_name(digest), MIB).partition(b"\n")
        if checksum == _sum(text):
            kept = msgspec.json.decode(text, type=_Kept)
            own = (sys.version, _pytest_version(), digest)
            if (kept.python, kept.pytest, kept.answer.digest) == own:
                return kept.answer
    return None


def keep(answer: Answer) -> None:
    """Store a list.

    Where that fails, the next start collects the list again; nothing else is lost.
    """
    with contextlib.suppress(*_TROUBLE):
        place = folder()
        place.parent.mkdir(mode=0o700, exist_ok=True)
        if place.parent.stat().st_uid != os.geteuid():
            return  # root with another user's home: root leaves nothing there
        place.mkdir(mode=0o700, exist_ok=True)
        with open_folder(place, _require_own) as own:
            text = msgspec.json.encode(_Kept(sys.version, _pytest_version(), answer))
            _write(_name(answer.digest), _sum(text) + b"\n" + text, own.descriptor)
            _prune(own.descriptor)


def _pytest_version() -> str:
    """The version of the pytest that sessions import.

    Importing pytest itself takes as long as a plan.
    """
    from _pytest._version import version

    return version


def _name(digest: str) -> str:
    key = "\0".join((digest, sys.version, _pytest_version()))
    return f"{PREFIX}{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def _sum(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


def _require_own(path: Path, found: os.stat_result) -> None:
    """Raise OSError where it is not this user's, or somebody else can write to it."""
    if found.st_uid != os.geteuid() or site_folder.others_may_write(found):
        raise PermissionError(f"{path} can be written by others")


def _write(name: str, content: bytes, place: int) -> None:
    """Write a file atomically: a concurrent reader sees the old one or the new one."""
    draft = f"{PREFIX}{secrets.token_hex(8)}.draft"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o600, dir_fd=place), "wb") as file:
            file.write(content)
        os.rename(draft, name, src_dir_fd=place, dst_dir_fd=place)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=place)
        raise


def _prune(place: int) -> None:
    """Remove all but the newest files, abandoned drafts included."""
    with os.scandir(place) as entries:
        ours = [entry for entry in entries if entry.name.startswith(PREFIX)]
        ours.sort(key=lambda one: one.stat(follow_symlinks=False).st_mtime_ns, reverse=True)
    for entry in ours[MOST:]:
        with contextlib.suppress(OSError):
            os.unlink(entry.name, dir_fd=place)
