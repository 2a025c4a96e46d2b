"""Outliers: machines of one group against the median of the others, one value at a time. Pure.

A group holds machines of which equal rates are to be expected (one model, sheet, image and driver).
A *drop* is how much worse a value is than the median of the other machines' values, as a share of
that median. A machine is suspected of a value whose drop is beyond the threshold tonight, and
flagged when it was suspected of it on the night before too. A machine is never in its own
reference. NaN is a value that was not measured: it is in nobody's reference, and neither suspects
nor clears, so that a suspicion lasts until the next night that measures the value. The median of an
even number of others is the worse of the middle two: of three machines, one must be worse than
both.

The threshold is PRACTICAL, or what the sound machines of the group make by chance, if that is more:

- LEAST_GROUP machines or more know their own spread. One deviation is 1.4826 x the median size of a
  drop, never less than the noise in the data; the threshold is FACTOR + FACTOR_OF_FEW / machines
  deviations. The deviation holds what differs between sound machines every night alike, against
  which two nights are no help, and noise, against which they are.
  With m machines of v values over 30 nights, sound machines of normal persistent deviation p and
  noise e, one flag a month is expected where the worst of m machines and the worst pair of nights
  of its v values meet: at 3.09 p + 2.35 e for m = 1,000 and v = 400 (1,000 Q(3.09) = 1;
  400 x 29 Q(2.35)^2 = 1), which is at most sqrt(3.09^2 + 2.35^2) = 3.9 deviations of
  sqrt(p^2 + e^2). FACTOR is 4. The deviation of a few machines is itself uncertain, by a sixth for
  32: FACTOR_OF_FEW makes up for it.
- Smaller groups use the deviation of all small groups of the fleet together, if these have
  LEAST_POOL machines or more. It is assumed that their sound machines differ alike. Of three, the
  reference is the worse of two, which lies low by chance: FACTOR_OF_THREE makes up for it.
- Otherwise the spread is data: KNOWN_SPREAD x the persistent deviation that the caller knows (from
  a larger fleet of the model), plus NOISE x the noise. Where nobody knows it (NaN), what machines
  of the widest published fleets need stands in its place: UNKNOWN_OF_FEW for up to four machines,
  UNKNOWN for more.

No rule can do without that knowledge in a group of three. To find a machine 7 % slow in 19 of 20,
where sound machines differ by 0.7 %, the best test of three noiseless values (its drop to both
others, and how far these are apart) flags 3 of 1,000 sound machines of the widest published spread.

Simulated (`benchmarks/fleet_outliers.py`, tables in docs/fleet.md), of 1,000 sound machines of 400
values fewer than one is flagged in a month, in groups of 3 to 10,000, at normal spreads of 0.7 and
1.2 % and at spreads up to the published ones; most at 1.2 %, where the worst case above lies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acceptance.core.bounds import NORMAL
from acceptance.fleet.verdicts import Series

PRACTICAL = 0.03  # a smaller drop is nothing to act on
FACTOR = 4.0
FACTOR_OF_THREE = 3.7
FACTOR_OF_FEW = 48.0
LEAST_GROUP = 32
LEAST_POOL = 100
NOISE = 3.3
KNOWN_SPREAD = 3.9
FEW = 4
UNKNOWN_OF_FEW = 0.10
UNKNOWN = 0.057

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Columns:
    """What is known of each column before machines are compared.

    `noise` is one deviation of a sound machine from night to night, `spread` one persistent
    deviation between sound machines (NaN: not known), both as a share of the value. Raises
    ValueError where the lengths differ, a series is there twice, a noise is not above 0, or a
    spread is below 0.
    """

    series: tuple[Series, ...]
    higher_is_better: Bools
    noise: Floats
    spread: Floats

    def __post_init__(self) -> None:
        shapes = {self.higher_is_better.shape, self.noise.shape, self.spread.shape}
        if shapes != {(len(self.series),)}:
            raise ValueError("every column needs a better side, a noise and a spread")
        if len(set(self.series)) != len(self.series):
            raise ValueError("a series has two columns")
        if not (np.isfinite(self.noise) & (self.noise > 0)).all():
            raise ValueError("the noise of a column must be a number above 0")
        if (np.isinf(self.spread) | (self.spread < 0)).any():
            raise ValueError("the spread of a column must be 0 or more, or NaN where unknown")


@dataclass(frozen=True, slots=True)
class Group:
    """Machines of which equal values are to be expected: a row of values for each.

    Raises ValueError where rows and machines differ in number, a machine is there twice, or a value
    is infinite.
    """

    machines: tuple[str, ...]
    values: Floats

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or len(self.values) != len(self.machines):
            raise ValueError("every machine needs one row of values")
        if len(set(self.machines)) != len(self.machines):
            raise ValueError("a machine is in the group twice")
        if np.isinf(self.values).any():
            raise ValueError("a value is infinite")


class Suspicion(NamedTuple):
    """A machine that was beyond the threshold in one series."""

    machine: str
    series: Series


class Flag(NamedTuple):
    """A machine that was beyond the threshold on two nights.

    `usual` is the median of the other machines; `drop` and `threshold` are shares of it;
    `compared` counts the machines that have the value, this one included.
    """

    machine: str
    series: Series
    value: float
    usual: float
    drop: float
    threshold: float
    compared: int


class Apart(NamedTuple):
    """Two machines that were too far apart on two nights; which of them is wrong is unknown.

    `drop` is how much worse the second is, as a share of the value of the first.
    """

    better: str
    worse: str
    series: Series
    drop: float
    threshold: float


@dataclass(frozen=True, slots=True)
class Outliers:
    """What one night's values say.

    `suspicions` is the state that the next night needs. `uncompared` names machines none of whose
    values could be compared: no other machine of the group has them.
    """

    flags: tuple[Flag, ...]
    apart: tuple[Apart, ...]
    uncompared: tuple[str, ...]
    suspicions: frozenset[Suspicion]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A group compared: reference and drop of each value, machines measured in each column.

    A drop is NaN where the value, or a reference above 0, is missing.
    """

    usual: Floats
    drops: Floats
    measured: NDArray[np.int64]


def compare(values: Floats, higher_is_better: Bools) -> Comparison:
    """Hold each machine (row) against the median of the others in each column."""
    sign = np.where(higher_is_better, 1.0, -1.0)
    better = values * sign  # larger is better; NaN stays
    ranked = _ranked(better)
    measured = np.count_nonzero(~np.isnan(ranked), axis=1)
    if len(values) < 2:
        nothing = np.full(values.shape, np.nan)
        return Comparison(nothing, nothing, measured)
    # Of `measured - 1` others, sorted, the middle one; the lower of two.
    middle = np.maximum(measured - 2, 0) // 2
    at = np.arange(len(ranked))
    low, high = ranked[at, middle], ranked[at, np.minimum(middle + 1, len(values) - 1)]
    del ranked  # ten thousand machines are 32 MB an array
    # Without a value at or below the middle, the next moves into it.
    usual = np.where(better <= low, high, low) * sign
    usual[:, measured < 2] = np.nan
    usual[~(usual > 0)] = np.nan
    drops = usual * sign
    drops -= better
    drops /= usual
    return Comparison(usual, drops, measured)


def _ranked(values: Floats) -> Floats:
    """The values of each column in order, a row each; NaN last."""
    ranked = values.T.copy()
    ranked.sort(axis=1)
    return ranked


def deviation(drops: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """One deviation of each column's drops, and their number; NaN where there are none."""
    if not len(drops):
        return np.full(drops.shape[1], np.nan), np.zeros(drops.shape[1], np.int64)
    ranked = _ranked(np.abs(drops))
    count = np.count_nonzero(~np.isnan(ranked), axis=1)
    at, last = np.arange(len(ranked)), np.maximum(count - 1, 0)
    middle = (ranked[at, last // 2] + ranked[at, (last + 1) // 2]) / 2
    return NORMAL * middle, count


def thresholds(compared: Sequence[Comparison], columns: Columns) -> list[Floats]:
    """The least drop of each group and column that is suspect."""
    small = [
        np.where((one.measured > 2) & (one.measured < LEAST_GROUP), one.drops, np.nan)
        for one in compared
        if ((one.measured > 2) & (one.measured < LEAST_GROUP)).any()
    ]
    nobody = np.full((1, len(columns.series)), np.nan)
    pooled, in_pool = deviation(np.concatenate([*small, nobody]))
    found = []
    for one in compared:
        own, count = deviation(one.drops)
        limit = NOISE * columns.noise + np.where(
            np.isnan(columns.spread),
            np.where(one.measured > FEW, UNKNOWN, UNKNOWN_OF_FEW),
            KNOWN_SPREAD * columns.spread,
        )
        pool = (in_pool >= LEAST_POOL) & (one.measured > 2)
        factor = np.where(one.measured == 3, FACTOR_OF_THREE, FACTOR)
        limit = np.where(pool, _by_chance(factor, pooled, in_pool, columns.noise), limit)
        known = count >= LEAST_GROUP
        limit = np.where(known, _by_chance(FACTOR, own, count, columns.noise), limit)
        found.append(np.maximum(limit, PRACTICAL))
    return found


def _by_chance(
    factor: float | Floats, deviations: Floats, count: NDArray[np.int64], noise: Floats
) -> Floats:
    widened = factor + FACTOR_OF_FEW / np.maximum(count, 1)
    return widened * np.fmax(deviations, noise)


def find_outliers(
    groups: Sequence[Group], columns: Columns, before: Iterable[Suspicion] = ()
) -> Outliers:
    """Judge one night; `before` are the suspicions of the night before it.

    Raises ValueError where a machine is in two groups or a row has not a value for each column.
    """
    names = Counter(name for group in groups for name in group.machines)
    if twice := sorted(name for name, times in names.items() if times > 1):
        raise ValueError(f"a machine is in two groups: {twice[0]}")
    if any(group.values.shape[1] != len(columns.series) for group in groups):
        raise ValueError("every machine needs a value, or NaN, for each column")
    earlier = frozenset(before)
    compared = [compare(group.values, columns.higher_is_better) for group in groups]
    flags: list[Flag] = []
    apart: list[Apart] = []
    uncompared: list[str] = []
    tonight: set[Suspicion] = set()
    drops: dict[str, Floats] = {}
    for group, one, limits in zip(groups, compared, thresholds(compared, columns), strict=True):
        drops.update(zip(group.machines, one.drops, strict=True))
        compared_values = np.count_nonzero(~np.isnan(one.drops), axis=1)
        pairs = zip(group.machines, compared_values, strict=True)
        uncompared += [name for name, values in pairs if not values]
        for row, column in np.argwhere(one.drops >= limits).tolist():
            suspicion = Suspicion(group.machines[row], columns.series[column])
            tonight.add(suspicion)
            if suspicion not in earlier:
                continue
            drop, limit = float(one.drops[row, column]), float(limits[column])
            if one.measured[column] == 2:
                others = ~np.isnan(group.values[:, column])
                others[row] = False
                better = group.machines[int(np.argmax(others))]
                apart.append(Apart(better, *suspicion, drop, limit))
            else:
                value, usual = group.values[row, column], one.usual[row, column]
                counted = int(one.measured[column])
                flags.append(Flag(*suspicion, float(value), float(usual), drop, limit, counted))
    number = {series: column for column, series in enumerate(columns.series)}
    for past in earlier:
        row_of, column_of = drops.get(past.machine), number.get(past.series)
        if row_of is None or column_of is None or np.isnan(row_of[column_of]):
            tonight.add(past)
    return Outliers(
        tuple(sorted(flags)), tuple(sorted(apart)), tuple(sorted(uncompared)), frozenset(tonight)
    )
