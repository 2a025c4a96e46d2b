"""Check with another user's rights whether that user can run a night: root could do anything."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator, Sequence
from pathlib import Path


@contextlib.contextmanager
def acting_as(name: str) -> Iterator[bool]:
    """Ask the system with this user's rights meanwhile; gives whether that is so, which is for root
    alone to bring about.

    The saved ids stay root's, by which the way back is open. Nothing may be imported within: the
    user may be unable to read it.
    """
    user = pwd.getpwnam(name)
    groups, uids, gids = os.getgroups(), os.getresuid(), os.getresgid()
    with contextlib.ExitStack() as back:
        own = os.geteuid() == 0
        try:
            if own:
                os.setgroups(os.getgrouplist(name, user.pw_gid))
                back.callback(os.setgroups, groups)
                os.setresgid(user.pw_gid, user.pw_gid, 0)
                back.callback(os.setresgid, *gids)
                os.setresuid(user.pw_uid, user.pw_uid, 0)
                back.callback(os.setresuid, *uids)
        except OSError:  # a root without those rights, or without that user, as in some containers
            own = False
        yield own


def missing_right(program: Sequence[Path], folder: Path, out: Path) -> str | None:
    """What the asking user may not do of what every night does, with the cure; None where
    nothing is in the way.
    """
    for path in program:
        if not os.access(path, os.R_OK | os.X_OK):
            return (
                f"may not start {path}: install rigproof where that user may read it, such as "
                "below /opt"
            )
    if not os.access(folder, os.R_OK | os.X_OK):
        return f"may not enter {folder}, in which the night is started: type this in another folder"
    there = folder / out
    while not _there(there) and there != there.parent:
        there = there.parent
    if not os.access(there, os.W_OK | os.X_OK):
        return (
            f"may not write into {there}: give another folder with --out, or make that one "
            "(`install -d -o USER`)"
        )
    return None


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # not even to be looked at: then it is this one that is refused
        return True
