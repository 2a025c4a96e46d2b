"""Check with a user's rights whether that user can run a night: root could do anything."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator, Sequence
from pathlib import Path


@contextlib.contextmanager
def acting_as(name: str) -> Iterator[bool]:
    """Run the block with this user's rights; yields whether that worked, which only root can do.

    The saved ids stay root's, so that root's rights can be restored. Nothing may be imported in the
    block: the user may be unable to read it.
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
        except OSError:  # root without those rights, or without that user, as in some containers
            own = False
        yield own


def missing_right(program: Sequence[Path], folder: Path, out: Path) -> str | None:
    """What the current user may not do but every night does, with the cure; None if nothing."""
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
    except OSError:  # the user may not even look at it: then this path is the one refused
        return True
