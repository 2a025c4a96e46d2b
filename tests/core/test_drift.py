"""Tonight against the nights before: what is said, and what it is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from cases import each
from drift_nights import looks, past, rule, said, steady
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acceptance.core.past import (
    Bounds,
    CounterReference,
    DriftFinding,
    DriftJudgement,
    FirstNights,
    Level,
    NoiseGrowth,
    Past,
    Slope,
)

LEVEL = Level(600.0, 28, 4.0, 4.5, Bounds(low=580.0))
BORN = FirstNights(605.0, 1, 20454.0, Bounds(low=570.0), baseline=True)
SLOPE = Slope(610.0, 595.0, 60.0, 90, Bounds(low=598.0))
PLAIN = Past(True, 3, 14, level=LEVEL)
WORTH = {None: 0, "warn": 1, "fail": 2}


def held(
    of: Past, value: float, again: float | None = None, unit: str = "TFLOP/s"
) -> DriftJudgement:
    return of.judge(unit, value, again)


def only(drifted: DriftJudgement) -> DriftFinding:
    (found,) = drifted.findings
    return found


# --- one night, two nights ---


def test_what_is_within_says_nothing() -> None:
    assert (
        held(PLAIN, 580.0)
        == held(PLAIN, 9e9)
        == held(replace(PLAIN, before=True, off=9), 580.0)
        == DriftJudgement()
    )


def test_one_night_outside_is_a_warning_that_asks_for_a_second_look() -> None:
    drifted = held(PLAIN, 570.0)
    assert (drifted.outside, drifted.unsteady, drifted.look_again) == (True, False, True)
    assert (only(drifted).kind, only(drifted).what, said(only(drifted))) == (
        "warn",
        "step",
        "gemm_bf16 on gpu0: measured 570 TFLOP/s: 5 % below the median of 28 nights before, 600 "
        "TFLOP/s, bound >= 580 TFLOP/s; "
        "the first night: another one like it, and it fails; basis: median of 28 nights 600 "
        "TFLOP/s, one deviation 4 TFLOP/s, "
        "4.5 of it allowed",
    )


def test_the_first_night_alone_is_never_a_failure() -> None:
    assert only(held(Past(True, 2, 14, level=LEVEL), 570.0)).kind == "warn"


def test_a_second_look_that_is_outside_as_well_confirms_it() -> None:
    drifted = held(PLAIN, 570.0, 579.9)
    assert (drifted.outside, drifted.unsteady, drifted.look_again) == (True, False, False)
    assert said(only(drifted)).startswith(
        "gemm_bf16 on gpu0: measured 570 TFLOP/s, 579.9 TFLOP/s at the repeat: 5 % below"
    )


def test_a_second_look_that_is_within_makes_the_night_unsteady() -> None:
    drifted = held(PLAIN, 570.0, 580.0)
    assert (drifted.outside, drifted.unsteady, drifted.look_again) == (False, True, False)
    assert (only(drifted).kind, only(drifted).what) == ("warn", "unsteady")
    assert "; the repeat was within; " in said(only(drifted))


def test_two_nights_running_are_a_failure() -> None:
    found = only(held(replace(PLAIN, before=True, off=1), 570.0))
    assert (found.kind, found.what) == ("fail", "step")
    assert "; the second night running; " in said(found)


def test_a_night_that_is_unsteady_after_one_that_was_outside_is_not() -> None:
    assert only(held(replace(PLAIN, before=True, off=1), 570.0, 600.0)).kind == "warn"


@each("again", [None, 570.0, 600.0])
def test_three_nights_of_fourteen_that_strayed_are_a_failure(again: float | None) -> None:
    found = only(held(replace(PLAIN, off=2), 570.0, again))
    assert found.kind == "fail"
    assert "; 3 nights of the last 14 strayed, this one included; " in said(found)
    assert only(held(replace(PLAIN, off=1), 570.0, again)).kind == "warn"


def test_the_first_night_that_strays_is_one() -> None:
    assert only(held(Past(True, 2, 14, level=LEVEL), 570.0)).kind == "warn"
    assert only(held(Past(True, 1, 14, level=LEVEL), 570.0)).kind == "fail"


def test_where_nothing_tells_which_side_is_worse_a_change_never_fails() -> None:
    both = replace(
        PLAIN,
        decides=False,
        before=True,
        off=9,
        level=Level(700.0, 28, 4.0, 4.5, Bounds(680.0, 720.0)),
    )
    for value, way in ((679.0, "3 % below"), (721.0, "3 % above")):
        found = only(held(both, value, unit="W"))
        assert (found.kind, found.what) == ("warn", "changed")
        assert f"{way} the median" in said(found)
        assert "bound 680 .. 720 W; nothing tells whether this is for the worse" in said(found)
    assert only(held(both, 679.0, 700.0)).what == "changed"
    assert held(both, 700.0) == DriftJudgement()


# --- what was left behind ---


def test_the_baseline_is_named_with_its_date() -> None:
    found = only(held(Past(True, 3, 14, first=BORN), 560.0))
    assert found.what == "step"
    assert "7.4 % below the baseline of 2026-01-01, 605 TFLOP/s, bound >= 570 TFLOP/s; " in said(
        found
    )


def test_a_level_that_left_the_baseline_is_a_slope() -> None:
    moved = replace(PLAIN, first=FirstNights(640.0, 28, 20454.0, Bounds(low=610.0), moved=True))
    assert only(held(moved, 600.0)).what == "slope"
    assert "6.2 % below the first 28 nights from 2026-01-01 on, 640 TFLOP/s" in said(
        only(held(moved, 600.0))
    )
    assert only(held(moved, 570.0)).what == "step"


def test_a_slope_tells_from_where_to_where_and_how_fast() -> None:
    found = only(held(replace(PLAIN, slope=SLOPE), 590.0))
    assert (found.kind, found.what) == ("warn", "slope")
    assert (
        "its level went from 610 TFLOP/s to 595 TFLOP/s within 60 days (90 nights), bound >= "
        "598 TFLOP/s; "
    ) in said(found)
    assert held(replace(PLAIN, slope=SLOPE), 598.0) == DriftJudgement()
    assert only(held(replace(PLAIN, slope=SLOPE, before=True), 590.0)).kind == "fail"


def test_everything_that_was_left_behind_stands_in_one_line() -> None:
    found = only(held(replace(PLAIN, slope=SLOPE, first=BORN), 560.0))
    assert found.what == "step"
    assert said(found).count("bound") == 3
    assert "\n" not in said(found)


@each(
    "unit, level, value, told",
    [
        ("degC", Level(60.0, 9, 2.0, 4.5, Bounds(high=70.0)), 75.0, "15 degC above"),
        ("count", Level(16.0, 9, 0.0, 4.5, Bounds(low=16.0)), 8.0, "8 below"),
        ("s", Level(2.0, 9, 0.0, 4.5, Bounds(high=2.0)), 5.0, "3 s above"),
        ("GB/s", Level(0.0, 9, 0.0, 4.5, Bounds(low=0.0)), -1.0, "1 GB/s below"),
        ("W", Level(-10.0, 9, 0.0, 4.5, Bounds(high=-10.0)), -9.0, "10 % above"),
        (
            "GB/s",
            Level(3.0, 1, 0.0, 4.5, Bounds(low=3.0)),
            2.0,
            "33.3 % below the median of 1 night before",
        ),
    ],
)
def test_how_far_is_told_as_people_would(unit: str, level: Level, value: float, told: str) -> None:
    assert f": {told}" in said(only(held(Past(True, 3, 14, level=level), value, unit=unit)))


# --- noise ---


def test_noise_that_has_grown_is_remarked_beside_what_else_there_is() -> None:
    noisy = replace(PLAIN, grown=NoiseGrowth(3.0, 12.0, 28), before=True)
    found = only(held(noisy, 600.0))
    assert (found.kind, found.what) == ("warn", "noise")
    assert (
        "its noise has grown: one deviation of the last 28 nights is 12 TFLOP/s, and was 3 "
        "TFLOP/s before; basis:"
    ) in said(found)
    assert [one.what for one in held(noisy, 570.0).findings] == ["step", "noise"]
    assert not held(noisy, 600.0).outside


# --- counters ---


USUAL = CounterReference(5.0, 1.0, 10.0, "where it comes from", 1000.0)


def count(value: float, *, before: bool = False, off: int = 0, **changes: Any) -> DriftJudgement:
    of = Past(True, 3, 14, off, before=before, counter=replace(USUAL, **changes))
    return of.judge("count", value)


def test_a_counter_may_grow_as_fast_as_it_may() -> None:
    assert count(5.0) == count(15.0) == DriftJudgement()


def test_one_that_grows_faster_is_a_warning_and_no_second_look_would_help() -> None:
    drifted = count(16.0)
    assert (drifted.outside, drifted.look_again) == (True, False)
    told = said(only(drifted), "gpu_ecc_corrected_total")
    assert (only(drifted).kind, only(drifted).what, told) == (
        "warn",
        "counter",
        "gpu_ecc_corrected_total on gpu0: measured 16: grew by 11 within 1 day, from 5, allowed "
        "10, fails above 1000; "
        "basis: where it comes from",
    )


def test_one_that_storms_fails_at_once() -> None:
    assert only(count(1005.0)).kind == "warn"
    assert only(count(1006.0)).kind == "fail"
    assert only(count(1e9, most=None)).kind == "warn"


def test_so_do_several_of_the_last_nights_with_others_between() -> None:
    assert only(count(16.0, off=13)).kind == "warn"
    assert only(count(16.0, off=1, repeats=True, most=None)).kind == "warn"
    found = only(count(16.0, off=2, repeats=True, most=None))
    assert found.kind == "fail"
    assert "allowed 10; 3 nights of the last 14 strayed; basis: " in said(found)


def test_two_nights_running_fail_where_the_rule_says_so() -> None:
    assert only(count(16.0, before=True)).kind == "warn"
    found = only(count(16.0, before=True, repeats=True, most=None))
    assert found.kind == "fail"
    assert "allowed 10; the second night running; basis" in said(found)
    assert only(count(16.0, repeats=True)).kind == "warn"


def test_one_that_was_set_back_counts_from_nothing() -> None:
    assert count(9.0, stood=500.0) == count(10.0, stood=500.0) == DriftJudgement()
    assert "grew by 11 within 2.5 days, set back from 500, allowed" in said(
        only(count(11.0, stood=500.0, days=2.52))
    )
    assert only(count(1001.0, stood=5000.0)).kind == "fail"


# --- whatever comes ---


@each("value", [math.nan, math.inf, -math.inf])
@each(
    "of",
    [
        PLAIN,
        Past(True, 3, 14, counter=CounterReference(0.0, 1.0, 1e9, "b")),
        replace(PLAIN, decides=False),
    ],
)
def test_what_is_no_finite_number_never_passes(value: float, of: Past) -> None:
    drifted = held(of, value)
    assert only(drifted).kind == "fail"
    assert drifted.outside
    assert "gemm_bf16 on gpu0 is no finite number" in said(only(drifted))


@pytest.mark.parametrize("again", [math.nan, math.inf])
def test_a_second_look_that_is_no_number_takes_nothing_back(again: float) -> None:
    assert held(PLAIN, 570.0, again).outside


NIGHTS = st.lists(st.floats(min_value=500.0, max_value=700.0), min_size=4, max_size=60)
FLAGS = st.lists(st.sampled_from(["", "outside", "unsteady"]), max_size=60)
VALUE = st.floats(0.0, 1000.0)
RULES = st.sampled_from(
    [("gemm_bf16", "TFLOP/s"), ("gpu_temperature", "degC"), ("gpu_retired_pages", "count")]
)


def lived(values: Sequence[float], flags: Sequence[str], of: tuple[str, str], born: bool) -> Past:
    found = [
        replace(one, outside=flag == "outside", unsteady=flag == "unsteady")
        for one, flag in zip(looks(values), [*flags, *[""] * len(values)], strict=False)
    ]
    return past(found, born=values[0] if born else None, of=rule(*of))


def worth(of: Past, value: float, again: float | None) -> int:
    return max((WORTH[one.kind] for one in held(of, value, again).findings), default=0)


@given(NIGHTS, FLAGS, RULES, st.booleans(), VALUE, VALUE, st.one_of(st.none(), VALUE))
def test_a_worse_value_never_gets_a_better_word(
    values: list[float],
    flags: list[str],
    of: tuple[str, str],
    born: bool,
    one: float,
    two: float,
    again: float | None,
) -> None:
    made = lived(values, flags, of, born)
    if made.counter is not None:
        one, two = (
            one + made.counter.stood,
            two + made.counter.stood,
        )  # a counter that fell was set back: another story
    worse, better = (
        (min(one, two), max(one, two)) if of[1] == "TFLOP/s" else (max(one, two), min(one, two))
    )
    assert worth(made, worse, again) >= worth(made, better, again)
    if again is not None:
        assert worth(made, worse, better) <= worth(made, worse, worse)


@given(NIGHTS, FLAGS, RULES, st.booleans(), st.floats(0.0, 1000.0))
def test_what_was_usual_never_fails(
    values: list[float], flags: list[str], of: tuple[str, str], born: bool, more: float
) -> None:
    made = lived(values, flags, of, born)
    if made.counter is not None:
        usual = made.counter.stood + min(more, made.counter.allowed)
    else:
        assert made.level is not None
        every = [one.bounds for one in (made.level, made.first, made.slope) if one is not None]
        usual = max([one.low for one in every if one.low is not None], default=0.0) + more
        if of[1] == "degC":
            usual = min(one.high for one in every if one.high is not None) - more
    drifted = held(made, usual)
    assert not drifted.outside
    assert all(one.what == "noise" for one in drifted.findings)


def test_a_quiet_machine_is_quiet() -> None:
    values = steady(120)
    said = [
        held(past(looks(values[:night]), born=values[0]), values[night]).findings
        for night in range(10, 120)
    ]
    assert not any(said)
