"""Outliers of a group of machines, on made-up fleets with planted faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.core.parts import Gpu
from acceptance.fleet.outliers import (
    LEAST_POOL,
    PRACTICAL,
    Apart,
    Columns,
    Floats,
    Group,
    Outliers,
    Suspicion,
    compare,
    deviation,
    find_outliers,
    thresholds,
)
from acceptance.fleet.verdicts import Series

RATE = 700.0


def columns(values: int = 4, spread: float = np.nan, noise: float = 0.01) -> Columns:
    series = tuple(Series("gpu.load", "gemm_bf16", Gpu(n), "TFLOP/s") for n in range(values))
    return Columns(series, np.ones(values, bool), np.full(values, noise), np.full(values, spread))


def names(count: int, first: str = "m") -> tuple[str, ...]:
    return tuple(f"{first}{n:05d}" for n in range(count))


def rates(count: int, values: int = 4, seed: int = 1, noise: float = 0.01) -> Floats:
    drawn = np.random.default_rng(seed).standard_normal((count, values))
    return np.asarray(RATE * (1 + noise * np.clip(drawn, -2.5, 2.5)))


def nights(known: Columns, *every: list[Group]) -> Outliers:
    """The last of some nights in a row."""
    night = Outliers((), (), (), frozenset())
    for groups in every:
        night = find_outliers(groups, known, night.suspicions)
    return night


def found(night: Outliers) -> set[tuple[str, str]]:
    return {(flag.machine, str(flag.series.component)) for flag in night.flags}


@pytest.mark.parametrize("size", [3, 4, 8, 64, 1000])
def test_slow_card_is_flagged_on_the_second_night(size: int) -> None:
    known = columns(spread=0.007)
    both = [rates(size, seed=seed) for seed in (1, 2)]
    for values in both:
        values[1, 2] *= 0.85
    first, second = ([Group(names(size), values)] for values in both)

    assert not nights(known, first).flags
    night = nights(known, first, second)
    assert found(night) == {("m00001", "gpu2")}
    (flag,) = night.flags
    assert flag.compared == size
    assert flag.value == both[1][1, 2]
    assert flag.usual == pytest.approx(RATE, rel=0.02)
    assert flag.drop == pytest.approx(1 - flag.value / flag.usual)
    assert flag.drop >= flag.threshold >= PRACTICAL


def test_higher_is_worse_where_less_is_better() -> None:
    known = replace(columns(), higher_is_better=np.array([True, False, True, False]))
    values = rates(40)
    values[3] *= 1.2
    values[5] *= 0.8
    group = [Group(names(40), values)]
    assert found(nights(known, group, group)) == {
        ("m00003", "gpu1"),
        ("m00003", "gpu3"),
        ("m00005", "gpu0"),
        ("m00005", "gpu2"),
    }


def test_one_bad_night_is_no_flag() -> None:
    bad = rates(50)
    bad[7] *= 0.5
    well, ill = [Group(names(50), rates(50))], [Group(names(50), bad)]
    assert not nights(columns(), ill, well, ill).flags


def test_a_drop_below_the_practical_one_is_never_flagged() -> None:
    """However steady the group is: 2.9 % is far beyond its spread."""
    steady = rates(200, noise=0.0001)
    steady[3] *= 0.971
    steady[4] *= 0.968
    group = [Group(names(200), steady)]
    known = columns(noise=0.0001)
    assert {one for one, _ in found(nights(known, group, group))} == {"m00004"}


def test_a_slow_rack_in_a_group_is_flagged_whole() -> None:
    values = rates(256)
    values[64:96] *= 0.88
    group = [Group(names(256), values)]
    slow = {one for one, _ in found(nights(columns(), group, group))}
    assert slow == set(names(256)[64:96])


def test_two_machines_are_compared_and_none_is_blamed() -> None:
    values = np.array([[700.0, 700.0], [560.0, 690.0]])
    known = columns(2, spread=0.007)
    night = nights(known, *[[Group(("a", "b"), values)]] * 2)
    assert not night.flags
    (apart,) = night.apart
    assert (apart.better, apart.worse, apart.series) == ("a", "b", known.series[0])
    assert apart.drop == pytest.approx(0.2)
    assert isinstance(apart, Apart)
    assert not night.uncompared


def test_a_value_that_two_of_many_have_blames_nobody() -> None:
    values = rates(50)
    values[2:, 1] = np.nan
    values[0, 1] *= 0.5
    night = nights(columns(), *[[Group(names(50), values)]] * 2)
    assert not night.flags
    assert [(one.better, one.worse) for one in night.apart] == [("m00001", "m00000")]


def test_one_machine_has_nothing_to_be_compared_with() -> None:
    nothing = np.full((1, 4), np.nan)
    night = nights(
        columns(),
        [
            Group(("a",), rates(1)),
            Group(("b", "c", "d"), np.concatenate([rates(2), nothing])),
            Group((), np.empty((0, 4))),
        ],
    )
    assert night.uncompared == ("a", "d")
    assert not night.flags


def test_without_a_reference_above_zero_nothing_is_compared() -> None:
    values = np.zeros((5, 1))
    values[0] = -1.0
    assert np.isnan(compare(values, np.array([True])).drops).all()


def test_a_value_of_zero_is_a_drop_of_all() -> None:
    values = rates(5)
    values[2, 0] = 0.0
    night = nights(columns(), *[[Group(names(5), values)]] * 2)
    assert [(flag.machine, flag.drop) for flag in night.flags] == [("m00002", 1.0)]


@given(st.data())
def test_reference_is_the_median_of_the_others(data: st.DataObject) -> None:
    """Held against a plain computation, with values missing and values alike."""
    size = data.draw(st.integers(1, 9))
    cell = st.one_of(st.just(float("nan")), st.integers(1, 5).map(float))
    cells = [data.draw(cell) for _ in range(size)]
    better = data.draw(st.booleans())
    usual = compare(np.array(cells)[:, None], np.array([better])).usual[:, 0]
    for row, value in enumerate(cells):
        if np.isnan(value):
            continue
        others = [one for at, one in enumerate(cells) if at != row and not np.isnan(one)]
        if not others:
            assert np.isnan(usual[row])
            continue
        ranked = sorted(others, reverse=not better)
        assert usual[row] == ranked[(len(others) - 1) // 2]


@given(st.permutations(range(40)), st.integers(0, 100))
def test_order_of_machines_does_not_matter(order: list[int], seed: int) -> None:
    values = rates(40, seed=seed)
    values[4, 1] *= 0.8
    values[9] *= 0.9
    values[11, 0] = np.nan
    known = columns()
    night = nights(known, *[[Group(names(40), values)]] * 2)
    shuffled = Group(tuple(names(40)[n] for n in order), values[order])
    assert nights(known, *[[shuffled]] * 2) == night
    assert night.flags


@given(st.integers(-20, 20), st.integers(0, 100))
def test_units_do_not_matter(power: int, seed: int) -> None:
    """Powers of two, which change no digit."""
    values = rates(40, seed=seed)
    values[4, 1] *= 0.8
    known = columns()
    night = nights(known, *[[Group(names(40), values)]] * 2)
    scaled = nights(known, *[[Group(names(40), values * 2.0**power)]] * 2)
    assert scaled.suspicions == night.suspicions
    assert [flag.drop for flag in scaled.flags] == [flag.drop for flag in night.flags]
    assert found(scaled) == found(night) != set()


@given(st.integers(0, 1000))
def test_nan_never_flags_and_is_in_no_reference(seed: int) -> None:
    known = columns()
    values = rates(41, seed=seed)
    values[3] *= 0.8
    missing = values.copy()
    missing[40] = np.nan
    night = nights(known, *[[Group(names(41), missing)]] * 2)
    assert night.flags == nights(known, *[[Group(names(40), values[:40])]] * 2).flags
    assert night.uncompared == ("m00040",)


def test_a_night_without_the_value_does_not_clear_a_suspicion() -> None:
    slow = rates(40)
    slow[3, 1] *= 0.8
    missing = slow.copy()
    missing[3, 1] = np.nan
    first, second = [Group(names(40), slow)], [Group(names(40), missing)]
    absent = [Group(names(40)[:3] + names(40)[4:], np.delete(slow, 3, axis=0))]
    assert found(nights(columns(), first, second, first)) == {("m00003", "gpu1")}
    assert found(nights(columns(), first, absent, first)) == {("m00003", "gpu1")}
    assert not nights(columns(), first, second).flags


def test_a_night_without_the_series_does_not_clear_a_suspicion() -> None:
    slow = rates(40)
    slow[3, 3] *= 0.8
    known = columns()
    first = find_outliers([Group(names(40), slow)], known)
    fewer = find_outliers([Group(names(40), slow[:, :2])], columns(2), first.suspicions)
    assert fewer.suspicions == first.suspicions == {Suspicion("m00003", known.series[3])}


def test_spread_that_is_wide_in_a_large_group_is_usual() -> None:
    """The threshold follows what machines of this group show."""
    wide = rates(1000, seed=3, noise=0.03)
    wide[5] *= 0.9
    wide[6] *= 0.6
    flagged = {one for one, _ in found(nights(columns(), *[[Group(names(1000), wide)]] * 2))}
    assert flagged == {"m00006"}


@pytest.mark.parametrize(("size", "factor"), [(3, 3.7), (4, 4.0), (8, 4.0)])
def test_pooled_threshold_is_so_many_deviations_of_all_small_groups(
    size: int, factor: float
) -> None:
    known = columns()
    groups = -(-LEAST_POOL // size)
    compared = [compare(rates(size, seed=n), known.higher_is_better) for n in range(groups)]
    sizes = np.abs(np.concatenate([one.drops for one in compared]))
    expected = (factor + 48 / (groups * size)) * np.maximum(1.4826 * np.median(sizes, axis=0), 0.01)
    for limits in thresholds(compared, known):
        assert limits == pytest.approx(expected)


def test_deviation_is_that_of_a_normal_distribution_and_robust() -> None:
    drops = np.random.default_rng(4).standard_normal((4001, 1))
    drops[:100] += 50.0
    drops[-1] = np.nan
    value, count = deviation(drops)
    assert value[0] == pytest.approx(1.0, rel=0.06)
    assert count[0] == 4000
    nothing, none = deviation(np.full((3, 1), np.nan))
    assert np.isnan(nothing[0])
    assert none[0] == 0


ONE = Group(("a",), rates(1, 2))
TWO = columns(2)


@each(
    "make, said",
    [
        (partial(find_outliers, [ONE, ONE], TWO), "in two groups: a"),
        (partial(find_outliers, [Group(("a",), rates(1, 3))], TWO), "for each column"),
        (partial(Group, ("a", "b"), rates(3)), "one row of values"),
        (partial(Group, ("a",), np.array([1.0])), "one row of values"),
        (partial(Group, ("a", "a"), rates(2)), "twice"),
        (partial(Group, ("a",), np.array([[np.inf]])), "infinite"),
        (partial(replace, TWO, noise=np.array([0.01])), "every column needs"),
        (partial(replace, TWO, series=TWO.series[:1] * 2), "a series has two columns"),
        *(
            (partial(replace, TWO, noise=np.array([0.01, noise])), "noise of a column")
            for noise in (0.0, -0.01, np.nan, np.inf)
        ),
        *(
            (partial(replace, TWO, spread=np.array([0.0, spread])), "spread of a column")
            for spread in (-0.01, np.inf)
        ),
    ],
)
def test_bad_input_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def one_column(*sizes: int, drop: float = 0.0) -> list[Group]:
    """Groups of machines that are all alike, but for the last of each."""
    found = []
    for number, size in enumerate(sizes):
        values = np.full((size, 1), 100.0)
        values[-1] -= 100.0 * drop
        found.append(Group(names(size, f"g{number}-"), values))
    return found


def limits_of(groups: list[Group], known: Columns) -> list[float]:
    compared = [compare(group.values, known.higher_is_better) for group in groups]
    return [float(limits[0]) for limits in thresholds(compared, known)]


OF_THREE = [3] * 33
KNOWN_OF_FEW, KNOWN_OF_MORE = 3.3 * 0.01 + 0.10, 3.3 * 0.01 + 0.057


@each(
    "sizes, at, limit",
    [
        ([4], 0, KNOWN_OF_FEW),
        ([5], 0, KNOWN_OF_MORE),
        ([31], 0, KNOWN_OF_MORE),
        ([32], 0, (4 + 48 / 32) * 0.01),  # it tells its own spread
        ([64], 0, (4 + 48 / 64) * 0.01),
        # a hundred machines in groups of three and more are a pool, and two are held to none
        (OF_THREE, 0, KNOWN_OF_FEW),
        ([*OF_THREE, 2], 0, KNOWN_OF_FEW),
        ([*OF_THREE, 3, 2, 32], 0, (3.7 + 48 / 102) * 0.01),
        ([*OF_THREE, 3, 2, 32], -2, KNOWN_OF_FEW),
    ],
)
def test_what_is_allowed_in_a_group(sizes: list[int], at: int, limit: float) -> None:
    assert limits_of(one_column(*sizes), columns(1))[at] == pytest.approx(limit)


def test_a_drop_of_just_the_threshold_is_flagged() -> None:
    known = columns(1, noise=0.0001)
    for drop, flagged in ((0.03, {"g0-00199"}), (0.02, set())):
        group = one_column(200, drop=drop)
        assert {one for one, _ in found(nights(known, group, group))} == flagged
