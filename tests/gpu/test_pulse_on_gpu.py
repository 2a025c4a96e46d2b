"""The power load on one real GPU: its edges, its results and what NVML sees of them, beside a watch
that holds its watchdog.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from acceptance.core.parts import Gpu
from acceptance.loads.protocol import LoadOutput, parse
from acceptance.observe import nvml as nvml_library
from acceptance.observe.nvml_call import address
from acceptance.suites.fixtures.power import begun, read_watch
from acceptance.watch import power_watch

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]
STEPS = "cold,6.5/square,4,1/square,4,5/square,3,100/square,3,200/square,3,1000"


def place() -> str:
    """The PCI address of the first GPU."""
    nvml = nvml_library.binding()
    nvml.nvmlInit()
    return address(nvml.nvmlDeviceGetPciInfo(nvml.nvmlDeviceGetHandleByIndex(0)))


def load(steps: str, *more: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "acceptance.loads", "pulse", "gpus=1", f"steps={steps}", *more]
    return subprocess.run(argv, capture_output=True, text=True, timeout=200)


def values(output: LoadOutput) -> dict[str, float]:
    return {one.name: one.value for one in output.readings}


def test_every_edge_is_made_every_result_is_right_and_the_power_jumps(tmp_path: Path) -> None:
    watchdog = tmp_path / "watchdog"
    argv = power_watch.argv(sys.executable, watchdog, [(Gpu(0), place())])
    watch = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    time.sleep(2.0)
    done = load(STEPS, f"leash={watchdog}")
    told, _ = watch.communicate(timeout=20)  # it ends with the load
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    output = parse(done.stdout)
    assert output.miscompares == ()
    assert values(output) == {"power_miscompares": 0.0, "power_steps": 1.0}
    (table,) = output.tables
    for row in table.rows:
        assert float(row[5]) >= 0.95 * float(row[4]), row
        assert float(row[7]) > 0, row
    seen = read_watch(told)
    assert seen.began
    assert seen.stop is None
    own = seen.gpus[Gpu(0)]
    assert own.limit_w is not None
    assert len([one.step for one in begun(done.stdout)]) == len(table.rows)
    wave = next(one for one in begun(done.stdout) if one.step.hertz == 1.0)
    power = [watts for _, watts, _ in own.within(wave.begins_s, wave.begins_s + 4.0).samples]
    print(f"{len(power)} samples from {min(power)} to {max(power)} W of {own.limit_w}")
    assert len(power) > 8
    assert max(power) > 2 * min(power)
