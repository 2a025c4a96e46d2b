from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pynvml
from cases import each
from gpu_machine import TRAITS, device
from known import known

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
    return [message.code for message in reading.unjudged]


UNKNOWN, NOT_SET_UP = ["health_value_unknown"], ["fabric_not_set_up"]
DEGRADED = ("Bandwidth: Degraded",)


@each(
    "mask, summary, expected",
    [
        # not supported: not offered
        (None, None, None),
        (0, None, None),
        (0, 0, None),
        (None, 0, None),
        # sound
        (SOUND, None, (0.0, (), [])),
        (SOUND, 1, (0.0, (), [])),
        (0, 1, (0.0, (), [])),
        (SOUND | 1 << 12 | 1 << 14, 1, (0.0, (), [])),
        (SOUND | 1 << 16, 1, (0.0, (), [])),
        # neither health nor a fault
        (0x1AB, None, (None, (), UNKNOWN)),
        (0x9AA, None, (None, (), UNKNOWN)),
        (0xFAA, 1, (None, (), UNKNOWN)),
        (0, 9, (None, (), UNKNOWN)),
        (SOUND | 1 << 16, None, (None, (), UNKNOWN)),
        (1 << 31, 0, (None, (), UNKNOWN)),
        (SOUND | 2 << 12, None, (None, (), NOT_SET_UP)),
        (SOUND | 2 << 14, None, (None, (), NOT_SET_UP)),
        (SOUND | 3 << 14, None, (None, (), UNKNOWN)),
        # a fault beside an unknown value is counted
        (0x3 << 2 | 0x1, None, (1.0, DEGRADED, UNKNOWN)),
    ],
)
def test_what_a_fabric_proves(
    mask: int | None,
    summary: int | None,
    expected: tuple[float | None, tuple[str, ...], list[str]] | None,
) -> None:
    found = fabric(mask, summary)
    assert (found and (found.count, found.faults, codes(found))) == expected


def test_a_gpu_without_a_record_offers_nothing() -> None:
    bare = device(0, traits=None)
    assert [name for name, read in READINGS.items() if read(bare) is not None] == []


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


def test_a_fabric_that_failed_to_answer() -> None:
    found = known(fabric(None, fabric_error="Unknown Error"))
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
    found = known(of_health(measurement, **told))
    assert (found.count, found.unjudged) == (count, ())
    others = {name for name, read in READINGS.items() if read(device(0, health=GpuHealth(**told)))}
    assert others == {measurement}


QUESTIONS = {
    "gpu_sram_threshold": "nvmlDeviceGetSramEccErrorStatus",
    "gpu_repair_pending": "nvmlDeviceGetRepairStatus",
    "gpu_memory_unrepairable": "nvmlDeviceGetUnrepairableMemoryFlag_v1",
    "gpu_banks_without_spare": "nvmlDeviceGetRowRemapperHistogram",
    "gpu_inforom_corrupt": "nvmlDeviceValidateInforom",
    "gpu_recovery_action": "nvmlDeviceGetFieldValues",
}


@each(
    "measurement, told, expected",
    [
        *(
            ("gpu_recovery_action", {"recovery_action": action}, (float(action != 0), []))
            for action in sorted(gpu_health.RECOVERY_ACTIONS)
        ),
        ("gpu_recovery_action", {"recovery_action": 8}, (None, ["health_value_unknown"])),
        *(
            (name, {"unanswered": ((question, "Unknown Error"),)}, (None, ["health_unanswered"]))
            for name, question in QUESTIONS.items()
        ),
    ],
)
def test_actions_and_questions_that_the_driver_failed_to_answer(
    measurement: str, told: dict[str, Any], expected: tuple[float | None, list[str]]
) -> None:
    found = known(of_health(measurement, **told))
    assert (found.count, codes(found)) == expected
