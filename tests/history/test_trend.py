"""What a course of nights comes to."""

from __future__ import annotations

import math

from cases import each
from hypothesis import given
from hypothesis import strategies as st
from known import known

from acceptance import resources
from acceptance.history import noise
from acceptance.history import trend as history_trend
from acceptance.history.noise import Spread
from acceptance.history.trend import (
    Summary,
    TrendPoint,
    TrendReport,
    TrendRow,
    TrendSeries,
    split_recent,
    summary,
)

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


ANEW = [*made(*[90.0] * 7), *made(*[10.0] * 7, era=2), *made(99.0, era=2, held=False)]


@each(
    "points, before, recent",
    [
        ([], [], []),
        (made(*map(float, range(9))), [0.0, 1.0], [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
        ([*ANEW, *made(*[12.0] * 7, era=2)], [10.0] * 7, [12.0] * 7),
        ([*ANEW[:2], *made(3.0, era=2), *ANEW[-1:], *made(4.0, era=2)], [], [3.0, 4.0]),
    ],
)
def test_the_last_week_and_before_of_the_last_era_by_nights_that_are_a_measure(
    points: list[TrendPoint], before: list[float], recent: list[float]
) -> None:
    assert split_recent(points) == (before, recent)


@each(
    "points, spread, change, times, trend",
    [
        *(
            (made(*[10.0] * 7, *[after] * 7), *rest)
            for after, *rest in (
                (10.5, ONE, 0.5, 0.5, "level"),
                (11.0, ONE, 1.0, 1.0, "level"),
                (12.0, ONE, 2.0, 2.0, "up"),
                (7.0, ONE, -3.0, 3.0, "down"),
                (10.0, NONE, 0.0, 0.0, "level"),
                (10.5, NONE, 0.5, math.inf, "up"),
            )
        ),
        (made(*[10.0] * 6, *[20.0] * 7), ONE, None, None, None),
        (made(*[10.0] * 20, 99.0), ONE, 0.0, 0.0, "level"),
        ([*made(*[90.0] * 9), *made(*[10.0] * 7, *[10.5] * 7, era=2)], ONE, 0.5, 0.5, "level"),
    ],
)
def test_where_it_is_going(
    points: list[TrendPoint],
    spread: Spread,
    change: float | None,
    times: float | None,
    trend: str | None,
) -> None:
    found = of(points, spread)
    assert (found.change, found.times, found.trend) == (change, times, trend)


@given(st.lists(st.floats(-1e6, 1e6), max_size=40))
def test_the_median_lies_among_the_values(values: list[float]) -> None:
    found = of(made(*values))
    assert found.nights == len(values)
    if values:
        assert min(values) <= known(found.median) <= max(values)
        assert 0 <= known(found.deviation) <= max(values) - min(values)


# --- as a person looks at them ---

BOOK = noise.read(resources.locate("noise.toml"))
FACTS = {
    1: {"driver": "580.1", "station": "host"},
    2: {"driver": "590.2", "station": "host", "image": "abc"},
}


def row(
    points: list[TrendPoint], measurement: str = "copy_h2d", born: float | None = None
) -> TrendRow:
    course = TrendSeries("link.copy", measurement, "gpu0", "GB/s", "GPU-a", tuple(points))
    return history_trend.row(course, BOOK, virtual=False, facts=FACTS, baseline=born)


def test_a_course_is_held_against_its_own_noise() -> None:
    """Copies may differ by 3 % between any two runs; a card that was never off by more than a
    thousandth is known better.
    """
    steady = [50.0, 50.01, 49.99, 50.0, 50.02, 49.98, 50.0, 50.01]
    found = row(made(*steady, *[49.0] * 7))
    assert found.summary.trend == "down"
    assert found.summary.before == 50.0
    noisy = [50.0, 51.5, 48.5, 50.5, 49.0, 51.0, 49.5, 50.0]
    assert row(made(*noisy, *[49.0] * 7)).summary.trend == "level"
    assert row(made(50.0, 49.0)).summary.trend is None


def test_where_another_era_begins() -> None:
    points = [*made(1.0, 1.0), *made(1.0, 1.0, era=2), *made(1.0)]
    assert row(points).began == (
        (2, (("driver", "580.1", "590.2"), ("image", None, "abc"))),
        (4, (("driver", "590.2", "580.1"), ("image", "abc", None))),
    )
    assert row(made(1.0)).began == ()


def test_the_baseline_and_what_cannot_be_compared() -> None:
    assert row(made(1.0), born=1.5).born == 1.5
    assert row(made(1.0)).comparable
    assert not row(made(1.0), "burn_copied").comparable


@each("count", [0, 1, 13])
def test_what_changed_most_stands_first_and_not_too_much_of_it(count: int) -> None:
    rows = [row(made(*[50.0] * 8, *[50.0 - step] * 7), f"m{step}") for step in range(count)]
    rows.append(row(made(*[50.0] * 8, *[10.0] * 7), "burn_copied"))
    found = TrendReport("m", 15, (), tuple(rows)).largest_changes()
    assert len(found) == min(max(count - 1, 0), 10)
    assert [one.series.measurement for one in found] == [
        f"m{step}" for step in range(count - 1, 0, -1)
    ][:10]


def test_few_nights_tell_nothing() -> None:
    few, many = row(made(50.0, 10.0)), row(made(*[50.0] * 14))
    assert not TrendReport("m", 2, (), (few,)).can_tell()
    assert not TrendReport("m", 14, (), (row(made(*[50.0] * 14), "burn_copied"),)).can_tell()
    assert TrendReport("m", 14, (), (few, many)).can_tell()


def test_only_what_is_beyond_noise_changed() -> None:
    """A card whose nights were all the same is allowed half of what cards are
    in general: 1.25 of 50 GB/s.
    """
    rows = [
        row(made(*[50.0] * 7, *[50.0 - step] * 7), f"copy_{place}")
        for place, step in enumerate((0.0, 1.2, 1.3, 2.0))
    ]
    times = [one.summary.times or 0.0 for one in rows]
    assert times[0] == 0.0
    assert times[1] < 1.0 < times[2] < 2.0
    found = TrendReport("m", 14, (), tuple(rows)).largest_changes()
    assert [one.series.measurement for one in found] == ["copy_3", "copy_2"]
