"""Floors and ceilings of a disk's rates, from its link and its sheet. Pure.

A floor is a share of the lesser of what the link carries and what the vendor states; without a
sheet or a link nothing is judged, and the reason is given. Writes have no floor: how fast a sound
disk writes depends on how full it is and on what it wrote before. Until their last flush they have
gone over the link, so its ceiling is theirs too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acceptance.core.evidence import Scratch
from acceptance.core.limit import Limit
from acceptance.core.message import Listed, Message, Quantity, Values, known
from acceptance.expect.disk_sheet import (
    BLOCK_BYTES,
    DiskSheet,
    DiskVariant,
    find,
)
from acceptance.expect.limit_book import Override, at_least, unless_limited
from acceptance.machine.inventory import Disk

# Assumed: vendors measure an empty disk, on their own machine, by the best of queue depths; what is
# slower than this is throttled, has a narrower link than it shows, or is another disk.
READ_SHARE = 0.7
RANDOM_SHARE = 0.5
# A hard disk turns at one speed: its innermost tracks carry about half of what the outermost do,
# whose rate the vendors state. A file may lie on either.
HARD_DISK_SHARE = 0.4
# Assumed: one core requests so many direct reads a second by libaio, with the kernel's mitigations.
# The fastest disks state more than a few jobs can request.
JOB_IOPS = 250_000
# The protocols of link and disk take several percent of the data rate, so it needs no margin.
LINK_ERROR = 1.0

WRITES = ("storage_write", "storage_write_first", "storage_write_full")
RANDOM_WRITES = ("storage_write_random",)

Rate = tuple[float, Message]  # GB/s in one direction, and its derivation
# Processes that read at random places at once.
RANDOM_JOBS = 4


@dataclass(frozen=True, slots=True)
class StorageFacts:
    """What a filesystem is on.

    `disks` are the whole disks below it, `layers` what lies between ("lvm", "crypt", "raid1"),
    `link` the most that the only disk and its slot can have together, None where it is not known.
    """

    disks: tuple[Disk, ...]
    layers: tuple[str, ...]
    link: Rate | None


@dataclass(frozen=True, slots=True)
class StorageLimits:
    """The floors of sequential and random reads, or why there is none, and their ceilings.

    `origin` is that of the floors. A ceiling is None where the link is not known.
    """

    origin: Message
    read: Limit | Message
    random_read: Limit | Message
    read_ceiling: Limit | None = None
    random_ceiling: Limit | None = None


def overrides(
    scratches: Sequence[Scratch],
    disks: Sequence[Disk],
    links: Mapping[str, Rate],
    sheets: Sequence[DiskSheet],
) -> tuple[tuple[Override, ...], tuple[Override, ...]]:
    """The limits of reading from each tested filesystem, and the ceilings of reads and writes.

    `links` has the most that a disk and its slot can have together, by the disk's name, where that
    is known.
    """
    found: list[Override] = []
    ceilings: list[Override] = []
    by_name = {disk.name: disk for disk in disks}
    for one in scratches:
        if not (one.write_bytes or one.sealed_bytes):
            continue  # nothing is read there, and a limit of nothing is a gap of the plan
        under = tuple(by_name[name] for name in one.disks if name in by_name)
        link = links.get(one.disks[0]) if len(one.disks) == 1 else None
        own = limits(StorageFacts(under, one.layers, link), sheets, RANDOM_JOBS)
        for name, floor, ceiling, writes in (
            ("storage_read", own.read, own.read_ceiling, WRITES),
            ("storage_read_random", own.random_read, own.random_ceiling, RANDOM_WRITES),
        ):
            if isinstance(floor, Limit):
                found.append(Override(name, own.origin, floor, one.component))
            else:
                found.append(Override(name, own.origin, None, one.component, unlimited=floor))
            if ceiling is not None:
                ceilings += (
                    Override(each, own.origin, ceiling, one.component) for each in (name, *writes)
                )
    return tuple(found), tuple(ceilings)


def limits(facts: StorageFacts, sheets: Sequence[DiskSheet], jobs: int) -> StorageLimits:
    """The limits of reading from a filesystem, with so many jobs that read at random places."""
    if why := _not_one_disk(facts):
        return _unlimited(why)
    disk = facts.disks[0]
    if facts.link is None:
        return _unlimited(Message("disk_link_unknown", {"disk": disk.name}))
    ceilings = _ceilings(facts.link)
    found = _variant(disk, sheets)
    if isinstance(found, Message):
        return _unlimited(found, *ceilings)
    sheet, variant = found
    return StorageLimits(
        sheet.origin,
        _read(sheet, variant, facts.link),
        _random(sheet, variant, facts.link, jobs),
        *ceilings,
    )


def _not_one_disk(facts: StorageFacts) -> Message | None:
    """Why the sheet and the link of one disk say nothing about the filesystem, or None."""
    if facts.layers:
        return Message("disk_layers", {"layers": Listed(tuple(facts.layers))})
    if len(facts.disks) != 1:
        return Message("disk_count", {"disks": len(facts.disks)})
    disk = facts.disks[0]
    if disk.kind == "virtual":
        return Message("disk_virtual", {"disk": disk.name})
    # A SATA disk behind a SAS controller is listed as "sas".
    if disk.transport not in ("nvme", "sata", "sas"):
        values = known(disk=disk.name, transport=disk.transport)
        return Message("disk_transport", values)
    return None


def _variant(disk: Disk, sheets: Sequence[DiskSheet]) -> tuple[DiskSheet, DiskVariant] | Message:
    if disk.model is None or disk.size_bytes is None:
        return Message("disk_name_unknown", {"disk": disk.name})
    sheet = find(sheets, disk.model)
    if sheet is None or (sheet.kind == "nvme") != (disk.transport == "nvme"):
        return Message("disk_no_sheet", {"model": disk.model})
    variant = sheet.of_size(disk.size_bytes)
    if variant is None:
        size = f"{disk.size_bytes / 1e9:.0f}"
        return Message("disk_size_unlisted", {"model": sheet.name, "size": size})
    return sheet, variant


def _unlimited(
    why: Message, read_ceiling: Limit | None = None, random_ceiling: Limit | None = None
) -> StorageLimits:
    told = unless_limited(why)
    return StorageLimits(Message("disk_sheets"), told, told, read_ceiling, random_ceiling)


def _source(sheet: DiskSheet) -> Message:
    day = sheet.read.isoformat() if sheet.read is not None else None
    return Message("disk_sheet_source", known(source=sheet.source, day=day))


def _read(sheet: DiskSheet, variant: DiskVariant, link: Rate) -> Limit:
    share = HARD_DISK_SHARE if sheet.kind == "hdd" else READ_SHARE
    least = min(variant.read_gbs, link[0])
    values: Values = {
        "share": f"{share:g}",
        "least": Quantity(least, "GB/s"),
        "stated": Quantity(variant.read_gbs, "GB/s"),
        "model": sheet.name,
        "size": variant.gb,
        "source": _source(sheet),
        "carried": Quantity(link[0], "GB/s"),
        "link": link[1],
    }
    if sheet.kind == "hdd":
        return at_least(share * least, "GB/s", Message("disk_read_floor_rotating", values))
    return at_least(share * least, "GB/s", Message("disk_read_floor", values))


def _random(sheet: DiskSheet, variant: DiskVariant, link: Rate, jobs: int) -> Limit | Message:
    if variant.read_iops is None:
        values: Values = {"model": sheet.name, "size": variant.gb}
        return unless_limited(Message("disk_random_unstated", values))
    carried, requested = _blocks(link), jobs * JOB_IOPS
    least = min(variant.read_iops, carried, requested)
    return at_least(
        RANDOM_SHARE * least,
        "IOPS",
        Message(
            "disk_random_floor",
            {
                "share": f"{RANDOM_SHARE:g}",
                "least": Quantity(least, "IOPS"),
                "stated": Quantity(variant.read_iops, "IOPS"),
                "model": sheet.name,
                "size": variant.gb,
                "source": _source(sheet),
                "carried": Quantity(carried, "IOPS"),
                "jobs": jobs,
                "requested": Quantity(requested, "IOPS"),
            },
        ),
    )


def _blocks(link: Rate) -> float:
    """Reads of 4 KiB a second that a link carries at most."""
    return link[0] * 1e9 / BLOCK_BYTES


def _ceilings(link: Rate) -> tuple[Limit, Limit]:
    """The most that a link carries: sequential, and in reads of 4 KiB."""
    blocks = Message("disk_blocks", {"link": link[1], "bytes": BLOCK_BYTES})
    return _ceiling("GB/s", link), _ceiling("IOPS", (_blocks(link), blocks))


def _ceiling(unit: str, rate: Rate) -> Limit:
    values: Values = {
        "error": f"{LINK_ERROR:g}",
        "most": Quantity(rate[0], unit),
        "formula": rate[1],
    }
    return Limit(unit, Message("most_possible", values), high=LINK_ERROR * rate[0])
