"""The burn in a session of the product as it really runs: fixtures, programs and journal, with
fake tools on the PATH.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from gpu_machine import device, machine
from suite_box import Box

from acceptance.core.parts import CPU, MEMORY
from acceptance.suites.fixtures import burn

STRESS_NG = """\
stress-ng: info:  [1] setting to a 1 second run per stressor
stress-ng: info:  [1] dispatching hogs: 8 cpu
stress-ng: metrc: [1] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [1] cpu               10611      1.00     19.98      0.00      3535.83        1773.96
stress-ng: info:  [1] successful run completed in 1.00s
"""  # noqa: E501
STRESSAPPTEST = """\
Log: Commandline - stressapptest -s 1 -M 1024 -m 8 -W
Stats: Starting SAT, 1024M, 1 seconds
Stats: Found 0 hardware incidents
Stats: Completed: 123456.00M in 1.01s 12345.00MB/s, with 0 hardware incidents, 0 errors
Stats: Memory Copy: 123456.00M at 12345.00MB/s
Status: PASS - please verify no corrected errors
"""


def tools(box: Box, stress_ng: str = STRESS_NG, *, seconds: int = 1) -> None:
    """With GPUs processors and RAM burn for as long as the GPUs prove their first products, too."""
    for tool, text in (("stress-ng", stress_ng), ("stressapptest", STRESSAPPTEST)):
        longer = (
            text.replace("1.0", f"{seconds}.0")
            .replace(" 1 sec", f" {seconds} sec")
            .replace("-s 1 ", f"-s {seconds} ")
        )
        box.tool(tool, longer, seconds=f"{seconds}.1")


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
    tools(
        box,
        "stress-ng: fail:  [2] cpu: float80 error detected, failed calculation checksum\n"
        + STRESS_NG,
    )
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
