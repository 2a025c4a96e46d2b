"""The owner of a container: a later start removes the containers of dead runs only."""

from __future__ import annotations

import os
from pathlib import Path

_DEAD = "ZX"  # proc(5): a zombie has ended and waits for its parent


def name(boot_id: str, pid: int | None = None) -> str:
    """The owner of a container: boot, namespace of process ids, process id, and start time.

    The start time is needed because process ids are reused. Raises OSError when there is no such
    process, or it may not be inspected.
    """
    number = os.getpid() if pid is None else pid
    # The name in parentheses may hold anything, so the fields are counted from the last
    # parenthesis; the first one is field 3.
    fields = Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()
    if fields[0] in _DEAD:
        raise ProcessLookupError(number)
    return f"{boot_id}/{Path('/proc/self/ns/pid').readlink()}/{number}/{fields[19]}"


def lives(holder: str, boot_id: str) -> bool | None:
    """Whether the run that made a container is still alive; None where that is unknown.

    It is unknown for another boot (which may be another machine's, at the same engine) and for
    another namespace of process ids. A malformed owner counts as alive.
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
    """Whether another user has a process with this id that /proc hides from us (hidepid)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return False  # ours, and a zombie
