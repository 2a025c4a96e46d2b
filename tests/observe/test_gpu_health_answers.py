from __future__ import annotations

from typing import Any

import pynvml
import pytest
from fake_nvml import LOST, UNKNOWN, FakeNvml, Refusal
from refusal import assert_raises

from acceptance.machine.inventory import GpuHealth
from acceptance.observe import nvml as observe_nvml


def read(answers: dict[Any, Any], fields: dict[Any, Any] | None = None) -> GpuHealth:
    return observe_nvml.read_health(FakeNvml(1, answers, fields), 0)


def test_a_binding_that_has_none_of_it() -> None:
    assert read({}) == GpuHealth()


def test_a_record_that_the_driver_does_not_offer() -> None:
    nvml = FakeNvml(1, {"nvmlDeviceGetSramEccErrorStatus": Refusal(13)})
    nvml.c_nvmlEccSramErrorStatus_v1_t = pynvml.c_nvmlEccSramErrorStatus_v1_t
    assert observe_nvml.read_health(nvml, 0) == GpuHealth()


@pytest.mark.parametrize("code", [2, 3, 4, 13, 25])
def test_what_is_not_offered_or_not_allowed_is_absent(code: int) -> None:
    assert read({"nvmlDeviceValidateInforom": Refusal(code)}) == GpuHealth()


def test_what_fails_for_another_reason_is_named_and_hides_nothing_else() -> None:
    found = read(
        {"nvmlDeviceValidateInforom": Refusal(UNKNOWN), "nvmlDeviceGetRepairStatus": [0, 1]}
    )
    assert found == GpuHealth(
        channel_repair_pending=False,
        tpc_repair_pending=True,
        unanswered=(("nvmlDeviceValidateInforom", "refused"),),
    )


@pytest.mark.parametrize(
    "function", ["nvmlDeviceValidateInforom", "nvmlDeviceGetRowRemapperHistogram"]
)
def test_a_gpu_that_is_lost_is_raised(function: str) -> None:
    assert_raises(Refusal, read, {function: Refusal(LOST)})


def read_flags(flags: dict[Any, Any]) -> GpuHealth:
    nvml = FakeNvml(1, {}, flags)
    for name in ("RESET_STATUS", "DRAIN_AND_RESET_STATUS", "GET_GPU_RECOVERY_ACTION"):
        setattr(nvml, f"NVML_FI_DEV_{name}", getattr(pynvml, f"NVML_FI_DEV_{name}"))
    return observe_nvml.read_health(nvml, 0)


@pytest.mark.parametrize(
    ("reset", "drain", "action"),
    [(0, 0, 0), (1, 0, 1), (0, 1, 4), (1, Refusal(UNKNOWN), 1), (Refusal(3), 0, 0)],
)
def test_flags_of_a_driver_without_a_recovery_action(reset: Any, drain: Any, action: int) -> None:
    assert read_flags({226: reset, 227: drain}).recovery_action == action


@pytest.mark.parametrize("flags", [{226: 0, 227: Refusal(UNKNOWN)}, {226: Refusal(UNKNOWN)}])
def test_a_flag_that_fails_to_answer_is_no_flag_that_is_not_set(flags: dict[Any, Any]) -> None:
    found = read_flags(flags)
    assert found.recovery_action is None
    assert dict(found.unanswered).keys() == {"nvmlDeviceGetFieldValues"}
