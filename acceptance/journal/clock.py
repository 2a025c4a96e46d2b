"""The clocks of a journal: seconds since boot, wall time, and which boot it was."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path


def boot_s() -> float:
    """Seconds since this boot, sleep included; the same for every process and container of the
    machine (CLOCK_BOOTTIME).
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def utc() -> str:
    """The wall time as ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def boot_id(root: Path = Path("/")) -> str:
    """The kernel's random name for this boot; another one means that the
    machine was restarted in between.
    """
    return (root / "proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def machine_id(root: Path = Path("/")) -> str:
    """The installation's own id, so that runs of several machines in one shared folder are told
    apart; host name where it has none.
    """
    try:
        return (root / "etc/machine-id").read_text(encoding="ascii").strip() or _host(root)
    except FileNotFoundError:
        return _host(root)


def _host(root: Path) -> str:
    return (root / "proc/sys/kernel/hostname").read_text(encoding="utf-8").strip()
