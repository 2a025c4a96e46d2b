from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from cases import each
from fake_nvml import LOST, NOT_SUPPORTED, UNKNOWN, FakeNvml, Refusal
from refusal import assert_raises, raised

from acceptance.core import limit
from acceptance.expect import sensor_range
from acceptance.machine.inventory import GpuCounters
from acceptance.observe import gpu_sample
from acceptance.observe.gpu_sample import REASONS, UNITS, Sampler
from acceptance.observe.gpu_throughput import Throughput

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


WHOLE = {**PLAIN, **reasons("reason_sw_power_cap")}
SECONDS = {
    (number, 0): place * 10**9 for place, number in enumerate((74, 76, 269, 270, 271), start=1)
}


def warm(thresholds: dict[int, int]) -> dict[str, dict[int, int]]:
    return {"nvmlDeviceGetTemperature": {0: 71}, "nvmlDeviceGetTemperatureThreshold": thresholds}


@each(
    "answers, fields, counters, readings",
    [
        (HOT, {82: 74}, False, {**WHOLE, "memory_temperature_c": 74.0}),
        ({}, {}, True, {}),
        (HOT, {82: Refusal(UNKNOWN)}, False, WHOLE),
        (HOT, {"call": Refusal(UNKNOWN)}, False, WHOLE),
        (HOT, {82: float("nan")}, False, WHOLE),
        (warm({3: 87, 1: 89}), {}, False, {"temperature_c": 71.0, "temperature_margin_c": 16.0}),
        (warm({1: 89}), {}, False, {"temperature_c": 71.0, "temperature_margin_c": 18.0}),
        (warm({}), {}, False, {"temperature_c": 71.0}),
        ({"nvmlDeviceGetTemperatureThreshold": {3: 87}}, {}, False, {}),
        ({}, {(75, 0): 2_000_000_000}, True, {"sw_thermal_s": 2.0}),
        (
            {},
            SECONDS,
            True,
            {
                "power_cap_s": 1.0,
                "sync_boost_s": 2.0,
                "sw_thermal_s": 3.0,
                "hw_thermal_s": 4.0,
                "power_brake_s": 5.0,
            },
        ),
    ],
    told=[
        "a GPU that offers everything",
        "a GPU that offers nothing",
        "a field that is refused is absent",
        "and so are all where the call is refused",
        "a value that is no number is absent",
        "a margin where NVML gives none",
        "of the slowdown where the GPU has no maximum",
        "none without a threshold",
        "no margin of a temperature that is not known",
        "an older field of the same time",
        "each reason has a time of its own",
    ],
)
def test_what_a_gpu_shows(
    answers: dict[Any, Any], fields: dict[Any, Any], counters: bool, readings: dict[str, float]
) -> None:
    assert read(answers, fields, counters=counters) == readings


@each("function", sorted(HOT))
@each("code", [3, UNKNOWN])
def test_what_is_refused_is_absent_and_hides_no_other(function: str, code: int) -> None:
    less, whole = read({**HOT, function: Refusal(code)}), read(HOT)
    assert less.items() < whole.items()


@each(
    "answers, fields",
    [
        *(({**HOT, function: Refusal(LOST)}, {}) for function in sorted(HOT)),
        (HOT, {82: Refusal(LOST)}),
        (HOT, {"call": Refusal(LOST)}),
    ],
)
def test_a_lost_gpu_is_raised_whoever_tells(
    answers: dict[Any, Any], fields: dict[Any, Any]
) -> None:
    assert_raises(Refusal, read, answers, fields)


def test_a_gpu_of_which_everything_is_refused() -> None:
    sampler = Sampler.find(FakeNvml(1, dict.fromkeys(HOT, Refusal(UNKNOWN, "Unknown Error"))), 0)
    assert "Unknown Error" in raised(Refusal, sampler.read, counters=True)


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
    assert_raises(Refusal, Sampler(nvml, 0, (), None).read, counters=True)


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
    assert sensor_range.ranges().keys() == UNITS.keys()
    assert {*gpu_sample.TIMES, *GpuCounters.__slots__, *settings} == sensor_range.SLOW


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


ALL = 0xFFFFFFFF
PCIE = {"nvmlDeviceGetPcieThroughput": {0: 300_000, 1: 55_100_000}}
RATES = {"pcie_tx_gb_s": 0.3, "pcie_rx_gb_s": 55.1}


def reader(
    answers: dict[Any, Any], fields: dict[Any, Any] | None = None, links: tuple[int, ...] = ()
) -> Throughput:
    return Throughput(FakeNvml(1, answers, fields or {}), 0, links)


UNKNOWN_TYPE = SimpleNamespace(fieldId=138, nvmlReturn=0, valueType=7, value=None)


def refused(code: int) -> dict[str, Any]:
    return {"nvmlDeviceGetPcieThroughput": {0: Refusal(code), 1: 1_000_000}}


@each(
    "answers, fields, links, rates",
    [
        (PCIE, {}, (), RATES),
        (refused(NOT_SUPPORTED), {}, (), {"pcie_rx_gb_s": 1.0}),
        (refused(UNKNOWN), {}, (), {"pcie_rx_gb_s": 1.0}),
        (refused(LOST), {}, (), {"pcie_rx_gb_s": 1.0}),
        ({}, {}, (), {}),
        ({}, {(138, ALL): 0, (139, ALL): 0}, (), {}),
        (PCIE, {"call": Refusal(UNKNOWN)}, (0,), RATES),
        (PCIE, {(138, ALL): UNKNOWN_TYPE}, (0,), RATES),
    ],
    told=[
        "PCIe in both directions",
        "what is not supported is absent and no zero",
        "what is refused",
        "what a lost GPU refuses",
        "a binding that does not have it",
        "a GPU without links is not asked for them",
        "a call that is refused as a whole",
        "a type of value that is not known yet",
    ],
)
def test_the_first_reading(
    answers: dict[Any, Any], fields: dict[Any, Any], links: tuple[int, ...], rates: dict[str, float]
) -> None:
    assert reader(answers, fields, links).read(0.0) == rates


def test_nvlink_is_the_difference_of_its_counters() -> None:
    fields: dict[Any, Any] = {(138, ALL): 0, (139, ALL): 1_000}
    found = reader({}, fields, links=(0, 1))
    assert found.read(10.0) == {}, "the first reading says only where the counters are"
    fields.update({(138, ALL): 2_000_000_000, (139, ALL): 1_000})
    rates = found.read(12.0)
    assert rates == {"nvlink_tx_gb_s": pytest.approx(1024.0), "nvlink_rx_gb_s": 0.0}


def test_where_nvml_does_not_sum_the_links_are_added_if_all_answer() -> None:
    fields: dict[Any, Any] = {(138, ALL): Refusal(NOT_SUPPORTED), (138, 0): 100, (138, 1): 200}
    found = reader({}, fields, links=(0, 1))
    found.read(0.0)
    fields.update({(138, 0): 100 + 1_000_000, (138, 1): 200 + 1_000_000})
    assert found.read(1.0) == {"nvlink_tx_gb_s": pytest.approx(2.048)}
    fields[138, 1] = Refusal(UNKNOWN)
    assert found.read(2.0) == {}
    fields[138, 1] = 5_000_000
    assert found.read(3.0) == {}, "what was missed in between is not known"


def test_a_counter_that_fell_gives_no_rate() -> None:
    fields: dict[Any, Any] = {(138, ALL): 5_000}
    found = reader({}, fields, links=(0,))
    found.read(0.0)
    fields[138, ALL] = 10
    assert found.read(1.0) == {}
    fields[138, ALL] = 1_000_010
    assert found.read(2.0) == {"nvlink_tx_gb_s": pytest.approx(1.024)}
