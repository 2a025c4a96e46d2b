"""Whether somebody is using the GPUs, by what NVML tells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gpu_machine import SOMEBODY, TRAITS, answer, device, machine
from worded import worded

from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import GpuProcess, NvmlDevice
from acceptance.observe.nvml import failed_answer
from acceptance.run.idle_gate import describe_gpu_users

DESKTOP = GpuProcess(900, "Xwayland", None)
NOBODY_TELLS = (
    "gpu0: its driver tells neither which processes compute on it nor how much it is in use"
)


def told(*devices: NvmlDevice) -> tuple[str, ...]:
    seen = machine(*devices)
    return describe_gpu_users(seen.nvml, gpus(seen), 0.1)


def one(**traits: Any) -> tuple[str, ...]:
    return told(device(0, traits=replace(TRAITS, **traits)))


@pytest.mark.parametrize("use", [None, 0.0, 0.1])
def test_a_gpu_on_which_nobody_computes_is_idle(use: float | None) -> None:
    assert one(utilisation=use) == ()


def test_a_process_is_named() -> None:
    assert worded(one(compute_processes=(SOMEBODY,), utilisation=0.99)) == (
        "gpu0: python3 (process 4711, 1.5 GiB) computes on it",
    )


def test_a_desktop_is_no_user_as_long_as_it_draws_little() -> None:
    drawing: dict[str, Any] = {
        "display_active": True,
        "compute_processes": (DESKTOP,),
        "graphics_processes": (DESKTOP,),
    }
    assert one(**drawing, utilisation=0.05) == ()
    assert worded(one(**drawing, utilisation=0.5)) == (
        "gpu0: 50% in use by a process that the driver does not name",
    )


@pytest.mark.parametrize("use", [0.11, 1.0])
@pytest.mark.parametrize("processes", [None, ()])
def test_use_by_nobody_that_is_named(processes: tuple[GpuProcess, ...] | None, use: float) -> None:
    (sentence,) = one(compute_processes=processes, utilisation=use)
    assert worded(sentence) == f"gpu0: {use:.0%} in use by a process that the driver does not name"


def test_a_gpu_of_which_nothing_is_told_is_not_known_to_be_idle() -> None:
    assert worded(one(compute_processes=None, utilisation=None)) == (NOBODY_TELLS,)
    assert one(compute_processes=None, utilisation=0.0) == ()


def test_only_gpus_that_are_tested_and_answer_have_users() -> None:
    busy = device(1, traits=replace(TRAITS, compute_processes=(SOMEBODY,)))
    seen = machine(device(0), busy)
    assert describe_gpu_users(seen.nvml, gpus(seen)[:1], 0.1) == ()
    assert worded(describe_gpu_users(seen.nvml, gpus(seen), 0.1)) == (
        "gpu1: python3 (process 4711, 1.5 GiB) computes on it",
    )
    assert describe_gpu_users(failed_answer("no library"), gpus(seen), 0.1) == ()
    assert describe_gpu_users(answer([device(0, traits=None)]), gpus(seen), 0.1) == ()
