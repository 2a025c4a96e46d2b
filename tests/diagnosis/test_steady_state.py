"""The burn of a GPU by its telemetry alone: when it came to rest, what was left of its clock,
and what its link counted meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from cases import each

from acceptance.core.evidence import Sample
from acceptance.core.parts import Gpu
from acceptance.diagnosis.gpu_history import GpuHistory, HistoryPoint, OutOfRange
from acceptance.diagnosis.steady_state import COLUMNS, BurnTelemetry, growth_around, spreads
from acceptance.observe.gpu_sample import REASONS as SAMPLED
from acceptance.observe.sensors import SampleThinner
from acceptance.wording import words

BEGIN = 1000.0
Reading = Callable[[float], float | None]


def sampled(
    seconds: float,
    *,
    idle: tuple[float, float] = (5.0, 5.0),
    whole_s: float = 1e9,
    step: float = 0.2,
    **readings: Reading,
) -> GpuHistory:
    """A GPU that burns for so long; readings are functions of the seconds since the burn began.

    As the watch thins it out.
    """
    points: list[HistoryPoint] = []
    now = 0.0

    def keep(one: Sample) -> None:
        points.append(HistoryPoint(now, one.values, one.span_s, one.low, one.high))

    thinning = SampleThinner(keep, BEGIN - idle[0], whole_s=whole_s)
    for number in range(round((idle[0] + seconds + idle[1]) / step) + 1):
        after = round(number * step - idle[0], 3)
        now = BEGIN + after
        values = {"utilisation": 1.0 if 0 <= after <= seconds else 0.0}
        for name, reading in readings.items():
            value = reading(after)
            if value is not None:
                values[name] = value
        thinning.put(now, values)
    thinning.flush(now)
    return GpuHistory(Gpu(0), tuple(points))


def burn(
    seconds: float, *, whole_s: float = 1e9, step: float = 0.2, **readings: Reading
) -> BurnTelemetry:
    history = sampled(seconds, whole_s=whole_s, step=step, **readings)
    return BurnTelemetry.within(history, BEGIN - 3.0, BEGIN + seconds + 3.0)


def rising(final: float, tau: float, begin: float = 40.0) -> Reading:
    """A temperature that goes to its end as a cooler lets it, in whole degrees."""
    return lambda after: float(round(final - (final - begin) * math.exp(-max(after, 0.0) / tau)))


def constant(value: float) -> Reading:
    return lambda _after: value


# --- which time is the burn ---


def test_the_burn_is_the_time_of_full_use() -> None:
    history = sampled(100.0, idle=(30.0, 20.0))
    found = BurnTelemetry.within(history, BEGIN - 25.0, BEGIN + 115.0)
    assert (found.begin_s, found.end_s) == (BEGIN, BEGIN + 100.0)
    assert found.seconds == pytest.approx(100.0)
    assert found.short_note is None
    cut = BurnTelemetry.within(history, BEGIN + 20.0, BEGIN + 50.0)
    assert (cut.begin_s, cut.end_s) == (BEGIN + 20.0, BEGIN + 50.0)


def test_one_moment_of_full_use_is_a_burn_of_its_own() -> None:
    points = (
        HistoryPoint(10.0, {"utilisation": 0.1, "temperature_c": 40.0}),
        HistoryPoint(11.0, {"utilisation": 1.0, "temperature_c": 70.25}),
        HistoryPoint(12.0, {"utilisation": 0.1, "temperature_c": 40.0}),
    )
    found = BurnTelemetry.within(GpuHistory(Gpu(0), points), 5.0, 15.0)
    assert (found.begin_s, found.end_s) == (11.0, 11.0)
    assert (found.settle_time().seconds, words.text(found.settle_time().note)) == (
        0.0,
        "70 degC at the end",
    )
    assert found.rows() == ((0.0, 70.2, "not told", "not told", "not told"),)


@each(
    "seconds, note",
    [
        (20.0, "only 20 s under load, which tells little of heat"),
        (29.8, "only 30 s under load, which tells little of heat"),
        (30.0, ""),
    ],
)
def test_a_short_burn_says_so(seconds: float, note: str) -> None:
    assert words.text(burn(seconds).short_note or "") == note


def test_a_gpu_that_never_burned() -> None:
    with pytest.raises(ValueError, match="gpu0 was never in full use while it was to burn"):
        BurnTelemetry.within(sampled(100.0), BEGIN - 5.0, BEGIN - 1.0)
    with pytest.raises(ValueError, match="never in full use"):
        BurnTelemetry.within(GpuHistory(Gpu(0), ()), 0.0, 1e9)


# --- rest ---


@pytest.mark.parametrize("whole_s", [1e9, 60.0])
def test_when_the_temperature_comes_to_rest(whole_s: float) -> None:
    found = burn(
        400.0, whole_s=whole_s, temperature_c=rising(80.0, 30.0), temperature_margin_c=constant(7.0)
    ).settle_time()
    within_s = 30.0 * math.log(40.0 / 2.5)  # until it rounds to 78
    assert found.seconds == pytest.approx(within_s, abs=0.5 if whole_s > 400 else 11.0)
    assert words.text(found.note) == "80 degC at the end, 7 degC below its limit"


def spans(*found: tuple[float, float, float]) -> BurnTelemetry:
    """A burn of which each sample stands for a span, from and to in seconds, with its mean: what
    is between them was not sampled.
    """
    points = tuple(
        HistoryPoint(until, {"utilisation": 1.0, "temperature_c": value}, until - since)
        for since, until, value in found
    )
    return BurnTelemetry.within(GpuHistory(Gpu(0), points), 0.0, found[-1][1])


@each(
    "before, told",
    [
        (71.0, "swings without rest"),
        (73.0, "swings without rest"),
        (70.5, "still warming"),
        (73.5, "still cooling"),
    ],
)
def test_a_degree_up_or_down_is_no_way_that_it_goes(before: float, told: str) -> None:
    """Its end is the last 40 s of 400: what it was in the 40 s before says whether it goes up or
    down, and what was earlier nothing.
    """
    found = spans(
        (0, 270, 60),
        (281, 319, 20),
        (321, 359, before),
        (361, 369, 75),
        (371, 379, 69),
        (381, 389, 75),
        (392, 400, 69),
    )
    assert words.text(found.settle_time().note).startswith(told)


@each(
    "seconds, temperature, rest_s, note",
    [
        (100.0, lambda after: 80.0 if 0.0 <= after <= 100.0 else 50.0, 0.0, "80 degC at the end"),
        (240.0, constant(71.0), 0.0, "71 degC at the end"),
        (240.0, lambda after: 40.0 + after / 4, 240.0, "still warming: 97 degC at the end"),
        (240.0, lambda after: 100.0 - after / 4, 240.0, "still cooling: 43 degC at the end"),
        (
            240.0,
            lambda after: 70.0 + 5.0 * (round(after) % 4 < 2),
            240.0,
            "swings without rest: 7",
        ),
        (60.0, lambda after: 60.0 if after < 45.0 else 80.0, 45.0, "80 degC at the end"),
        (400.0, lambda after: 80.0 if 362.9 < after < 363.1 else 70.0, 400.0, "swings without"),
        (100.0, lambda after: 60.0 if after <= 90.0 else 70.0, 90.0, "70 degC at the end"),
        (8.0, constant(60.0), 0.0, "60 degC at the end"),
        (8.0, lambda after: 40.0 + 3 * after, 8.0, "still warming"),
        (8.0, lambda after: None if after < 0.1 else 40.0 + 3 * after, 8.0, "still warming"),
    ],
    told=[
        "what was before and after is not of the burn",
        "one that was warm rests from the beginning",
        "warming takes the whole burn",
        "cooling takes the whole burn",
        "swinging takes the whole burn",
        "the end is ten seconds at least",
        "and the last tenth",
        "whose edge is not of it",
        "a burn shorter than its end can rest",
        "or not",
        "one that was sampled only at its end has no before",
    ],
)
def test_when_one_rests(seconds: float, temperature: Reading, rest_s: float, note: str) -> None:
    found = burn(seconds, temperature_c=temperature).settle_time()
    assert found.seconds == pytest.approx(rest_s, abs=0.3)
    assert words.text(found.note).startswith(note)


def test_an_extreme_within_a_span_is_no_rest() -> None:
    """After the first hour a sample stands for ten seconds: a peak in it is not averaged away."""
    found = burn(
        400.0, whole_s=0.0, temperature_c=lambda after: 90.0 if 200.0 <= after <= 200.4 else 70.0
    ).settle_time()
    assert 200.0 <= found.seconds <= 211.0


# --- clocks ---


def falling(first: float, last: float, at: float) -> Reading:
    return lambda after: first if after < at else last


@each(
    "seconds, whole_s, clock, kept, note",
    [
        (
            400.0,
            1e9,
            falling(1980.0, 1782.0, 200.0),
            0.9,
            "1980 MHz in the first minute, 1782 MHz in the last",
        ),
        (
            400.0,
            60.0,
            falling(1980.0, 1782.0, 200.0),
            0.9,
            "1980 MHz in the first minute, 1782 MHz in the last",
        ),
        (
            40.0,
            1e9,
            falling(2000.0, 1000.0, 20.0),
            0.5,
            "2000 MHz in the first quarter, 1000 MHz in the last",
        ),
        # the median of each: what lasted for less than half of it counts for nothing
        (
            40.0,
            1e9,
            falling(2000.0, 1000.0, 4.5),
            1.0,
            "1000 MHz in the first quarter, 1000 MHz in the last",
        ),
        (
            40.0,
            1e9,
            falling(2000.0, 1000.0, 35.5),
            1.0,
            "2000 MHz in the first quarter, 2000 MHz in the last",
        ),
        (280.0, 1e9, constant(1.0), 1.0, "1 MHz in the first minute, 1 MHz in the last"),
    ],
)
def test_the_clock_of_the_last_quarter_by_that_of_the_first_minute(
    seconds: float, whole_s: float, clock: Reading, kept: float, note: str
) -> None:
    found, told = burn(seconds, whole_s=whole_s, sm_clock_mhz=clock).clock_kept()
    assert found == pytest.approx(kept)
    assert words.message(told) == note


def test_clocks_of_idle_moments_do_not_count() -> None:
    history = sampled(400.0, sm_clock_mhz=lambda after: 1500.0 if 0.0 <= after <= 395.0 else 200.0)
    points = tuple(
        HistoryPoint(one.boot_s, {**one.values, "utilisation": 0.3})
        if 350.0 <= one.boot_s - BEGIN <= 360.0
        else one
        for one in history.points
    )
    kept, _ = BurnTelemetry.within(GpuHistory(Gpu(0), points), BEGIN - 3, BEGIN + 403).clock_kept()
    assert kept == 1.0


@each(
    "readings, why",
    [
        ({}, "sm_clock_mhz of gpu0 was never sampled"),
        ({"sm_clock_mhz": constant(0.0)}, "was told as 0 MHz under load"),
        ({"sm_clock_mhz": lambda after: None if after > 50 else 1.0}, "fell silent"),
        ({"sm_clock_mhz": lambda after: math.nan if after > 50 else 1.0}, "no finite number"),
    ],
)
def test_a_clock_that_cannot_be_told(readings: dict[str, Reading], why: str) -> None:
    found = burn(100.0, **readings)
    with pytest.raises(ValueError, match=why):
        found.clock_kept()


@each(
    "up, told",
    [
        ({"reason_sw_thermal"}, "too little cooling"),
        ({"reason_hw_thermal", "reason_hw_slowdown"}, "too little cooling"),
        ({"reason_hw_power_brake"}, "the power supply or a cable"),
        ({"reason_hw_slowdown"}, "heat, or the power supply told the card"),
        ({"reason_sw_power_cap"}, "its power limit"),
        (set(), "no reason was sampled"),
    ],
)
def test_the_likely_causes_follow_the_reasons_that_were_up(up: set[str], told: str) -> None:
    flags = {
        name: (lambda after, name=name: float(name in up and after > 80.0)) for name in SAMPLED
    }
    assert words.text(burn(100.0, **flags).causes()).startswith(told)


@pytest.mark.parametrize(
    ("at", "told"), [(50.0, "no reason was sampled"), (77.0, "too little cooling")]
)
def test_the_causes_are_those_of_the_last_quarter(at: float, told: str) -> None:
    found = burn(100.0, reason_hw_thermal=lambda after: float(at <= after <= at + 2))
    assert words.text(found.causes()).startswith(told)


# --- the table ---


def test_a_row_for_each_stretch() -> None:
    found = burn(
        30.0,
        temperature_c=lambda after: 40.0 + after,
        sm_clock_mhz=constant(1500.0),
        reason_sw_power_cap=lambda after: float(after > 11.0),
        reason_hw_thermal=lambda after: float(after > 25.0),
    ).rows()
    assert len(COLUMNS) == 5
    assert [row[0] for row in found] == [0.17, 0.33, 0.5]
    assert [row[1] for row in found] == pytest.approx([45.0, 55.0, 65.0], abs=0.3)
    assert [row[2:] for row in found] == [
        (1500.0, "not told", "nothing"),
        (1500.0, "not told", "power cap"),
        (1500.0, "not told", "heat (hardware), power cap"),
    ]


@each(
    "name, told",
    [
        ("reason_hw_thermal", "heat (hardware)"),
        ("reason_sw_thermal", "heat (software)"),
        ("reason_hw_power_brake", "power brake"),
        ("reason_hw_slowdown", "hardware slowdown"),
        ("reason_sw_power_cap", "power cap"),
    ],
)
def test_what_was_up_between_two_stretches_was_in_both(name: str, told: str) -> None:
    rows = burn(30.0, **{name: lambda after: float(after == 10.0)}).rows()
    assert [row[4] for row in rows] == [told, told, "nothing"]


def test_a_duration_that_is_off_in_its_last_bit_has_no_row_of_its_own() -> None:
    points = tuple(
        HistoryPoint(at, {"utilisation": 1.0, "temperature_c": 70.0})
        for at in (2.2, 7.0, 12.0, 17.0, 22.0, 27.0, 32.2)
    )
    found = BurnTelemetry.within(GpuHistory(Gpu(0), points), 0.0, 40.0)
    assert found.seconds / 10 > 3.0
    assert len(found.rows()) == 3


def test_a_driver_that_tells_no_reasons() -> None:
    assert {row[4] for row in burn(30.0, temperature_c=constant(1.0)).rows()} == {"not told"}


@each(
    "seconds, rows", [(1.0, 1), (10.0, 1), (240.0, 24), (600.0, 60), (605.0, 60), (4 * 3600.0, 60)]
)
def test_there_are_sixty_rows_at_most(seconds: float, rows: int) -> None:
    found = burn(seconds, step=0.2 if seconds < 500 else 5.0, temperature_c=constant(70.0)).rows()
    assert len(found) == rows
    assert found[-1][0] == pytest.approx(seconds / 60, abs=0.1)
    assert {row[1] for row in found} == {70.0}


# --- beside its equals ---


def test_spreads_are_over_the_median_of_the_others() -> None:
    values = {Gpu(0): 70.0, Gpu(1): 72.0, Gpu(2): 74.0, Gpu(3): 90.0, Gpu(4): 60.0}
    groups = {"A": (Gpu(0), Gpu(1), Gpu(2), Gpu(3)), "B": (Gpu(4), Gpu(5))}
    assert spreads(values, groups) == {
        Gpu(0): (-4.0, 74.0),
        Gpu(1): (-2.0, 74.0),
        Gpu(2): (2.0, 72.0),
        Gpu(3): (18.0, 72.0),
    }
    assert spreads({}, groups) == {}


def test_the_temperature_that_is_compared_is_that_of_the_last_quarter() -> None:
    assert (
        burn(400.0, temperature_c=lambda after: 60.0 if after < 299.0 else 80.0).final_temperature()
        == 80.0
    )
    late = burn(
        400.0, temperature_c=lambda after: 60.0 if after < 310.0 else 80.0
    ).final_temperature()
    assert late == pytest.approx(78.0, abs=0.1)


# --- counters ---


def counted(*values: tuple[float, float | None]) -> GpuHistory:
    return GpuHistory(
        Gpu(0),
        tuple(
            HistoryPoint(at, {"x": 1.0} if value is None else {"x": 1.0, "n": value})
            for at, value in values
        ),
    )


def test_growth_before_within_and_after() -> None:
    found = counted(
        (90, 5),
        (95, 6),
        (99, 8),
        (101, 8),
        (104, None),
        (105, 11),
        (109, 11),
        (111, 12),
        (115, 12),
        (116, 14),
    )
    assert growth_around(found, "n", 100.0, 110.0) == (3.0, 4.0, 2.0)
    assert growth_around(found, "n", 80.0, 120.0) == (None, 9.0, None)
    silent = counted(
        (95, 6), (99, 8), (99.5, None), (101, 9), (106, 11), (110.5, None), (111, 12), (115, 13)
    )
    assert growth_around(silent, "n", 100.0, 110.0) == (2.0, 4.0, 1.0)
    on_time = counted((95, 5), (100, 8), (105, 9), (110, 11), (112, 12))
    assert growth_around(on_time, "n", 100.0, 110.0) == (3.0, 3.0, 1.0)


@each(
    "samples, why",
    [
        ([(100, None)], "n of gpu0 was never sampled"),
        ([(99, 5), (104, 1), (111, 2)], "the counter was reset"),
        ([(99, 5)], "growth needs two"),
    ],
)
def test_growth_that_cannot_be_told(samples: list[tuple[float, float | None]], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        growth_around(counted(*samples), "n", 100.0, 110.0)


def test_a_burn_knows_what_no_sensor_could_mean() -> None:
    told = {"sm_clock_mhz": OutOfRange(50, 0.0, 0.0, 1.0, 2079.0)}
    points = tuple(
        HistoryPoint(5.0 + step / 5, {"utilisation": 1.0, "temperature_c": 60.0})
        for step in range(50)
    )
    burn = BurnTelemetry.within(GpuHistory(Gpu(0), points, told), 0.0, 30.0)
    with pytest.raises(
        ValueError,
        match=r"sm_clock_mhz of gpu0 was not measured \(50 samples of 0, outside 1 to 2079",
    ):
        burn.clock_kept()
