"""What the kernel counts of a disk's work: bytes and requests that reached the device.

The layout is that of Documentation/block/stat.rst: 11 numbers, 15 since Linux 4.18 (discards), 17
since 5.5 (flushes); a later kernel adds at the end.

Of an NVMe disk with several ways (`nvme_core.multipath`, on by default for drives with two ports)
kernels before 6.4 count on the hidden ways alone (nvme0c0n1), and the disk itself (nvme0n1) shows
zeros; https://github.com/Atoptool/atop/pull/157 has such counters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from acceptance.core.message import english
from acceptance.core.plain_text import quote
from acceptance.observe import sysfs
from acceptance.observe.storage import SECTOR_BYTES
from acceptance.observe.sysfs import SysfsError

_LEAST, _WITH_FLUSHES = 11, 17
_NVME = re.compile(r"nvme(\d+)n(\d+)")


@dataclass(frozen=True, slots=True)
class Moved:
    """What a disk has read and written, or what several did together between two moments.

    `flushes` is None where the kernel does not count them.
    """

    read_bytes: int
    written_bytes: int
    reads: int
    writes: int
    flushes: int | None


def parse(line: str) -> Moved:
    """The counters of /sys/class/block/*/stat. Raises SysfsError for a short or other line."""
    return _moved(line.split(), line)


def table(text: str) -> dict[str, Moved]:
    """The counters of every block device in the text of /proc/diskstats, by name.

    Raises SysfsError as `parse` does, and for a device that comes twice.
    """
    found: dict[str, Moved] = {}
    for line in filter(str.strip, text.split("\n")):
        fields = line.split()
        if len(fields) < 3 or fields[2] in found:
            raise SysfsError(
                english(
                    "disk_counters_unknown",
                    "the kernel's counters of a disk are not understood: {line}",
                ),
                line=quote(line),
            )
        found[fields[2]] = _moved(fields[3:], line)
    return found


def _moved(fields: list[str], line: str) -> Moved:
    if len(fields) < _LEAST or not all(one.isascii() and one.isdecimal() for one in fields):
        raise SysfsError("disk_counters_unknown", line=quote(line))
    numbers = [int(one) for one in fields]
    return Moved(
        read_bytes=numbers[2] * SECTOR_BYTES,
        written_bytes=numbers[6] * SECTOR_BYTES,
        reads=numbers[0],
        writes=numbers[4],
        flushes=numbers[15] if len(numbers) >= _WITH_FLUSHES else None,
    )


def read(names: Iterable[str], root: Path = Path("/")) -> dict[str, Moved]:
    """The counters of these disks now. Raises SysfsError where one is gone."""
    found: dict[str, Moved] = {}
    for name in names:
        text = sysfs.text(root / "sys/class/block" / name / "stat")
        if text is None:
            raise SysfsError(
                english(
                    "disk_not_counted", "{disk} is gone: the kernel no longer lists its counters"
                ),
                disk=name,
            )
        found[name] = _most(parse(text), _by_ways(name, root))
    return found


def _by_ways(name: str, root: Path) -> Moved:
    """What the hidden ways of an NVMe disk have moved together; nothing without any."""
    total = Moved(0, 0, 0, 0, 0)
    if (match := _NVME.fullmatch(name)) is None:
        return total
    way = re.compile(rf"nvme{match[1]}c\d+n{match[2]}")
    for entry in sysfs.entries(root / "sys/class/block"):
        if way.fullmatch(entry.name) and (text := sysfs.text(entry / "stat")) is not None:
            total = _sum(total, parse(text))
    return total


def _most(one: Moved, other: Moved) -> Moved:
    """Each the larger: where both count, they count the same."""
    unknown = one.flushes is None or other.flushes is None
    return Moved(
        max(one.read_bytes, other.read_bytes),
        max(one.written_bytes, other.written_bytes),
        max(one.reads, other.reads),
        max(one.writes, other.writes),
        None if unknown else max(one.flushes or 0, other.flushes or 0),
    )


def between(before: Mapping[str, Moved], after: Mapping[str, Moved]) -> Moved:
    """What all these disks moved between two readings.

    Raises SysfsError where a disk of the first is not in the second, or counts less there: it was
    away meanwhile.
    """
    total = Moved(0, 0, 0, 0, 0)
    for name, first in before.items():
        last = after.get(name)
        if last is None:
            raise SysfsError("disk_not_counted", disk=name)
        total = _sum(total, _grown(name, first, last))
    return total


def _grown(name: str, first: Moved, last: Moved) -> Moved:
    unknown = first.flushes is None or last.flushes is None
    grown = Moved(
        last.read_bytes - first.read_bytes,
        last.written_bytes - first.written_bytes,
        last.reads - first.reads,
        last.writes - first.writes,
        None if unknown else (last.flushes or 0) - (first.flushes or 0),
    )
    counts = (grown.read_bytes, grown.written_bytes, grown.reads, grown.writes, grown.flushes or 0)
    if min(counts) < 0:
        raise SysfsError(
            english(
                "disk_counters_fell",
                "the counters of {disk} are lower than before: it was away meanwhile",
            ),
            disk=name,
        )
    return grown


def _sum(one: Moved, other: Moved) -> Moved:
    unknown = one.flushes is None or other.flushes is None
    return Moved(
        one.read_bytes + other.read_bytes,
        one.written_bytes + other.written_bytes,
        one.reads + other.reads,
        one.writes + other.writes,
        None if unknown else (one.flushes or 0) + (other.flushes or 0),
    )
