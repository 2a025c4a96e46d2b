"""The burn in a session of the product as it really runs: fixtures, programs and journal, with
fake tools on the PATH.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from gpu_machine import device, machine
from replay import host
from suite_box import Box

from acceptance.core.parts import CPU, MEMORY
from acceptance.suites.fixtures import burn

FAULTY = "stress-ng: fail:  [2] cpu: float80 error detected, failed calculation checksum\n"


def tools(box: Box, before: str = "", *, seconds: int = 1) -> None:
    """With GPUs processors and RAM burn for as long as the GPUs prove their first products, too.

    stress-ng says something else `before`.
    """
    stress_ng = host.printed("stress-ng", ["--timeout", f"{seconds}s", "--cpu", "8"])
    memory = host.printed("stressapptest", ["-s", f"{seconds}", "-M", "1024", "-m", "8", "-W"])
    for tool, text in (("stress-ng", before + stress_ng), ("stressapptest", memory)):
        box.tool(tool, text, seconds=f"{seconds}.1")


def test_a_machine_without_gpus_burns_processors_and_ram(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, monkeypatch, machine(found=()))
    tools(box)
    assert box.run("together", names=()) == {"together.burn": "pass"}
    assert box.measured("burn_cpu_failures") == {CPU: 0.0}
    assert box.measured("burn_memory_errors") == {MEMORY: 0.0}
    assert box.measured("burn_memory_filled") == {MEMORY: 1.0}
    stress_ng, stressapptest = box.commands()
    assert stress_ng[:3] == stressapptest[:3] == ("nice", "-n", "10")
    assert Path(stress_ng[3]).name == "stress-ng"
    assert Path(stressapptest[3]).name == "stressapptest"


def test_a_wrong_result_of_a_processor_fails_the_burn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, monkeypatch, machine(found=()))
    tools(box, FAULTY)
    assert box.run("together", names=()) == {"together.burn": "fail"}
    assert box.message().startswith("burn_cpu_failures on cpu: measured 1")


@pytest.mark.sweep
def test_loads_that_cannot_begin_leave_what_processors_and_ram_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real program of the burn, where no GPU is to be had: both of them end
    at once, and say why.
    """
    monkeypatch.setattr(burn, "PROVING_S", 1.0)
    box = Box(tmp_path, monkeypatch, machine(device(0), device(1)))
    tools(box, seconds=2)
    assert box.run("together") == {"together.burn": "error"}
    assert box.measured("burn_cpu_failures") == {CPU: 0.0}
    assert box.measured("burn_memory_filled") == {MEMORY: 1.0}
    assert box.measured("burn_bf16") == {}
    first, second = box.message().split("gpu1: the load burn ")
    assert first.startswith("gpu0: the load burn ended with exit code 1")
    assert second.startswith("ended with exit code 1")


def test_a_memory_test_that_cannot_begin_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, monkeypatch, machine(device(0), device(1)))
    assert box.run("vram", name="gpu-load") == {"vram.patterns": "error"}
    assert box.message().startswith("gpu0: the load vram ended with exit code 1")
