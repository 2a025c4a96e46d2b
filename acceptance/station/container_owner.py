"""Who holds a container: so that a later start removes those of dead runs, and
never those of a living one.
"""

from __future__ import annotations

import os
from pathlib import Path

_DEAD = "ZX"  # proc(5): a zombie has ended, and only its parent has not looked yet


def name(boot_id: str, pid: int | None = None) -> str:
    """Who holds a container: this boot, this namespace of process ids, this process, and when it
    started, because process ids come back.

    Raises OSError when there is no such process, or none that may be looked at.
    """
    number = os.getpid() if pid is None else pid
    # The name in parentheses may hold anything, so the fields are counted from the last
    # parenthesis; the first one is field 3.
    fields = Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()
    if fields[0] in _DEAD:
        raise ProcessLookupError(number)
    return f"{boot_id}/{Path('/proc/self/ns/pid').readlink()}/{number}/{fields[19]}"


def lives(holder: str, boot_id: str) -> bool | None:
    """Whether the run that made a container is still under way; None where that cannot be told from
    here.

    It cannot be told of another boot (which may be another machine's, at the same engine) and of
    another namespace of process ids. A holder that cannot be read is taken for living.
    """
    parts = holder.split("/")
    if len(parts) != 4 or not (parts[2].isascii() and parts[2].isdecimal()):
        return True
    own = name(boot_id).split("/")
    if parts[:2] != own[:2]:
        return None
    try:
        return name(boot_id, int(parts[2])) == holder
    except OSError:
        return None if _exists(int(parts[2])) else False


def _exists(pid: int) -> bool:
    """Whether there is a process that /proc does not show us (hidepid): one of another user's."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return False  # ours, and a zombie
