from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pynvml
from cases import each
from gpu_machine import TRAITS, device

from acceptance.core.message import Listed, Message
from acceptance.machine import gpu_health
from acceptance.machine.gpu_health import FABRIC, READINGS, SUMMARY, HealthReading
from acceptance.machine.inventory import GpuHealth

SOUND = 0x1AA  # every field of the mask of driver 580 that is supported is sound


def fabric(mask: int | None, summary: int | None = None, **more: Any) -> HealthReading | None:
    traits = replace(TRAITS, fabric_health=mask, fabric_summary=summary, **more)
    return READINGS["gpu_fabric_faults"](device(0, traits=traits))


def of_health(measurement: str, **told: Any) -> HealthReading | None:
    return READINGS[measurement](device(0, health=GpuHealth(**told)))


def codes(reading: HealthReading | None) -> list[str]:
    assert reading is not None
    return [message.code for message in reading.unjudged]


@each("mask, summary", [(None, None), (0, None), (0, 0), (None, 0)])
def test_a_fabric_that_is_not_supported_is_not_offered(
    mask: int | None, summary: int | None
) -> None:
    assert fabric(mask, summary) is None


def test_a_gpu_without_a_record_offers_nothing() -> None:
    bare = device(0, traits=None)
    assert [name for name, read in READINGS.items() if read(bare) is not None] == []


@each(
    "mask, summary",
    [(SOUND, None), (SOUND, 1), (0, 1), (SOUND | 1 << 12 | 1 << 14, 1), (SOUND | 1 << 16, 1)],
)
def test_a_fabric_that_is_sound(mask: int, summary: int | None) -> None:
    assert fabric(mask, summary) == HealthReading(0.0)


@each(
    "mask, summary, fault",
    [
        (0x1A9, 1, "Bandwidth: Degraded"),
        (0x001, None, "Bandwidth: Degraded"),
        (0x1A6, None, "Route Recovery in progress: True"),
        (0x19A, None, "Route Unhealthy: True"),
        (0x16A, None, "Access Timeout Recovery: True"),
        (0x2AA, None, "Incorrect Configuration: Incorrect SysGUID"),
        (0x3AA, None, "Incorrect Configuration: Incorrect Chassis SN"),
        (0x4AA, None, "Incorrect Configuration: No Partition"),
        (0x5AA, None, "Incorrect Configuration: Insufficient Nvlinks"),
        (0x6AA, None, "Incorrect Configuration: Incompatible GPU Firmware"),
        (0x7AA, None, "Incorrect Configuration: Invalid Location"),
        (0x8AA, None, "Incorrect Configuration: GPU State Invalid"),
        (0, 2, "Summary: Unhealthy"),
        (SOUND, 3, "Summary: Limited Capacity"),
    ],
)
def test_one_fault_of_the_fabric(mask: int, summary: int | None, fault: str) -> None:
    found = fabric(mask, summary)
    assert found == HealthReading(1.0, (fault,))
    assert found.note == Message("driver_says", {"what": Listed((fault,))})


@each(
    "mask, summary, code",
    [
        (0x1AB, None, "health_value_unknown"),
        (0x9AA, None, "health_value_unknown"),
        (0xFAA, 1, "health_value_unknown"),
        (0, 9, "health_value_unknown"),
        (SOUND | 1 << 16, None, "health_value_unknown"),
        (1 << 31, 0, "health_value_unknown"),
        (SOUND | 2 << 12, None, "fabric_not_set_up"),
        (SOUND | 2 << 14, None, "fabric_not_set_up"),
        (SOUND | 3 << 14, None, "health_value_unknown"),
    ],
)
def test_what_proves_neither_health_nor_a_fault(mask: int, summary: int | None, code: str) -> None:
    found = fabric(mask, summary)
    assert (found.count if found else 0, codes(found)) == (None, [code])


def test_a_fault_beside_an_unknown_value_is_counted() -> None:
    found = fabric(0x3 << 2 | 0x1, None)
    assert found is not None
    assert (found.count, found.faults) == (1.0, ("Bandwidth: Degraded",))
    assert codes(found) == ["health_value_unknown"]


def test_a_fabric_that_failed_to_answer() -> None:
    found = fabric(None, fabric_error="Unknown Error")
    assert found is not None
    assert (found.count, codes(found)) == (None, ["health_unanswered"])


def test_every_field_and_value_of_the_binding_is_known() -> None:
    """A newer binding with another one fails here."""
    prefix = "NVML_GPU_FABRIC_HEALTH_"
    names = {name: getattr(pynvml, name) for name in dir(pynvml) if name.startswith(prefix)}
    shifts = {
        name.removeprefix(f"{prefix}MASK_SHIFT_"): shift
        for name, shift in names.items()
        if name.startswith(f"{prefix}MASK_SHIFT_")
    }
    assert sorted(shifts.values()) == [one.shift for one in FABRIC]
    widths = {one.shift: one.width for one in FABRIC}
    assert {shift: names[f"{prefix}MASK_WIDTH_{name}"] for name, shift in shifts.items()} == widths
    for name, shift in shifts.items():
        own = rf"{prefix}MASK_{name.replace('CONFIGURATION', 'CONFIG?U?RATION')}_(?!SHIFT|WIDTH)"
        own = own.replace("CONFIG?U?RATION", "CONFI(GURATION|URATION)")
        values = {value for key, value in names.items() if re.match(own, key)}
        (field,) = [one for one in FABRIC if one.shift == shift]
        assert values == {0, field.sound, *field.faults, *field.set_up}, name
    summary = {value for key, value in names.items() if key.startswith(f"{prefix}SUMMARY_")}
    assert summary == {0, SUMMARY.sound, *SUMMARY.faults}


def test_every_action_of_the_binding_is_known() -> None:
    actions = {
        getattr(pynvml, name)
        for name in dir(pynvml)
        if name.startswith("NVML_GPU_RECOVERY_ACTION_")
    }
    assert actions == set(gpu_health.RECOVERY_ACTIONS)


@each("action", sorted(gpu_health.RECOVERY_ACTIONS))
def test_an_action_that_the_driver_wants(action: int) -> None:
    found = of_health("gpu_recovery_action", recovery_action=action)
    assert found is not None
    assert (found.count, found.unjudged) == (float(action != 0), ())


def test_an_action_that_nobody_knows() -> None:
    found = of_health("gpu_recovery_action", recovery_action=8)
    assert found is not None
    assert (found.count, codes(found)) == (None, ["health_value_unknown"])


@each(
    "measurement, told, count",
    [
        ("gpu_sram_threshold", {"sram_threshold_exceeded": True}, 1.0),
        ("gpu_sram_threshold", {"sram_threshold_exceeded": False}, 0.0),
        ("gpu_repair_pending", {"channel_repair_pending": True, "tpc_repair_pending": True}, 2.0),
        ("gpu_repair_pending", {"channel_repair_pending": False, "tpc_repair_pending": True}, 1.0),
        ("gpu_memory_unrepairable", {"memory_unrepairable": True}, 1.0),
        ("gpu_banks_without_spare", {"banks_without_spare": 7}, 7.0),
        ("gpu_inforom_corrupt", {"inforom_corrupt": True}, 1.0),
    ],
)
def test_flags_and_counts(measurement: str, told: dict[str, Any], count: float) -> None:
    found = of_health(measurement, **told)
    assert found is not None
    assert (found.count, found.unjudged) == (count, ())
    others = {name for name, read in READINGS.items() if read(device(0, health=GpuHealth(**told)))}
    assert others == {measurement}


@each(
    "measurement, function",
    [
        ("gpu_sram_threshold", "nvmlDeviceGetSramEccErrorStatus"),
        ("gpu_repair_pending", "nvmlDeviceGetRepairStatus"),
        ("gpu_memory_unrepairable", "nvmlDeviceGetUnrepairableMemoryFlag_v1"),
        ("gpu_banks_without_spare", "nvmlDeviceGetRowRemapperHistogram"),
        ("gpu_inforom_corrupt", "nvmlDeviceValidateInforom"),
        ("gpu_recovery_action", "nvmlDeviceGetFieldValues"),
    ],
)
def test_a_question_that_the_driver_failed_to_answer(measurement: str, function: str) -> None:
    found = of_health(measurement, unanswered=((function, "Unknown Error"),))
    assert found is not None
    assert (found.count, codes(found)) == (None, ["health_unanswered"])
