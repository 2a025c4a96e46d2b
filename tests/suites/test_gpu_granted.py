"""gpu.granted: the GPUs that the session sees are those that are due, or the run is unjudged.

The driver's answer is a fake; sessions that see other GPUs are played by the self-test.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import journals
import msgspec
import pytest
from machine_tree import NO_DMI, Tree, completed
from machine_tree import Programs as Answers
from suite_box import ask

from acceptance.core.limit import Limit
from acceptance.core.parts import Gpu
from acceptance.core.record import Measured
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, NvmlAnswer, NvmlDevice
from acceptance.observe import nvml
from acceptance.observe.inventory import observe
from acceptance.process.deadline import Deadline
from acceptance.suites import gpu

AT_LEAST_ONE = Limit("count", "a basis", low=1.0)
GRANTED = journals.check(
    "gpu.granted",
    *(
        journals.due("gpu_granted", Gpu(number), "count", AT_LEAST_ONE, waivable=False)
        for number in (0, 1)
    ),
    gate=True,
)


def device(number: int, error: str | None = None) -> NvmlDevice:
    return NvmlDevice(
        number, f"GPU-{number}", "H200", f"0000:0{number + 1}:00.0", None, None, 1, error, None
    )


def answer(*devices: NvmlDevice, error: str | None = None) -> NvmlAnswer:
    return NvmlAnswer("570", "12.8", devices, error, None)


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    tree = Tree(tmp_path / "tree")
    tree.cpus([(0,)])
    tree.memory(64)
    tree.gpu(0x01)
    tree.gpu(0x02)
    seen = msgspec.json.encode(answer(device(0), device(1))).decode()
    programs = Answers(nvml=completed(seen), dmidecode=completed(*NO_DMI))
    return observe(tree.root, deadline=Deadline.after(9), run=programs, dmidecode="dmidecode")


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        (answer(device(1), device(0)), None),
        (answer(), "cannot be seen from where the loads run: gpu0 (GPU-0), gpu1 (GPU-1)"),
        (answer(device(1)), "cannot be seen from where the loads run: gpu0 (GPU-0): "),
        (answer(device(0), device(1), device(2)), "seen there and not due: GPU-2"),
        (
            answer(device(0), dataclasses.replace(device(1), uuid="GPU-9")),
            "gpu1 (GPU-1); seen there and not due: GPU-9",
        ),
        (
            answer(device(0), device(1, error="NVML says: lost")),
            "gpu1 (GPU-1); GPU 1: NVML says: lost",
        ),
        (
            nvml.failed_answer(nvml.LIBRARY_MISSING),
            "gpu0 (GPU-0), gpu1 (GPU-1); the NVIDIA driver library",
        ),
    ],
)
def test_other_gpus_than_those_due_are_an_error_and_no_fault_of_a_card(
    inventory: Inventory, monkeypatch: pytest.MonkeyPatch, inside: NvmlAnswer, told: str | None
) -> None:
    monkeypatch.setattr(nvml, "probe", lambda **_: inside)
    given = {"inventory": inventory, "due_gpus": gpus(inventory), "deadline": None}
    said = ask(journals.plan(GRANTED), "gpu.granted", gpu.test_granted, **given)
    assert said.outcome == ("pass" if told is None else "error")
    assert (told or "") in said.message
    if told is None:
        measured = [body for body in said.written if isinstance(body, Measured)]
        assert [(one.component, one.value, one.serial) for one in measured] == [
            (Gpu(0), 1.0, "GPU-0"),
            (Gpu(1), 1.0, "GPU-1"),
        ]
