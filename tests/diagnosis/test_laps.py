"""The laps of a burn: each slot beside that of the same format in the last lap, and nothing else
beside anything.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as some
from test_steady_state import BEGIN, Reading, sampled
from thoroughness import examples

from acceptance.core.evidence import Table
from acceptance.diagnosis.gpu_history import GpuHistory, HistoryPoint
from acceptance.diagnosis.laps import Laps, Slot, slots
from acceptance.wording import words

SEVEN = ("f64", "f32", "tf32", "f16", "bf16", "f8", "i8")
# An H200 at its power limit: MHz and degC of each format in a healthy burn of ten minutes.
MHZ = dict(zip(SEVEN, (1640.0, 1980.0, 1488.0, 1423.0, 1471.0, 1433.0, 1765.0), strict=True))
DEG_C = dict(zip(SEVEN, (65.0, 68.0, 60.0, 71.0, 65.0, 66.0, 58.0), strict=True))
COLUMNS = ("lap", "format", "TFLOP/s", "products", "seconds", "from s", "to s")
# Of the slot that runs or ran last, and the seconds since the burn began.
ByTurn = Callable[[Slot, float], float | None]


def course(
    formats: tuple[str, ...], laps: int, turn_s: float, gap_s: float = 0.1
) -> tuple[Slot, ...]:
    """Turns one after the other, with something else between them."""
    order = [(float(lap), name) for lap in range(laps) for name in formats]
    begins = [BEGIN + place * (turn_s + gap_s) for place in range(len(order))]
    return tuple(
        Slot(*one, begin, begin + turn_s) for one, begin in zip(order, begins, strict=True)
    )


def burned(
    due: tuple[Slot, ...], *, step: float = 0.2, whole_s: float = 1e9, **readings: ByTurn
) -> Laps:
    """What is sampled of a burn that has these slots."""

    def reading(of: ByTurn) -> Reading:
        def told(after: float) -> float | None:
            begun = [slot for slot in due if slot.from_s - BEGIN <= after] or [due[0]]
            return of(begun[-1], after)

        return told

    found = {name: reading(of) for name, of in readings.items()}
    return Laps(sampled(due[-1].to_s - BEGIN, step=step, whole_s=whole_s, **found), due)


def of_format(values: Mapping[str, float]) -> ByTurn:
    return lambda slot, _after: values[slot.format]


# --- which slots ---


def told(
    *rows: tuple[float | str, ...], columns: tuple[str, ...] = ("lap", "format", "from s", "to s")
) -> Table:
    return Table("together.burn", "gpu0", "burn_laps", columns, rows)


def test_the_turns_of_a_table_in_order_of_time() -> None:
    rows = ((1.0, "f64", 50.0, 100, 4.0, 14.0, 18.0), (0.0, "f64", 50.0, 100, 4.0, 10.0, 14.0))
    assert slots(told(*rows, columns=COLUMNS)) == (
        Slot(0.0, "f64", 10.0, 14.0),
        Slot(1.0, "f64", 14.0, 18.0),
    )


@each(
    "table",
    [
        told(),
        told((0.0, "f64", 10.0, 14.0), (0.0, "f32", 14.0, 18.0)),
        told((0.0, "f64", 10.0, 14.0), (1.0, "f64", 14.0, 14.0)),
        told((0.0, "f64", 10.0, 14.0), (1.0, "f64", 14.0, math.nan)),
        told((0.0, "f64", 10.0, 14.0), (1.0, "f64", "then", 18.0)),
        told((0.0, "f64", 4.0), (1.0, "f64", 4.0), columns=("lap", "format", "seconds")),
    ],
    told=["empty", "one lap", "no time", "no number", "a text", "an old table"],
)
def test_a_table_that_does_not_tell_of_two_laps(table: Table) -> None:
    assert slots(table) is None


# --- bounds ---


def at_seconds(name: str, *laps: Mapping[str, float]) -> Laps:
    """Turns of four seconds with three samples each, the first when the slot is a second old;
    readings by format in each lap.
    """
    due, points = [], []
    for number, lap in enumerate(laps):
        for format_, value in lap.items():
            begin = 1000.0 + 10 * len(due)
            due.append(Slot(float(number), format_, begin, begin + 4.0))
            points += [
                HistoryPoint(begin + after, {"utilisation": 1.0, name: value})
                for after in (1.0, 2.0, 3.0)
            ]
    return Laps(GpuHistory("gpu0", tuple(points)), tuple(due))


def test_three_samples_from_a_second_on_make_a_turn() -> None:
    kept, clocks = at_seconds("sm_clock_mhz", {"f64": 1500.0}, {"f64": 1200.0}).clock_kept()
    assert kept == 0.8
    assert words.message(clocks) == "f64: 1500 MHz in the first lap, 1200 MHz in the last"


def test_two_degrees_are_rest_and_no_more() -> None:
    found = at_seconds("temperature_c", {"f64": 62.0}, {"f64": 60.0}, {"f64": 62.0}).settle_time()
    assert (found.seconds, words.text(found.note)) == (4.0, "62 degC in the last lap")


def test_clocks_are_held_against_the_first_lap_by_the_last_alone() -> None:
    assert (
        at_seconds(
            "sm_clock_mhz", *({"f64": value} for value in (1000.0, 2000.0, 1000.0))
        ).clock_kept()[0]
        == 1.0
    )


def test_one_format_without_a_clock_is_enough_to_doubt_them_all() -> None:
    slow = at_seconds("sm_clock_mhz", *[{"f64": 1.0, "f32": 1500.0}] * 2)
    assert slow.clock_kept()[0] == 1.0
    none = at_seconds("sm_clock_mhz", *[{"f64": 0.0, "f32": 1500.0}] * 2)
    with pytest.raises(ValueError, match="the clock of gpu0 was told as 0 MHz under load"):
        none.clock_kept()


# --- a GPU whose heat and clock follow from the format alone ---


@settings(max_examples=examples(30))
@given(
    formats=some.lists(some.sampled_from(SEVEN), min_size=1, max_size=7, unique=True).map(tuple),
    laps=some.integers(2, 4),
    turn_s=some.floats(1.5, 30.0),
    gap_s=some.floats(0.01, 2.0),
    hot=some.lists(some.floats(30.0, 95.0), min_size=7, max_size=7),
    fast=some.lists(some.floats(200.0, 2500.0), min_size=7, max_size=7),
)
def test_it_has_settled_with_its_first_turn_and_keeps_its_clock(
    formats: tuple[str, ...],
    laps: int,
    turn_s: float,
    gap_s: float,
    hot: list[float],
    fast: list[float],
) -> None:
    found = burned(
        course(formats, laps, turn_s, gap_s),
        temperature_c=of_format(dict(zip(SEVEN, hot, strict=True))),
        sm_clock_mhz=of_format(dict(zip(SEVEN, fast, strict=True))),
    )
    assert found.settle_time().seconds == pytest.approx(turn_s)
    assert found.clock_kept()[0] == pytest.approx(1.0)


@each("whole_s", [1e9, 300.0, 0.0], told=["all samples", "then thinned", "thinned"])
def test_what_is_said_of_it(whole_s: float) -> None:
    margin = {name: 87.0 - value for name, value in DEG_C.items()}
    found = burned(
        course(SEVEN, 3, 29.0),
        whole_s=whole_s,
        temperature_c=of_format(DEG_C),
        temperature_margin_c=of_format(margin),
        sm_clock_mhz=of_format(MHZ),
    )
    assert found.settle_time().seconds == pytest.approx(29.0)
    assert (
        words.text(found.settle_time().note) == "65 degC in the last lap, 22 degC below its limit"
    )
    kept, clocks = found.clock_kept()
    assert kept == pytest.approx(1.0)
    assert words.text(clocks).endswith(" MHz in the last")
    assert found.final_temperature() == pytest.approx(sum(DEG_C.values()) / 7, abs=0.5)


# --- one that warms ---


@settings(max_examples=examples(30))
@given(tau=some.floats(10.0, 90.0), rise=some.floats(10.0, 40.0), turn_s=some.floats(8.0, 30.0))
def test_one_that_warms_settles_when_the_curve_is_within_two_degrees(
    tau: float, rise: float, turn_s: float
) -> None:
    due = course(SEVEN, 2 + math.ceil(6 * tau / (7 * turn_s)), turn_s)
    warming = burned(
        due, temperature_c=lambda slot, after: DEG_C[slot.format] - rise * math.exp(-after / tau)
    )
    at_rest_s = tau * math.log(rise / 2.0)
    found = warming.settle_time()
    assert found.seconds == pytest.approx(max(turn_s, at_rest_s), abs=turn_s + 0.2)
    assert words.text(found.note) == "65 degC in the last lap"


def test_two_laps_tell_it_too_where_the_second_is_at_rest() -> None:
    """The accept profile has two laps of seven slots of 17 s: one that begins cold has not
    therefore gone on warming.
    """
    due = course(SEVEN, 2, 17.1)
    found = burned(
        due, temperature_c=lambda slot, after: DEG_C[slot.format] - 30.0 * math.exp(-after / 15.0)
    )
    assert found.settle_time().seconds == pytest.approx(15.0 * math.log(15.0), abs=17.3)
    assert words.text(found.settle_time().note) == "65 degC in the last lap"


@each("by, moving", [(1.0, "still warming"), (-1.0, "still cooling")])
@each("laps", [2, 3, 5])
def test_one_that_goes_on_takes_the_whole_burn(laps: int, by: float, moving: str) -> None:
    due = course(SEVEN, laps, 10.0)
    found = burned(
        due, temperature_c=lambda slot, after: DEG_C[slot.format] + by * after / 20.0
    ).settle_time()
    assert found.seconds == pytest.approx(due[-1].to_s - due[0].from_s)
    assert words.text(found.note).startswith(f"{moving}: ")


def test_less_than_two_degrees_a_lap_is_rest() -> None:
    due = course(("f64", "f32"), 3, 10.0)
    found = burned(due, temperature_c=lambda _, after: 60.0 + after / 11.0).settle_time()
    assert found.seconds == pytest.approx(due[1].to_s - BEGIN), (
        "two laps before the end it was more than 2 degC cooler"
    )
    assert words.text(found.note) == "65 degC in the last lap"


def test_a_jump_in_the_middle_counts_until_its_turn_is_over() -> None:
    due = course(("f64", "f32"), 4, 10.0)
    found = burned(due, temperature_c=lambda slot, _: 60.0 + 5.0 * (slot == due[3])).settle_time()
    assert found.seconds == pytest.approx(due[3].to_s - BEGIN)


# --- a clock that falls ---


@settings(max_examples=examples(20))
@given(lost=some.floats(0.0, 0.9), laps=some.integers(2, 4), turn_s=some.floats(1.5, 20.0))
def test_a_clock_that_falls_in_every_format(lost: float, laps: int, turn_s: float) -> None:
    def clock(slot: Slot, _after: float) -> float:
        return MHZ[slot.format] * (1.0 - lost * slot.lap / (laps - 1))

    assert burned(course(SEVEN, laps, turn_s), sm_clock_mhz=clock).clock_kept()[0] == pytest.approx(
        1.0 - lost
    )


def test_the_format_that_lost_most_counts() -> None:
    def clock(slot: Slot, _after: float) -> float:
        by = {"bf16": 0.9, "f8": 0.8, "i8": 1.2}
        return MHZ[slot.format] * (by.get(slot.format, 1.0) if slot.lap == 2 else 1.0)

    kept, clocks = burned(course(SEVEN, 3, 10.0), sm_clock_mhz=clock).clock_kept()
    assert kept == pytest.approx(0.8)
    assert words.text(clocks) == "f8: 1433 MHz in the first lap, 1146 MHz in the last"


def test_what_lies_between_turns_and_the_begin_of_a_turn_do_not_count() -> None:
    """Setting up takes longer in the last lap, at the clock of an idle GPU, and a sample may
    still tell of the format before.
    """
    due = course(SEVEN, 2, 3.0, gap_s=0.5)
    due = (*due[:7], *(replace(slot, from_s=slot.from_s + 0.5) for slot in due[7:]))
    found = burned(
        due,
        sm_clock_mhz=lambda slot, after: (
            MHZ[slot.format]
            if slot.from_s + 0.8 <= BEGIN + after <= slot.to_s
            else 345.0
            if slot.lap
            else 1980.0
        ),
    )
    assert found.clock_kept()[0] == pytest.approx(1.0)


def test_a_smoke_run_gives_a_value_and_its_noise_no_warning() -> None:
    """Turns of a second and a half at five samples a second, the clock as restless as that of an
    H200 in float64.
    """
    chance = random.Random(7)
    for _ in range(100):
        due = course(SEVEN, 2, 1.5, gap_s=0.05)
        found = burned(
            due, sm_clock_mhz=lambda slot, _after: MHZ[slot.format] + chance.gauss(0.0, 35.0)
        )
        kept, clocks = found.clock_kept()
        assert 0.92 < kept <= 1.01
        assert not words.text(clocks).startswith("all formats")


# --- too few samples ---


def test_formats_with_too_few_samples_in_full_use_are_left_out() -> None:
    found = burned(
        course(("f64", "bf16"), 2, 2.0),
        sm_clock_mhz=lambda slot, _: 2000.0 - 500.0 * slot.lap * (slot.format == "f64"),
    )
    points = found.history.points
    idle = [found.slots[2].to_s - back for back in (0.1, 0.3, 0.5)]
    points = tuple(
        HistoryPoint(one.boot_s, {**one.values, "utilisation": 0.5})
        if any(abs(one.boot_s - at) < 0.101 for at in idle)
        else one
        for one in points
    )
    assert found.clock_kept()[0] == pytest.approx(0.75)
    kept, clocks = Laps(GpuHistory("gpu0", points), found.slots).clock_kept()
    assert (kept, words.text(clocks)) == (
        1.0,
        "bf16: 2000 MHz in the first lap, 2000 MHz in the last",
    )


@pytest.mark.parametrize(
    ("step", "whole_s", "turn_s"), [(1.0, 1e9, 1.5), (0.2, 0.0, 8.5)], ids=["rare", "thinned"]
)
def test_turns_too_short_for_the_samples_are_compared_as_whole_laps(
    step: float, whole_s: float, turn_s: float
) -> None:
    due = course(SEVEN, 2, turn_s)
    found = burned(
        due,
        step=step,
        whole_s=whole_s,
        temperature_c=of_format(DEG_C),
        sm_clock_mhz=lambda slot, _after: MHZ[slot.format] * (1.0 - 0.3 * slot.lap),
    )
    kept, clocks = found.clock_kept()
    assert kept == pytest.approx(0.7, abs=0.05)
    assert words.text(clocks).startswith("all formats: ")
    assert found.settle_time().seconds == pytest.approx(due[6].to_s - BEGIN)


@each(
    "settings, figure, why",
    [
        (
            {"step": 5.0, "sm_clock_mhz": of_format(MHZ)},
            Laps.clock_kept,
            r"sm_clock_mhz of gpu0 was sampled too seldom in full use .* \(BURN=120\)",
        ),
        (
            {"whole_s": 0.0, "temperature_c": of_format(DEG_C)},
            Laps.settle_time,
            "temperature_c of gpu0 was sampled too seldom",
        ),
        ({}, Laps.settle_time, "temperature_c of gpu0 was never sampled"),
        ({}, Laps.final_temperature, "temperature_c of gpu0 was never sampled"),
        (
            {"sm_clock_mhz": lambda _turn, _after: 0.0},
            Laps.clock_kept,
            "the clock of gpu0 was told as 0 MHz under load",
        ),
        (
            {"sm_clock_mhz": lambda slot, _after: math.nan if slot.lap else 1.0},
            Laps.clock_kept,
            "no finite number",
        ),
        (
            {"sm_clock_mhz": lambda slot, _after: None if slot.lap else 1.0},
            Laps.clock_kept,
            "fell silent",
        ),
    ],
)
def test_what_cannot_be_told(
    settings: dict[str, Any], figure: Callable[[Laps], object], why: str
) -> None:
    found = burned(course(SEVEN, 2, 1.5), **settings)
    with pytest.raises(ValueError, match=why):
        figure(found)


def test_the_temperature_that_is_compared_is_that_of_the_last_lap() -> None:
    found = burned(
        course(SEVEN, 2, 10.0), temperature_c=lambda slot, _after: 60.0 + 20.0 * slot.lap
    )
    assert found.final_temperature() == pytest.approx(80.0)
