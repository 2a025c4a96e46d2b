"""A machine's nights as a person looks at them."""

from __future__ import annotations

from cases import each
from test_trend import made

from acceptance import resources
from acceptance.history import noise, trend
from acceptance.history.trend import TrendPoint, TrendReport, TrendRow, TrendSeries

BOOK = noise.read(resources.locate("noise.toml"))
FACTS = {
    1: {"driver": "580.1", "station": "host"},
    2: {"driver": "590.2", "station": "host", "image": "abc"},
}


def row(
    points: list[TrendPoint], measurement: str = "copy_h2d", born: float | None = None
) -> TrendRow:
    course = TrendSeries("link.copy", measurement, "gpu0", "GB/s", "GPU-a", tuple(points))
    return trend.row(course, BOOK, virtual=False, facts=FACTS, baseline=born)


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
