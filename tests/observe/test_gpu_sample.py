from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from cases import each
from fake_nvml import LOST, UNKNOWN, FakeNvml, Refusal

from acceptance.core import limit
from acceptance.expect import sensor_range
from acceptance.machine.inventory import GpuCounters
from acceptance.observe import gpu_sample
from acceptance.observe.gpu_sample import REASONS, UNITS, Sampler

HOT: dict[Any, Any] = {
    "nvmlDeviceGetTemperatureV": {0: 71},
    "nvmlDeviceGetMarginTemperature": 16,
    "nvmlDeviceGetPowerUsage": 612500,
    "nvmlDeviceGetTotalEnergyConsumption": 17103709,
    "nvmlDeviceGetClockInfo": {1: 1755, 2: 3201},
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=99, memory=40),
    "nvmlDeviceGetFanSpeed": 55,
    "nvmlDeviceGetCurrPcieLinkGeneration": 5,
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetCurrentClocksEventReasons": 0x4,
}
PLAIN = {
    "temperature_c": 71.0,
    "temperature_margin_c": 16.0,
    "power_w": 612.5,
    "energy_j": 17103.709,
    "sm_clock_mhz": 1755.0,
    "memory_clock_mhz": 3201.0,
    "utilisation": 0.99,
    "fan": 0.55,
    "link_gen": 5.0,
    "link_width": 16.0,
}


def reasons(*up: str) -> dict[str, float]:
    return {name: float(name in up) for name in (*REASONS, "reason_unknown")}


def read(
    answers: dict[Any, Any], fields: dict[Any, Any] | None = None, *, counters: bool = False
) -> dict[str, float]:
    nvml = FakeNvml(1, answers, fields)
    return Sampler.find(nvml, 0).read(counters=counters)


def test_a_gpu_that_offers_everything() -> None:
    assert read(HOT, {82: 74}) == {
        **PLAIN,
        **reasons("reason_sw_power_cap"),
        "memory_temperature_c": 74.0,
    }


def test_a_gpu_that_offers_nothing() -> None:
    assert read({}, counters=True) == {}


@each("function", sorted(HOT))
@each("code", [3, UNKNOWN])
def test_what_is_refused_is_absent_and_hides_no_other(function: str, code: int) -> None:
    less, whole = read({**HOT, function: Refusal(code)}), read(HOT)
    assert less.items() < whole.items()


@each("function", sorted(HOT))
def test_a_lost_gpu_is_raised_whoever_tells(function: str) -> None:
    with pytest.raises(Refusal):
        read({**HOT, function: Refusal(LOST)})


def test_a_lost_gpu_is_raised_by_its_fields_too() -> None:
    with pytest.raises(Refusal):
        read(HOT, {82: Refusal(LOST)})
    with pytest.raises(Refusal):
        read(HOT, {"call": Refusal(LOST)})


def test_a_gpu_of_which_everything_is_refused() -> None:
    sampler = Sampler.find(FakeNvml(1, dict.fromkeys(HOT, Refusal(UNKNOWN, "Unknown Error"))), 0)
    with pytest.raises(Refusal, match="Unknown Error"):
        sampler.read(counters=True)


def test_fields_that_are_refused_are_absent() -> None:
    assert "memory_temperature_c" not in read(HOT, {82: Refusal(UNKNOWN)})
    assert read(HOT, {"call": Refusal(UNKNOWN)}) == {**PLAIN, **reasons("reason_sw_power_cap")}


def test_a_value_that_is_no_number_is_absent() -> None:
    assert "memory_temperature_c" not in read(HOT, {82: float("nan")})


@each(
    "bits, up",
    [
        (0, ()),
        *((bit, (name,)) for name, bit in REASONS.items()),
        (0x44, ("reason_sw_power_cap", "reason_hw_thermal")),
        (0x200, ("reason_unknown",)),
        (0x8000000000000021, ("reason_unknown", "reason_gpu_idle", "reason_sw_thermal")),
    ],
)
@each(
    "function",
    ["nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"],
)
def test_reasons_bit_by_bit(function: str, bits: int, up: tuple[str, ...]) -> None:
    assert read({function: bits}) == reasons(*up)


@each(
    "thresholds, margin",
    [
        ({3: 87, 1: 89}, {"temperature_margin_c": 16.0}),
        ({1: 89}, {"temperature_margin_c": 18.0}),
        ({}, {}),
    ],
)
def test_a_margin_where_nvml_gives_none(
    thresholds: dict[int, int], margin: dict[str, float]
) -> None:
    answers = {"nvmlDeviceGetTemperature": {0: 71}, "nvmlDeviceGetTemperatureThreshold": thresholds}
    assert read(answers) == {"temperature_c": 71.0, **margin}


def test_no_margin_of_a_temperature_that_is_not_known() -> None:
    assert read({"nvmlDeviceGetTemperatureThreshold": {3: 87}}) == {}


def test_counters_and_times_only_when_they_are_asked_for() -> None:
    fields = {74: 20279873376, 75: 5, 269: 3_000_000_000, 3: 7, 145: 1}
    assert read(HOT, fields).keys() == PLAIN.keys() | reasons().keys()
    with_counters = read({}, fields, counters=True)
    assert with_counters == {
        "power_cap_s": 20.279873376,
        "sw_thermal_s": 3.0,
        "ecc_corrected": 7.0,
        "remap_failed": 1.0,
    }


def test_an_older_field_of_the_same_time() -> None:
    assert read({}, {(75, 0): 2_000_000_000}, counters=True) == {"sw_thermal_s": 2.0}


def test_each_reason_has_a_time_of_its_own() -> None:
    fields = {
        (number, 0): place * 10**9 for place, number in enumerate((74, 76, 269, 270, 271), start=1)
    }
    assert read({}, fields, counters=True) == {
        "power_cap_s": 1.0,
        "sync_boost_s": 2.0,
        "sw_thermal_s": 3.0,
        "hw_thermal_s": 4.0,
        "power_brake_s": 5.0,
    }


def test_without_counters_nothing_is_asked_that_changes_seldom() -> None:
    nvml = FakeNvml(1, {**HOT, "nvmlDeviceGetRetiredPagesPendingStatus": 1})
    assert "retired_pending" not in Sampler.find(nvml, 0).read()
    assert nvml.asked_fields[-1] == [(82, 0)]


def test_counters_that_are_refused_are_absent() -> None:
    answers = {**HOT, "nvmlDeviceGetRetiredPagesPendingStatus": Refusal(UNKNOWN)}
    nvml = FakeNvml(1, answers)
    assert Sampler(nvml, 0, (), None).read(counters=True) == {
        **PLAIN,
        **reasons("reason_sw_power_cap"),
    }
    nvml.answers["nvmlDeviceGetRetiredPagesPendingStatus"] = Refusal(LOST)
    with pytest.raises(Refusal):
        Sampler(nvml, 0, (), None).read(counters=True)


def test_sums_over_the_links_that_were_active_at_first() -> None:
    nvml = FakeNvml(1, {"nvmlDeviceGetNvLinkState": {0: 1, 1: 0, 2: 1}}, {(161, 0): 1, (161, 2): 2})
    assert Sampler.find(nvml, 0).links == (0, 2)
    assert Sampler.find(nvml, 0).read(counters=True) == {"nvlink_replays": 3.0}


def test_the_units_of_raw_readings() -> None:
    endings = {"_c": "degC", "_w": "W", "_j": "J", "_mhz": "MHz", "_s": "s"}
    for name, unit in UNITS.items():
        ending = next((of for end, of in endings.items() if name.endswith(end)), None)
        assert unit == (ending or {"utilisation": "ratio", "fan": "ratio"}.get(name, "count")), name


def test_every_reading_has_a_unit() -> None:
    assert set(UNITS.values()) <= limit.UNITS | {"J"}
    settings = {"power_limit_w", "application_clock_mhz", "ecc_enabled", "mig_enabled"}
    named = {
        *PLAIN,
        *reasons(),
        *gpu_sample.TIMES,
        *GpuCounters.__slots__,
        *settings,
        "memory_temperature_c",
    }
    assert named == UNITS.keys()
    assert sensor_range.RANGES.keys() == UNITS.keys()
    assert {*gpu_sample.TIMES, *GpuCounters.__slots__, *settings} == sensor_range.SLOW


def test_bits_are_the_binding_s() -> None:
    import pynvml

    words = ("GpuIdle", "ApplicationsClocksSetting", "SwPowerCap", "HwSlowdown", "SyncBoost")
    words += (
        "SwThermalSlowdown",
        "HwThermalSlowdown",
        "HwPowerBrakeSlowdown",
        "DisplayClockSetting",
    )
    assert [getattr(pynvml, f"nvmlClocksEventReason{word}") for word in words] == list(
        REASONS.values()
    )
    assert pynvml.nvmlClocksEventReasonAll == sum(REASONS.values())
    names = ("PERF_POLICY_POWER", "PERF_POLICY_SYNC_BOOST", "PERF_POLICY_THERMAL")
    assert [getattr(pynvml, f"NVML_FI_DEV_{name}") for name in names] == [74, 76, 75]
    assert all(hasattr(pynvml, name) for name in HOT)


FLAGS = (*REASONS, "reason_unknown")
FAILING = {
    "nvmlDeviceGetPowerUsage": ("power_w",),
    "nvmlDeviceGetClockInfo": ("sm_clock_mhz", "memory_clock_mhz"),
    "nvmlDeviceGetUtilizationRates": ("utilisation",),
    "nvmlDeviceGetTemperatureV": ("temperature_c",),
    "nvmlDeviceGetCurrentClocksEventReasons": FLAGS,
}


@each("function, names", FAILING.items())
def test_a_reading_that_fails_to_answer_is_told_apart_from_one_that_is_not_offered(
    function: str, names: tuple[str, ...]
) -> None:
    failing = Sampler.find(
        FakeNvml(1, {**HOT, function: Refusal(UNKNOWN, "Unknown Error")}, None), 0
    )
    failing.read()
    assert failing.errors == dict.fromkeys(names, "Unknown Error")
    silent = Sampler.find(FakeNvml(1, {**HOT, function: Refusal(3)}, None), 0)
    silent.read()
    assert silent.errors == {}
