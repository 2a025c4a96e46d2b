"""What a course of nights comes to."""

from __future__ import annotations

import math

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.history import trend as history_trend
from acceptance.history.noise import Spread
from acceptance.history.trend import Summary, TrendPoint, split_recent, summary

ONE = Spread(1.0, True, "a basis")
NONE = Spread(0.0, True, "a basis")


def made(
    *values: float, era: int = 1, outside: bool = False, held: bool = True
) -> list[TrendPoint]:
    return [
        TrendPoint(f"run-{n}", float(n), value, None, outside, False, held, era)
        for n, value in enumerate(values)
    ]


def of(points: list[TrendPoint], spread: Spread = ONE) -> Summary:
    return summary(points, *split_recent(points), spread)


@each(
    "points, due",
    [
        (made(10.0, 12.0, 11.0), Summary(3, 0, 11.0, 11.0, 1.0)),
        # What was outside or is no measure is shown and not usual.
        (
            [*made(10.0, 12.0), *made(50.0, outside=True), *made(70.0, held=False)],
            Summary(4, 1, 70.0, 11.0, 1.0),
        ),
        # Another era begins anew.
        ([*made(10.0, 12.0), *made(50.0, 60.0, era=2)], Summary(4, 0, 60.0, 55.0, 5.0)),
        (made(1.0, held=False), Summary(1, 0, 1.0, None, None)),
        ([], Summary(0, 0, None, None, None)),
    ],
    told=["usual", "outside", "another era", "nothing usual", "nothing at all"],
)
def test_what_is_usual(points: list[TrendPoint], due: Summary) -> None:
    assert of(points) == due


def test_only_the_last_era_is_usual() -> None:
    assert history_trend.usual_values([*made(10.0, 12.0), *made(50.0, 60.0, era=2)]) == [50.0, 60.0]
    assert split_recent([]) == ([], [])


@each(
    "after, spread, change, times, trend",
    [
        (10.5, ONE, 0.5, 0.5, "level"),
        (11.0, ONE, 1.0, 1.0, "level"),
        (12.0, ONE, 2.0, 2.0, "up"),
        (7.0, ONE, -3.0, 3.0, "down"),
        (10.0, NONE, 0.0, 0.0, "level"),
        (10.5, NONE, 0.5, math.inf, "up"),
    ],
)
def test_where_it_is_going(
    after: float, spread: Spread, change: float, times: float, trend: str
) -> None:
    found = of(made(*[10.0] * 7, *[after] * 7), spread)
    assert (found.change, found.times, found.trend) == (change, times, trend)


def test_too_few_nights_tell_nothing() -> None:
    assert of(made(*[10.0] * 6, *[20.0] * 7)).trend is None
    assert of(made(*[10.0] * 7, *[20.0] * 7)).trend == "up"
    assert split_recent(made(*map(float, range(9)))) == (
        [0.0, 1.0],
        [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
    )


def test_only_the_last_era_is_going_anywhere_and_only_by_nights_that_are_a_measure() -> None:
    points = [
        *made(*[90.0] * 7),
        *made(*[10.0] * 7, era=2),
        *made(99.0, era=2, held=False),
        *made(*[12.0] * 7, era=2),
    ]
    assert split_recent(points) == ([10.0] * 7, [12.0] * 7)


def test_a_trend_is_of_the_last_era_and_of_what_is_a_measure() -> None:
    points = [*made(1.0, 2.0), *made(3.0, era=2), *made(99.0, era=2, held=False), *made(4.0, era=2)]
    assert split_recent(points) == ([], [3.0, 4.0])
    later = [*made(*[90.0] * 9), *made(*[10.0] * 7, *[10.5] * 7, era=2)]
    assert of(later).before == 10.0


def test_one_night_makes_no_trend() -> None:
    assert of(made(*[10.0] * 20, 99.0)).trend == "level"


@given(st.lists(st.floats(-1e6, 1e6), max_size=40))
def test_the_median_lies_among_the_values(values: list[float]) -> None:
    found = of(made(*values))
    assert found.nights == len(values)
    if values:
        assert found.median is not None
        assert found.deviation is not None
        assert min(values) <= found.median <= max(values)
        assert 0 <= found.deviation <= max(values) - min(values)
