"""Floors and ceilings of reading from a disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from cases import each
from known import known
from msgspec.structs import replace
from worded import worded

from acceptance.core.evidence import Scratch
from acceptance.core.limit import Limit
from acceptance.core.message import Message, Text
from acceptance.core.parts import part
from acceptance.expect import disk_sheet
from acceptance.expect.disk_sheet import DiskSheet
from acceptance.expect.limit_book import Override
from acceptance.expect.storage_limits import StorageFacts, ceilings, floors, overrides
from acceptance.machine import disk_link, pcie
from acceptance.machine.disk_link import SataLink
from acceptance.machine.inventory import Disk
from acceptance.wording import words

SHEETS = disk_sheet.shipped()


def pcie_link(generation: int, width: int) -> tuple[float, Message]:
    return known(pcie.data_rate(generation, width))


def sata_link(gbps: float) -> tuple[float, Message]:
    return known(disk_link.most(SataLink(None, gbps, None)))


GEN3, GEN4, GEN5 = (pcie_link(generation, 4) for generation in (3, 4, 5))
SATA = sata_link(6)
JOBS = 4
DISK = part("disk", "nvme0n1")


def disk(model: str | None, gb: float | None, kind: str = "nvme", **changed: Any) -> Disk:
    size = round(gb * 1e9) if gb is not None else None
    values: dict[str, Any] = {
        "name": "nvme0n1" if kind == "nvme" else "sda",
        "model": model,
        "serial": "S1",
        "size_bytes": size,
        "kind": kind,
        "transport": "nvme" if kind == "nvme" else "sata",
        "firmware": "1",
    }
    return Disk(**values | changed)


PRO = disk("Samsung SSD 990 PRO 2TB", 2000.4)
EVO = disk("Samsung SSD 870 EVO 1TB", 1000.2, "ssd")
HARD = disk("ST16000NM001G-2KK103", 16000.9, "hdd")
FASTEST = disk("Micron_9550_MTFDLAL6T4THB", 6400.1)


class Limits(NamedTuple):
    """The floors of reads, or why there is none, and their ceilings."""

    origin: Text
    read: Limit | Message
    random_read: Limit | Message
    read_ceiling: Limit | None
    random_ceiling: Limit | None


def limits(facts: StorageFacts, sheets: Sequence[DiskSheet], jobs: int) -> Limits:
    read, random = floors(facts, sheets, DISK, jobs)
    most = {one.measurement: one.limit for one in ceilings(facts, DISK)}
    given: list[Any] = [one.limit or one.unlimited for one in (read, random)]
    highest = [most.get(name) for name in ("storage_read", "storage_read_random")]
    return Limits(read.origin, given[0], given[1], highest[0], highest[1])


def of(one: Disk, link: tuple[float, Message] | None, jobs: int = JOBS) -> Limits:
    return limits(StorageFacts((one,), (), link), SHEETS, jobs)


def low(one: Limit | Message) -> float | None:
    return one.low if isinstance(one, Limit) else None


def basis(one: Limit | Message | None) -> str:
    return str(worded(one.basis))


@pytest.mark.usefixtures("shares")
@each(
    "one, link, read, random",
    [
        # The lesser of 7.45 and the link's 7.877 or 3.938; of 1.4 million, 961,533 and 4 x 250,000.
        (PRO, GEN4, 0.7 * 7.45, 0.5 * 1e6),
        (PRO, GEN3, 0.7 * 3.93846, 0.5 * 961_538),
        (PRO, GEN5, 0.7 * 7.45, 0.5 * 1e6),
        (disk("Samsung SSD 990 PRO 1TB", 1000.2), pcie_link(4, 1), 0.7 * 1.96923, 0.5 * 480_769),
        (disk("Samsung SSD 970 PRO 512GB", 512.1), GEN3, 0.7 * 3.5, 0.5 * 370_000),
        (disk("CT2000T705SSD3", 2000.4), GEN5, 0.7 * 14.5, 0.5 * 1e6),
        (EVO, SATA, 0.7 * 0.56, 0.5 * 98_000),
        (EVO, sata_link(3), 0.7 * 0.3, 0.5 * 73_242),
        (EVO, sata_link(1.5), 0.7 * 0.15, 0.5 * 36_621),
        (HARD, SATA, 0.4 * 0.261, None),
        (disk("SOLIDIGM SB5PH27X038T", 3840.8), GEN5, 0.7 * 14.5, None),
    ],
)
def test_floors(
    one: Disk, link: tuple[float, Message] | None, read: float, random: float | None
) -> None:
    found = of(one, link)
    assert low(found.read) == pytest.approx(read, rel=1e-5)
    assert low(found.random_read) == (pytest.approx(random, rel=1e-5) if random else None)
    assert found.read.unit == "GB/s"
    assert found.read.high is None


@pytest.mark.usefixtures("shares")
@each("jobs, random", [(1, 125_000), (4, 500_000), (8, 1_000_000), (100, 0.5 * 3_300_000)])
def test_the_fastest_disk_is_held_to_what_the_jobs_request(jobs: int, random: float) -> None:
    assert low(of(FASTEST, GEN5, jobs).random_read) == pytest.approx(random)


@pytest.mark.usefixtures("shares")
@each(
    "link, read, random",
    [
        (GEN3, 3.93846, 961_538),
        (GEN4, 7.87692, 1_923_077),
        (GEN5, 15.75385, 3_846_154),
        (SATA, 0.6, 146_484.4),
    ],
)
def test_ceilings_are_what_the_link_carries(
    link: tuple[float, Message], read: float, random: float
) -> None:
    for one in (PRO, disk("Unknown", 1000)):
        found = of(one, link)
        for limit, most in ((found.read_ceiling, read), (found.random_ceiling, random)):
            assert limit.low is None
            assert limit.high == pytest.approx(most, rel=1e-5)
            assert limit.grade(most * 1.001) == "fail"
            assert limit.grade(most * 0.999) == "pass"


@each("one", SHEETS, told=lambda one: one.name)
def test_every_floor_can_fail_and_lies_below_its_ceiling(one: disk_sheet.DiskSheet) -> None:
    """A disk of the vendor's own figures passes, one of a tenth of them fails."""
    width = one.pcie_width or 0
    link = pcie_link(one.pcie_gen, width) if one.pcie_gen else SATA
    for variant in one.variant:
        found = of(disk(one.examples[0], variant.gb, one.kind), link, jobs=16)
        pairs = ((found.read, variant.read_gbs), (found.random_read, variant.read_iops))
        highest = (found.read_ceiling, found.random_ceiling)
        for (limit, stated), ceiling in zip(pairs, highest, strict=True):
            assert (stated is None) == isinstance(limit, Message)
            if stated is None or isinstance(limit, Message) or ceiling is None:
                continue
            assert limit.grade(stated) == ceiling.grade(stated) == "pass"
            assert limit.grade(stated / 10) == "fail"
            assert limit.grade(float("nan")) == ceiling.grade(float("nan")) == "fail"


@pytest.mark.usefixtures("shares")
def test_a_basis_names_both_figures_and_where_they_come_from() -> None:
    found = of(PRO, GEN3)
    assert words.text(found.origin) == "sheet of Samsung 990 PRO"
    assert basis(found.read) == (
        "0.7 x 3.938 GB/s, the lesser of two: the vendor states 7.45 GB/s for Samsung 990 PRO of "
        "2000 GB (https://mezha.media/en/2023/10/04/samsung-990-pro-ssd-lineup-includes-a-4tb-"
        "model/, read on 2026-11-24), the link carries 3.938 GB/s = 8 GT/s x 4 lanes x 128/130 / 8"
    )
    assert basis(found.random_read) == (
        "0.5 x 961538.5 IOPS, the least of three: the vendor states 1400000 IOPS for Samsung 990 "
        "PRO of 2000 GB (https://mezha.media/en/2023/10/04/samsung-990-pro-ssd-lineup-includes-a-"
        "4tb-model/, read on 2026-11-24), the link carries 961538.5 IOPS of 4 KiB, and 4 jobs "
        "request 1000000 IOPS"
    )
    assert basis(found.read_ceiling) == (
        "1 x 3.938 GB/s, the most that is possible = 8 GT/s x 4 lanes x 128/130 / 8"
    )
    assert basis(found.random_ceiling) == (
        "1 x 961538.5 IOPS, the most that is possible = (8 GT/s x 4 lanes x 128/130 / 8) / 4096 "
        "bytes"
    )
    assert basis(of(HARD, SATA).read) == (
        "0.4 x 0.261 GB/s, the lesser of two: the vendor states 0.261 GB/s for the outermost "
        "tracks of Seagate Exos X16 of 16000 GB (the vendor's data sheet, from memory; of the "
        "outermost tracks), and the innermost carry about half; the link carries 0.6 GB/s = "
        "6 Gbit/s x 8/10 / 8"
    )


CURE = ": a [[limit]] in the machine file judges it all the same"


@each(
    "facts, told, limited",
    [
        (
            StorageFacts((PRO,), ("lvm", "crypt"), GEN4),
            "the file system is on lvm, crypt, whose speed neither sheet nor link tells",
            False,
        ),
        (
            StorageFacts((PRO, PRO), ("raid1",), None),
            "the file system is on raid1, whose speed neither sheet nor link tells",
            False,
        ),
        (
            StorageFacts((PRO, PRO), (), GEN4),
            "the file system is on 2 disks, which no sheet describes together",
            False,
        ),
        (
            StorageFacts((), (), None),
            "the file system is on 0 disks, which no sheet describes together",
            False,
        ),
        (
            StorageFacts((disk("Samsung SSD 990 PRO 2TB", 2000, "virtual"),), (), GEN4),
            "sda is a virtual disk: its speed is what the host grants",
            False,
        ),
        (
            StorageFacts(
                (disk("Samsung SSD 870 EVO 1TB", 1000, "ssd", transport="usb"),), (), SATA
            ),
            "sda is not attached by NVMe, SATA or SAS, but by usb",
            False,
        ),
        (
            StorageFacts((disk("X", 1000, transport="nvme-tcp"),), (), GEN4),
            "nvme0n1 is not attached by NVMe, SATA or SAS, but by nvme-tcp",
            False,
        ),
        (
            StorageFacts((disk("X", 1000, "ssd", transport=None),), (), SATA),
            "sda is not attached by NVMe, SATA or SAS",
            False,
        ),
        (
            StorageFacts((PRO,), (), None),
            "the kernel does not show the link of nvme0n1",
            False,
        ),
        (
            StorageFacts((disk(None, 1000),), (), GEN4),
            "the kernel does not tell the model and the size of nvme0n1",
            True,
        ),
        (
            StorageFacts((disk("Samsung SSD 990 PRO 2TB", None),), (), GEN4),
            "the kernel does not tell the model and the size of nvme0n1",
            True,
        ),
        (
            StorageFacts((disk("Lexar SSD NM790 4TB", 4000),), (), GEN4),
            "no disk sheet has the model Lexar SSD NM790 4TB",
            True,
        ),
        (
            StorageFacts((disk("Samsung SSD 990 PRO 2TB", 2000, "ssd"),), (), SATA),
            "no disk sheet has the model Samsung SSD 990 PRO 2TB",
            True,
        ),
        (
            StorageFacts((disk("Samsung SSD 990 PRO 2TB", 1500.3),), (), GEN4),
            "the sheet of Samsung 990 PRO has no disk of 1500 GB",
            True,
        ),
    ],
)
def test_what_is_not_judged_says_why(facts: StorageFacts, told: str, limited: bool) -> None:
    found = limits(facts, SHEETS, JOBS)
    for one in (found.read, found.random_read):
        assert isinstance(one, Message)
        assert words.message(one) == told + CURE
    assert words.text(found.origin) == "disk sheets"
    given = [found.read_ceiling is not None, found.random_ceiling is not None]
    assert given == [limited] * 2


def test_random_reads_that_no_source_gives_say_so() -> None:
    found = of(HARD, SATA).random_read
    assert isinstance(found, Message)
    assert words.message(found) == (
        "no source gives the random reads of Seagate Exos X16 of 16000 GB" + CURE
    )


def test_a_sata_disk_behind_a_sas_controller_has_its_sheet() -> None:
    behind = disk(EVO.model, 1000.2, "ssd", transport="sas")
    assert low(of(behind, SATA).read) == low(of(EVO, SATA).read)


def test_without_sheets_nothing_is_judged() -> None:
    found = limits(StorageFacts((PRO,), (), GEN4), (), JOBS)
    assert isinstance(found.read, Message)
    assert found.read_ceiling is not None


def test_a_sheet_without_a_day_names_its_source_alone() -> None:
    (one,) = [each for each in SHEETS if each.name == "Samsung 990 PRO"]
    found = limits(StorageFacts((PRO,), (), GEN4), (replace(one, read=None),), JOBS)
    assert "model/), the link" in basis(found.read)


# --- of a run's filesystems ---


def scratch(*names: str, layers: tuple[str, ...] = ()) -> Scratch:
    return Scratch(
        path="/data",
        component=part("disk", names[0] if len(names) == 1 else "md0"),
        mount="/data",
        kind="ext4",
        source="/dev/md0",
        disks=names,
        layers=layers,
        free_bytes=1,
        write_bytes=1,
        kept_bytes=0,
        keep=True,
        sealed_bytes=0,
    )


def told(made: Sequence[Override]) -> list[tuple[str, str, Any, str | None]]:
    """Each by measurement and component, with its bound, or why there is none."""
    return [
        (
            one.measurement,
            str(one.component),
            None if one.limit is None else (one.limit.low or one.limit.high),
            None if one.unlimited is None else str(worded(one.unlimited)).partition(":")[0],
        )
        for one in made
    ]


@pytest.mark.usefixtures("shares")
def test_each_filesystem_has_the_limits_of_its_own_disk() -> None:
    links = {"nvme0n1": GEN4, "sda": SATA}
    lowest, highest = overrides([scratch("nvme0n1"), scratch("sda")], [PRO, EVO], links, SHEETS)
    assert told(lowest) == [
        ("storage_read", "disk:nvme0n1", pytest.approx(0.7 * 7.45), None),
        ("storage_read_random", "disk:nvme0n1", pytest.approx(500_000), None),
        ("storage_read", "disk:sda", pytest.approx(0.7 * 0.56), None),
        ("storage_read_random", "disk:sda", pytest.approx(49_000), None),
    ]
    in_order = ("read", "write", "write_first", "write_full")
    assert told(highest) == [
        (f"storage_{name}", part, pytest.approx(rate / size), None)
        for part, rate in (("disk:nvme0n1", GEN4[0]), ("disk:sda", 0.6))
        for names, size in ((in_order, 1), (("read_random", "write_random"), 4096 / 1e9))
        for name in names
    ]


@each(
    "names, layers, links",
    [
        (("nvme0n1",), (), {}),  # a link that is not shown
        (("nvme0n1",), ("lvm",), {"nvme0n1": GEN4}),
        (("nvme0n1", "sda"), ("raid1",), {"nvme0n1": GEN4, "sda": SATA}),
        (("sdz",), (), {"sdz": SATA}),  # a disk that the inventory does not have
        ((), (), {"zfs": GEN4}),  # disks that the kernel does not show
    ],
)
def test_what_is_no_single_known_disk_has_no_limit_and_says_why(
    names: tuple[str, ...], layers: tuple[str, ...], links: dict[str, tuple[float, Message]]
) -> None:
    lowest, highest = overrides([scratch(*names, layers=layers)], [PRO, EVO], links, SHEETS)
    assert [one.limit for one in lowest] == [None, None]
    assert all(one.unlimited is not None for one in lowest)
    assert highest == ()


def test_a_filesystem_on_which_nothing_is_read_has_no_limits() -> None:
    idle = replace(scratch("nvme0n1"), write_bytes=0, kept_bytes=0, sealed_bytes=0)
    links = {"nvme0n1": GEN4}
    assert overrides([idle], [PRO], links, SHEETS) == ((), ())
    sealed = replace(idle, sealed_bytes=1)
    assert overrides([idle, sealed], [PRO], links, SHEETS) == overrides(
        [scratch("nvme0n1")], [PRO], links, SHEETS
    )
