"""Clocks of a journal: seconds since boot, wall time, the ids of the boot and the machine."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path


def boot_s() -> float:
    """Seconds since this boot, including sleep (CLOCK_BOOTTIME).

    The clock is the same for every process and container of the machine.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def utc() -> str:
    """The wall time as ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def boot_id(root: Path = Path("/")) -> str:
    """The kernel's random id for this boot; it changes with every restart."""
    return (root / "proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def machine_id(root: Path = Path("/")) -> str:
    """The id of the operating system's installation, or the host name if there is none.

    It distinguishes the runs of several machines in one shared folder.
    """
    try:
        return (root / "etc/machine-id").read_text(encoding="ascii").strip() or _host(root)
    except FileNotFoundError:
        return _host(root)


def _host(root: Path) -> str:
    return (root / "proc/sys/kernel/hostname").read_text(encoding="utf-8").strip()
