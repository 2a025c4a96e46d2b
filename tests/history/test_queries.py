"""What is asked of a machine's nights, in the order of recording."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from cases import each
from nights import COPY, ERA, night, seen

from acceptance.core.machine_facts import KnownChange
from acceptance.core.parts import CPU, ITSELF, Gpu
from acceptance.history import queries
from acceptance.history.night import Era, Night, NightMeasurement, ReportedChanges, SeriesKey
from acceptance.history.trend import TrendSeries

NEWER = Era((("driver", "590.1"), ("profile", "nightly"), ("station", "host")))


def values(nights: Sequence[Night], line: SeriesKey = COPY, **given: int) -> list[float]:
    asked = {"after": 0, "first": 28, "last": 200, **given}
    found = queries.night_values(nights, ERA, **asked)
    return [one.value for one in found.get(line.part, ())]


def trends(nights: Sequence[Night], *named: str | None) -> tuple[TrendSeries, ...]:
    return queries.trend_series(nights, (ERA, NEWER), *named)


@each("apart", ["not-whole", "partial", "interrupted", "in-use", "own-image", "salvaged"])
def test_a_night_apart_is_no_reference_and_is_shown(apart: str) -> None:
    nights = [night(1, 50.0), night(2, 10.0, apart=apart), night(3, 11.0, postponed=True)]
    assert values(nights) == [50.0]
    (series,) = trends(nights)
    assert [(point.value, point.held) for point in series.points] == [
        (50.0, True),
        (10.0, False),
        (11.0, False),
    ]


def test_what_broke_its_limit_and_what_was_outside_is_marked() -> None:
    other = COPY._replace(component=Gpu(1), serial="GPU-b")
    nights = [
        night(1, 50.0),
        night(2, measured={COPY: NightMeasurement(10.0, failed=True)}, verdict="FAIL"),
        night(3, measured={COPY: NightMeasurement(45.0, 44.0, outside=True)}),
        night(
            4,
            measured={
                COPY: NightMeasurement(45.0, 50.0, unsteady=True),
                other: NightMeasurement(3.0),
            },
        ),
        night(5, None),
    ]
    assert [
        (one.day, one.value, one.again, one.outside, one.unsteady, one.failed)
        for one in seen(nights)[COPY.part]
    ] == [
        (20_001.0, 50.0, None, False, False, False),
        (20_002.0, 10.0, None, False, False, True),
        (20_003.0, 45.0, 44.0, True, False, False),
        (20_004.0, 45.0, 50.0, False, True, False),
    ]
    first, second = trends(nights)
    assert [(one.run_id, one.value, one.outside, one.held) for one in first.points] == [
        ("run-00001", 50.0, False, True),
        ("run-00002", 10.0, False, False),
        ("run-00003", 45.0, True, True),
        ("run-00004", 45.0, False, True),
    ]
    assert (second.component, second.points[0].value) == (Gpu(1), 3.0)
    assert [row[0] for row in queries.rows(nights)][-2:] == ["run-00005", "run-00004"]
    assert next(queries.rows(nights, None, "gpu1"))[5:] == (
        ERA.key,
        *("link.copy", "copy_h2d", "gpu1", "GPU-b", "GB/s"),
        *(3.0, None, False, False, False),
    )


def test_nights_that_measured_the_same_are_told_in_their_order_between_others() -> None:
    first, other, last = (night(number, float(number)) for number in range(3))
    (series,) = trends([first, other, msgspec.structs.replace(last, series=first.series)])
    assert [point.value for point in series.points] == [0.0, 1.0, 2.0]


def test_another_era_and_another_part_are_told_apart() -> None:
    other = COPY._replace(serial="GPU-b")
    nights = [
        night(number, era=era, measured={series: NightMeasurement(float(number))})
        for number, (era, series) in enumerate(
            [(ERA, COPY), (NEWER, COPY), (ERA, COPY), (ERA, other)]
        )
    ]
    assert (values(nights), values(nights, other)) == ([0.0, 2.0], [3.0])
    assert list(seen(nights, era=NEWER)) == [COPY.part]
    assert seen(nights, era=Era(())) == {}
    assert [one.value for one in seen(nights, era=None)[COPY.part]] == [0.0, 1.0, 2.0]
    assert [point.era for point in trends(nights)[0].points] == [0, 1, 0]


@each(
    "asked, due",
    [
        ({"first": 2, "last": 3}, [0, 1, 17, 18, 19]),
        ({"after": 5, "first": 2, "last": 3}, [5, 6, 17, 18, 19]),
        ({"after": 18, "first": 5, "last": 3}, [18, 19]),
        ({"after": 20, "first": 5, "last": 2}, []),
        *(
            ({"first": first, "last": last}, range(20))
            for first, last in ((15, 15), (20, 1), (19, 1), (21, 1), (1, 30))
        ),
    ],
)
def test_the_first_nights_and_the_last_ones(asked: dict[str, int], due: Sequence[int]) -> None:
    nights = [night(number, float(number)) for number in range(20)]
    assert values(nights, **asked) == list(map(float, due))


def test_nights_of_another_era_between_are_none_of_this_one() -> None:
    nights = [night(n, float(n), era=NEWER if n % 3 else ERA) for n in range(12)]
    assert values(nights, after=1, first=1, last=2) == [3.0, 6.0, 9.0]
    assert list(queries.night_values([night(1)], None, first=1, last=1)) == [COPY.part]
    assert queries.night_values([night(1)], None, first=1, last=1, only=["copy_d2h"]) == {}
    assert (trends([night(1, None)]), seen([night(1, None)])) == ((), {})


def test_a_part_that_moved_has_its_nights_in_the_order_of_recording() -> None:
    moved = COPY._replace(component=Gpu(1))
    nights = [
        night(number, day=day, measured={series: NightMeasurement(float(number))})
        for number, (series, day) in enumerate(
            [(COPY, 20_003.0), (moved, 5.0), (COPY, 20_001.0), (moved, 90_000.0)]
        )
    ]
    (part,) = seen(nights)
    assert (part.name, values(nights)) == ("GPU-a", [0.0, 1.0, 2.0, 3.0])


def test_the_nights_until_a_run_and_until_a_day() -> None:
    nights = [
        night(number, float(number), day=day)
        for number, day in ((1, 20_001.0), (2, 90_000.0), (3, 20_003.0), (4, 20_004.0))
    ]
    assert queries.count_until(nights, "run-00002") == 2
    assert queries.count_until(nights, "run-00009") is None
    assert [
        queries.last_until(nights, day) for day in (20_000.0, 20_001.0, 20_003.5, 99_000.0)
    ] == [
        0,
        1,
        3,
        4,
    ]


@each("wrong", range(1, 10))
@each("clock", [0.0, 90_000.0])
def test_one_wrong_clock_moves_no_night_far_across_a_day(wrong: int, clock: float) -> None:
    nights = [night(n, day=clock if n == wrong else 20_000.0 + n) for n in range(1, 10)]
    assert queries.last_until(nights, 19_999.0) == (wrong if wrong <= 2 and clock == 0.0 else 0)
    last = {(4, 90_000.0): 3, (5, 0.0): 5, (6, 0.0): 6}  # at the parting itself nothing tells
    assert queries.last_until(nights, 20_004.5) == last.get((wrong, clock), 4)


def test_series_by_name_and_pattern() -> None:
    named = [
        SeriesKey("c", name, where, "count", None)
        for name in ("copy_h2d", "copy_d2h", "odd[*]")
        for where in (Gpu(0), CPU)
    ]
    nights = [night(n, measured=dict.fromkeys(named, NightMeasurement(1.0 * n))) for n in range(4)]
    assert len(trends(nights)) == 6
    assert [one.measurement for one in trends(nights, "copy_*", "gpu0")] == ["copy_h2d", "copy_d2h"]
    assert [one.component for one in trends(nights, "odd[*]")] == [Gpu(0), CPU]
    (one,) = trends(nights[-2:], "copy_h2d", "cpu")
    assert [(point.run_id, point.value) for point in one.points] == [
        ("run-00002", 2.0),
        ("run-00003", 3.0),
    ]


@each(
    "more, count",
    [
        ([], 2),
        ([night(7, apart="partial"), night(8, apart="interrupted")], 2),
        ([night(7, apart="partial"), night(9)], 0),
    ],
    told=["two in a row", "no night in place of those", "one that was not skipped"],
)
def test_nights_skipped_in_a_row(more: list[Night], count: int) -> None:
    skipped = [night(n, postponed=one) for n, one in enumerate([True, True, False, True, True])]
    assert queries.skipped_in_a_row([*skipped, *more]) == count
    assert queries.skipped_in_a_row([]) == 0


def test_the_changes_that_the_last_night_reported() -> None:
    change = KnownChange(ITSELF, "kernel", "6.13", "2026-01-01")
    none = ReportedChanges("birth", ())
    nights = [
        night(1, reported=ReportedChanges("birth", (change,))),
        night(2, apart="partial", reported=none),
        night(3, postponed=True),
        night(4),
    ]
    assert queries.known_changes(nights, "birth") == (change,)
    last = night(5, apart="in-use", reported=none)
    for found, birth in ((nights, "another"), ([*nights, last], "birth"), ([], "birth")):
        assert queries.known_changes(found, birth) == ()
