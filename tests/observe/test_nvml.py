from __future__ import annotations

import dataclasses
import runpy
import sys
from types import SimpleNamespace
from typing import Any

import msgspec
import pynvml
import pytest
from cases import each
from fake_nvml import LOST, NOT_SUPPORTED, UNKNOWN, FakeNvml, Refusal
from machine_tree import Programs, completed
from raising import raising
from refusal import assert_raises, raised
from test_gpu_sample import HOT
from test_gpu_traits import FUNCTIONS, H200
from worded import worded

from acceptance.machine.inventory import GpuCounters, NvmlAnswer, NvmlDevice, NvmlPair
from acceptance.observe import (
    gpu_counters,
    gpu_events,
    gpu_sample,
    gpu_traits,
    nvlink,
    nvml,
    nvml_call,
)
from acceptance.observe.nvml_call import ask, ask_or_none, available_fields, field, fields
from acceptance.process.command import CommandError, ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.wording import words

PAIRS = (NvmlPair(0, 1, None, None, None, None), NvmlPair(1, 0, None, None, None, None))


def library(**refused: int) -> FakeNvml:
    """Two GPUs; `refused` is by function and, after an underscore, by GPU."""
    answers: dict[Any, Any] = {}
    for name, code in refused.items():
        function, _, index = name.partition("_")
        answers[(function, int(index)) if index else function] = Refusal(code)
    return FakeNvml(2, answers)


def device(index: int, **changes: Any) -> NvmlDevice:
    healthy = NvmlDevice(
        index=index,
        uuid=f"GPU-{index}",
        name="NVIDIA GeForce RTX 4090",
        pci_address=f"0000:0{index + 1}:00.0",
        serial=None,
        vbios="95.02.18.80.1F",
        memory_bytes=25757220864,
        error=None,
        error_code=None,
        traits=gpu_traits.read(FakeNvml(), index),
        counters=gpu_counters.read(FakeNvml(), index, []),
        health=nvml.read_health(FakeNvml(), index),
    )
    return dataclasses.replace(healthy, **changes)


def test_a_healthy_answer() -> None:
    assert nvml.read(library()) == NvmlAnswer(
        "570.86.15", "12.8", (device(0), device(1)), None, None, PAIRS
    )


def test_what_a_gpu_does_not_offer_is_absent() -> None:
    answer = nvml.read(
        library(
            nvmlDeviceGetSerial_0=nvml_call.NOT_SUPPORTED,
            nvmlDeviceGetMemoryInfo_1=nvml_call.FUNCTION_NOT_FOUND,
        )
    )
    assert answer.devices == (device(0), device(1, memory_bytes=None))


def test_a_lost_gpu_does_not_hide_the_others() -> None:
    answer = nvml.read(library(nvmlDeviceGetHandleByIndex_0=nvml_call.GPU_IS_LOST))
    assert answer.error is None
    lost, healthy = answer.devices
    assert (lost.index, lost.uuid, worded(lost.error), lost.error_code) == (
        0,
        None,
        "NVML says: refused",
        nvml_call.GPU_IS_LOST,
    )
    assert healthy == device(1)


def test_what_was_read_before_a_gpu_was_lost_is_kept() -> None:
    lost = nvml.read(library(nvmlDeviceGetMemoryInfo_0=nvml_call.GPU_IS_LOST)).devices[0]
    assert (lost.uuid, lost.pci_address, lost.memory_bytes) == ("GPU-0", "0000:01:00.0", None)
    assert lost.error_code == nvml_call.GPU_IS_LOST
    assert (lost.traits, lost.counters, lost.links) == (None, None, ())


def test_a_gpu_that_is_lost_between_its_traits_and_its_counters_keeps_the_traits() -> None:
    answers = {
        "nvmlDeviceGetMemoryBusWidth": 384,
        ("nvmlDeviceGetRetiredPagesPendingStatus", 1): Refusal(15),
    }
    healthy, lost = nvml.read(FakeNvml(2, answers)).devices
    assert healthy.error is None
    assert (lost.traits.memory_bus_bits, lost.counters, lost.error_code) == (
        384,
        None,
        nvml_call.GPU_IS_LOST,
    )


@each(
    "function",
    [
        *(
            "nvmlDeviceGetSerial",
            "nvmlDeviceGetCpuAffinity",
            "nvmlDeviceGetComputeRunningProcesses_v3",
        ),
        *("nvmlDeviceGetNvLinkState", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetP2PStatus"),
    ],
)
def test_what_is_refused_for_no_known_reason_makes_no_gpu_sick(function: str) -> None:
    answer = nvml.read(FakeNvml(2, {function: Refusal(999, "Unknown Error")}))
    assert answer.devices == (device(0), device(1))
    assert answer.error is None


@each(
    "function",
    ["HandleByIndex", "PciInfo", "UUID", "Name", "MemoryInfo"],
)
def test_a_gpu_that_refuses_its_identity_is_sick(function: str) -> None:
    healthy, sick = nvml.read(
        FakeNvml(2, {(f"nvmlDeviceGet{function}", 1): Refusal(999, "Unknown Error")})
    ).devices
    assert (healthy.error, worded(sick.error), sick.error_code) == (
        None,
        "NVML says: Unknown Error",
        999,
    )


@each("code", sorted(nvml_call.LOST))
def test_a_gpu_that_is_lost_at_anything_is_sick(code: int) -> None:
    answers = {
        ("nvmlDeviceGetVbiosVersion", 0): Refusal(code),
        ("nvmlDeviceGetNvLinkState", 1): Refusal(code),
    }
    assert [one.error_code for one in nvml.read(FakeNvml(2, answers)).devices] == [code, code]


def test_pairs_are_of_gpus_that_answer() -> None:
    answers = {("nvmlDeviceGetUUID", 1): Refusal(15), "nvmlDeviceGetTopologyCommonAncestor": 30}
    pairs = nvml.read(FakeNvml(3, answers)).pairs
    assert [(pair.a, pair.b, pair.path) for pair in pairs] == [(0, 2, "PHB"), (2, 0, "PHB")]


def test_two_gpus_that_cannot_be_told_apart_are_of_no_use() -> None:
    same = {"nvmlDeviceGetUUID": lambda index: "GPU-x" if index < 2 else "GPU-2"}
    told = "NVML gives 2 GPUs the same uuid GPU-x"
    assert [worded(one.error) for one in nvml.read(FakeNvml(3, same)).devices] == [told, told, None]
    answers = {
        ("nvmlDeviceGetPciInfo", 1): SimpleNamespace(busId="0000:01:00.0"),
        ("nvmlDeviceGetName", 1): Refusal(15),
    }
    first, second = nvml.read(FakeNvml(2, answers)).devices
    assert worded(first.error) == "NVML gives 2 GPUs the same address 0000:01:00.0"
    assert worded(second.error) == "NVML says: refused"


def test_gpus_without_an_address_are_not_the_same() -> None:
    answers = {"nvmlDeviceGetPciInfo": Refusal(nvml_call.NO_PERMISSION)}
    assert [one.error for one in nvml.read(FakeNvml(2, answers)).devices] == [None, None]


def test_no_library_and_other_refusals_to_begin() -> None:
    assert worded(nvml.read(library(nvmlInit=nvml_call.LIBRARY_NOT_FOUND))) == nvml.failed_answer(
        "the NVIDIA driver library libnvidia-ml.so.1 is not installed", nvml_call.LIBRARY_NOT_FOUND
    )
    assert worded(nvml.read(library(nvmlInit=nvml_call.VERSION_MISMATCH))) == nvml.failed_answer(
        "NVML says: refused", nvml_call.VERSION_MISMATCH
    )


@each(
    "bus_id, address",
    [
        ("00000000:01:00.0", "0000:01:00.0"),
        ("0000:C1:00.0", "0000:c1:00.0"),
        ("00010000:01:00.0", "10000:01:00.0"),
    ],
)
def test_addresses_as_sysfs_spells_them(bus_id: str, address: str) -> None:
    assert nvml_call.sysfs_address(bus_id) == address


def test_a_strange_address_is_refused() -> None:
    assert "not a PCI address" in raised(ValueError, nvml_call.sysfs_address, "GPU 1")


def probe(answer: ProgramResult | Exception) -> NvmlAnswer:
    return nvml.probe(Programs(nvml=answer), deadline=Deadline.after(9))


def test_the_answer_of_the_child_comes_back() -> None:
    answer = nvml.read(library(nvmlDeviceGetHandleByIndex_1=nvml_call.GPU_IS_LOST))
    assert probe(completed(msgspec.json.encode(answer).decode())) == answer


@each(
    "answer, error",
    [
        (completed(timed_out=True), "the driver hangs"),
        (completed(returncode=-11), "asking NVML was ended by signal 11"),
        (completed("{}", "boom\n", 1), "ended with exit code 1 after 0.1 s: boom"),
        (completed("{}", truncated=True), "asking NVML ended with exit code 0"),
        (completed("rubbish"), "gave no readable answer"),
        (completed('{"devices": 3}'), "gave no readable answer"),
        (completed(""), "it printed nothing"),
        (CommandError("it was not started"), "it was not started"),
    ],
)
def test_a_child_that_fails_is_an_answer_with_an_error(
    answer: ProgramResult | Exception, error: str
) -> None:
    seen = probe(answer)
    assert seen.error is not None
    assert error in worded(seen.error)
    assert (seen.devices, seen.driver_version) == ((), None)


def test_the_program_prints_one_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())  # type: ignore[arg-type]
    runpy.run_path(str(nvml.__file__), run_name="__main__")
    assert msgspec.json.decode(capsys.readouterr().out, type=NvmlAnswer).devices == (
        device(0),
        device(1),
    )


def test_the_binding_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    # A developer's machine may have a driver: its library must not be found here.
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", raising(OSError("cannot open shared object file")))
    assert nvml.read(pynvml) == nvml.failed_answer(
        nvml.LIBRARY_MISSING, nvml_call.LIBRARY_NOT_FOUND
    )


def test_a_real_child_gives_a_readable_answer() -> None:
    """Whatever this machine has, the child starts, and its answer is NVML's or
    says why there is none.
    """
    answer = nvml.probe(deadline=Deadline.after(30))
    said = words.text(answer.error or "")
    assert answer.error in (None, nvml.LIBRARY_MISSING) or "NVML" in said
    assert "No module" not in said


def test_an_answer_and_what_is_not_offered() -> None:
    nvml = FakeNvml(1, {"nvmlDeviceGetFanSpeed": {7: 40}})
    assert ask(nvml, "nvmlDeviceGetFanSpeed", 0, 7) == 40
    assert ask(nvml, "nvmlDeviceGetFanSpeed", 0, 8) is None
    assert ask(nvml, "nvmlThatIsOlderThanTheBinding", 0) is None


@each("code", sorted(nvml_call.NOT_OFFERED))
def test_what_counts_as_not_offered(code: int) -> None:
    assert (
        ask(FakeNvml(1, {"nvmlDeviceGetFanSpeed": Refusal(code)}), "nvmlDeviceGetFanSpeed", 0)
        is None
    )


@each("code", [LOST, UNKNOWN, nvml_call.RESET_REQUIRED, 14])
def test_every_other_refusal_is_raised(code: int) -> None:
    assert_raises(
        Refusal,
        ask,
        FakeNvml(1, {"nvmlDeviceGetFanSpeed": Refusal(code)}),
        "nvmlDeviceGetFanSpeed",
        0,
    )


@each("code", [UNKNOWN, NOT_SUPPORTED, 14])
def test_what_must_not_be_known_may_be_refused(code: int) -> None:
    refusing = FakeNvml(1, {"nvmlDeviceGetFanSpeed": Refusal(code)}, {"call": Refusal(code)})
    assert ask_or_none(refusing, "nvmlDeviceGetFanSpeed", 0) is None
    assert available_fields(refusing, 0, [(82, 0)]) == {}
    assert available_fields(FakeNvml(fields={82: Refusal(code), 3: 1}), 0, [(82, 0), (3, 0)]) == {
        (3, 0): 1
    }


@each("code", sorted(nvml_call.LOST))
def test_a_lost_gpu_is_never_passed_over(code: int) -> None:
    lost = FakeNvml(1, {"nvmlDeviceGetFanSpeed": Refusal(code)}, {"call": Refusal(code)})
    assert_raises(Refusal, ask_or_none, lost, "nvmlDeviceGetFanSpeed", 0)
    assert_raises(Refusal, available_fields, lost, 0, [(82, 0)])
    assert_raises(Refusal, available_fields, FakeNvml(fields={82: Refusal(code)}), 0, [(82, 0)])


def test_fields_that_the_binding_does_not_know_are_not_asked_for() -> None:
    assert field(FakeNvml(), "MEMORY_TEMP", "MADE_UP", scope=4) == ((82, 4),)


@each(
    "answers, wanted, found, asked",
    [
        (
            {82: 51, (161, 3): 7, 4: 0.5},
            [(82, 0), (161, 3), (161, 4), (4, 0), (82, 0)],
            {(82, 0): 51, (161, 3): 7, (4, 0): 0.5},
            [[(82, 0), (161, 3), (161, 4), (4, 0)]],
        ),
        ({}, [], {}, []),
        ({"call": Refusal(NOT_SUPPORTED)}, [(82, 0)], {}, [[(82, 0)]]),
    ],
    told=["one call, each field once", "no fields are no call", "a driver without fields"],
)
def test_fields_come_in_one_call(
    answers: dict[Any, Any],
    wanted: list[tuple[int, int]],
    found: dict[tuple[int, int], float],
    asked: list[list[tuple[int, int]]],
) -> None:
    nvml = FakeNvml(fields=answers)
    assert fields(nvml, 0, wanted) == found
    assert nvml.asked_fields == asked


def test_a_field_s_own_refusal_counts() -> None:
    assert_raises(Refusal, fields, FakeNvml(fields={82: Refusal(UNKNOWN)}), 0, [(82, 0)])


def test_a_field_that_is_refused_for_another_reason_than_those_that_raise_is_absent() -> None:
    only = frozenset({LOST})
    assert fields(
        FakeNvml(fields={82: Refusal(UNKNOWN), 3: 1}), 0, [(82, 0), (3, 0)], raising=only
    ) == {(3, 0): 1}
    assert_raises(Refusal, fields, FakeNvml(fields={82: Refusal(LOST)}), 0, [(82, 0)], raising=only)


@each(
    "kind, member",
    [
        (0, "dVal"),
        (1, "uiVal"),
        (2, "ulVal"),
        (3, "ullVal"),
        (4, "sllVal"),
        (5, "siVal"),
        (6, "usVal"),
    ],
)
def test_where_a_value_stands(kind: int, member: str) -> None:
    answer = SimpleNamespace(fieldId=1, valueType=kind, value=SimpleNamespace(**{member: 12}))
    assert nvml_call.value(answer) == 12


def test_a_type_of_value_that_nobody_knows() -> None:
    assert "field 82 as a value of type 7" in raised(
        ValueError, nvml_call.value, SimpleNamespace(fieldId=82, valueType=7, value=None)
    )


def test_a_pair_that_tells_everything() -> None:
    answers = {
        "nvmlDeviceGetTopologyCommonAncestor": 50,
        "nvmlDeviceGetP2PStatus": {
            (1, 0): 0,
            (1, 1): 4,
            (1, 2): 5,
            (0, 0): 1,
            (0, 1): 2,
            (0, 2): 3,
        },
    }
    assert nvml.read_pairs(FakeNvml(2, answers), [0, 1], [True, True]) == (
        NvmlPair(0, 1, "SYS", "ok", "disabled-by-regkey", "not-supported"),
        NvmlPair(
            1, 0, "SYS", "chipset-not-supported", "gpu-not-supported", "topology-not-supported"
        ),
    )


PATHS = {
    0: "INTERNAL",
    10: "PIX",
    20: "PXB",
    30: "PHB",
    40: "NODE",
    50: "SYS",
    60: None,
}


@each(
    "function, answer, path, p2p_read",
    [
        *(
            ("nvmlDeviceGetTopologyCommonAncestor", level, path, None)
            for level, path in PATHS.items()
        ),
        ("nvmlDeviceGetP2PStatus", 6, None, "unknown"),
        ("nvmlDeviceGetP2PStatus", 77, None, "unknown"),
        ("nvmlDeviceGetP2PStatus", Refusal(LOST), None, None),
    ],
)
def test_one_answer_alone(
    function: str, answer: int | Refusal, path: str | None, p2p_read: str | None
) -> None:
    """Also a state that nobody knows, and a GPU that is lost meanwhile."""
    found = nvml.read_pairs(FakeNvml(2, {function: answer}), [0, 1], [True, True])
    assert {(pair.path, pair.p2p_read) for pair in found} == {(path, p2p_read)}


def test_no_pair_with_a_gpu_that_does_not_answer() -> None:
    assert nvml.read_pairs(FakeNvml(2), [0, None], [True, False]) == ()


ERRORS = (
    *("NO_DATA", "TIMEOUT", "NOT_FOUND", "DEPRECATED", "RESET_REQUIRED", "GPU_NOT_FOUND"),
    *("INVALID_ARGUMENT", "ARGUMENT_VERSION_MISMATCH", "LIBRARY_NOT_FOUND", "DRIVER_NOT_LOADED"),
    *("FUNCTION_NOT_FOUND", "NOT_SUPPORTED", "NO_PERMISSION", "GPU_IS_LOST"),
)
REASONS = (
    *("GpuIdle", "ApplicationsClocksSetting", "SwPowerCap", "HwSlowdown", "SyncBoost"),
    *("SwThermalSlowdown", "HwThermalSlowdown", "HwPowerBrakeSlowdown", "DisplayClockSetting"),
)
LINKS = (*nvlink._REPLAYS, *nvlink._RECOVERIES, *nvlink._CRC_ERRORS, *nvlink._SPEED)


@each(
    "name, number",
    [
        *((f"NVML_ERROR_{name}", getattr(nvml_call, name)) for name in ERRORS),
        ("NVML_ERROR_LIB_RM_VERSION_MISMATCH", nvml_call.VERSION_MISMATCH),
        ("NVML_VALUE_TYPE_COUNT", len(nvml_call._MEMBERS)),
        ("NVML_CLOCK_SM", gpu_traits.SM),
        ("NVML_CLOCK_MEM", gpu_traits.MEMORY),
        ("NVML_TEMPERATURE_THRESHOLD_SHUTDOWN", gpu_traits.SHUTDOWN),
        ("NVML_TEMPERATURE_THRESHOLD_SLOWDOWN", gpu_traits.SLOWDOWN),
        ("NVML_TEMPERATURE_THRESHOLD_MEM_MAX", gpu_traits.MEMORY_MAX),
        ("NVML_TEMPERATURE_THRESHOLD_GPU_MAX", gpu_traits.GPU_MAX),
        ("NVML_FI_DEV_PERF_POLICY_POWER", 74),
        ("NVML_FI_DEV_PERF_POLICY_SYNC_BOOST", 76),
        ("NVML_FI_DEV_PERF_POLICY_THERMAL", 75),
        ("NVML_NVLINK_DEVICE_TYPE_SWITCH", 2),
        *(
            (f"NVML_NVLINK_VERSION_{version.replace('.', '_')}", number)
            for number, version in nvlink._VERSIONS.items()
        ),
        *(
            (f"nvmlClocksEventReason{word}", bit)
            for word, bit in zip(REASONS, gpu_sample.REASONS.values(), strict=True)
        ),
        ("nvmlClocksEventReasonAll", sum(gpu_sample.REASONS.values())),
        ("nvmlEventTypeXidCriticalError", gpu_events._XID),
    ],
)
def test_a_number(name: str, number: int) -> None:
    assert getattr(pynvml, name) == number


def test_every_name_that_is_asked_for() -> None:
    fields = (*gpu_counters._FIELDS.values(), *(name.format(11) for name in LINKS))
    fabric = (name for pair in gpu_traits._FABRIC for name in pair)
    names = {*FUNCTIONS, *HOT, *H200, *fabric, *(f"NVML_FI_DEV_{name}" for name in fields)}
    assert [name for name in names if not hasattr(pynvml, name)] == []
    assert [name for name, _ in pynvml.c_nvmlValue_t._fields_] == list(nvml_call._MEMBERS)
    own = set(GpuCounters.__slots__) - {"nvlink_replays", "nvlink_recoveries", "nvlink_crc_errors"}
    assert set(gpu_counters._FIELDS) == set(gpu_counters._FUNCTIONS) == own
