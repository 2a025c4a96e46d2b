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


STRAYED = "; 3 nights of the last 14 strayed, this one included; "
MOVED = FirstNights(640.0, 28, 20454.0, Bounds(low=610.0), moved=True)
BOTH = replace(
    PLAIN, decides=False, before=True, off=9, level=Level(700.0, 28, 4.0, 4.5, Bounds(680.0, 720.0))
)
# Outside, unsteady, and whether a second look is asked for.
WITHIN = (False, False, False)
LOOK_AGAIN = (True, False, True)
OUTSIDE = (True, False, False)
UNSTEADY = (False, True, False)


@each(
    "of, value, again, unit, found, state, text",
    [
        (PLAIN, 580.0, None, "TFLOP/s", [], WITHIN, ""),
        (PLAIN, 9e9, None, "TFLOP/s", [], WITHIN, ""),
        (replace(PLAIN, before=True, off=9), 580.0, None, "TFLOP/s", [], WITHIN, ""),
        (
            PLAIN,
            570.0,
            None,
            "TFLOP/s",
            [("warn", "step")],
            LOOK_AGAIN,
            "gemm_bf16 on gpu0: measured 570 TFLOP/s: 5 % below the median of 28 nights before, "
            "600 TFLOP/s, bound >= 580 TFLOP/s; "
            "the first night: another one like it, and it fails; basis: median of 28 nights 600 "
            "TFLOP/s, one deviation 4 TFLOP/s, "
            "4.5 of it allowed",
        ),
        (replace(PLAIN, off_fails=2), 570.0, None, "TFLOP/s", [("warn", "step")], LOOK_AGAIN, ""),
        (replace(PLAIN, off_fails=1), 570.0, None, "TFLOP/s", [("fail", "step")], LOOK_AGAIN, ""),
        (
            PLAIN,
            570.0,
            579.9,
            "TFLOP/s",
            [("warn", "step")],
            OUTSIDE,
            "gemm_bf16 on gpu0: measured 570 TFLOP/s, 579.9 TFLOP/s at the repeat: 5 % below",
        ),
        (
            PLAIN,
            570.0,
            580.0,
            "TFLOP/s",
            [("warn", "unsteady")],
            UNSTEADY,
            "; the repeat was within; ",
        ),
        (
            replace(PLAIN, before=True, off=1),
            570.0,
            None,
            "TFLOP/s",
            [("fail", "step")],
            LOOK_AGAIN,
            "; the second night running; ",
        ),
        (
            replace(PLAIN, before=True, off=1),
            570.0,
            600.0,
            "TFLOP/s",
            [("warn", "unsteady")],
            UNSTEADY,
            "",
        ),
        (replace(PLAIN, off=2), 570.0, None, "TFLOP/s", [("fail", "step")], LOOK_AGAIN, STRAYED),
        (replace(PLAIN, off=2), 570.0, 570.0, "TFLOP/s", [("fail", "step")], OUTSIDE, STRAYED),
        (replace(PLAIN, off=2), 570.0, 600.0, "TFLOP/s", [("fail", "unsteady")], UNSTEADY, STRAYED),
        (replace(PLAIN, off=1), 570.0, None, "TFLOP/s", [("warn", "step")], LOOK_AGAIN, ""),
        (replace(PLAIN, off=1), 570.0, 570.0, "TFLOP/s", [("warn", "step")], OUTSIDE, ""),
        (replace(PLAIN, off=1), 570.0, 600.0, "TFLOP/s", [("warn", "unsteady")], UNSTEADY, ""),
        (
            BOTH,
            679.0,
            None,
            "W",
            [("warn", "changed")],
            LOOK_AGAIN,
            "3 % below the median of 28 nights before, 700 W, bound 680 .. 720 W; nothing "
            "tells whether this is for the worse",
        ),
        (
            BOTH,
            721.0,
            None,
            "W",
            [("warn", "changed")],
            LOOK_AGAIN,
            "3 % above the median of 28 nights before, 700 W, bound 680 .. 720 W; nothing "
            "tells whether this is for the worse",
        ),
        (BOTH, 679.0, 700.0, "W", [("warn", "changed")], UNSTEADY, ""),
        (BOTH, 700.0, None, "W", [], WITHIN, ""),
        (
            Past(True, 3, 14, first=BORN),
            560.0,
            None,
            "TFLOP/s",
            [("warn", "step")],
            LOOK_AGAIN,
            "7.4 % below the baseline of 2026-01-01, 605 TFLOP/s, bound >= 570 TFLOP/s; ",
        ),
        (
            replace(PLAIN, first=MOVED),
            600.0,
            None,
            "TFLOP/s",
            [("warn", "slope")],
            LOOK_AGAIN,
            "6.2 % below the first 28 nights from 2026-01-01 on, 640 TFLOP/s",
        ),
        (replace(PLAIN, first=MOVED), 570.0, None, "TFLOP/s", [("warn", "step")], LOOK_AGAIN, ""),
        (
            replace(PLAIN, slope=SLOPE),
            590.0,
            None,
            "TFLOP/s",
            [("warn", "slope")],
            LOOK_AGAIN,
            "its level went from 610 TFLOP/s to 595 TFLOP/s within 60 days (90 nights), bound >= "
            "598 TFLOP/s; ",
        ),
        (replace(PLAIN, slope=SLOPE), 598.0, None, "TFLOP/s", [], WITHIN, ""),
        (
            replace(PLAIN, slope=SLOPE, before=True),
            590.0,
            None,
            "TFLOP/s",
            [("fail", "slope")],
            LOOK_AGAIN,
            "",
        ),
        (
            replace(PLAIN, grown=NoiseGrowth(3.0, 12.0, 28), before=True),
            600.0,
            None,
            "TFLOP/s",
            [("warn", "noise")],
            WITHIN,
            "its noise has grown: one deviation of the last 28 nights is 12 TFLOP/s, and was 3 "
            "TFLOP/s before; basis:",
        ),
        (
            replace(PLAIN, grown=NoiseGrowth(3.0, 12.0, 28), before=True),
            570.0,
            None,
            "TFLOP/s",
            [("fail", "step"), ("warn", "noise")],
            LOOK_AGAIN,
            "",
        ),
    ],
    told=[
        "what is within says nothing",
        "however good it is",
        "and whatever the nights before were",
        "one night outside is a warning that asks for a second look",
        "the first night alone is never a failure",
        "where one night suffices it is one",
        "a second look that is outside as well confirms it",
        "a second look that is within makes the night unsteady",
        "two nights running are a failure",
        "a night that is unsteady after one that was outside is not",
        "three nights of fourteen that strayed are a failure",
        "also where the repeat was outside",
        "also where it was within",
        "two of them are none",
        "also where the repeat was outside",
        "also where it was within",
        "where nothing tells which side is worse a change never fails",
        "on either side",
        "nor where the repeat was within",
        "what did not change says nothing",
        "the baseline is named with its date",
        "a level that left the baseline is a slope",
        "and a step beside it a step",
        "a slope tells from where to where and how fast",
        "within its bound it says nothing",
        "and fails the second night",
        "noise that has grown is remarked",
        "beside what else there is",
    ],
)
def test_a_value_against_the_nights_before(
    of: Past,
    value: float,
    again: float | None,
    unit: str,
    found: list[tuple[str, str]],
    state: tuple[bool, bool, bool],
    text: str,
) -> None:
    drifted = held(of, value, again, unit)
    assert [(one.kind, one.what) for one in drifted.findings] == found
    assert (drifted.outside, drifted.unsteady, drifted.look_again) == state
    assert text in "".join(said(one) for one in drifted.findings)


# --- what was left behind ---


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


# --- counters ---


USUAL = CounterReference(5.0, 1.0, 10.0, "where it comes from", 1000.0)


def count(value: float, *, before: bool = False, off: int = 0, **changes: Any) -> DriftJudgement:
    of = Past(True, 3, 14, off, before=before, counter=replace(USUAL, **changes))
    return of.judge("count", value)


@each(
    "changes, value, kinds, text",
    [
        ({}, 5.0, [], ""),
        ({}, 15.0, [], ""),
        (
            {},
            16.0,
            ["warn"],
            "gpu_ecc_corrected_total on gpu0: measured 16: grew by 11 within 1 day, from 5, "
            "allowed 10, fails above 1000; "
            "basis: where it comes from",
        ),
        ({}, 1005.0, ["warn"], ""),
        ({}, 1006.0, ["fail"], ""),
        ({"most": None}, 1e9, ["warn"], ""),
        ({"off": 13}, 16.0, ["warn"], ""),
        ({"off": 1, "repeats": True, "most": None}, 16.0, ["warn"], ""),
        (
            {"off": 2, "repeats": True, "most": None},
            16.0,
            ["fail"],
            "allowed 10; 3 nights of the last 14 strayed; basis: ",
        ),
        ({"before": True}, 16.0, ["warn"], ""),
        (
            {"before": True, "repeats": True, "most": None},
            16.0,
            ["fail"],
            "allowed 10; the second night running; basis",
        ),
        ({"repeats": True}, 16.0, ["warn"], ""),
        ({"stood": 500.0}, 9.0, [], ""),
        ({"stood": 500.0}, 10.0, [], ""),
        (
            {"stood": 500.0, "days": 2.52},
            11.0,
            ["warn"],
            "grew by 11 within 2.5 days, set back from 500, allowed",
        ),
        ({"stood": 5000.0}, 1001.0, ["fail"], ""),
    ],
    told=[
        "a counter may grow as fast as it may",
        "and no faster",
        "one that grows faster is a warning, and no second look would help",
        "one that grows by what storms is a warning",
        "one that storms fails at once",
        "unless nothing is a storm",
        "several nights with others between are a warning",
        "two of them are one where the rule says so",
        "three of them fail",
        "two nights running are a warning",
        "and fail where the rule says so",
        "the first one does not",
        "one that was set back counts from nothing",
        "as fast as it may",
        "and no faster",
        "and fails where it storms",
    ],
)
def test_how_fast_a_counter_may_grow(
    changes: dict[str, Any], value: float, kinds: list[str], text: str
) -> None:
    drifted = count(value, **changes)
    assert [(one.kind, one.what) for one in drifted.findings] == [(one, "counter") for one in kinds]
    assert (drifted.outside, drifted.unsteady, drifted.look_again) == (bool(kinds), False, False)
    assert text in "".join(said(one, "gpu_ecc_corrected_total") for one in drifted.findings)


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
