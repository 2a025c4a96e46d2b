"""The checks of what was seen of the GPUs under load, over telemetry segments that are written
line by line, with their real limits.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from cases import each
from gpu_machine import NO_COUNTERS, TRAITS, device, machine
from suite_box import Said, ask, planned

from acceptance.core.evidence import Refused, Sample
from acceptance.core.message import Text, Unmeasured
from acceptance.core.parts import Component
from acceptance.core.parts import Gpu as GpuName
from acceptance.core.plan import Plan
from acceptance.core.record import Body, Entry, Measured, Skipped
from acceptance.diagnosis.gpu_history import GpuHistory, histories
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Inventory
from acceptance.observe.gpu_sample import REASONS, TIMES
from acceptance.suites import watch
from acceptance.wording import words
from acceptance.wording.errors import WordedError

BEGIN, END = 110.0, 140.0  # of the load, in seconds since boot
SPANS = (("link.p2p", BEGIN, 115.0), ("burn.gpu_burn[float]", 115.5, END))
WORK = ((115.5, END),)
Change = Callable[[float], Mapping[str, float | None]]

COUNTED = {
    name: 0.0
    for name in (
        "ecc_corrected",
        "ecc_uncorrected",
        "ecc_uncorrected_total",
        "remapped_corrected",
        "remapped_uncorrected",
        "remap_pending",
        "remap_failed",
        "retired_single",
        "retired_double",
        "retired_pending",
        "pcie_replays",
        "nvlink_replays",
        "nvlink_recoveries",
        "nvlink_crc_errors",
    )
}


def healthy(moment: float) -> dict[str, float]:
    """A GPU that is idle, then loaded, then idle again; its link trains up
    within the first second.
    """
    busy = BEGIN <= moment < END
    up = BEGIN + 1.0 <= moment < END + 0.5
    return {
        "temperature_c": 70.0 if busy else 35.0,
        "temperature_margin_c": 14.0 if busy else 49.0,
        "memory_temperature_c": 80.0 if busy else 40.0,
        "power_w": (440.0 if busy else 20.0) - round(moment * 5) % 3 / 10,
        "utilisation": 1.0 if busy else 0.0,
        "link_gen": 4.0 if up else 1.0,
        "link_width": 16.0,
        **dict.fromkeys(REASONS, 0.0),
        "reason_gpu_idle": float(not busy),
        **dict.fromkeys(TIMES, 5.0),
        **COUNTED,
    }


def unchanged(_moment: float) -> Mapping[str, float | None]:
    return {}


@functools.cache
def sound_sample(number: int, moment: float) -> Sample:
    """A sample of a healthy GPU, by its number: the same in every test."""
    return Sample(healthy(moment), component=GpuName(number))


def samples(
    *changes: Change,
    until: float = END + 5,
    pause: tuple[float, float] = (0.0, 0.0),
    period: float = 0.2,
) -> list[tuple[float, Body]]:
    """The telemetry of a GPU for each change; None takes a reading away.

    The last of them is not sampled within `pause`.
    """
    found: list[tuple[float, Body]] = []
    for step in itertools.count():
        moment = round(100.0 + period * step, 3)
        if moment > until:
            return found
        for number, change in enumerate(changes):
            if number == len(changes) - 1 and pause[0] <= moment <= pause[1]:
                continue
            if change is unchanged:
                found.append((moment, sound_sample(number, moment)))
                continue
            values = {
                name: value
                for name, value in {**healthy(moment), **change(moment)}.items()
                if value is not None
            }
            found.append((moment, Sample(values, component=GpuName(number))))
    raise AssertionError


def at(begin: float, end: float, **values: float | None) -> Change:
    """These readings from one moment to another, and what is healthy before and after."""

    def change(moment: float) -> Mapping[str, float | None]:
        return values if begin <= moment < end else {}

    change.__name__ = f"{begin:g} to {end:g} {values}"  # which names the test
    return change


def always(**values: float | None) -> Change:
    return at(0.0, 1e9, **values)


def entries(records: Sequence[tuple[float, Body]]) -> Iterator[Entry]:
    """As they would be read from a segment."""
    for number, (moment, body) in enumerate(records):
        yield Entry(number, moment, "2026-01-01T00:00:00.000Z", body)


@functools.cache
def sound() -> GpuHistory:
    """The history of a GPU that is healthy, as `samples(unchanged)` tells it."""
    return histories(entries(samples(unchanged)))[GpuName(0)]


def known(records: list[tuple[float, Body]]) -> Mapping[Component, GpuHistory]:
    """The histories of telemetry; that of a healthy GPU is made once, because
    every test has one.
    """
    by: dict[Component, list[tuple[float, Body]]] = {}
    for moment, body in records:
        assert isinstance(body, Sample | Refused)
        assert body.component is not None
        by.setdefault(body.component, []).append((moment, body))
    healthy = by.get(GpuName(0)) == samples(unchanged)
    found = histories(
        entries([one for gpu, own in by.items() if not healthy or gpu != GpuName(0) for one in own])
    )
    return {gpu: sound() if healthy and gpu == GpuName(0) else found[gpu] for gpu in by}


@functools.cache
def box() -> tuple[Inventory, tuple[Gpu, ...]]:
    """Two GPUs that tell everything."""
    traits = replace(TRAITS, memory_thermometer=True, memory_max_temperature_c=95.0)
    seen = machine(device(0, traits=traits), device(1, traits=traits))
    return seen, gpus(seen)


@functools.cache
def made(name: str) -> Plan:
    """The plan of one check of the watch on them."""
    return planned(box()[0], (GpuName(0), GpuName(1)), (name,), "d")


class Watch:
    """Asks the checks of the watch what they make of the second GPU's
    telemetry; the first is healthy.
    """

    def __init__(self) -> None:
        self.inventory, self.gpus = box()
        self.notes: list[Text] = []

    def watched(self, records: list[tuple[float, Body]]) -> Mapping[Gpu, GpuHistory]:
        fixture: Any = watch.watched
        found: Mapping[Gpu, GpuHistory] = fixture.__wrapped__(known(records), self.gpus)
        return found

    def ask(self, name: str, records: list[tuple[float, Body]], **given: object) -> Said:
        return ask(
            made(f"watch.{name}"),
            f"watch.{name}",
            getattr(watch, f"test_{name}"),
            watched=self.watched(records),
            **given,
        )

    def throttling(self, change: Change) -> Said:
        return self.ask("throttling", samples(unchanged, change), load_spans=SPANS)

    def heat(self, *changes: Change) -> Said:
        return self.ask("heat", samples(*changes), work_spans=WORK)

    def settings(self, change: Change) -> Said:
        return self.ask(
            "settings", samples(unchanged, change), load_spans=SPANS, say=self.notes.append
        )


@pytest.fixture
def see() -> Watch:
    return Watch()


# --- the watch itself ---


def test_a_gpu_without_telemetry_is_an_error(see: Watch) -> None:
    with pytest.raises(
        WordedError, match=r"^gpu1: no telemetry was recorded: journal\.jsonl says why"
    ):
        see.watched(samples(unchanged))
    with pytest.raises(WordedError, match=r"^gpu0, gpu1: no telemetry"):
        see.watched([])


def test_a_machine_that_was_watched(see: Watch) -> None:
    said = see.ask("sampled", samples(unchanged, unchanged), load_spans=SPANS)
    assert said.outcome == "pass"
    assert said.measured("gpu_sample_period") == pytest.approx({GpuName(0): 0.2, GpuName(1): 0.2})
    assert said.measured("gpu_sample_gap") == pytest.approx({GpuName(0): 0.2, GpuName(1): 0.2})


@pytest.mark.parametrize(
    ("pause", "told"),
    [
        ((120.0, 121.7), None),
        ((120.0, 121.9), "not sampled: gpu1 for 2.2 s: the driver answered too slowly"),
        ((100.0, 112.3), "not sampled: gpu1 for 2.4 s"),
        ((137.7, 999.0), "not sampled: gpu1 for 2.4 s"),
        ((100.0, 109.9), None),  # nothing was loaded yet
        ((140.1, 999.0), None),
    ],
)
def test_a_gap_is_an_error_where_loads_ran(
    see: Watch, pause: tuple[float, float], told: str | None
) -> None:
    said = see.ask("sampled", samples(unchanged, unchanged, pause=pause), load_spans=SPANS)
    assert said.outcome == ("error" if told else "pass")
    assert said.message.startswith(told or "")
    assert set(said.measured("gpu_sample_gap")) == {GpuName(0), GpuName(1)}


def test_a_watch_that_is_slow_is_an_error(see: Watch) -> None:
    said = see.ask("sampled", samples(unchanged, unchanged, period=0.25), load_spans=SPANS)
    assert (said.outcome, said.message.split(":")[:2]) == (
        "error",
        ["sampled only", " gpu0 every 0.25 s, gpu1 every 0.25 s"],
    )


@pytest.mark.parametrize(
    ("every", "told"),
    [
        (10, "more than one step in twenty too long: gpu1 0.60 s: the driver answered too slowly"),
        (30, None),  # two samples missed now and then
    ],
)
def test_a_watch_that_often_falls_behind_under_load_is_an_error(
    see: Watch, every: int, told: str | None
) -> None:
    """The usual step and the longest gap are in order all the while."""
    found = samples(unchanged, unchanged)
    records = [
        one
        for number, one in enumerate(found)
        if number % 2 == 0 or number // 2 % every not in (0, 1)
    ]
    said = see.ask("sampled", records, load_spans=SPANS)
    assert said.outcome == ("error" if told else "pass")
    assert said.message.startswith(told or "")


def test_one_sample_has_no_period(see: Watch) -> None:
    said = see.ask("sampled", samples(unchanged, unchanged, pause=(100.1, 999.0)), load_spans=SPANS)
    assert said.outcome == "error"
    assert "gpu1 has fewer than two samples; not sampled: gpu1 for 30.0 s" in said.message
    assert set(said.measured("gpu_sample_period")) == {GpuName(0)}


def test_without_a_load_nothing_was_watched_under_load(see: Watch) -> None:
    said = see.ask("sampled", samples(unchanged, unchanged), load_spans=())
    assert (said.outcome, said.message) == (
        "error",
        "no check of the load session came to its end, so nothing was watched under load",
    )


# --- clocks that are held back ---

HELD_BACK = {
    "reason_hw_slowdown": "gpu_hw_slowdown",
    "reason_hw_thermal": "gpu_hw_thermal_slowdown",
    "reason_sw_thermal": "gpu_sw_thermal_slowdown",
    "reason_hw_power_brake": "gpu_power_brake",
}


def test_a_gpu_whose_clocks_were_not_held_back(see: Watch) -> None:
    said = see.throttling(unchanged)
    assert said.outcome == "pass"
    for measurement in (*HELD_BACK.values(), "gpu_power_cap"):
        assert said.measured(measurement) == {GpuName(0): 0.0, GpuName(1): 0.0}


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_alone(see: Watch, reason: str) -> None:
    said = see.throttling(at(120.0, 120.3, **{reason: 1.0}))
    measurement = HELD_BACK.get(reason)
    assert said.outcome == ("fail" if measurement else "pass")
    if measurement:
        told = "measured 0.4 s (during burn.gpu_burn[float]), limit <= 0 s"
        assert said.message.startswith(f"{measurement} on gpu1: {told}")
        assert len(said.message.splitlines()) == 1
        assert said.measured(measurement)[GpuName(0)] == 0.0


@pytest.mark.parametrize("reasons", [*itertools.combinations(HELD_BACK, 2), REASONS])
def test_several_reasons_at_once(see: Watch, reasons: Sequence[str]) -> None:
    said = see.throttling(at(112.0, 120.0, **dict.fromkeys(("reason_sw_power_cap", *reasons), 1.0)))
    assert said.outcome == "fail"
    lines = said.message.splitlines()
    held = {HELD_BACK[one] for one in reasons if one in HELD_BACK}
    assert {line.split(" on ")[0] for line in lines} == held
    assert all("(during link.p2p, burn.gpu_burn[float])" in line for line in lines)
    assert said.measured("gpu_power_cap") == pytest.approx({GpuName(0): 0.0, GpuName(1): 8.0})


@pytest.mark.parametrize(
    ("counter", "measurement"),
    [
        ("hw_thermal_s", "gpu_hw_thermal_slowdown"),
        ("sw_thermal_s", "gpu_sw_thermal_slowdown"),
        ("power_brake_s", "gpu_power_brake"),
    ],
)
def test_what_falls_between_two_samples_is_in_the_drivers_sum(
    see: Watch, counter: str, measurement: str
) -> None:
    said = see.throttling(at(120.0, 999.0, **{counter: 5.05}))
    assert said.outcome == "fail"
    assert said.message.startswith(f"{measurement} on gpu1: measured 0.05 s, limit <= 0 s")


def test_the_larger_of_flag_and_sum_counts(see: Watch) -> None:
    both = see.throttling(
        lambda moment: {
            "reason_hw_thermal": float(moment >= 144.0),
            "hw_thermal_s": max(5.0, moment - 135),
        }
    )
    assert both.measured("gpu_hw_thermal_slowdown")[GpuName(1)] == pytest.approx(5.0)
    capped = see.throttling(at(120.0, 999.0, power_cap_s=17.0))
    assert capped.outcome == "pass"
    assert capped.measured("gpu_power_cap") == {GpuName(0): 0.0, GpuName(1): 12.0}


def test_a_sum_that_was_reset_is_an_error_and_flags_stay_evidence(see: Watch) -> None:
    reset = see.throttling(at(120.0, 999.0, hw_thermal_s=0.0, reason_hw_power_brake=1.0))
    assert reset.outcome == "error"
    assert reset.message.startswith("hw_thermal_s of gpu1 fell")
    assert reset.measured("gpu_power_brake")[GpuName(1)] == pytest.approx(25.0, abs=0.3)


def test_a_driver_without_reasons_or_sums(see: Watch) -> None:
    none = dict.fromkeys((*REASONS, *TIMES))
    said = see.throttling(always(**none))
    assert said.skipped() == {(name, GpuName(1)) for name in (*HELD_BACK.values(), "gpu_power_cap")}
    assert said.outcome == "pass", "the fold calls what was skipped unjudged"
    without_sums = see.throttling(always(**dict.fromkeys(TIMES)))
    assert (without_sums.outcome, without_sums.skipped()) == ("pass", set())


def test_reasons_that_fell_silent_are_an_error(see: Watch) -> None:
    said = see.throttling(at(130.0, 999.0, reason_hw_slowdown=None))
    assert said.outcome == "error"
    assert said.message.startswith("reason_hw_slowdown of gpu1 fell silent for more than 5 s")
    assert said.measured("gpu_hw_slowdown") == {GpuName(0): 0.0}


# --- heat and power ---


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (unchanged, None),
        (at(120.0, 120.3, temperature_margin_c=1.0), None),
        (
            at(120.0, 120.3, temperature_margin_c=0.0),
            "gpu_temperature_margin on gpu1: measured 0 degC, limit >= 1 degC",
        ),
        (
            at(120.0, 120.3, temperature_margin_c=-3.0),
            "gpu_temperature_margin on gpu1: measured -3 degC",
        ),
        (
            at(120.0, 120.3, memory_temperature_c=96.0),
            "gpu_memory_temperature on gpu1: measured 96 degC, limit <= 95 degC",
        ),
        (
            at(120.0, 120.3, temperature_c=99.0, power_w=700.0),
            None,
        ),  # recorded, and judged by the margin
    ],
)
def test_heat(see: Watch, change: Change, told: str | None) -> None:
    said = see.heat(unchanged, change)
    assert said.outcome == ("fail" if told else "pass")
    assert said.message.startswith(told or "")
    assert said.measured("gpu_temperature")[GpuName(0)] == 70.0
    assert said.measured("gpu_power")[GpuName(0)] == 440.0
    assert said.measured("gpu_temperature_margin")[GpuName(0)] == 14.0


def test_a_memory_temperature_that_the_inventory_read_and_no_sample_has(see: Watch) -> None:
    said = see.heat(unchanged, always(memory_temperature_c=None))
    assert (said.outcome, said.skipped()) == ("error", {("gpu_memory_temperature", GpuName(1))})
    assert "no longer readable after the run: memory_temperature_c" in said.message


def test_heat_that_nobody_tells_is_skipped_with_the_reason(see: Watch) -> None:
    names = ("temperature_margin_c", "temperature_c", "power_w")
    said = see.heat(unchanged, always(**dict.fromkeys(names)))
    measurements = ("gpu_temperature_margin", "gpu_temperature", "gpu_power")
    assert said.skipped() == {(measurement, GpuName(1)) for measurement in measurements}


def test_a_sensor_that_answers_with_an_error_is_not_one_that_is_not_offered(see: Watch) -> None:
    records = samples(unchanged, always(power_w=None, temperature_c=None))
    records.insert(1, (100.0, Refused(GpuName(1), {"power_w": "Unknown Error"})))
    said = see.ask("heat", records, work_spans=WORK)
    gaps = {one.measurement: one.why for one in said.written if isinstance(one, Skipped)}
    assert gaps == {
        "gpu_power": Unmeasured.NO_ANSWER,
        "gpu_temperature": Unmeasured.NOT_OFFERED,
    }
    assert said.outcome == "error"


def test_a_sensor_that_fell_silent_is_an_error_and_others_stay(see: Watch) -> None:
    said = see.heat(
        at(120.0, 121.0, temperature_margin_c=0.0), at(125.0, 999.0, temperature_margin_c=None)
    )
    assert said.outcome == "error"
    assert "temperature_margin_c of gpu1 fell silent" in said.message
    assert said.measured("gpu_temperature_margin") == {GpuName(0): 0.0}


def energy(share: float) -> Change:
    """An energy counter that goes by this share of the power, 440 W from BEGIN to END."""
    return lambda moment: {
        "energy_j": 5000.0 + share * 439.9 * min(max(moment - BEGIN, 0.0), END - BEGIN)
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (energy(1.0), None),
        (energy(0.87), None),
        (energy(1.16), None),
        (energy(0.84), "W over 24 s, and the card's energy counter makes 370 W"),
        (energy(1.19), "W over 24 s, and the card's energy counter makes 523 W"),
        (energy(0.0), "the card's energy counter makes 0 W"),
        (at(116.0, 126.6, power_w=440.0), "it stood at 440 W for 10 s under load"),
        (at(116.0, 125.6, power_w=440.0), None),
        (always(power_w=None), None),  # skipped, which is another matter
        (
            lambda moment: {"power_w": 21.5 + round(moment * 5) % 3 / 10, "power_limit_w": 450.0},
            "in full use",
        ),
        (
            lambda moment: {"power_w": 91.0 + round(moment * 5) % 3 / 10, "power_limit_w": 450.0},
            None,
        ),
    ],
    ids=[
        "agrees",
        "13 less",
        "16 more",
        "16 less",
        "19 more",
        "no energy",
        "still 10 s",
        "still 9 s",
        "no power",
        "idle",
        "low",
    ],
)
def test_a_power_that_cannot_be_is_not_measured(
    see: Watch, change: Change, told: str | None
) -> None:
    said = see.heat(unchanged, change)
    assert said.outcome == ("error" if told else "pass")
    assert (told or "") in said.message
    assert said.message.startswith("the power of gpu1 was not measured" if told else "")
    assert (GpuName(1) in said.measured("gpu_power")) == (
        told is None and change(120.0).get("power_w", 1.0) is not None
    )


@pytest.mark.parametrize(
    ("reading", "value", "measurement"),
    [
        ("temperature_c", 0.0, "gpu_temperature"),
        ("temperature_c", -128.0, "gpu_temperature"),
        ("temperature_c", 255.0, "gpu_temperature"),
        ("temperature_margin_c", 32767.0, "gpu_temperature_margin"),
        ("memory_temperature_c", 0.0, "gpu_memory_temperature"),
        ("power_w", 0.0, "gpu_power"),
    ],
)
def test_what_no_sensor_can_mean_is_not_measured(
    see: Watch, reading: str, value: float, measurement: str
) -> None:
    said = see.heat(unchanged, always(**{reading: value}))
    assert said.skipped() == {(measurement, GpuName(1))}
    (reason,) = [body.reason for body in said.written if isinstance(body, Skipped)]
    assert words.text(reason).startswith(f"{reading}: 226 samples of {value:g}, outside ")
    once = see.heat(unchanged, at(120.0, 120.1, **{reading: value}))
    (note,) = [body.note for body in once.written if isinstance(body, Measured) and body.note]
    assert words.text(note).startswith(f"left out: 1 sample of {value:g}, outside ")
    assert once.outcome == "pass"


# --- what is set ---


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (unchanged, None),
        (always(power_limit_w=300.0, ecc_enabled=0.0), None),
        (
            lambda moment: {"power_limit_w": 450.0 if moment < 125.0 else 300.0},
            (
                "gpu1: the power limit changed from 450 W to 300 W 25 s after the watch began "
                "(during burn.gpu_burn[float])"
            ),
        ),
        (
            lambda moment: {"power_limit_w": 450.0 if 125.0 < moment < 126.0 else 300.0},
            "from 300 W to 450 W 25 s after",
        ),
        (
            lambda moment: {"ecc_enabled": float(moment < 120.0)},
            "gpu1: ECC changed from on to off 20 s after",
        ),
        (
            lambda moment: {"mig_enabled": float(moment > 120.0)},
            "gpu1: MIG mode changed from off to on",
        ),
        (
            at(120.0, 999.0, reason_clocks_setting=1.0),
            "somebody set (reason clocks-setting), 20 s after the watch began",
        ),
        (
            at(120.0, 999.0, reason_display_clocks=1.0),
            "display's settings (reason display-clocks), 20 s after",
        ),
        (at(120.0, 120.3, reason_clocks_setting=1.0), None),  # two samples, while the clocks ramp
        (at(120.0, 120.5, reason_clocks_setting=1.0), "reason clocks-setting"),
        (
            at(140.0, 999.0, reason_clocks_setting=1.0),
            None,
        ),  # idle again: it holds nothing back that counts
    ],
    ids=[
        "nothing",
        "from the start",
        "power limit",
        "power limit for a second",
        "ecc",
        "mig",
        "clocks",
        "display clocks",
        "two samples",
        "three samples",
        "idle",
    ],
)
def test_settings(see: Watch, change: Change, told: str | None) -> None:
    said = see.settings(change)
    assert said.outcome == ("error" if told else "pass")
    assert (told or "") in said.message
    assert said.measured("gpu_settings_unchanged") == {
        GpuName(0): 1.0,
        **({} if told else {GpuName(1): 1.0}),
    }
    assert see.notes == []


HELD = at(125.0, 999.0, reason_clocks_setting=1.0)
OWN_CLOCK = {"application_clock_mhz": 585.0, "sm_clock_mhz": 1590.0}


@pytest.mark.parametrize(
    "change",
    [
        always(reason_clocks_setting=1.0),
        # A card whose application clock is its own is held by it at any time.
        lambda moment: {**OWN_CLOCK, **HELD(moment)},
    ],
)
def test_what_was_set_from_the_start_is_a_note(see: Watch, change: Change) -> None:
    assert (see.settings(change).outcome, len(see.notes)) == ("pass", 1)


# --- readings that vanish ---


@pytest.mark.parametrize(
    "reading",
    ["temperature_c", "power_w", "ecc_uncorrected", "power_limit_w", "reason_hw_slowdown"],
)
def test_a_reading_that_is_gone_in_the_last_seconds_is_an_error(see: Watch, reading: str) -> None:
    gone = at(142.0, 999.0, **{reading: None})
    said = see.ask(
        "sampled",
        samples(unchanged, lambda moment: {"power_limit_w": 450.0, **gone(moment)}),
        load_spans=SPANS,
    )
    assert said.outcome == "error"
    assert said.message.startswith(
        f"{reading} of gpu1 vanished: the last 3.2 s of the watch did not tell it any more"
    )
    absent = see.ask("sampled", samples(unchanged, always(**{reading: None})), load_spans=SPANS)
    assert absent.outcome == "pass"


# --- lone samples at the edge of a load ---


@pytest.mark.parametrize(
    ("change", "seconds"),
    [
        (at(109.9, 110.1, reason_hw_slowdown=1.0), 0.0),  # as the load begins
        (at(139.9, 140.1, reason_hw_slowdown=1.0), 0.0),  # as it ends
        (at(109.9, 110.3, reason_hw_slowdown=1.0), 0.4),  # twice in a row
        (at(120.0, 120.1, reason_hw_slowdown=1.0), 0.2),  # in the middle of it
        (at(104.0, 104.1, reason_hw_slowdown=1.0), 0.2),  # long before it
    ],
    ids=["begin", "end", "twice", "middle", "long before"],
)
def test_one_sample_of_a_slowdown_at_the_edge_of_a_load_is_no_broken_machine(
    see: Watch, change: Change, seconds: float
) -> None:
    said = see.throttling(change)
    assert said.outcome == ("fail" if seconds else "pass")
    assert said.measured("gpu_hw_slowdown")[GpuName(1)] == pytest.approx(seconds, abs=1e-6)
    if not seconds:
        notes = [body.note for body in said.written if isinstance(body, Measured) and body.note]
        assert any(
            "not counted: one sample or less at the edge of a load" in words.text(note)
            for note in notes
        )


@pytest.mark.parametrize(
    ("from_s", "grown", "counted"), [(110.0, 0.004, 0.0), (110.0, 0.3, 0.3), (120.0, 0.004, 0.004)]
)
def test_a_tick_of_the_driver_s_own_sum_at_the_edge_of_a_load(
    see: Watch, from_s: float, grown: float, counted: float
) -> None:
    said = see.throttling(at(from_s, 999.0, hw_thermal_s=5.0 + grown))
    assert said.outcome == ("fail" if counted else "pass")
    assert said.measured("gpu_hw_thermal_slowdown")[GpuName(1)] == pytest.approx(counted)


def test_many_lone_samples_count_like_any_other(see: Watch) -> None:
    def change(moment: float) -> Mapping[str, float | None]:
        turn = round((moment - BEGIN) * 5)
        if not BEGIN <= moment < END:
            return {}
        return {
            "utilisation": float(turn // 10 % 2),
            "reason_hw_slowdown": float(turn % 20 == 10 and turn < 90),
        }

    assert see.throttling(change).measured("gpu_hw_slowdown")[GpuName(1)] == pytest.approx(0.8)


# --- the link under load ---


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (unchanged, None),
        (at(100.0, 109.9, link_width=4.0), None),  # low only when idle
        (at(140.0, 999.0, link_width=4.0), None),
        (
            at(110.0, 111.9, link_gen=1.0, link_width=1.0),
            None,
        ),  # it trains up in the first two seconds
        (at(110.0, 112.3, link_gen=1.0), "gpu_link_gen on gpu1: measured 1, limit >= 4"),
        (at(120.0, 120.1, link_gen=3.0), "gpu_link_gen on gpu1: measured 3, limit >= 4"),
        (always(link_gen=3.0), "gpu_link_gen on gpu1: measured 3, limit >= 4"),
        (always(link_width=8.0), "gpu_link_width on gpu1: measured 8, limit >= 16"),
        (at(139.2, 140.0, link_width=8.0), None),  # use is told late, so this may be after the load
        (at(138.5, 140.0, link_width=8.0), "gpu_link_width on gpu1: measured 8"),
    ],
)
def test_the_link_under_load(see: Watch, change: Change, told: str | None) -> None:
    said = see.ask("pcie_link", samples(unchanged, change))
    assert said.outcome == ("fail" if told else "pass")
    assert said.message.startswith(told or "")
    assert (
        said.measured("gpu_link_gen")[GpuName(0)],
        said.measured("gpu_link_width")[GpuName(0)],
    ) == (
        4.0,
        16.0,
    )


def test_a_gpu_that_never_was_busy_proves_nothing_of_its_link(see: Watch) -> None:
    said = see.ask("pcie_link", samples(unchanged, always(utilisation=0.5)))
    assert said.outcome == "error"
    assert said.message.startswith("gpu1 was never in full use while link_gen was sampled")
    assert said.measured("gpu_link_gen") == {GpuName(0): 4.0}


def test_a_link_that_nobody_tells_is_skipped(see: Watch) -> None:
    said = see.ask("pcie_link", samples(unchanged, always(link_gen=None)))
    assert said.skipped() == {("gpu_link_gen", GpuName(1))}
    assert said.measured("gpu_link_width") == {GpuName(0): 16.0, GpuName(1): 16.0}


# --- counters of errors ---


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (unchanged, None),
        # between the inventory and the first sample
        (
            always(ecc_uncorrected=3.0),
            "gpu_ecc_uncorrected_new on gpu1: measured 3, limit <= 0",
        ),
        (
            at(120.0, 999.0, ecc_uncorrected=1.0),
            "gpu_ecc_uncorrected_new on gpu1: measured 1, limit <= 0",
        ),
        (
            at(144.9, 999.0, ecc_uncorrected=2.0),
            "gpu_ecc_uncorrected_new on gpu1: measured 2, limit <= 0",
        ),
        (
            at(120.0, 999.0, ecc_uncorrected=2.0, ecc_uncorrected_total=2.0),
            "gpu_ecc_uncorrected_new on gpu1: measured 2, limit <= 0",
        ),
        (
            at(120.0, 999.0, ecc_uncorrected_total=3.0),
            "gpu_ecc_uncorrected_new on gpu1: measured 3, limit <= 0",
        ),
        (at(120.0, 999.0, ecc_corrected=900.0), None),
        (at(120.0, 999.0, remap_pending=1.0), "gpu_remapped_new on gpu1: measured 1, limit <= 0"),
        (at(120.0, 999.0, remap_failed=1.0), "gpu_remapped_new on gpu1: measured 1, limit <= 0"),
        (
            at(120.0, 999.0, remapped_corrected=1.0),
            "gpu_remapped_new on gpu1: measured 1, limit <= 0",
        ),
        (
            at(120.0, 999.0, remapped_uncorrected=2.0, remap_pending=1.0),
            "gpu_remapped_new on gpu1: measured 3, limit <= 0",
        ),
        (at(120.0, 999.0, retired_double=1.0), "gpu_retired_new on gpu1: measured 1, limit <= 0"),
        (at(120.0, 999.0, retired_single=1.0), "gpu_retired_new on gpu1: measured 1, limit <= 0"),
        (at(120.0, 999.0, retired_pending=1.0), "gpu_retired_new on gpu1: measured 1, limit <= 0"),
        (at(120.0, 999.0, pcie_replays=80.0), None),
        (at(120.0, 999.0, pcie_replays=81.0), "gpu_pcie_replays on gpu1: measured 81, limit <= 80"),
        (
            at(120.0, 999.0, nvlink_recoveries=1.0),
            "gpu_nvlink_recoveries on gpu1: measured 1, limit <= 0",
        ),
        (
            at(120.0, 999.0, nvlink_replays=101.0),
            "gpu_nvlink_replays on gpu1: measured 101, limit <= 100",
        ),
        (
            at(120.0, 999.0, nvlink_crc_errors=101.0),
            "gpu_nvlink_crc_errors on gpu1: measured 101, limit <= 100",
        ),
    ],
)
def test_counters(see: Watch, change: Change, told: str | None) -> None:
    said = see.ask("counters", samples(unchanged, change))
    assert said.outcome == ("fail" if told else "pass")
    assert said.message.startswith(told or "")
    assert len(said.message.splitlines()) == int(told is not None)
    assert {said.measured(name)[GpuName(0)] for name in watch.COUNTERS} == {0.0}


def test_a_counter_that_was_reset_is_an_error_and_faults_stay_evidence(see: Watch) -> None:
    reset = at(120.0, 999.0, ecc_uncorrected=0.0, remap_pending=1.0)
    said = see.ask(
        "counters", samples(unchanged, lambda moment: {"ecc_uncorrected": 7.0, **reset(moment)})
    )
    assert said.outcome == "error"
    assert said.message.startswith("ecc_uncorrected of gpu1 fell")
    assert said.measured("gpu_remapped_new") == {GpuName(0): 0.0, GpuName(1): 1.0}
    assert said.measured("gpu_ecc_uncorrected_new") == {GpuName(0): 0.0}


def test_a_counter_that_is_due_and_was_never_sampled_is_an_error(see: Watch) -> None:
    said = see.ask("counters", samples(unchanged, always(pcie_replays=None)))
    assert said.outcome == "error"
    assert said.message.startswith("gpu1: no longer readable after the run: pcie_replays;")


def test_a_part_of_a_sum_that_was_there_and_is_in_no_sample_is_an_error(see: Watch) -> None:
    """Of the others nothing grew; what did is evidence all the same."""
    said = see.ask("counters", samples(unchanged, always(remap_failed=None)))
    assert said.outcome == "error"
    assert said.measured("gpu_remapped_new") == {GpuName(0): 0.0}
    grown = at(120.0, 999.0, remap_pending=1.0)
    said = see.ask(
        "counters", samples(unchanged, lambda moment: {**grown(moment), "remap_failed": None})
    )
    assert said.measured("gpu_remapped_new") == {GpuName(0): 0.0, GpuName(1): 1.0}


BARE = dict.fromkeys(COUNTED)


@each(
    "before, told, grown",
    [
        (7, {"ecc_uncorrected": 3.0}, {GpuName(1): 0.0}),
        (3, {"ecc_uncorrected": 3.0}, {GpuName(1): 0.0}),
        (1, {"ecc_uncorrected": 3.0}, {GpuName(1): 2.0}),
        (None, BARE, {}),  # a card without counters owes none
    ],
)
def test_errors_before_the_run_and_counters_that_the_driver_set_to_0_before_it_are_none_of_it(
    before: int | None, told: dict[str, float | None], grown: dict[Component, float]
) -> None:
    some = replace(device(1).counters or NO_COUNTERS, ecc_uncorrected=before)
    seen = machine(device(0), device(1, counters=NO_COUNTERS if before is None else some))
    records = known(samples(unchanged, always(**told)))
    watched = {gpu: records[gpu.name] for gpu in gpus(seen)}
    made = planned(seen, (GpuName(0), GpuName(1)), ("watch.counters",), "d")
    said = ask(made, "watch.counters", watch.test_counters, watched=watched)
    assert said.outcome == ("fail" if any(grown.values()) else "pass")
    assert said.measured("gpu_ecc_uncorrected_new") == {GpuName(0): 0.0, **grown}
