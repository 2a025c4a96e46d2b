"""Training on the page: layers and steps as tables, rates against the card's own product, digests,
and how well GPUs train together.

Pure. In the plot of parallel training x is in hundredths of a way of training, y is 0 (an
efficiency of TOP) to 100 (none).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from acceptance.core.evidence import Table
from acceptance.core.grouping import grouped
from acceptance.core.language import Language
from acceptance.core.limit import number
from acceptance.core.parts import Component
from acceptance.core.verdict import Judgement
from acceptance.journal.run import Run
from acceptance.loads.train import digest_contract, parallel_contract
from acceptance.loads.train.layer_contract import (
    LAYER_COLUMNS,
    LAYER_PARTS,
    LAYER_READINGS,
    LAYER_TABLE,
)
from acceptance.loads.train.shapes import LAYERS
from acceptance.loads.train.step_contract import (
    STEP_COLUMNS,
    STEP_MODELS,
    STEP_READINGS,
    STEP_TABLE,
)
from acceptance.reports import pair_table, report
from acceptance.reports.page import bars
from acceptance.reports.page.tables import MOST_ROWS
from acceptance.reports.report import Table as Grid

PUBLISHED = "published TFLOP/s"  # a last column of tables that a published one can stand beside
MOST_GROUPS = 16
MOST_READ = 2000  # rows of a recorded table that are looked at
TOP = 1.2  # the highest efficiency that is drawn
_KEYS = 4  # columns of a layer or step that say what it is; the first heads a table
_KEPT = 3  # columns of digests: losses, gradients, weights
_MOST = 1e9  # a journal may hold anything
_COLUMNS = {
    LAYER_TABLE: LAYER_COLUMNS,
    STEP_TABLE: STEP_COLUMNS,
    digest_contract.TABLE: digest_contract.COLUMNS,
    parallel_contract.TABLE: parallel_contract.COLUMNS,
}
# Layers by the names that people know them by.
_TITLES: Mapping[str, str] = {name: shape.name for name, shape in LAYERS.items()}
Row = tuple[float | str, ...]


@dataclass(frozen=True, slots=True)
class RateBar:
    """A rate as a share of the card's own product; `width` and `product` are per cent of a bar.

    `mark` is the worst kind of finding of it.
    """

    name: str
    gpu: str
    value: str
    share: str
    width: float
    product: float
    mark: str


@dataclass(frozen=True, slots=True)
class ParallelBar:
    """A bar of the plot: its place, and whether batches were accumulated."""

    x: int
    y: float
    accumulated: bool
    title: str


@dataclass(frozen=True, slots=True)
class ParallelVariant:
    """The bars of one arm, in words their range."""

    name: str
    least: str
    most: str
    bars: tuple[ParallelBar, ...]


@dataclass(frozen=True, slots=True)
class Parallel:
    """The plot of efficiencies: the ways of training beside each other, an arm above the other."""

    ways: tuple[str, ...]
    arms: tuple[ParallelVariant, ...]

    @property
    def width(self) -> int:
        """The width of the picture."""
        return 100 * len(self.ways)


@dataclass(frozen=True, slots=True)
class Digests:
    """The bits in which a training of one format ended, in a sentence; `bad` if they differ."""

    text: str
    bad: bool


def is_drawn(table: Table) -> bool:
    """Whether this section shows a table: one of ours, with the columns that are known here."""
    known = _COLUMNS.get(table.name)
    return known is not None and table.columns in (known, (*known, PUBLISHED))


def tables(run: Run) -> tuple[Table, ...]:
    """The tables of training that the run recorded."""
    return tuple(
        one.body for one in run.entries if isinstance(one.body, Table) and is_drawn(one.body)
    )


def grids(found: Iterable[Table], language: Language) -> Iterator[Grid]:
    """Layers, a table for each; steps, a table for each model; parallel training.

    Rows of several GPUs are one, with the range of their values.
    """
    told = list(found)
    for name in (LAYER_TABLE, STEP_TABLE):
        own = [table for table in told if table.name == name]
        for title, rows in list(_grouped(own))[:MOST_GROUPS]:
            yield _grid(title, (*_COLUMNS[name], PUBLISHED)[1:], _KEYS - 1, rows)
    parallel = [table for table in told if table.name == parallel_contract.TABLE]
    if parallel:
        rows = _merged((row for table in parallel for row in _rows(table)), 3)
        if rows:
            head = (*parallel_contract.COLUMNS, PUBLISHED)
            yield _grid(language("Parallel training"), head, 3, rows)


def _rows(table: Table) -> Iterator[Row]:
    """The rows with a cell for each column and no number that is none."""
    for row in table.rows[:MOST_READ]:
        odd = any(not isinstance(cell, str) and not -_MOST < cell < _MOST for cell in row)
        if len(row) == len(table.columns) and not odd:
            yield row


def _grouped(
    found: Sequence[Table],
) -> Iterator[tuple[str, dict[tuple[str, ...], tuple[Row, ...]]]]:
    """The rows by their first cell; of each the cells behind the keys, of all GPUs.

    The judged shape of a layer comes from a load of its own, and stands among the others here.
    """
    groups = grouped(
        (_TITLES.get(_cell(row[0]), _cell(row[0])), row) for table in found for row in _rows(table)
    )
    for title, rows in groups.items():
        formats = list(dict.fromkeys(row[1] for row in rows))
        ordered = sorted(rows, key=lambda row: (formats.index(row[1]), *map(_place, row[2:_KEYS])))
        yield title, _merged((row[1:] for row in ordered), _KEYS - 1)


def _place(cell: float | str) -> tuple[int, float]:
    """Numbers by their size, behind them texts in their order."""
    return (1, 0.0) if isinstance(cell, str) else (0, cell)


def _merged(rows: Iterable[Row], keys: int) -> dict[tuple[str, ...], tuple[Row, ...]]:
    """Rows with equal keys together, in the order of the first of each."""
    return grouped((tuple(map(_cell, row[:keys])), row[keys:]) for row in rows)


def _grid(
    title: str, head: tuple[str, ...], keys: int, rows: Mapping[tuple[str, ...], tuple[Row, ...]]
) -> Grid:
    """A table as wide as its widest row, the last column being that of published figures.

    The first `keys` columns say what a row is of.
    """
    width = keys + max(len(cells) for same in rows.values() for cells in same)
    shown = [
        (*key, *(_range(cells) for cells in zip_longest(*same, fillvalue="")))
        for key, same in rows.items()
    ]
    filled = [report.Row((*row, *("",) * (width - len(row)))) for row in shown]
    return Grid(filled, head[:width], range(keys, width), -1, title, MOST_ROWS)


def _range(cells: Sequence[float | str]) -> str:
    """Equal cells once, and no empty ones; numbers of several GPUs as their range."""
    known = [cell for cell in cells if cell != ""]
    texts = list(dict.fromkeys(map(_cell, known)))
    numbers = [cell for cell in known if not isinstance(cell, str)]
    if len(texts) > 1 and len(numbers) == len(known):
        return f"{_cell(min(numbers))} .. {_cell(max(numbers))}"
    return ", ".join(texts)


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else number(float(f"{value:.4g}"))


# --- rates against the card's own product ---


def _measured(run: Run) -> dict[str, dict[Component, Judgement]]:
    found: dict[str, dict[Component, Judgement]] = {}
    for one in pair_table.judged(run):
        if one.value is not None and 0.0 < one.value < _MOST:
            found.setdefault(one.due.measurement, {})[one.due.component] = one
    return found


def rates(run: Run) -> Iterator[RateBar]:
    """Every rate of a layer or a step beside the product in the same program.

    Of several GPUs it is the one with the lowest share.
    """
    found = _measured(run)
    layers = [*LAYER_READINGS, *LAYER_PARTS]
    steps = [name.format(model) for name in STEP_READINGS for model in STEP_MODELS]
    for names, product in ((layers, "layer_matmul"), (steps, "step_matmul")):
        products = found.get(product, {})
        for name in dict.fromkeys(names):
            shares = [
                (one.value / base.value, gpu, one)
                for gpu, one in found.get(name, {}).items()
                if name != product
                and one.due.unit == "TFLOP/s"
                and one.value is not None
                and (base := products.get(gpu)) is not None
                and base.value is not None
                and base.due.unit == "TFLOP/s"
            ]
            if shares:
                share, gpu, one = min(shares, key=lambda told: told[:2])
                yield _bar(name, str(gpu), share, one)


def _bar(name: str, gpu: str, share: float, one: Judgement) -> RateBar:
    whole = max(1.0, share)
    return RateBar(
        name,
        gpu,
        f"{number(one.value or 0.0)} {one.due.unit}",
        number(float(f"{share:.3g}")),
        round(100 * share / whole, 1),
        round(100 / whole, 1),
        bars.mark(one),
    )


# --- parallel training ---


def parallel(found: Iterable[Table], language: Language) -> Parallel | None:
    """The efficiencies of parallel training by arm, way and accumulation."""
    arms: dict[str, dict[tuple[str, float], float]] = {}
    place = parallel_contract.COLUMNS.index("efficiency")
    for table in found:
        for row in _rows(table) if table.name == parallel_contract.TABLE else ():
            arm, way, accumulation, efficiency = row[0], row[1], row[2], row[place]
            if (
                isinstance(arm, str)
                and way in parallel_contract.WAYS
                and not isinstance(accumulation, str)
                and not isinstance(efficiency, str)
                and efficiency > 0
            ):
                arms.setdefault(arm, {})[str(way), accumulation] = efficiency
    if not arms:
        return None
    shown = list(arms.items())[:2]
    seen = {way for _, cells in shown for way, _ in cells}
    ways = tuple(way for way in parallel_contract.WAYS if way in seen)
    names = {"default": language("as the machine comes"), "p2p_off": language("P2P off")}
    return Parallel(
        ways,
        tuple(_variant(names.get(arm, arm), cells, ways, language) for arm, cells in shown),
    )


def _variant(
    name: str,
    cells: Mapping[tuple[str, float], float],
    ways: Sequence[str],
    language: Language,
) -> ParallelVariant:
    bars_of: list[ParallelBar] = []
    for at, way in enumerate(ways):
        own = sorted((times, value) for (told, times), value in cells.items() if told == way)[:2]
        for place, (times, value) in enumerate(own):
            title = language(
                "{way}, {n} accumulated: {value}", way=way, n=number(times), value=number(value)
            )
            height = 100 * (1 - min(value, TOP) / TOP)
            bars_of.append(
                ParallelBar(100 * at + 14 + 38 * place, round(height, 1), times > 1, title)
            )
    values = cells.values()
    return ParallelVariant(name, number(min(values)), number(max(values)), tuple(bars_of))


# --- digests ---


def digests(found: Iterable[Table], language: Language) -> Iterator[Digests]:
    """For each format whether the bits of all GPUs are equal, or which differ and in what."""
    formats: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for table in found:
        for row in _rows(table) if table.name == digest_contract.TABLE else ():
            # A run of another length ends in other bits.
            key = _cell(row[0]), _cell(row[1])
            at = digest_contract.COLUMNS.index("losses")
            kept = tuple(map(_cell, row[at : at + _KEPT]))
            formats.setdefault(key, {})[str(table.component)] = kept
    for (name, steps), own in list(formats.items())[:MOST_GROUPS]:
        yield _digest(name, steps, own, language)


def _digest(
    name: str, steps: str, own: Mapping[str, tuple[str, ...]], language: Language
) -> Digests:
    gpus = list(own)
    told = {"format": name, "steps": steps, "gpus": language.listed(gpus)}
    groups = grouped((kept, gpu) for gpu, kept in own.items())
    if len(groups) == 1:
        weights = next(iter(groups))[-1]
        text = (
            language(
                "{format}, {steps} steps: {gpus} ended in weights {weights}",
                **told,
                weights=weights,
            )
            if len(gpus) == 1
            else language(
                "{format}, {steps} steps: {gpus} ended in the same bits, weights {weights}",
                **told,
                weights=weights,
            )
        )
        return Digests(text, bad=False)
    kinds = (language("losses"), language("gradients"), language("weights"))
    differ = [kind for place, kind in enumerate(kinds) if len({kept[place] for kept in groups}) > 1]
    parts = language("; ").join(
        language("{label}: {text}", label=language.listed(same), text=kept[-1])
        for kept, same in groups.items()
    )
    return Digests(
        language(
            "{format}, {steps} steps: the GPUs differ in {what}; weights of {parts}",
            format=name,
            steps=steps,
            what=language(", ").join(differ),
            parts=parts,
        ),
        bad=True,
    )
