from __future__ import annotations

from typing import Any

import pynvml
import pytest
from fake_nvml import LOST, UNKNOWN, FakeNvml, Refusal

from acceptance.machine.inventory import GpuHealth
from acceptance.observe import gpu_health


def read(answers: dict[Any, Any], fields: dict[Any, Any] | None = None) -> GpuHealth:
    return gpu_health.read(FakeNvml(1, answers, fields), 0)


def test_a_binding_that_has_none_of_it() -> None:
    assert read({}) == GpuHealth()


def test_a_record_that_the_driver_does_not_offer() -> None:
    nvml = FakeNvml(1, {"nvmlDeviceGetSramEccErrorStatus": Refusal(13)})
    nvml.c_nvmlEccSramErrorStatus_v1_t = pynvml.c_nvmlEccSramErrorStatus_v1_t
    assert gpu_health.read(nvml, 0) == GpuHealth()


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
    with pytest.raises(Refusal):
        read({function: Refusal(LOST)})
