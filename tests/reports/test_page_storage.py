"""The tested filesystems on the page: what they are on, their figures, their disks over time."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Any

import drawn
import journals
import pages
import samples
from cases import each
from known import known
from msgspec.structs import replace
from test_page import assert_inert

from acceptance.core.evidence import Scratch, Table
from acceptance.core.language import ENGLISH
from acceptance.core.limit import Limit
from acceptance.core.parts import Component, Part
from acceptance.core.record import Body, CheckEnded, CheckStarted, Measured
from acceptance.journal.run import Run
from acceptance.loads.storage.contract import (
    FULL_CACHE,
    FULL_CACHE_WARM,
    LATENCY_COLUMNS,
    MEMMAP_COLUMNS,
    OVER_TIME,
    OVER_TIME_WARM,
)
from acceptance.reports import languages
from acceptance.reports.page import render, storage

DISK = Part("disk", "nvme0n1")
SCRATCH = Scratch(
    path="/data",
    component=DISK,
    mount="/",
    kind="xfs",
    source="/dev/mapper/vg-data",
    disks=("nvme0n1", "sdz"),
    layers=("lvm", "crypt"),
    free_bytes=500 << 30,
    write_bytes=8 << 30,
    kept_bytes=1 << 30,
    keep=True,
    sealed_bytes=1 << 30,
)
INVENTORY: dict[str, Any] = {
    "disks": [
        {
            "name": "nvme0n1",
            "model": "MAKER 980",
            "size_bytes": 10**12,
            "kind": "nvme",
            "transport": "nvme",
            "firmware": "5B2Q",
        }
    ]
}
VALUES = {
    "storage.write": {"storage_write": (3.1, "GB/s"), "storage_failed": (0.0, "count")},
    "storage.read": {
        "storage_read": (1.25, "GB/s"),
        "storage_failed": (1.0, "count"),
        "disk_link_share": (1.0, "ratio"),
    },
    "storage.full_cache": {"storage_write_full": (0.9, "GB/s")},
    "storage.checkpoint": {
        "storage_checkpoint_write": (6.0, "s"),
        "storage_checkpoint_read": (4.5, "s"),
    },
}
NOTES = {"disk_link_share": "generation 4 x4", "storage_write_full": "it fell after 40 GiB"}
SHARES = (("50 %", 80.0), ("99 %", 240.5))
ARM = ("cold_random", 100.0, 12.5, 2048.0, 4096.0, 90.0, 200.0)
TABLES = (
    Table("storage.write", DISK, "storage_write", LATENCY_COLUMNS, SHARES),
    Table("storage.read", DISK, "storage_randread", LATENCY_COLUMNS, SHARES),
    Table("storage.memmap", DISK, "storage_memmap", MEMMAP_COLUMNS, (ARM,)),
)
WARM = ((0.5, 0.0, 2.0, 41.0), (1.0, 0.0, 4.0, 47.0))
COLD = ((1.0, 6.0, 0.0), (2.0, 5.0, 0.0))


def over_time(
    check: str, rows: Sequence[tuple[float | str, ...]], columns: tuple[str, ...] = OVER_TIME
) -> Table:
    return Table(check, DISK, "storage_over_time", columns, tuple(rows))


def made(*tables: Body, scratches: Sequence[Scratch] = (SCRATCH,)) -> Run:
    """A run with these records, whose checks measured `VALUES`; a failed read among them."""
    floor = Limit("GB/s", "the sheet", low=2.0)
    none = Limit("count", "a sound disk fails none", high=0.0)
    limits = {"storage_read": floor, "storage_failed": none}
    checks = [
        journals.check(
            check,
            *(
                journals.due(name, DISK, unit, limits.get(name))
                for name, (_, unit) in values.items()
            ),
        )
        for check, values in VALUES.items()
    ]
    bodies: list[Body] = []
    for body in journals.bodies(journals.plan(*checks)):
        if isinstance(body, Measured):
            value = VALUES[body.check][body.measurement][0]
            note = NOTES.get(body.measurement)
            body = replace(body, value=value, note=note)  # noqa: PLW2901 - the record, changed
        if isinstance(body, CheckEnded) and body.check == "storage.read":
            body = replace(body, outcome="fail", message="too slow")  # noqa: PLW2901
        bodies.append(body)
    at = next(n for n, body in enumerate(bodies) if isinstance(body, CheckStarted))
    run = samples.run([*bodies[:at], *scratches, *tables, *bodies[at:]])
    return samples.seen(run, INVENTORY)


def one(*tables: Body) -> storage.Filesystem:
    (found,) = storage.filesystems(made(*tables), ENGLISH)
    return found


def test_what_a_filesystem_is_on() -> None:
    assert one(over_time("storage.write", WARM, OVER_TIME_WARM)).facts == (
        ("folder", "/data"),
        ("filesystem", "xfs on /dev/mapper/vg-data, through lvm, crypt, 500 GiB free"),
        ("mounted at", "/"),
        ("disk", "nvme0n1, MAKER 980, 1000 GB, nvme, firmware 5B2Q"),
        ("disk", "sdz"),
        ("link under load", "generation 4 x4"),
        ("fast cache", "it fell after 40 GiB"),
        ("the run may write", "8 GiB"),
        ("written by the disks' own counters", "3 GB"),
        ("sealed file", "1 GiB, kept by an earlier run"),
        ("sealed file", "1 GiB, for the nights"),
    )


def test_a_filesystem_that_is_only_read() -> None:
    changes = {"mount": "/data", "layers": (), "write_bytes": 0, "kept_bytes": 0, "disks": ()}
    found, bare = (
        next(
            storage.filesystems(made(over_time("storage.read", COLD), scratches=[one]), ENGLISH)
        ).facts
        for one in (replace(SCRATCH, **changes), replace(SCRATCH, sealed_bytes=0))
    )
    assert found == (
        ("folder", "/data"),
        ("filesystem", "xfs on /dev/mapper/vg-data, 500 GiB free"),
        ("link under load", "generation 4 x4"),
        ("fast cache", "it fell after 40 GiB"),
        ("sealed file", "1 GiB, kept by an earlier run"),
    )
    sealed = [text for label, text in bare if label == "sealed file"]
    assert sealed == ["1 GiB, for the nights"]


def test_figures_have_their_limit_and_the_worst_of_several_checks_counts() -> None:
    found = {row.label: (row.value, row.limit, row.mark) for row in one().figures}
    assert found == {
        "written in order": ("3.1 GB/s", "not judged", ""),
        "read in order": ("1.25 GB/s", ">= 2 GB/s", "fail"),
        "written in order, at the end of filling the fast cache": ("0.9 GB/s", "not judged", ""),
        "checkpoint written, for a billion parameters": ("6 s", "not judged", ""),
        "checkpoint read, for a billion parameters": ("4.5 s", "not judged", ""),
        "failed reads and writes": ("1", "<= 0", "fail"),
    }


def test_latencies_and_arms_are_grids() -> None:
    latencies, arms = one(*TABLES).grids
    assert latencies.head == ("", "50 %", "99 %")
    assert drawn.cells(latencies) == [
        ("written in order", "80", "240.5"),
        ("read at random places, 4 KiB", "80", "240.5"),
    ]
    assert drawn.cells(arms) == [
        ("not in memory, without read-ahead", "100", "12.5", "2048", "4096", "90", "200")
    ]
    assert one().grids == ()
    for figure in ("7 billion parameters", "112 GB", "42 s to write", "31.5 s to read"):
        assert figure in str(one().checkpoint)
    ways = ("storage_write", "storage_read", "storage_randread", "storage_randwrite")
    (grid,) = one(*(Table("c", DISK, name, LATENCY_COLUMNS, SHARES) for name in ways)).grids
    assert len({row[0] for row in drawn.cells(grid)}) == len(ways)
    short = Table("c", DISK, "storage_read", LATENCY_COLUMNS, SHARES[:1])
    (grid,) = one(TABLES[0], short).grids
    assert len(grid.rows) == 1, "rows of another grid are left out"


@each(
    "table",
    [
        Table("c", DISK, "storage_write", ("share", "ms"), SHARES),
        Table("c", DISK, "storage_write", LATENCY_COLUMNS, (("50 %",), ())),
        Table("c", DISK, "storage_memmap", ("arm",), (("cold",),)),
        Table("c", DISK, "storage_memmap", MEMMAP_COLUMNS, (("hot", *ARM[1:]), (7.0, *ARM[1:]))),
        Table("c", Part("disk", "sda"), "storage_write", LATENCY_COLUMNS, SHARES),
        over_time("c", WARM, OVER_TIME),
        over_time("c", COLD, ("s", "GB/s")),
        over_time("c", [(nan, 1.0, 1.0), (inf, 1.0, 1.0), (1.0, "x", 1.0), (1.0, 1.0, -1.0), ()]),
    ],
)
def test_what_cannot_be_drawn_is_left_out(table: Table) -> None:
    found = one(table)
    assert (found.grids, found.picture) == ((), None)


def test_the_checks_stand_beside_each_other_in_the_picture() -> None:
    late = [*COLD, (1.5, 9.0, 9.0)]  # a row that goes back in time is no row
    warm = over_time("storage.write", WARM, OVER_TIME_WARM)
    picture = known(one(warm, over_time("storage.read", late)).picture)
    assert (picture.unit, picture.width) == ("s", 30)
    assert picture.ticks == ("0", "0.8", "1.5", "2.2", "3")
    assert picture.phases == (
        storage.Phase("storage.write", 0.0, 33.33, 0),
        storage.Phase("storage.read", 33.33, 66.67, 10),
    )
    read, written, heat = picture.plots
    assert read.lines == ("M5 100.0L10 100.0", "M20 0.0L30 16.7")
    assert written.lines == ("M5 66.7L10 33.3", "M20 100.0L30 100.0")
    assert (read.unit, read.bottom, read.top, read.least, read.most) == (
        "GB/s", "0", "6", "0", "6",
    )  # fmt: skip
    assert heat.lines == ("M5 90.0L10 30.0",)
    assert (heat.bottom, heat.top, heat.least, heat.most) == ("40", "50", "41", "47")


@each("heat, lines", [(("", ""), []), (("", 40.0), [("M10 100.0h2",)])])
def test_a_temperature_that_was_not_always_read(
    heat: tuple[float | str, ...], lines: list[tuple[str, ...]]
) -> None:
    rows = [(0.5, 0.0, 0.0, heat[0]), (1.0, 0.0, 0.0, heat[1])]
    read, written, *more = known(
        one(over_time("storage.write", rows, OVER_TIME_WARM)).picture
    ).plots
    assert (read.top, written.top, [plot.lines for plot in more]) == ("1", "1", lines)


def full_cache(*rows: tuple[float | str, ...], columns: tuple[str, ...] = FULL_CACHE) -> Table:
    return Table("storage.full_cache", DISK, "storage_full_cache", columns, rows)


def test_a_cache_that_fills_is_a_curve_over_what_was_written() -> None:
    odd = full_cache((1.0, "x"), (1.0,))
    rows = ((1.0, 5.0, 40.0), (2.5, 5.0, ""), (2.0, 9.0, 9.0), (4.0, 1.0, 71.0))
    curve = known(one(odd, full_cache(*rows, columns=FULL_CACHE_WARM)).curve)
    assert (curve.unit, curve.width, curve.phases) == ("GiB", 40, ())
    rate, heat = curve.plots
    assert rate.lines == ("M10 0.0L25 0.0L40 80.0",)
    assert heat.lines == ("M10 100.0L40 22.5",)
    assert [plot.unit for plot in known(one(full_cache((1.0, 5.0))).curve).plots] == ["GB/s"]
    for table in (odd, full_cache((1.0, 5.0), columns=("GiB", "MB/s"))):
        assert one(table).curve is None


def test_it_is_on_the_page_and_not_among_the_tables() -> None:
    warm = over_time("storage.write", WARM, OVER_TIME_WARM)
    shown = render.render(made(*TABLES, warm, full_cache((1.0, 5.0), (2.0, 1.0))))
    assert_inert(shown)
    tree = pages.page(shown)
    section = tree.get_element_by_id("storage").getparent()
    assert section.xpath(".//svg/@aria-label") == [
        "disk:nvme0n1, read: 0 to 0 GB/s",
        "disk:nvme0n1, written: 2 to 4 GB/s",
        "disk:nvme0n1, temperature of the disk: 41 to 47 \u00b0C",
        "disk:nvme0n1, written: 1 to 5 GB/s",
    ]
    captions = [pages.words(one) for one in section.iter("figcaption")]
    assert [one.split()[:2] for one in captions] == [
        ["disk:nvme0n1", "over"],
        ["disk:nvme0n1", "while"],
    ]
    assert "read in order 1.25 GB/s ✗ fail >= 2 GB/s" in pages.words(section)
    assert not tree.xpath("//*[@id='tables']")
    machine = pages.words(tree.get_element_by_id("machine").getparent())
    assert "filesystem of /data xfs on /dev/mapper/vg-data" in machine
    bare = pages.page(render.render(made(TABLES[0], scratches=())))
    assert not bare.xpath("//*[@id='storage']"), "no filesystem was tested"
    assert "storage_write us" in pages.words(bare.get_element_by_id("tables").getparent())
    chinese = pages.page(render.render(made(*TABLES), language=languages.language("zh-CN")))
    words = pages.words(chinese.get_element_by_id("storage").getparent())
    for text in ("存储", "顺序读取", "70 亿参数模型的检查点", "经由 lvm、crypt"):
        assert text in words


@each("text", ["<script>alert(1)</script>", '"><img onload=x>', "{{ 7 * 7 }}", "\x00\x1b[31m"])
def test_hostile_text_is_inert(text: str) -> None:
    bad: Component = Part("disk", text)
    scratch = replace(
        SCRATCH,
        path=text,
        mount=text + "m",
        kind=text,
        source=text,
        layers=(text,),
        disks=(text,),
        component=bad,
    )
    tables = [
        Table(text, bad, one.name, one.columns, tuple((*row[:-1], text) for row in one.rows))
        for one in (*TABLES, over_time(text, WARM, OVER_TIME_WARM))
    ]
    assert_inert(render.render(made(*tables, scratches=[scratch])))
