"""Matrices with coloured cells: measurements between GPUs, and the paths between devices. Pure.

GPUs and NVLinks in the names of components and the cells of the inventory's matrix. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acceptance.core.limit import number
from acceptance.core.parts import Component, Gpu, Pair, parse
from acceptance.core.verdict import Judgement

_NVLINK = re.compile(r"NV(\d{1,3})")


def is_gpu(name: str) -> bool:
    """Whether it is a GPU's name: `gpu0`."""
    return isinstance(parse(name), Gpu)


def pair(component: Component) -> tuple[Component, Component] | None:
    """The GPUs of an ordered pair, `gpu0->gpu1`; None if it is not one."""
    of_gpus = isinstance(component, Pair) and all(isinstance(end, Gpu) for end in component.ends)
    return component.ends if isinstance(component, Pair) and of_gpus else None


def nvlinks(cell: str) -> int | None:
    """The number of NVLinks in a cell of the matrix, `NV18`; None for any other path."""
    match = _NVLINK.fullmatch(cell)
    return int(match[1]) if match else None


LEVELS = 6
# How near two devices without an NVLink between them are; the nearest has the highest level.
_WAYS = {"SYS": 0, "NODE": 1, "PHB": 1, "PXB": 2, "PIX": 2}


@dataclass(frozen=True, slots=True)
class HeatCell:
    """`level` is the strength of its colour, 0 to 5; None for no colour.

    `bad` marks a value outside its limit.
    """

    text: str
    level: int | None = None
    bad: bool = False


@dataclass(frozen=True, slots=True)
class HeatMatrix:
    """A matrix: `head` over the columns, and rows of a name and one cell per column."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]


def pairs(judged: Iterable[Judgement]) -> HeatMatrix | None:
    """Measurements of ordered pairs of GPUs, the source in rows.

    None if a component is no such pair. The colour is the value's share of the largest.
    """
    found: dict[tuple[Component, Component], Judgement] = {}
    for one in judged:
        ends = pair(one.due.component)
        if ends is None:
            return None
        found[ends] = one
    if len(found) < 2:
        return None
    names = sorted({name for ends in found for name in ends})
    most = max((one.value for one in found.values() if one.value is not None), default=0.0)
    rows = tuple(
        (str(a), tuple(_value(a, b, found.get((a, b)), most) for b in names)) for a in names
    )
    return HeatMatrix(tuple(map(str, names)), rows)


def _value(a: Component, b: Component, judgement: Judgement | None, most: float) -> HeatCell:
    if a == b:
        return HeatCell("")
    if judgement is None or judgement.value is None:
        return HeatCell("-", bad=judgement is not None)
    level = (
        min(LEVELS - 1, int(judgement.value / most * LEVELS))
        if 0 <= judgement.value <= most and most > 0
        else None
    )
    return HeatCell(
        number(judgement.value),
        level,
        any(finding.kind == "fail" for finding in judgement.findings),
    )


def way_matrix(matrix: Sequence[Sequence[str]]) -> HeatMatrix | None:
    """The matrix of the inventory, coloured by how near two devices are; None if there is none.

    A number of NVLinks below that of other pairs is marked as bad.
    """
    if len(matrix) < 2:
        return None
    counts = [
        count for row in matrix[1:] for cell in row[1:] if (count := nvlinks(cell)) is not None
    ]
    most = max(counts, default=0)
    rows = tuple((row[0], tuple(_way(cell, most) for cell in row[1:])) for row in matrix[1:] if row)
    return HeatMatrix(tuple(matrix[0][1:]), rows)


def _way(cell: str, most: int) -> HeatCell:
    count = nvlinks(cell)
    if count is not None:
        return HeatCell(cell, 5 if count == most else 3, count < most)
    return HeatCell(cell, _WAYS.get(cell))
