"""What a driver says of its GPUs' health, before and after the load, with its limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cases import each
from gpu_machine import COUNTERS, TRAITS, answer, device, machine
from suite_box import Said, ask, planned

from acceptance.core.parts import Gpu
from acceptance.core.record import Measured
from acceptance.core.verdict import judge
from acceptance.expect import gpu_limits
from acceptance.expect.collected import PlanError
from acceptance.machine.gpu import gpus
from acceptance.machine.gpu_health import READINGS
from acceptance.machine.inventory import GpuHealth, Inventory, NvmlAnswer, NvmlDevice
from acceptance.observe import nvml
from acceptance.suites import gpu as suites_gpu
from acceptance.suites import watch

SOUND = GpuHealth(
    sram_threshold_exceeded=False,
    channel_repair_pending=False,
    tpc_repair_pending=False,
    memory_unrepairable=False,
    banks_without_spare=0,
    inforom_corrupt=False,
    recovery_action=0,
)
FABRIC = replace(TRAITS, fabric_state="completed", fabric_status=0, fabric_health=0x1AA)
# What each measurement shows when it is bad: of the health, of the traits.
FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "gpu_sram_threshold": ({"sram_threshold_exceeded": True}, {}),
    "gpu_repair_pending": ({"tpc_repair_pending": True}, {}),
    "gpu_memory_unrepairable": ({"memory_unrepairable": True}, {}),
    "gpu_inforom_corrupt": ({"inforom_corrupt": True}, {}),
    "gpu_recovery_action": ({"recovery_action": 2}, {}),
    "gpu_fabric_faults": ({}, {"fabric_health": 0x1A9}),
}
UNKNOWN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "gpu_recovery_action": ({"recovery_action": 99}, {}),
    "gpu_fabric_faults": ({}, {"fabric_health": 0x1AB}),
    "gpu_inforom_corrupt": (
        {"inforom_corrupt": None, "unanswered": (("nvmlDeviceValidateInforom", "Unknown"),)},
        {},
    ),
}


def card(
    index: int, health: dict[str, Any] | None = None, traits: dict[str, Any] | None = None
) -> NvmlDevice:
    """A GPU that offers everything, sound but for this."""
    return device(
        index, health=replace(SOUND, **health or {}), traits=replace(FABRIC, **traits or {})
    )


def before(*cards: NvmlDevice) -> Said:
    seen = machine(*cards)
    made = planned(seen, [gpu.name for gpu in gpus(seen)], ("gpu.health",), "d")
    return ask(made, "gpu.health", suites_gpu.test_health, due_gpus=gpus(seen))


def after(
    patch: pytest.MonkeyPatch, now: NvmlAnswer, then: tuple[NvmlDevice, ...] | None = None
) -> Said:
    """The same after a load that began with these cards."""
    seen = machine(*(then or (card(0), card(1))))
    patch.setattr(nvml, "probe", lambda **_: now)
    made = planned(seen, (Gpu(0), Gpu(1)), ("watch.health",), "d")
    return ask(made, "watch.health", watch.test_health, due_gpus=gpus(seen), deadline=None)


def grades(seen: Inventory, name: str, said: Said) -> dict[str, str]:
    """The kinds of the findings on gpu1 by measurement."""
    made = planned(seen, (Gpu(0), Gpu(1)), (name,), "d")
    measured = [body for body in said.written if isinstance(body, Measured)]
    judged = judge(made.checks[0], measured, (), ())
    return {
        str(finding.measurement): finding.kind
        for one in judged
        for finding in one.findings
        if finding.component == Gpu(1)
    }


def test_every_measurement_of_health_has_its_fault_here() -> None:
    assert {*FAULTS, "gpu_banks_without_spare"} == set(READINGS)


def test_sound_cards_pass_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    for said in (before(card(0), card(1)), after(monkeypatch, answer([card(0), card(1)]))):
        assert said.outcome == "pass", said.message
        assert {name: said.measured(name) for name in READINGS} == {
            name: {Gpu(0): 0.0, Gpu(1): 0.0} for name in READINGS
        }


@each("measurement", list(FAULTS))
def test_a_fault_fails_before_the_load_and_after_it(measurement: str) -> None:
    bad = card(1, *FAULTS[measurement])
    with pytest.MonkeyPatch.context() as patch:
        for said in (before(card(0), bad), after(patch, answer([card(0), bad]))):
            assert said.outcome == "fail"
            assert len(said.message.splitlines()) == 1
            assert said.measured(measurement) == {Gpu(0): 0.0, Gpu(1): 1.0}


@each("measurement", list(UNKNOWN))
def test_what_nobody_knows_is_an_error_before_the_load_and_after_it(measurement: str) -> None:
    strange = card(1, *UNKNOWN[measurement])
    with pytest.MonkeyPatch.context() as patch:
        for said in (before(card(0), strange), after(patch, answer([card(0), strange]))):
            assert said.outcome == "error"
            assert said.message.startswith("gpu1: ")
            assert said.measured(measurement) == {Gpu(0): 0.0}


def test_a_card_that_offers_nothing_of_it_owes_nothing() -> None:
    """A GeForce, or a run that was recorded before there was this."""
    seen = machine(device(0), device(1))
    for name in ("gpu.health", "watch.health"):
        with pytest.raises(PlanError):
            planned(seen, (Gpu(0), Gpu(1)), (name,), "d")


def test_a_fabric_that_is_not_supported_is_neither_sound_nor_a_fault() -> None:
    silent = {"fabric_health": 0, "fabric_summary": 0}
    said = before(card(0), card(1, {}, silent))
    assert (said.outcome, said.measured("gpu_fabric_faults")) == ("pass", {Gpu(0): 0.0})


def test_a_bank_without_a_spare_row_warns() -> None:
    worn = card(1, {"banks_without_spare": 2})
    said = before(card(0), worn)
    assert (said.outcome, said.measured("gpu_banks_without_spare")[Gpu(1)]) == ("pass", 2.0)
    assert grades(machine(card(0), worn), "gpu.health", said) == {"gpu_banks_without_spare": "warn"}


def test_errors_of_a_life_that_a_reboot_hides_warn() -> None:
    """With the driver's own counter at 0; that of a card whose driver counted them fails."""
    for counted, outcome, findings in (
        ({"ecc_uncorrected_total": 3}, "pass", {"gpu_ecc_uncorrected_total": "warn"}),
        (
            {"ecc_uncorrected_total": 3, "ecc_uncorrected": 1},
            "fail",
            {"gpu_ecc_uncorrected_total": "warn", "gpu_ecc_uncorrected": "fail"},
        ),
    ):
        seen = machine(device(0), device(1, counters=replace(COUNTERS, **counted)))
        made = planned(seen, (Gpu(0), Gpu(1)), ("gpu.memory_health",), "d")
        given = {"inventory": seen, "due_gpus": gpus(seen), "model_sheets": gpu_limits.sheets()}
        said = ask(made, "gpu.memory_health", suites_gpu.test_memory_health, **given)
        assert said.outcome == outcome
        assert grades(seen, "gpu.memory_health", said) == findings


def test_what_was_offered_before_the_load_and_is_not_any_more_was_not_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for gone in (
        card(1, {"inforom_corrupt": None}),
        card(1, {}, {"fabric_health": 0}),
        replace(card(1), health=None),
    ):
        said = after(monkeypatch, answer([card(0), gone]))
        assert said.outcome == "error"
        assert "on gpu1 was not measured" in said.message


def test_a_fault_of_what_was_not_offered_before_the_load_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent = card(1, {}, {"fabric_health": 0})
    degraded = card(1, {}, {"fabric_health": 0x1A9})
    said = after(monkeypatch, answer([card(0), degraded]), (card(0), silent))
    assert said.outcome == "error"
    assert said.message.startswith("gpu1: the driver says Bandwidth: Degraded")
    sound = after(monkeypatch, answer([card(0), card(1)]), (card(0), silent))
    assert (sound.outcome, sound.measured("gpu_fabric_faults")) == ("pass", {Gpu(0): 0.0})


def test_a_gpu_that_left_its_fabric_under_load_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = after(monkeypatch, answer([card(0), card(1, {}, {"fabric_state": "in-progress"})]))
    assert said.outcome == "error"
    assert said.message.startswith("gpu1: the NVLink fabric is in progress")


@each(
    "now",
    [
        answer([card(0), replace(card(1), error="NVML says: GPU is lost")]),
        answer([card(0)]),
        nvml.failed_answer("the driver hangs"),
    ],
)
def test_a_gpu_that_was_lost_under_load_has_no_health(now: NvmlAnswer) -> None:
    with pytest.MonkeyPatch.context() as patch:
        said = after(patch, now)
    assert said.outcome == "error"
    assert said.measured("gpu_recovery_action") == ({Gpu(0): 0.0} if now.devices else {})
