"""The tested filesystems: what each is on, its figures, and how fast and warm its disks were.

Pure. In a picture x is in tenths of a second of the checks one after the other, without what lies
between them, or of a GiB that was written; y is 0 (top) to 100 (bottom).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from acceptance.core import regular_file
from acceptance.core.evidence import Scratch, Table
from acceptance.core.grouping import grouped
from acceptance.core.language import Language
from acceptance.core.limit import number
from acceptance.core.verdict import Judgement
from acceptance.journal.run import Run
from acceptance.loads.storage.contract import (
    ARMS,
    FULL_CACHE,
    FULL_CACHE_WARM,
    LATENCIES,
    LATENCY_COLUMNS,
    MEMMAP,
    MEMMAP_COLUMNS,
    OVER_TIME,
    OVER_TIME_WARM,
    STORAGE_FULL_CACHE,
    STORAGE_OVER_TIME,
)
from acceptance.machine.inventory import Inventory
from acceptance.reports import pair_table, summary
from acceptance.reports.page import bars
from acceptance.reports.page.curves import Plot
from acceptance.reports.report import Row
from acceptance.reports.report import Table as Grid
from acceptance.wording import words
from acceptance.wording.words import quantity

# Tables that this section shows in its own way.
DRAWN = frozenset({*LATENCIES, MEMMAP, STORAGE_OVER_TIME, STORAGE_FULL_CACHE})
MOST_ROWS = 1000  # of a table that is drawn; the checks record fewer
MOST_CHECKS = 32  # beside each other in a picture
# A journal may hold anything; no disk is as fast or warm, and no check takes as long.
_MOST = 1e5
_BILLIONS = 7  # parameters of the model that is taken as an example
_BYTES_A_PARAMETER = 16
_ORDER = ("fail", "error", "skip", "warn", "waived", "")


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value as a row; `mark` is the worst kind of finding of it."""

    label: str
    value: str
    limit: str
    mark: str


@dataclass(frozen=True, slots=True)
class Phase:
    """A check in a picture, with start and width in percent of it, and x where it begins."""

    check: str
    left: float
    width: float
    x: int


@dataclass(frozen=True, slots=True)
class Picture:
    """Plots on one axis, which is `width` tenths of its unit long."""

    unit: str
    width: int
    phases: tuple[Phase, ...]
    plots: tuple[Plot, ...]

    @property
    def ticks(self) -> tuple[str, ...]:
        """The values under the picture, at equal distances."""
        return tuple(number(round(self.width * part / 40, 1)) for part in range(5))


@dataclass(frozen=True, slots=True)
class Filesystem:
    """One tested filesystem."""

    name: str
    path: str
    facts: tuple[tuple[str, str], ...]
    figures: tuple[Figure, ...]
    grids: tuple[Grid, ...]
    checkpoint: str | None
    picture: Picture | None
    curve: Picture | None


def scratches(run: Run) -> tuple[Scratch, ...]:
    """The folders whose filesystems the run tested."""
    return tuple(one.body for one in run.entries if isinstance(one.body, Scratch))


def told(scratch: Scratch, language: Language) -> str:
    """A filesystem in a line, for the machine as found."""
    layers = language("through {layers}", layers=language.listed(scratch.layers))
    free = language("{size} free", size=regular_file.size(scratch.free_bytes))
    source = language("{kind} on {source}", kind=scratch.kind, source=scratch.source)
    return language(", ").join((source, *((layers,) if scratch.layers else ()), free))


def filesystems(run: Run, language: Language) -> Iterator[Filesystem]:
    """Every tested filesystem, in the order of the journal."""
    tables = [one.body for one in run.entries if isinstance(one.body, Table)]
    judged = list(pair_table.judged(run))
    for scratch in scratches(run):
        own = [one for one in tables if one.component == scratch.component]
        due = [one for one in judged if one.due.component == scratch.component]
        seen = [(one.check, rows) for one in own if (rows := _over_time(one))][:MOST_CHECKS]
        yield Filesystem(
            str(scratch.component),
            scratch.path,
            tuple(_facts(scratch, run.inventory, due, seen, language)),
            tuple(_figures(due, language)),
            tuple(_grids(own, language)),
            _checkpoint(due, language),
            _picture(seen, language) if seen else None,
            _curve(own, language),
        )


def _facts(
    scratch: Scratch,
    inventory: Inventory,
    due: Sequence[Judgement],
    seen: Sequence[tuple[str, Sequence[_Row]]],
    language: Language,
) -> Iterator[tuple[str, str]]:
    yield language("folder"), scratch.path
    yield language("filesystem"), told(scratch, language)
    if scratch.mount != scratch.path:
        yield language("mounted at"), scratch.mount
    under = {disk.name: disk for disk in inventory.disks or ()}
    for name in scratch.disks:
        disk = under.get(name)
        if disk is None:
            yield language("disk"), name
            continue
        size = f"{disk.size_bytes / 1e9:.0f} GB" if disk.size_bytes is not None else None
        firmware = disk.firmware and language("firmware {text}", text=disk.firmware)
        parts = (name, disk.model or language("model not shown"), size, disk.transport, firmware)
        yield language("disk"), language(", ").join(part for part in parts if part)
    for one in due:
        name = one.due.measurement
        if one.note and name in ("disk_link_share", "storage_write_full"):
            link = name == "disk_link_share"
            label = language("link under load") if link else language("fast cache")
            yield label, words.text(one.note, language)
    if scratch.write_bytes:
        yield language("the run may write"), regular_file.size(scratch.write_bytes)
    if scratch.write_bytes and seen:
        counted = sum(row.seconds * row.written for _, rows in seen for row in rows)
        yield language("written by the disks' own counters"), quantity(round(counted, 2), "GB")
    if scratch.sealed_bytes:
        size = regular_file.size(scratch.sealed_bytes)
        yield language("sealed file"), language("{size}, kept by an earlier run", size=size)
    if scratch.kept_bytes:
        size = regular_file.size(scratch.kept_bytes)
        yield language("sealed file"), language("{size}, for the nights", size=size)


def _labels(language: Language) -> dict[str, str]:
    """The measurements that are rows, with what they are called, in order."""
    return {
        "storage_write": language("written in order"),
        "storage_write_ratio": language("written in order, over the median of equal disks"),
        "storage_read": language("read in order"),
        "storage_read_ratio": language("read in order, over the median of equal disks"),
        "storage_read_random": language("read at random places, 4 KiB"),
        "storage_write_random": language("written at random places, 4 KiB"),
        "storage_write_first": language("written in order, before the fast cache is full"),
        "storage_write_full": language("written in order, at the end of filling the fast cache"),
        "storage_feed_host": language("tokens fed from the disk to host memory"),
        "storage_feed_gpu": language("tokens fed from the disk to the first GPU"),
        "storage_checkpoint_write": language("checkpoint written, for a billion parameters"),
        "storage_checkpoint_read": language("checkpoint read, for a billion parameters"),
        "storage_wrong_blocks": language("wrong blocks of 1 MiB"),
        "storage_memmap_miscompares": language("wrong windows of the memory map"),
        "storage_feed_miscompares": language("wrong pieces of the feed"),
        "storage_checkpoint_miscompares": language("wrong blocks of the checkpoint"),
        "storage_kept_errors": language("wrong blocks of the sealed file"),
        "storage_failed": language("failed reads and writes"),
        "disk_temperature_margin": language("below the disk's own warning temperature, at least"),
    }


def _figures(due: Iterable[Judgement], language: Language) -> Iterator[Figure]:
    """A row for each measurement; of one of several checks, the worst."""
    found = grouped((one.due.measurement, one) for one in due)
    for name, label in _labels(language).items():
        if name in found:
            worst = min(found[name], key=_rank)
            value = summary.value_text(worst)
            shown = value if worst.value is not None else language("not measured")
            limit = summary.limit_text(worst) if worst.due.limit else language("not judged")
            yield Figure(label, shown, limit, bars.mark(worst))


def _rank(one: Judgement) -> tuple[int, float]:
    return _ORDER.index(bars.mark(one)), -(one.value or 0.0)


def _grids(tables: Sequence[Table], language: Language) -> Iterator[Grid]:
    ways = {
        "storage_write": language("written in order"),
        "storage_read": language("read in order"),
        "storage_randread": language("read at random places, 4 KiB"),
        "storage_randwrite": language("written at random places, 4 KiB"),
    }
    head: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = []
    for table in tables:
        if table.name not in LATENCIES or table.columns != LATENCY_COLUMNS:
            continue
        cells = [row for row in table.rows[:MOST_ROWS] if len(row) == len(LATENCY_COLUMNS)]
        shares = tuple(_cell(row[0]) for row in cells)
        head = head or shares
        if shares and shares == head:
            rows.append((ways[table.name], *(_cell(row[1]) for row in cells)))
    if rows:
        title = language("Microseconds in which this share of the requests was answered")
        yield _grid(title, ("", *head), rows)
    yield from _variants(tables, language)


def _variants(tables: Sequence[Table], language: Language) -> Iterator[Grid]:
    names = {
        "cold": language("not in memory, the kernel reads ahead"),
        "cold_random": language("not in memory, without read-ahead"),
        "warm": language("in memory, the kernel reads ahead"),
        "warm_random": language("in memory, without read-ahead"),
    }
    rows = [
        (names[arm], *(_cell(cell) for cell in row[1:]))
        for table in tables
        if table.name == MEMMAP and table.columns == MEMMAP_COLUMNS
        for row in table.rows[:MOST_ROWS]
        if len(row) == len(MEMMAP_COLUMNS) and (arm := row[0]) in ARMS
    ]
    if rows:
        heads = (
            "",
            language("windows"),
            "Mtokens/s",
            language("bytes asked for"),
            language("bytes from the disk"),
            language("us, half of the windows"),
            language("us, 99 of 100"),
        )
        yield _grid(language("Random windows of a memory-mapped token file"), heads, rows)


def _grid(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Grid:
    return Grid([*map(Row, rows)], head, range(1, len(head)), -1, title)


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else number(value)


def _checkpoint(due: Iterable[Judgement], language: Language) -> str | None:
    """What the seconds of a checkpoint mean for a model of a common size."""
    found = {one.due.measurement: one.value for one in due}
    write, read = (found.get(f"storage_checkpoint_{way}") for way in ("write", "read"))
    if write is None or read is None:
        return None
    return language(
        "A checkpoint of a model with {billions} billion parameters ({size} GB, {bytes} bytes a "
        "parameter) takes {write} s to write and {read} s to read back at these rates.",
        billions=_BILLIONS,
        bytes=_BYTES_A_PARAMETER,
        size=_BILLIONS * _BYTES_A_PARAMETER,
        write=number(float(f"{_BILLIONS * write:.3g}")),
        read=number(float(f"{_BILLIONS * read:.3g}")),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """The rates in the seconds before a moment of a check."""

    at_s: float
    seconds: float
    read: float
    written: float
    celsius: float | None


def _over_time(table: Table) -> list[_Row]:
    """The rows that can be drawn, in order."""
    if table.name != STORAGE_OVER_TIME or table.columns not in (OVER_TIME, OVER_TIME_WARM):
        return []
    rows = list(_rows(table, len(OVER_TIME)))
    before = (0.0, *(numbers[0] for numbers, _ in rows))
    return [
        _Row(at_s, at_s - last, read, written, celsius)
        for last, ((at_s, read, written), celsius) in zip(before, rows, strict=False)
    ]


def _rows(table: Table, count: int) -> Iterator[tuple[tuple[float, ...], float | None]]:
    """The rows whose first numbers, `count` of them, are fit to be drawn, and the temperature.

    The first number of each is higher than that of the row before.
    """
    before = 0.0
    for row in table.rows[:MOST_ROWS]:
        numbers = tuple(one for one in row if not isinstance(one, str) and 0.0 <= one < _MOST)
        told = row[count:] in ((), ("",))
        if len(row) != len(table.columns) or len(numbers) != (count if told else count + 1):
            continue
        if numbers[0] > before:
            before = numbers[0]
            yield numbers[:count], None if told else numbers[count]


def _curve(tables: Sequence[Table], language: Language) -> Picture | None:
    """The rates of a drive whose fast cache fills up, over what was written."""
    for table in tables:
        if table.name == STORAGE_FULL_CACHE and table.columns in (FULL_CACHE, FULL_CACHE_WARM):
            rows = list(_rows(table, len(FULL_CACHE)))
            if rows:
                rates = [(gib, rate) for (gib, rate), _ in rows]
                heat = [(gib, celsius) for (gib, _), celsius in rows if celsius is not None]
                top = _top(max(rate for _, rate in rates))
                plots = [_plot(language("written"), "GB/s", [rates], 0.0, top)]
                plots += _heat([heat] if heat else [], language)
                return Picture("GiB", max(1, math.ceil(10 * rates[-1][0])), (), tuple(plots))
    return None


def _picture(seen: Sequence[tuple[str, Sequence[_Row]]], language: Language) -> Picture:
    whole = sum(rows[-1].at_s for _, rows in seen)
    phases: list[Phase] = []
    placed: list[list[tuple[float, _Row]]] = []
    begin = 0.0
    for check, rows in seen:
        left, share = 100 * begin / whole, 100 * rows[-1].at_s / whole
        phases.append(Phase(check, round(left, 2), round(share, 2), round(10 * begin)))
        placed.append([(begin + row.at_s, row) for row in rows])
        begin += rows[-1].at_s
    rates = [rate for rows in placed for _, row in rows for rate in (row.read, row.written)]
    top = _top(max(rates))
    reads = [[(at, row.read) for at, row in rows] for rows in placed]
    writes = [[(at, row.written) for at, row in rows] for rows in placed]
    plots = [
        _plot(language("read"), "GB/s", reads, 0.0, top),
        _plot(language("written"), "GB/s", writes, 0.0, top),
    ]
    warm = [
        line
        for rows in placed
        if (line := [(at, row.celsius) for at, row in rows if row.celsius is not None])
    ]
    plots += _heat(warm, language)
    return Picture("s", max(1, math.ceil(10 * whole)), tuple(phases), tuple(plots))


def _heat(lines: Sequence[Sequence[tuple[float, float]]], language: Language) -> Iterator[Plot]:
    """The plot of the temperature, where there is any."""
    heat = [celsius for line in lines for _, celsius in line]
    if heat:
        low, high = 10 * math.floor(min(heat) / 10), 10 * math.ceil(max(heat) / 10)
        name = language("temperature of the disk")
        yield _plot(name, "degC", lines, float(low), float(max(high, low + 10)))


def _top(most: float) -> float:
    """The end of a scale from 0: a whole number of halves of a power of ten."""
    step = 10.0 ** math.floor(math.log10(most)) / 2 if most > 0 else 1.0
    return math.ceil(most / step) * step or 1.0


def _plot(
    name: str,
    unit: str,
    lines: Sequence[Sequence[tuple[float, float]]],
    bottom: float,
    top: float,
) -> Plot:
    def y(value: float) -> float:
        return 100 * (top - value) / (top - bottom)

    paths = tuple(
        "M"
        + "L".join(f"{10 * at:.0f} {y(value):.1f}" for at, value in line)
        + ("h2" if len(line) == 1 else "")
        for line in lines
    )
    values = [value for line in lines for _, value in line]
    ends = (bottom, top, min(values), max(values))
    return Plot(name, unit, paths, *(number(float(f"{one:.3g}")) for one in ends))
