"""Measurements check by check: siblings beside each other, each a bar with limit and peak. Pure.

Peaks: the highest possible value by the GPU's model sheet or its link, drawn beside a bar.

Never guessed. Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from acceptance.core.dtype import burn_name, gemm_names
from acceptance.core.grouping import grouped
from acceptance.core.language import Language
from acceptance.core.message import Message, Value
from acceptance.core.parts import Component
from acceptance.core.verdict import CheckResult, Judgement
from acceptance.expect import limit_book, sheet
from acceptance.expect.sheet import LOCAL_COPY, Sheet
from acceptance.machine import pcie
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Inventory
from acceptance.reports import summary
from acceptance.reports.page import heat
from acceptance.reports.page.heat import HeatMatrix
from acceptance.wording import words


@dataclass(frozen=True, slots=True)
class Peak:
    """A value in the measurement's unit, and its source."""

    value: float
    source: str


Peaks = Mapping[tuple[str, Component], Peak]  # by measurement and component


def peaks(inventory: Inventory, sheets: Sequence[Sheet], language: Language) -> Peaks:
    """The known peaks of every GPU of an inventory; an unknown peak is absent."""
    return dict(_all(inventory, sheets, language))


def _all(
    inventory: Inventory, sheets: Sequence[Sheet], language: Language
) -> Iterator[tuple[tuple[str, Component], Peak]]:
    for gpu in gpus(inventory):
        own = sheet.find(sheets, pci_id=gpu.device_id, nvml_name=gpu.model)
        if own is not None:
            for measurement, value in _of_sheet(own):
                yield (
                    (measurement, gpu.name),
                    Peak(value, words.message(own.origin, language)),
                )
        rate = _link(gpu)
        if rate is not None:
            found = Peak(rate[0], words.message(rate[1], language))
            yield from (((copy, gpu.name), found) for copy in limit_book.names("link"))
        limit = gpu.traits.power_limit_w if gpu.traits is not None else None
        if limit is not None:
            yield ("gpu_power", gpu.name), Peak(limit, language("power limit of the card"))


def _of_sheet(own: Sheet) -> Iterator[tuple[str, float]]:
    for dtype, peak in own.peak.by_dtype().items():
        yield from ((name, peak) for name in (*gemm_names(dtype), burn_name(dtype)))
    yield LOCAL_COPY, own.memory.bandwidth_gbs


def _link(gpu: Gpu) -> tuple[float, Message] | None:
    """The one-way data rate of card and slot together in GB/s, and its source."""
    generation, width = gpu.link_generation, gpu.link_width
    if generation is None or width is None or (gpu.traits and gpu.traits.virtualised):
        return None
    return pcie.data_rate(generation, width)


_ORDER = ("fail", "error", "skip", "warn", "waived")


@dataclass(frozen=True, slots=True)
class Bar:
    """Percentages of the scale, 0 to 100: the value, its limits and its peak."""

    value: float
    low: float | None
    high: float | None
    peak: float | None


@dataclass(frozen=True, slots=True)
class BarRow:
    """One component, or several alike.

    `mark` is the worst kind of finding of the value, "" if there is none.
    """

    names: tuple[str, ...]
    serial: str | None
    value: str
    limit: str | None
    mark: str
    waived: bool
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class Group:
    """One measurement of a check.

    `limit` and `peak` are set if all of its components have the same.

    `bases` say where limits come from, in pairs of names ("" for all) and basis. `matrix` replaces
    rows for measurements between GPUs; `rows` then hold what is outside its limit.
    """

    measurement: str
    unit: str
    limit: str | None
    peak: Peak | None
    bases: tuple[tuple[str, str], ...]
    rows: tuple[BarRow, ...]
    matrix: HeatMatrix | None

    @property
    def flat(self) -> bool:
        """Whether there is nothing to draw."""
        return self.matrix is None and all(row.bar is None for row in self.rows)


def groups(
    check: CheckResult, peaks: Peaks, told: frozenset[str], language: Language
) -> Iterator[Group]:
    """The measurements of a check in the order of its plan.

    `told` are identities shown elsewhere on the page, which are not repeated.
    """
    found = grouped((one.due.measurement, one) for one in check.judged)
    yield from (_group(name, siblings, peaks, told, language) for name, siblings in found.items())


def mark(judged: Judgement) -> str:
    """The worst kind of finding of a value."""
    kinds = {finding.kind for finding in judged.findings}
    return next((kind for kind in _ORDER if kind in kinds), "")


def _group(
    measurement: str,
    siblings: Sequence[Judgement],
    peaks: Peaks,
    told: frozenset[str],
    language: Language,
) -> Group:
    known = [peaks.get((measurement, one.due.component)) for one in siblings]
    scale = 0.0 if all(map(_is_exact, siblings)) else _scale(siblings, known)
    limits = {_limit(one, language) for one in siblings}
    limit = limits.pop() if len(limits) == 1 else None
    matrix = heat.pairs(siblings) if len({one.value for one in siblings}) > 1 else None
    shown = [pair for pair in zip(siblings, known, strict=True) if matrix is None or mark(pair[0])]
    rows = [_row(one, peak, scale, told, language, own_limit=limit is None) for one, peak in shown]
    return Group(
        measurement,
        siblings[0].due.unit,
        limit,
        known[0] if len(set(known)) == 1 else None,
        tuple(_bases(siblings, language)),
        tuple(_alike(rows, language)),
        matrix,
    )


def _limit(judgement: Judgement, language: Language) -> str:
    return summary.limit_text(judgement) if judgement.due.limit else language("not judged")


def _bases(siblings: Sequence[Judgement], language: Language) -> Iterator[tuple[str, str]]:
    """Each basis once, with the components that have it; "" if all have the same.

    Bases that differ only in the component's name count as the same.
    """
    found: dict[Hashable, list[Judgement]] = {}
    for one in siblings:
        due, name = one.due, str(one.due.component)
        texts = (due.limit.basis if due.limit else None, due.origin, due.unlimited)
        most = (due.ceiling.low, due.ceiling.high) if due.ceiling else None
        found.setdefault((*(_unnamed(told, name) for told in texts), most), []).append(one)
    for group in found.values():
        bases = {summary.basis_text(one, language) for one in group}
        basis = summary.basis_text(group[0], language)
        text = basis if len(bases) == 1 else language("{basis}; and so for the others", basis=basis)
        yield (
            "" if len(found) == 1 else _names([str(one.due.component) for one in group], language),
            text,
        )


def _unnamed(told: Value | None, name: str) -> Hashable:
    """What is said, without the name of the component that it is said of."""
    if isinstance(told, Message):
        values = told.values.items()
        return told.code, tuple((key, _unnamed(value, name)) for key, value in values)
    if isinstance(told, tuple):
        return tuple(_unnamed(one, name) for one in told)
    return "" if told == name else repr(told)


def _names(names: Sequence[str], language: Language) -> str:
    if len(names) <= 9:
        return language.listed(names)
    return language.noted(f"{names[0]} … {names[-1]}", str(len(names)))


def _scale(siblings: Sequence[Judgement], known: Sequence[Peak | None]) -> float:
    """The value of a full bar; 0 if no bar can be drawn."""
    values = [one.value for one in siblings if one.value is not None]
    bounds = [
        bound
        for one in siblings
        if one.due.limit
        for bound in (one.due.limit.low, one.due.limit.high)
    ]
    ends = [
        *values,
        *(bound for bound in bounds if bound is not None),
        *(peak.value for peak in known if peak),
    ]
    return max(ends) if values and min(ends) >= 0 else 0.0


def _row(
    judgement: Judgement,
    peak: Peak | None,
    scale: float,
    told: frozenset[str],
    language: Language,
    *,
    own_limit: bool,
) -> BarRow:
    limit = judgement.due.limit
    bar = None
    if scale > 0 and judgement.value is not None:
        places = (
            limit.low if limit else None,
            limit.high if limit else None,
            peak.value if peak else None,
        )
        low, high, top = (
            None if place is None else round(100 * place / scale, 1) for place in places
        )
        bar = Bar(round(100 * judgement.value / scale, 1), low, high, top)
    return BarRow(
        (str(judgement.due.component),),
        judgement.serial if judgement.serial not in told else None,
        summary.value_text(judgement) if judgement.value is not None else language("not measured"),
        _limit(judgement, language) if own_limit else None,
        mark(judgement),
        judgement.waived,
        bar,
    )


def _is_exact(judgement: Judgement) -> bool:
    """Whether a count is exactly at its limit, so that a bar would show nothing."""
    limit = judgement.due.limit
    return (
        limit is not None
        and judgement.due.unit == "count"
        and judgement.value in (limit.low, limit.high)
        and not mark(judgement)
    )


def _alike(rows: Sequence[BarRow], language: Language) -> Iterator[BarRow]:
    """Rows with equal content merged into one; a row with a finding stays by itself.

    If there are bars and the rows differ, none are merged: siblings stay beside each other in
    order.
    """
    found = grouped(
        (
            (row.value, row.limit, row.bar, row.waived, row.serial) if not row.mark else row.names,
            row,
        )
        for row in rows
    )
    if len(found) > 1 and any(row.bar for row in rows):
        yield from rows
        return
    for same in found.values():
        names = [name for row in same for name in row.names]
        yield same[0] if len(same) == 1 else replace(same[0], names=(_names(names, language),))
