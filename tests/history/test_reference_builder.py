"""Nights reduced to what tonight is held against."""

from __future__ import annotations

import dataclasses
import math
import statistics

import drift_nights
import pytest
from cases import each
from drift_nights import BOOK, looks, past, rule, said, steady
from hypothesis import given
from hypothesis import strategies as st
from known import known
from msgspec.structs import replace

from acceptance.core.limit import Limit
from acceptance.core.past import Bounds, CounterReference, Past
from acceptance.expect.limit_book import at_least, exactly, must_be_zero
from acceptance.history.drift_rules import DriftRule
from acceptance.history.noise import Spread
from acceptance.history.reference_builder import NightValue, build_reference

GENERAL = (
    0.25 * 0.03 * 600.0
)  # one deviation of a sustained product of 600 TFLOP/s, before nights tell
FACTOR = 4.5
ODD = 1.2533**2


def low(found: Past) -> float:
    assert known(found.level).bounds.high is None
    assert known(found.level).bounds.low is not None
    return known(found.level).bounds.low


# --- the level ---


def test_nothing_is_known_before_the_first_night() -> None:
    assert build_reference([], None, rule=rule(), today=1.0) is None


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


def test_the_level_is_the_median_of_the_last_four_weeks() -> None:
    level = known(past(looks([*[500.0] * 50, *[600.0] * 27, 590.0])).level)
    assert (level.middle, level.nights) == (600.0, 28)


def test_an_odd_number_of_nights_has_one_in_the_middle() -> None:
    found = known(past(looks([600.0, 602.0, 609.0, 606.0, 604.0])).level)
    assert found.middle == 604.0


def test_an_even_number_of_nights_has_its_median_between_two() -> None:
    level = known(past(looks([600.0, 602.0, 604.0, 606.0])).level)
    assert level.middle == 603.0
    odd = past(looks([600.0, 602.0, 604.0, 606.0, 608.0]))
    assert known(odd.level).middle == 604.0


def test_few_nights_that_agree_do_not_make_a_quiet_machine() -> None:
    spread = math.sqrt(12 / 16) * GENERAL
    assert low(past(looks([600.0] * 4))) == pytest.approx(
        600 - FACTOR * spread * math.sqrt(1 + ODD / 4), abs=0.01
    )


def test_many_nights_that_agree_do_but_never_more_than_half() -> None:
    quiet, allowed = low(past(looks([600.0] * 28))), FACTOR * math.sqrt(1 + ODD / 28)
    assert quiet == pytest.approx(600 - math.sqrt(12 / 40) * GENERAL * allowed, abs=0.01)
    assert 600 - quiet > 0.5 * GENERAL * allowed


def test_nights_that_differ_more_than_is_usual_widen_the_bound_by_their_own_measure() -> None:
    values = [600.0 + side * 20.0 for side in (-1, 1)] * 14
    assert low(past(looks(values))) == pytest.approx(
        600 - FACTOR * 1.4826 * 20.0 * math.sqrt(1 + ODD / 28), abs=0.1
    )


def test_a_single_odd_night_moves_nothing() -> None:
    values = steady(28)
    usual, odd = low(past(looks(values))), low(past(looks([*values[:27], 300.0])))
    assert odd == pytest.approx(usual, abs=1.0)


def test_nights_outside_are_not_part_of_the_level() -> None:
    found = [
        *looks([600.0] * 10),
        *(NightValue(110.0 + night, 500.0, outside=True) for night in range(40)),
    ]
    made = past(found)
    assert (known(made.level).middle, known(made.level).nights) == (600.0, 10)
    assert made.before


def test_four_nights_within_are_enough() -> None:
    found = [
        NightValue(100.0 + night, 500.0 if night > 3 else 600.0, outside=night > 3)
        for night in range(12)
    ]
    level = known(past(found).level)
    assert (level.middle, level.nights) == (600.0, 4)


@pytest.mark.parametrize("inside", [0, 3])
def test_where_too_few_nights_were_within_they_are_all_there_is(inside: int) -> None:
    found = [replace(one, outside=night >= inside) for night, one in enumerate(looks([500.0] * 8))]
    level = known(past(found).level)
    assert (level.middle, level.nights) == (500.0, 8)


def test_looks_that_are_no_numbers_are_passed_over() -> None:
    level = known(past(looks([600.0, math.nan, 600.0, math.inf, 600.0, 600.0])).level)
    assert level.nights == 4


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


def test_a_count_that_never_moved_allows_nothing() -> None:
    assert low(past(looks([16.0] * 5), of=rule("gpu_link_width", "count"))) == 16.0
    assert low(past(looks([0.0] * 5), of=rule("gpu_link_width", "count"))) == 0.0
    assert (
        build_reference(
            looks([0.0] * 5),
            None,
            rule=rule("disk_faults", "count", must_be_zero("b")),
            today=200.0,
        )
        is None
    )


@each(
    "value, bound",
    [(0.00123456789, 0.00123456), (7654.321987, 7654.32), (-0.1234567, -0.123457), (0.0, 0.0)],
)
def test_a_bound_has_six_digits(value: float, bound: float) -> None:
    assert low(past(looks([value] * 5), of=rule("memory_speed", "MT/s"))) == bound


# --- the limit, and what the nights add to it ---


@each(
    "limit, held",
    [
        (at_least(450.0, "TFLOP/s", "b"), True),
        (
            at_least(580.0, "TFLOP/s", "b"),
            True,
        ),  # tighter than what the beginning allows, not than the last nights
        (at_least(599.0, "TFLOP/s", "b"), False),
        (Limit("TFLOP/s", "b", high=700.0), True),
    ],
)
def test_nights_that_allow_more_than_the_limit_add_nothing(limit: Limit, held: bool) -> None:
    made = build_reference(
        looks([600.0] * 28), 600.0, rule=rule(limit=limit), today=200.0, baseline_day=100.0
    )
    assert (made is not None) == held


@each("limit, held", [(90.0, True), (70.0, True), (61.0, False)])
def test_a_limit_from_above_is_held_against_the_tightest_too(limit: float, held: bool) -> None:
    of = rule("gpu_temperature", "degC", Limit("degC", "b", high=limit))
    assert (
        build_reference(looks([60.0] * 28), 60.0, rule=of, today=200.0, baseline_day=100.0)
        is not None
    ) == held


def test_a_limit_that_one_value_meets_says_all() -> None:
    of = rule("gpu_count", "count", exactly(2.0, "count", "b"))
    assert build_reference(looks([2.0] * 28), 2.0, rule=of, today=200.0, baseline_day=100.0) is None
    high = rule("gpu_temperature", "degC", Limit("degC", "b", high=60.0))
    assert build_reference(looks([60.0] * 28), None, rule=high, today=200.0) is None
    assert build_reference(looks([40.0] * 28), None, rule=high, today=200.0) is not None


def test_a_limit_between_the_bounds_of_the_nights_and_of_the_beginning_is_not_the_tighter() -> None:
    def held(of: DriftRule, values: list[float]) -> bool:
        return (
            build_reference(looks(values), values[0], rule=of, today=300.0, baseline_day=100.0)
            is not None
        )

    rising = [*steady(40, 500.0, 1.0), *steady(60, 600.0, 1.0)]
    assert held(rule(limit=at_least(560.0, "TFLOP/s", "b")), rising)
    assert not held(rule(limit=at_least(590.0, "TFLOP/s", "b")), rising)
    cooling = [*steady(40, 80.0, 0.1), *steady(60, 60.0, 0.1)]
    assert held(rule("gpu_temperature", "degC", Limit("degC", "b", high=80.0)), cooling)
    assert not held(rule("gpu_temperature", "degC", Limit("degC", "b", high=65.0)), cooling)


# --- how it began ---


def test_a_baseline_is_held_against_from_the_first_night_on() -> None:
    made = past([NightValue(100.0, 600.0)], born=600.0)
    first = known(made.first)
    assert made.level is None
    assert (first.middle, first.nights, first.day, first.baseline, first.moved) == (
        600.0,
        1,
        100.0,
        True,
        False,
    )
    assert first.bounds.low == pytest.approx(600 - 5.5 * math.sqrt(1 + ODD) * GENERAL, abs=0.01)


def test_a_baseline_alone_is_held_to_the_general_noise_however_small() -> None:
    first = known(past([NightValue(100.0, 0.88)], born=0.88, of=rule("vram_rate", "ratio")).first)
    assert first.bounds.low == pytest.approx(0.88 - 5.5 * math.sqrt(1 + ODD) * 0.005, abs=1e-5)


def test_the_four_weeks_after_a_baseline_count_as_much_as_itself() -> None:
    made = known(past(looks([900.0, *steady(100)]), born=900.0).first)
    assert made.nights == 28
    assert made.middle == pytest.approx(600.0, abs=2.0)
    few = known(past(looks([900.0, 600.0]), born=900.0).first)
    assert (few.middle, few.nights) == (750.0, 2)


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


def test_without_a_baseline_the_first_nights_stand_in_once_they_are_not_the_last_as_well() -> None:
    assert past(looks(steady(55))).first is None
    made = known(past(looks(steady(56))).first)
    assert (made.nights, made.day, made.baseline) == (28, 100.0, False)


def test_a_level_that_left_the_first_nights_is_told() -> None:
    level = known(past(looks([*steady(28, 660.0), *steady(60, 600.0)])).first)
    assert level.moved
    still = known(past(looks(steady(88))).first)
    assert not still.moved


def test_a_beginning_in_another_season_allows_for_it() -> None:
    of = rule("gpu_temperature", "degC")
    first = known(past([NightValue(100.0, 60.0)], born=60.0, of=of).first)
    assert first.bounds.high == pytest.approx(60 + 5.5 * math.sqrt(1 + ODD) * 2.0 + 7.0, abs=0.001)


def test_a_noisier_machine_has_a_wider_beginning() -> None:
    wide = known(past(looks(steady(60, deviation=20.0)), born=600.0).first)
    close = known(past(looks(steady(60, deviation=2.0)), born=600.0).first)
    assert (wide.bounds.low or 0.0) < (close.bounds.low or 0.0)


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


def test_one_per_cent_a_month_is_a_slope_within_three_months() -> None:
    slope = known(past(looks(sloped(90, 0.01))).slope)
    assert slope.first > slope.last
    assert (slope.nights, slope.days) == (90, 60.0)
    assert slope.bounds.high is None
    assert slope.last < (slope.bounds.low or 0.0) < slope.first


def test_a_slope_is_two_deviations_or_five_standard_errors_from_where_it_began() -> None:
    quiet = known(past(looks([*[600.0] * 30, *[580.0] * 30])).slope)
    assert quiet.bounds.low == pytest.approx(600 - 2 * GENERAL, abs=0.001)
    loud = known(past(looks([*[600.0] * 30, *[520.0, 480.0] * 15])).slope)
    assert loud.bounds.low == pytest.approx(
        600 - 5 * 1.2533 * 1.4826 * 20.0 * math.sqrt(2 / 20), abs=0.001
    )


def test_a_slope_of_a_temperature_is_as_much_as_seasons_do() -> None:
    slope = known(
        past(looks([*[60.0] * 30, *[75.0] * 30]), of=rule("gpu_temperature", "degC")).slope
    )
    assert slope.bounds.high == pytest.approx(67.0)


def test_what_stays_level_or_gets_better_is_none() -> None:
    assert past(looks(steady(120))).slope is None
    assert past(looks(sloped(120, -0.02))).slope is None


def test_a_slope_needs_nights_enough_and_days_enough() -> None:
    steep = sloped(60, 0.06)
    assert past(looks(steep)).slope is not None
    just = known(past(looks(steep[:45])).slope)
    assert just.days == 30.0
    assert past(looks(steep[:44])).slope is None
    hurried = [NightValue(100.0 + night / 4, value) for night, value in enumerate(steep)]
    assert past(hurried).slope is None


def test_a_slope_is_more_than_two_deviations_and_more_than_chance() -> None:
    """By 2 x 4.5 between the first and the last third on a quiet machine; on another by five
    standard errors.
    """
    assert past(looks(sloped(90, 0.005, deviation=0.5))).slope is None
    assert past(looks(sloped(90, 0.01, deviation=0.5))).slope is not None
    made = past(looks(sloped(90, 0.06, deviation=10.0)))
    error = 1.2533 * known(made.level).deviation * math.sqrt(2 / 30)
    assert 5 * error > 2 * GENERAL
    assert known(made.slope).bounds.low == pytest.approx(
        known(made.slope).first - 5 * error, abs=0.01
    )


def test_a_slope_is_of_the_last_months_only() -> None:
    found = past(looks([*[700.0] * 200, *steady(120)]))
    assert found.slope is None


def test_a_part_that_wanders_needs_more_before_it_is_a_slope() -> None:
    assert past(looks(sloped(90, 0.01, deviation=15.0))).slope is None


def test_seasons_move_temperatures() -> None:
    of = rule("gpu_temperature", "degC")
    warmer = [60.0 + 6.0 * night / 120 for night in range(120)]
    assert past(looks(warmer), of=of).slope is None
    assert past(looks([60.0 + 7.5 * night / 120 for night in range(120)]), of=of).slope is None
    hotter = known(past(looks([60.0 + 12.0 * night / 120 for night in range(120)]), of=of).slope)
    assert hotter.bounds.low is None


def test_where_nothing_tells_which_side_is_worse_there_is_no_slope() -> None:
    assert (
        past(looks([700.0 - night for night in range(120)]), of=rule("gpu_power", "W")).slope
        is None
    )


def test_a_step_that_is_outside_is_no_slope() -> None:
    found = [
        *looks(steady(80)),
        *(NightValue(180.0 + night, 540.0, outside=True) for night in range(40)),
    ]
    assert past(found).slope is None


# --- noise ---


def test_noise_that_grows_threefold_is_told() -> None:
    grown = known(
        past(looks([*steady(60, deviation=3.0), *steady(28, deviation=15.0, seed=2)])).grown
    )
    assert grown.now > 3 * grown.before
    assert grown.nights == 28


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


def test_noise_and_slopes_are_told_where_the_limit_is_tighter_too() -> None:
    of = rule(limit=at_least(599.99, "TFLOP/s", "b"))
    values = [*steady(60), *steady(28, deviation=15.0, seed=2)]
    assert past(looks(values), of=of).grown is not None


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
    assert (
        build_reference(
            [failed(300.0, night) for night in range(30)], None, rule=rule(), today=200.0
        )
        is None
    )


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


def counted(values: list[float], today: float, of: str = "gpu_ecc_corrected_total") -> Past:
    return known(build_reference(looks(values), None, rule=rule(of, "count"), today=today))


def test_a_counter_needs_a_night_before_or_a_baseline() -> None:
    assert (
        build_reference([], None, rule=rule("disk_wear", "ratio"), today=200.0, baseline_day=100.0)
        is None
    )
    counter = known(
        known(
            build_reference(
                [], 0.03, rule=rule("disk_wear", "ratio"), today=102.0, baseline_day=100.0
            )
        ).counter
    )
    assert (counter.stood, counter.days) == (0.03, 2.0)
    assert (
        build_reference(looks([math.nan]), None, rule=rule("disk_wear", "ratio"), today=200.0)
        is None
    )


def test_a_counter_goes_on_counting_in_another_era() -> None:
    of = rule("gpu_remapped_corrected", "count")
    counter = known(
        known(
            build_reference([], 1.0, rule=of, today=102.0, baseline_day=100.0, rebased=True)
        ).counter
    )
    assert (counter.stood, counter.days, counter.allowed) == (1.0, 2.0, 0.0)
    later = known(
        build_reference(
            [NightValue(101.0, 2.0)], 1.0, rule=of, today=102.0, baseline_day=100.0, rebased=True
        )
    )
    assert known(later.counter).stood == 2.0


def test_a_counter_may_grow_by_its_rate_since_the_last_night() -> None:
    counter = known(counted([1.0, 5.0], today=104.0).counter)
    assert (counter.stood, counter.days, counter.allowed, counter.most) == (5.0, 3.0, 30.0, 3000.0)
    assert not counter.repeats


def test_two_runs_of_one_day_share_nothing_less_than_a_day() -> None:
    counter = known(counted([1.0, 5.0], today=101.25).counter)
    assert (counter.days, counter.allowed, counter.most) == (0.25, 10.0, 1000.0)


def test_wear_is_taken_over_weeks_because_it_is_counted_in_whole_per_cent() -> None:
    values = [0.01 * (night // 10) for night in range(60)]
    counter = known(counted(values, today=160.0, of="disk_wear").counter)
    assert (counter.stood, counter.days) == (pytest.approx(0.03), 28.0)
    assert counter.allowed == pytest.approx(0.01 + 28 * 0.000548)
    early = known(counted(values[:5], today=105.0, of="disk_wear").counter)
    assert (early.stood, early.days) == (0.0, 5.0)


@pytest.mark.parametrize("of", ["gpu_ecc_corrected_total", "gpu_remapped_corrected"])
def test_a_clock_that_was_set_back_holds_no_year_against_a_counter(of: str) -> None:
    counter = known(counted([0.0, 4000.0, 8000.0], today=-300.0, of=of).counter)
    assert (counter.stood, counter.days) == (8000.0, 0.0)


def test_a_baseline_of_a_day_to_come_does_not_hold_weeks_against_one_day() -> None:
    nights = looks([0.10 + 0.001 * night for night in range(40)])
    counter = known(
        known(
            build_reference(
                nights, 0.10, rule=rule("disk_wear", "ratio"), today=140.0, baseline_day=90_000.0
            )
        ).counter
    )
    assert (counter.stood, counter.days) == (pytest.approx(0.112), 28.0)
    early = known(
        build_reference(
            nights[:5], 0.10, rule=rule("disk_wear", "ratio"), today=105.0, baseline_day=90_000.0
        )
    )
    assert (known(early.counter).stood, known(early.counter).days) == (0.10, 5.0)


@pytest.mark.parametrize("wrong", [-20_000.0, 90_000.0])
def test_a_night_with_a_wrong_clock_allows_a_counter_no_years(wrong: float) -> None:
    nights = looks([float(night) for night in range(10)])
    last = counted_of([*nights[:9], replace(nights[9], day=wrong)])
    assert (last.stood, last.days) == (9.0, 0.0 if wrong > 0 else 2.0)
    later = counted_of([*nights[:8], replace(nights[8], day=wrong), nights[9]])
    assert (later.stood, later.days) == (9.0, 1.0)


def counted_of(nights: list[NightValue]) -> CounterReference:
    return known(
        known(
            build_reference(
                nights, None, rule=rule("gpu_ecc_corrected_total", "count"), today=110.0
            )
        ).counter
    )


def test_a_counter_that_broke_its_limit_is_the_night_before_but_gives_no_value() -> None:
    of = rule("gpu_remapped_corrected", "count")
    made = known(
        build_reference([*looks([0.0, 1.0]), failed(600.0, 2)], None, rule=of, today=103.0)
    )
    assert (known(made.counter).stood, made.before, made.off) == (1.0, True, 1)
    assert build_reference([failed(600.0, 0)], None, rule=of, today=103.0) is None


def test_a_counter_remembers_the_night_before() -> None:
    found = looks([1.0, 2.0])
    of = rule("gpu_retired_pages", "count")
    made = known(
        build_reference([found[0], replace(found[1], outside=True)], None, rule=of, today=102.0)
    )
    assert made.before
    assert known(made.counter).repeats
    assert known(made.counter).most is None


def test_a_counter_remembers_how_often_it_grew_too_fast_in_two_weeks() -> None:
    grew = [
        replace(one, outside=number % 2 == 0)
        for number, one in enumerate(looks([float(n) for n in range(20)]))
    ]
    made = known(
        build_reference(grew, None, rule=rule("gpu_remapped_corrected", "count"), today=120.0)
    )
    assert (made.off, made.before) == (6, False)


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


def test_the_shipped_numbers_are_those_of_these_tests() -> None:
    assert BOOK.sheet.step.factor == FACTOR
    assert BOOK.sheet.first.factor == 5.5


@each("ago, counted", [(1, 1), (13, 1), (14, 0)])
def test_nights_on_which_a_counter_grew_too_fast_are_counted_in_the_last_two_weeks(
    ago: int, counted: int
) -> None:
    found = looks([5.0] * 30)
    found[-ago] = replace(found[-ago], outside=True)
    assert past(found, of=rule("gpu_remapped_corrected", "count")).off == counted
