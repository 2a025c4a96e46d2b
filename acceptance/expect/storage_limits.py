"""Floors and ceilings of a disk's rates, from its link and its sheet. Pure.

A floor is a share of the lesser of what the link carries and what the vendor states; without a
sheet or a link nothing is judged, and the reason is given. Writes have no floor: how fast a sound
disk writes depends on how full it is and on what it wrote before. Until their last flush they have
gone over the link, so its ceiling is theirs too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from acceptance.core.evidence import Scratch
from acceptance.core.message import Listed, Message, Quantity, Values, english, known
from acceptance.core.parts import Component
from acceptance.expect import limit_book
from acceptance.expect.disk_sheet import BLOCK_BYTES, DiskSheet, DiskVariant, find
from acceptance.expect.limit_book import Amount, Override, Rate, unless_limited
from acceptance.machine.inventory import Disk

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
    most: list[Override] = []
    by_name = {disk.name: disk for disk in disks}
    for one in scratches:
        if not (one.write_bytes or one.sealed_bytes):
            continue  # nothing is read there, and a limit of nothing is a gap of the plan
        under = tuple(by_name[name] for name in one.disks if name in by_name)
        link = links.get(one.disks[0]) if len(one.disks) == 1 else None
        facts = StorageFacts(under, one.layers, link)
        found += floors(facts, sheets, one.component)
        most += ceilings(facts, one.component)
    return tuple(found), tuple(most)


def floors(
    facts: StorageFacts, sheets: Sequence[DiskSheet], component: Component, jobs: int = RANDOM_JOBS
) -> Iterator[Override]:
    """The floors of reading from a filesystem, with so many jobs that read at random places."""
    found = _sheet(facts, sheets)
    if isinstance(found, Message):
        for of in ("disk", "disk_random"):
            yield from limit_book.floors(
                of, component, Message(english("disk_sheets", "disk sheets")), unless_limited(found)
            )
        return
    sheet, variant, link = found
    of = "hard_disk" if sheet.kind == "hdd" else "disk"
    yield from limit_book.floors(of, component, sheet.origin, _read(sheet, variant, link))
    random = _random(sheet, variant, link, jobs)
    yield from limit_book.floors("disk_random", component, sheet.origin, random)


def ceilings(facts: StorageFacts, component: Component) -> Iterator[Override]:
    """The most that the link carries: sequential, and in reads of 4 KiB."""
    if facts.link is None or _not_one_disk(facts) is not None:
        return
    yield from limit_book.ceilings("disk_link", component, facts.link)
    blocks = Message(
        english("disk_blocks", "({link}) / {bytes} bytes"),
        {"link": facts.link[1], "bytes": BLOCK_BYTES},
    )
    rate = _blocks(facts.link), blocks
    yield from limit_book.ceilings("disk_link_blocks", component, rate)


def _not_one_disk(facts: StorageFacts) -> Message | None:
    """Why the sheet and the link of one disk say nothing about the filesystem, or None."""
    if facts.layers:
        return Message(
            english(
                "disk_layers",
                "the file system is on {layers}, whose speed neither sheet nor link tells",
            ),
            {"layers": Listed(tuple(facts.layers))},
        )
    if len(facts.disks) != 1:
        return Message(
            english(
                "disk_count",
                "the file system is on {disks} disks, which no sheet describes together",
            ),
            {"disks": len(facts.disks)},
        )
    disk = facts.disks[0]
    if disk.kind == "virtual":
        return Message(
            english("disk_virtual", "{disk} is a virtual disk: its speed is what the host grants"),
            {"disk": disk.name},
        )
    # A SATA disk behind a SAS controller is listed as "sas".
    if disk.transport not in ("nvme", "sata", "sas"):
        values = known(disk=disk.name, transport=disk.transport)
        return Message(
            english(
                "disk_transport",
                "{disk} is not attached by NVMe, SATA or SAS[, but by {transport}]",
            ),
            values,
        )
    return None


def _sheet(
    facts: StorageFacts, sheets: Sequence[DiskSheet]
) -> tuple[DiskSheet, DiskVariant, Rate] | Message:
    """The sheet of the filesystem's disk, and its link; or why nothing is known to hold it to."""
    if (why := _not_one_disk(facts)) is not None:
        return why
    (disk,) = facts.disks
    if facts.link is None:
        return Message(
            english("disk_link_unknown", "the kernel does not show the link of {disk}"),
            {"disk": disk.name},
        )
    if disk.model is None or disk.size_bytes is None:
        return Message(
            english(
                "disk_name_unknown", "the kernel does not tell the model and the size of {disk}"
            ),
            {"disk": disk.name},
        )
    sheet = find(sheets, disk.model)
    if sheet is None or (sheet.kind == "nvme") != (disk.transport == "nvme"):
        return Message(
            english("disk_no_sheet", "no disk sheet has the model {model}"), {"model": disk.model}
        )
    variant = sheet.of_size(disk.size_bytes)
    if variant is None:
        size = f"{disk.size_bytes / 1e9:.0f}"
        return Message(
            english("disk_size_unlisted", "the sheet of {model} has no disk of {size} GB"),
            {"model": sheet.name, "size": size},
        )
    return sheet, variant, facts.link


def _source(sheet: DiskSheet) -> Message:
    day = sheet.read.isoformat() if sheet.read is not None else None
    return Message(
        english("disk_sheet_source", "{source}[, read on {day}]"),
        known(source=sheet.source, day=day),
    )


def _read(sheet: DiskSheet, variant: DiskVariant, link: Rate) -> Amount:
    least = min(variant.read_gbs, link[0])
    values: Values = {
        "least": Quantity(least, "GB/s"),
        "stated": Quantity(variant.read_gbs, "GB/s"),
        "model": sheet.name,
        "size": variant.gb,
        "source": _source(sheet),
        "carried": Quantity(link[0], "GB/s"),
        "link": link[1],
    }
    return Amount(least, values)


def _random(sheet: DiskSheet, variant: DiskVariant, link: Rate, jobs: int) -> Amount | Message:
    if variant.read_iops is None:
        why: Values = {"model": sheet.name, "size": variant.gb}
        return unless_limited(
            Message(
                english(
                    "disk_random_unstated",
                    "no source gives the random reads of {model} of {size} GB",
                ),
                why,
            )
        )
    carried, requested = _blocks(link), jobs * limit_book.figures().job_iops.value
    least = min(variant.read_iops, carried, requested)
    values: Values = {
        "least": Quantity(least, "IOPS"),
        "stated": Quantity(variant.read_iops, "IOPS"),
        "model": sheet.name,
        "size": variant.gb,
        "source": _source(sheet),
        "carried": Quantity(carried, "IOPS"),
        "jobs": jobs,
        "requested": Quantity(requested, "IOPS"),
    }
    return Amount(least, values)


def _blocks(link: Rate) -> float:
    """Reads of 4 KiB a second that a link carries at most."""
    return link[0] * 1e9 / BLOCK_BYTES
