"""Nights reduced to what tonight is held against."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import drift_nights
import pytest
from cases import each
from drift_nights import BOOK, looks, past, rule, said, steady
from hypothesis import given
from hypothesis import strategies as st
from known import known
from msgspec.structs import replace

from acceptance.core.limit import Limit
from acceptance.core.past import Bounds, Past
from acceptance.expect.limit_book import at_least, exactly, must_be_zero
from acceptance.history.noise import DriftRule, Spread
from acceptance.history.reference_builder import NightValue, build_reference

GENERAL = (
    0.25 * 0.03 * 600.0
)  # one deviation of a sustained product of 600 TFLOP/s, before nights tell
FACTOR, FIRST = BOOK.sheet.step.factor, BOOK.sheet.first.factor
ODD = 1.2533**2


def low(found: Past) -> float:
    bounds = known(found.level).bounds
    assert bounds.high is None
    return known(bounds.low)


# --- the level ---


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_few_nights_are_held_against_as_two_runs_are_compared(count: int) -> None:
    made = past(looks([600.0] * count))
    assert (made.level, made.first) == (None, None)
    assert (known(made.few).nights, known(made.few).baseline) == (count, False)
    assert known(made.few).bounds == Bounds(low=600.0 * 0.97)
    said = made.judge("TFLOP/s", 500.0)
    assert [(one.kind, one.what) for one in said.findings] == [("warn", "step")]
    assert "16.7 % below the first" in drift_nights.said(said.findings[0])
    assert not said.outside
    four = past(looks([600.0] * 4))
    assert four.level is not None
    assert (four.first, four.few) == (None, None)


def within(values: Iterable[float], inside: int) -> list[NightValue]:
    """Nights of which those after so many were outside."""
    return [replace(one, outside=night >= inside) for night, one in enumerate(looks(values))]


@each(
    "found, middle, nights",
    [
        (looks([*[500.0] * 50, *[600.0] * 27, 590.0]), 600.0, 28),
        (looks([600.0, 602.0, 609.0, 606.0, 604.0]), 604.0, 5),
        (looks([600.0, 602.0, 604.0, 606.0]), 603.0, 4),
        (within([*[600.0] * 10, *[500.0] * 40], 10), 600.0, 10),
        (within([*[600.0] * 4, *[500.0] * 8], 4), 600.0, 4),
        (within([500.0] * 8, 0), 500.0, 8),
        (within([500.0] * 8, 3), 500.0, 8),
        (looks([600.0, math.nan, 600.0, math.inf, 600.0, 600.0]), 600.0, 4),
    ],
    told=[
        *("the last four weeks", "one in the middle", "between two in the middle"),
        *("nights outside are no part of it", "four nights within are enough"),
        *("where none was within, all", "where too few were within, all", "no numbers"),
    ],
)
def test_the_level_is_the_median_of_the_nights_within(
    found: list[NightValue], middle: float, nights: int
) -> None:
    level = known(past(found).level)
    assert (level.middle, level.nights) == (middle, nights)


@each(
    "values, deviation",
    [
        ([600.0] * 4, math.sqrt(12 / 16) * GENERAL),
        ([600.0] * 28, math.sqrt(12 / 40) * GENERAL),
        ([580.0, 620.0] * 14, 1.4826 * 20.0),
    ],
    told=[
        "few nights that agree do not make a quiet machine",
        "many that agree do, but never more than half",
        "nights that differ more than is usual widen the bound by their own measure",
    ],
)
def test_how_far_a_night_may_lie_from_the_level(values: list[float], deviation: float) -> None:
    allowed = FACTOR * deviation * math.sqrt(1 + ODD / len(values))
    assert low(past(looks(values))) == pytest.approx(
        600 - allowed, abs=0.1 if deviation > 20 else 0.01
    )


def test_a_single_odd_night_moves_nothing() -> None:
    values = steady(28)
    usual, odd = low(past(looks(values))), low(past(looks([*values[:27], 300.0])))
    assert odd == pytest.approx(usual, abs=1.0)


def test_bounds_lie_on_the_worse_side_only_or_on_both_where_nothing_tells() -> None:
    hot = known(past(looks([60.0] * 5), of=rule("gpu_temperature", "degC")).level)
    power = past(looks([700.0] * 5), of=rule("gpu_power", "W"))
    assert (hot.bounds.low, hot.bounds.high is not None) == (None, True)
    assert None not in (known(power.level).bounds.low, known(power.level).bounds.high)
    assert (power.decides, past(looks([60.0] * 5), of=rule("gpu_temperature", "degC")).decides) == (
        False,
        True,
    )


@given(
    st.floats(min_value=-1e9, max_value=1e9),
    st.sampled_from([("gpu_power", "W"), ("gpu_link_width", "count")]),
)
def test_a_bound_is_rounded_outward(value: float, of: tuple[str, str]) -> None:
    level = known(
        known(build_reference(looks([value] * 5), None, rule=rule(*of), today=200.0)).level
    )
    assert not level.bounds.beyond(value)


def test_a_bound_has_no_fewer_digits() -> None:
    bound = low(past(looks(steady(28))))
    assert bound == float(f"{bound:.6g}") != float(f"{bound:.5g}")


@each(
    "value, of, bound",
    [
        *(
            (value, ("memory_speed", "MT/s"), bound)
            for value, bound in (
                (0.00123456789, 0.00123456),
                (7654.321987, 7654.32),
                (-0.1234567, -0.123457),
                (0.0, 0.0),
            )
        ),
        (16.0, ("gpu_link_width", "count"), 16.0),
        (0.0, ("gpu_link_width", "count"), 0.0),
    ],
)
def test_a_bound_has_six_digits_and_a_count_that_never_moved_allows_nothing(
    value: float, of: tuple[str, str], bound: float
) -> None:
    assert low(past(looks([value] * 5), of=rule(*of))) == bound


# --- the limit, and what the nights add to it ---


FLOORS = [(450.0, True), (580.0, True), (599.0, False)]  # 580: tighter than the beginning alone
HEATS = [(90.0, True), (70.0, True), (61.0, False)]
RISING = [*steady(40, 500.0, 1.0), *steady(60, 600.0, 1.0)]
COOLING = [*steady(40, 80.0, 0.1), *steady(60, 60.0, 0.1)]


def heat(high: float) -> DriftRule:
    return rule("gpu_temperature", "degC", Limit("degC", "b", high=high))


@each(
    "of, values, born, held",
    [
        (rule(), [], None, False),
        *(
            (rule(limit=at_least(limit, "TFLOP/s", "b")), [600.0] * 28, 600.0, held)
            for limit, held in FLOORS
        ),
        (rule(limit=Limit("TFLOP/s", "b", high=700.0)), [600.0] * 28, 600.0, True),
        *((heat(limit), [60.0] * 28, 60.0, held) for limit, held in HEATS),
        (rule("gpu_count", "count", exactly(2.0, "count", "b")), [2.0] * 28, 2.0, False),
        (rule("disk_faults", "count", must_be_zero("b")), [0.0] * 5, None, False),
        (heat(60.0), [60.0] * 28, None, False),
        (heat(60.0), [40.0] * 28, None, True),
        # between the bounds of the nights and of the beginning it is not the tighter one
        (rule(limit=at_least(560.0, "TFLOP/s", "b")), RISING, 500.0, True),
        (rule(limit=at_least(590.0, "TFLOP/s", "b")), RISING, 500.0, False),
        (heat(80.0), COOLING, 80.0, True),
        (heat(65.0), COOLING, 80.0, False),
        (rule("disk_wear", "ratio"), [], None, False),
        (rule("disk_wear", "ratio"), [math.nan], None, False),
    ],
)
def test_nights_that_allow_more_than_the_limit_add_nothing(
    of: DriftRule, values: list[float], born: float | None, held: bool
) -> None:
    made = build_reference(looks(values), born, rule=of, today=300.0, baseline_day=100.0)
    assert (made is not None) == held


# --- how it began ---


ALONE = [NightValue(100.0, 600.0)]


def of_one(value: float, deviation: float, side: int = -1, season: float = 0.0) -> object:
    """The bound of a baseline alone."""
    return pytest.approx(
        value + side * (FIRST * math.sqrt(1 + ODD) * deviation + season), abs=value * 1e-5
    )


@each(
    "found, born, of, due",
    [
        (ALONE, 600.0, rule(), {"middle": 600.0, "nights": 1, "day": 100.0, "baseline": True}),
        (ALONE, 600.0, rule(), {"moved": False, "bounds.low": of_one(600.0, GENERAL)}),
        (
            [NightValue(100.0, 0.88)],
            0.88,
            rule("vram_rate", "ratio"),
            {"bounds.low": of_one(0.88, 0.005)},
        ),
        (
            [NightValue(100.0, 60.0)],
            60.0,
            rule("gpu_temperature", "degC"),
            {"bounds.high": of_one(60.0, 2.0, 1, season=7.0)},
        ),
        (
            looks([900.0, *steady(100)]),
            900.0,
            rule(),
            {"nights": 28, "middle": pytest.approx(600.0, abs=2.0)},
        ),
        (looks([900.0, 600.0]), 900.0, rule(), {"middle": 750.0, "nights": 2}),
        (looks(steady(56)), None, rule(), {"nights": 28, "day": 100.0, "baseline": False}),
        (looks([*steady(28, 660.0), *steady(60, 600.0)]), None, rule(), {"moved": True}),
        (looks(steady(88)), None, rule(), {"moved": False}),
    ],
    told=[
        *("a baseline from the first night on", "its bounds", "however small it is"),
        *("another season", "four weeks after it count as much", "the first night after it"),
        *("the first nights, once they are not the last as well", "left behind", "not left"),
    ],
)
def test_how_it_began(
    found: list[NightValue], born: float | None, of: DriftRule, due: dict[str, object]
) -> None:
    first = known(past(found, born, of=of).first)
    assert {name: attrgetter(name)(first) for name in due} == due


def test_what_was_accepted_is_not_held_against_the_machine() -> None:
    found = [NightValue(100.0, 600.0, outside=True, unsteady=True), *looks([600.0], first=101.0)]
    made = past(found[:1], born=600.0)
    assert (made.before, made.off) == (False, 0)
    assert past(found, born=600.0).off == 0


def test_nights_outside_right_after_a_baseline_do_not_take_its_place() -> None:
    found = [
        NightValue(100.0, 600.0),
        *(NightValue(101.0 + night, 500.0, outside=True) for night in range(9)),
    ]
    first = known(past(found, born=600.0).first)
    assert (first.middle, first.nights) == (600.0, 1)
    assert first.bounds.beyond(500.0)


def test_a_noisier_machine_has_a_wider_beginning() -> None:
    wide, close = (
        known(past(looks(steady(60, deviation=deviation)), born=600.0).first).bounds
        for deviation in (20.0, 2.0)
    )
    assert known(wide.low) < known(close.low)
    assert past(looks(steady(55))).first is None
    assert past(ALONE, born=600.0).level is None


@pytest.mark.parametrize("day", [100.0, 90_000.0], ids=["as it was", "by a clock that ran ahead"])
def test_the_baseline_comes_first_whatever_its_clock_said(day: float) -> None:
    made = known(
        build_reference(looks([600.0] * 6), 700.0, rule=rule(), today=106.0, baseline_day=day)
    )
    assert (known(made.level).middle, known(made.level).nights) == (600.0, 7)
    assert (known(made.first).day, known(made.first).baseline) == (day, True)


@each(
    "born, day, rebased",
    [(None, 100.0, False), (600.0, None, False), (600.0, 100.0, True), (math.nan, 100.0, False)],
)
def test_a_baseline_of_another_era_or_of_no_number_counts_for_nothing(
    born: float | None, day: float | None, rebased: bool
) -> None:
    made = known(
        build_reference(
            looks([600.0] * 6), born, rule=rule(), today=106.0, baseline_day=day, rebased=rebased
        )
    )
    assert made.first is None
    assert made.rebased == rebased


def test_what_may_be_for_the_better_becomes_usual_in_time() -> None:
    changed = [replace(one, outside=True) for one in looks([640.0] * 28, first=160.0)]
    made = known(
        build_reference(
            [*looks([700.0] * 60), *changed], None, rule=rule("gpu_power", "W"), today=200.0
        )
    )
    assert (known(made.level).middle, made.first) == (640.0, None)


# --- slopes ---


def sloped(count: int, a_month: float, deviation: float = 3.0) -> list[float]:
    return [
        value - 600.0 * a_month * night / 30
        for night, value in enumerate(steady(count, deviation=deviation))
    ]


def warming(by: float) -> list[float]:
    return [60.0 + by * night / 120 for night in range(120)]


STEEP = sloped(60, 0.06)


@each(
    "nights, of",
    [
        (looks(steady(120)), rule()),
        (looks(sloped(120, -0.02)), rule()),
        (looks(STEEP[:44]), rule()),
        ([NightValue(100.0 + night / 4, value) for night, value in enumerate(STEEP)], rule()),
        (looks(sloped(90, 0.005, deviation=0.5)), rule()),
        (looks(sloped(90, 0.01, deviation=15.0)), rule()),
        (looks([*[700.0] * 200, *steady(120)]), rule()),
        (looks(warming(6.0)), rule("gpu_temperature", "degC")),
        (looks(warming(7.5)), rule("gpu_temperature", "degC")),
        (looks([700.0 - night for night in range(120)]), rule("gpu_power", "W")),
        (within([*steady(80), *[540.0] * 40], 80), rule()),
    ],
    told=[
        *("level", "better", "too few nights", "too few days", "less than two deviations"),
        *("a part that wanders needs more", "only the last months count"),
        *("seasons", "seasons, a little more"),
        *("nothing tells which side is worse", "a step that is outside"),
    ],
)
def test_what_is_no_slope(nights: list[NightValue], of: DriftRule) -> None:
    assert past(nights, of=of).slope is None


HEAT = rule("gpu_temperature", "degC")


@each(
    "values, of, due",
    [
        (
            [*[600.0] * 30, *[580.0] * 30],
            rule(),
            {"bounds.low": pytest.approx(600 - 2 * GENERAL, abs=0.001)},
        ),
        (
            [*[600.0] * 30, *[520.0, 480.0] * 15],
            rule(),
            {
                "bounds.low": pytest.approx(
                    600 - 5 * 1.2533 * 1.4826 * 20.0 * math.sqrt(2 / 20), abs=0.001
                )
            },
        ),
        ([*[60.0] * 30, *[75.0] * 30], HEAT, {"bounds.high": pytest.approx(67.0)}),
        (warming(12.0), HEAT, {"bounds.low": None}),
        (sloped(90, 0.01), rule(), {"nights": 90, "days": 60.0, "bounds.high": None}),
        (STEEP[:45], rule(), {"days": 30.0}),
    ],
    told=[
        *("two deviations", "five standard errors", "as much as seasons do"),
        *("by more than seasons move it", "one per cent a month", "nights and days enough"),
    ],
)
def test_a_slope(values: list[float], of: DriftRule, due: dict[str, object]) -> None:
    slope = known(past(looks(values), of=of).slope)
    assert {name: attrgetter(name)(slope) for name in due} == due
    assert of.worse == "higher" or slope.last < known(slope.bounds.low) < slope.first


def test_a_slope_is_more_than_two_deviations_and_more_than_chance() -> None:
    """By 2 x 4.5 between the first and the last third on a quiet machine; on another by five
    standard errors.
    """
    assert past(looks(sloped(90, 0.01, deviation=0.5))).slope is not None
    made = past(looks(sloped(90, 0.06, deviation=10.0)))
    error = 1.2533 * known(made.level).deviation * math.sqrt(2 / 30)
    assert 5 * error > 2 * GENERAL
    assert known(made.slope).bounds.low == pytest.approx(
        known(made.slope).first - 5 * error, abs=0.01
    )


# --- noise ---


@each(
    "values",
    [
        [*steady(60), *steady(28, deviation=5.0, seed=2)],
        [*steady(41), *steady(28, deviation=15.0, seed=2)],
        [*[600.0] * 60, *steady(28, deviation=5.0, seed=2)],
        [*steady(60, deviation=8.0), *steady(28, deviation=15.0, seed=2)],
    ],
    told=["not threefold", "too few nights", "less than is usual", "noisy before"],
)
def test_noise_that_did_not_grow_is_not(values: list[float]) -> None:
    assert past(looks(values)).grown is None


EVEN = dataclasses.replace(rule(), general=Spread(4.0, True, "b"))  # one deviation is 1 TFLOP/s


@each(
    "before, late, grown",
    [(2.0, 6.0, None), (2.0, 6.5, (2.9652, 9.6369)), (0.0, 1.0, None), (0.0, 1.5, (0.5, 2.2239))],
)
def test_noise_grows_when_it_is_more_than_three_times_what_it_was(
    before: float, late: float, grown: tuple[float, float] | None
) -> None:
    values = [600.0 + side * before for side in (-1, 1)] * 21 + [
        600.0 + side * late for side in (-1, 1)
    ] * 14
    found = past(looks(values), of=EVEN).grown
    assert (None if found is None else (found.before, found.now)) == grown


def test_noise_is_told_where_it_grows_threefold_and_where_the_limit_is_tighter_too() -> None:
    values = looks([*steady(60), *steady(28, deviation=15.0, seed=2)])
    of = rule(limit=at_least(599.99, "TFLOP/s", "b"))
    assert known(past(values, of=of).grown).nights == known(past(values).grown).nights == 28


# --- nights that strayed ---


def test_nights_that_strayed_are_counted_in_the_last_two_weeks() -> None:
    found = looks([600.0] * 30)
    strayed = {"outside": True}, {"unsteady": True}
    for night, change in (
        (10, strayed[0]),
        (16, strayed[0]),
        (17, strayed[1]),
        (20, strayed[0]),
        (25, strayed[1]),
    ):
        found[night] = replace(found[night], **change)
    made = past(found)
    assert (made.off, made.off_of, made.off_fails, made.before) == (3, 14, 4, False)
    assert past(found[:26]).off == 4
    assert past(found[:21]).before


def failed(value: float, night: int) -> NightValue:
    return NightValue(100.0 + night, value, failed=True)


def test_a_night_that_broke_its_limit_is_the_night_before_and_no_measure() -> None:
    usual = looks([600.0] * 10)
    made, before = past([*usual, failed(300.0, 10)]), past(usual)
    assert (made.before, made.off, before.before, before.off) == (True, 1, False, 0)
    assert (made.level, made.first) == (before.level, before.first)
    assert not past([*usual, failed(300.0, 10), NightValue(111.0, 600.0)]).before
    every = [failed(300.0, night) for night in range(30)]
    assert build_reference(every, None, rule=rule(), today=200.0) is None


@given(
    st.lists(st.integers(0, 60), max_size=20, unique=True), st.floats(min_value=-1e9, max_value=1e9)
)
def test_what_broke_its_limit_never_moves_a_level(places: list[int], value: float) -> None:
    usual = looks(steady(60))
    mixed = list(usual)
    for place in sorted(places, reverse=True):
        mixed.insert(place, NightValue(usual[min(place, 59)].day, value, failed=True))
    made, plain = past(mixed), past(usual)
    assert (made.level, made.first, made.slope, made.grown) == (
        plain.level,
        plain.first,
        plain.slope,
        plain.grown,
    )


def test_a_step_after_a_night_that_broke_its_limit_fails() -> None:
    limit = at_least(500.0, "TFLOP/s", "b")
    made = past([*looks([600.0] * 10), failed(450.0, 10)], of=rule(limit=limit))
    (found,) = made.judge("TFLOP/s", 505.0).findings
    assert (found.kind, found.what) == ("fail", "step")
    assert "the second night running" in said(found)
    assert made.judge("TFLOP/s", 600.0).findings == ()


# --- counters ---


def counted(
    nights: list[NightValue],
    born: float | None = None,
    *,
    of: str = "gpu_ecc_corrected_total",
    **more: Any,
) -> Past | None:
    unit = "ratio" if of == "disk_wear" else "count"
    return build_reference(nights, born, rule=rule(of, unit), **more)


REMAPPED = "gpu_remapped_corrected"
WEAR = looks([0.01 * (night // 10) for night in range(60)])
WORN = looks([0.10 + 0.001 * night for night in range(40)])
TEN = looks(map(float, range(10)))


@each(
    "nights, more, due",
    [
        (looks([1.0, 5.0]), {"today": 104.0}, {"stood": 5.0, "days": 3.0, "allowed": 30.0}),
        (looks([1.0, 5.0]), {"today": 104.0}, {"most": 3000.0, "repeats": False}),
        (looks([1.0, 5.0]), {"today": 101.25}, {"days": 0.25, "allowed": 10.0, "most": 1000.0}),
        ([], {"born": 0.03, "of": "disk_wear", "today": 102.0}, {"stood": 0.03, "days": 2.0}),
        (
            [],
            {"born": 1.0, "of": REMAPPED, "today": 102.0, "rebased": True},
            {"stood": 1.0, "days": 2.0, "allowed": 0.0},
        ),
        (
            [NightValue(101.0, 2.0)],
            {"born": 1.0, "of": REMAPPED, "today": 102.0, "rebased": True},
            {"stood": 2.0},
        ),
        (
            WEAR,
            {"of": "disk_wear", "today": 160.0},
            {
                "stood": pytest.approx(0.03),
                "days": 28.0,
                "allowed": pytest.approx(0.01 + 28 * 0.000548),
            },
        ),
        (WEAR[:5], {"of": "disk_wear", "today": 105.0}, {"stood": 0.0, "days": 5.0}),
        (looks([0.0, 4000.0, 8000.0]), {"today": -300.0}, {"stood": 8000.0, "days": 0.0}),
        (
            looks([0.0, 4000.0, 8000.0]),
            {"of": REMAPPED, "today": -300.0},
            {"stood": 8000.0, "days": 0.0},
        ),
        (
            WORN,
            {"born": 0.10, "of": "disk_wear", "today": 140.0, "baseline_day": 90_000.0},
            {"stood": pytest.approx(0.112), "days": 28.0},
        ),
        (
            WORN[:5],
            {"born": 0.10, "of": "disk_wear", "today": 105.0, "baseline_day": 90_000.0},
            {"stood": 0.10, "days": 5.0},
        ),
        *(
            (
                [*TEN[:9], replace(TEN[9], day=wrong)],
                {"today": 110.0},
                {"stood": 9.0, "days": days},
            )
            for wrong, days in ((-20_000.0, 2.0), (90_000.0, 0.0))
        ),
        *(
            (
                [*TEN[:8], replace(TEN[8], day=wrong), TEN[9]],
                {"today": 110.0},
                {"stood": 9.0, "days": 1.0},
            )
            for wrong in (-20_000.0, 90_000.0)
        ),
    ],
    told=[
        *("its rate since the last night", "the most", "no less than a day for two runs of one"),
        *("a baseline alone", "a baseline of another era", "nights of another era"),
        *("wear is taken over weeks", "wear of a few nights"),
        *("a clock that was set back", "a clock that was set back, of remapped rows"),
        *("a baseline of a day to come", "a baseline of a day to come, and few nights"),
        *("the last clock behind", "the last clock ahead", "a clock behind", "a clock ahead"),
    ],
)
def test_what_a_counter_is_held_against(
    nights: list[NightValue], more: dict[str, Any], due: dict[str, object]
) -> None:
    more = {"baseline_day": 100.0, **more} if "born" in more else more
    counter = known(known(counted(nights, **more)).counter)
    assert {name: getattr(counter, name) for name in due} == due


def grown(count: int, *nights: int) -> list[NightValue]:
    """So many nights of a counter, which grew too fast on these."""
    found = looks(map(float, range(count)))
    return [replace(one, outside=number in nights) for number, one in enumerate(found)]


@each(
    "nights, of, before, off",
    [
        ([*looks([0.0, 1.0]), failed(600.0, 2)], REMAPPED, True, 1),
        (grown(2, 1), "gpu_retired_pages", True, 1),
        (grown(20, *range(0, 20, 2)), REMAPPED, False, 6),
        (grown(30, 29), REMAPPED, True, 1),
        (grown(30, 17), REMAPPED, False, 1),
        (grown(30, 16), REMAPPED, False, 0),
    ],
    told=["it broke its limit", "the night before", *("in the last two weeks",) * 4],
)
def test_a_counter_remembers_on_which_nights_it_grew_too_fast(
    nights: list[NightValue], of: str, before: bool, off: int
) -> None:
    made = past(nights, of=rule(of, "count"))
    counter = known(made.counter)
    assert (made.before, made.off) == (before, off)
    assert counter.stood == [one.value for one in nights if not one.failed][-1]
    assert (counter.repeats, counter.most) == (True, None)
    assert counted([failed(600.0, 0)], of=REMAPPED, today=103.0) is None


# --- whatever the nights are ---


@given(
    st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=4, max_size=70),
    st.sampled_from(
        [
            ("gemm_bf16", "TFLOP/s"),
            ("gpu_temperature", "degC"),
            ("gpu_power", "W"),
            ("disk_wear", "ratio"),
        ]
    ),
    st.one_of(st.none(), st.floats(min_value=-1e6, max_value=1e6)),
)
def test_any_nights_give_a_past_that_holds_their_own_median(
    values: list[float], of: tuple[str, str], born: float | None
) -> None:
    made = known(
        build_reference(
            looks(values), born, rule=rule(*of), today=100.0 + len(values), baseline_day=None
        )
    )
    if made.level is not None:
        assert not made.level.bounds.beyond(statistics.median(values[-28:]))
