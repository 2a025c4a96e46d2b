"""gpu.granted: the GPUs that the session sees are those that are due, or the run is unjudged.

The driver's answer is a fake.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import journals
import msgspec
import pytest
from machine_tree import NO_DMI, Tree, completed
from machine_tree import Programs as Answers
from product_session import Product
from suite_box import ask

from acceptance.core.limit import Limit
from acceptance.core.parts import Gpu
from acceptance.core.record import CheckEnded, Measured
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, NvmlAnswer, NvmlDevice
from acceptance.observe import nvml
from acceptance.observe.inventory import observe
from acceptance.process.deadline import Deadline
from acceptance.session import context
from acceptance.suites import gpu

# Stands before the package's own suites: what NVML answers inside this session.
FAKE = """\
from pathlib import Path
import msgspec, pytest
from acceptance.observe import nvml

@pytest.fixture(autouse=True)
def answer(monkeypatch):
    text = Path(__file__).with_name("answer.json").read_bytes()
    monkeypatch.setattr(nvml, "probe", lambda **_: msgspec.json.decode(text, type=nvml.NvmlAnswer))
"""
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


Granted = Callable[[NvmlAnswer], CheckEnded]


@pytest.fixture
def product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inventory: Inventory) -> Product:
    own = context.SUITES / "gpu.py"
    made = Product(tmp_path, monkeypatch)
    shutil.copy(own, made.suites)
    (made.suites / "conftest.py").write_text(FAKE)
    made.inventory = inventory
    return made


@pytest.fixture
def granted(product: Product) -> Granted:
    def run(inside: NvmlAnswer) -> CheckEnded:
        (product.suites / "answer.json").write_bytes(msgspec.json.encode(inside))
        product.run(msgspec.structs.replace(product.plan(GRANTED), gpus=(Gpu(0), Gpu(1))))
        (end,) = [body for body in product.journalled() if isinstance(body, CheckEnded)]
        return end

    return run


def test_every_gpu_is_there(granted: Granted, product: Product) -> None:
    assert granted(answer(device(1), device(0))).outcome == "pass"
    measured = [body for body in product.journalled() if isinstance(body, Measured)]
    assert [(one.component, one.value, one.serial) for one in measured] == [
        (Gpu(0), 1.0, "GPU-0"),
        (Gpu(1), 1.0, "GPU-1"),
    ]


@pytest.mark.parametrize(
    ("inside", "told"),
    [
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
    inventory: Inventory, monkeypatch: pytest.MonkeyPatch, inside: NvmlAnswer, told: str
) -> None:
    monkeypatch.setattr(nvml, "probe", lambda **_: inside)
    given = {
        "inventory": inventory,
        "due_gpus": gpus(inventory),
        "deadline": None,
    }
    said = ask(journals.plan(GRANTED), "gpu.granted", gpu.test_granted, **given)
    assert said.outcome == "error"
    assert told in said.message
    assert "nvidia-ctk cdi generate" in said.message
    assert "where they run on the host itself" in said.message


def test_the_session_ends_with_that_error(granted: Granted) -> None:
    end = granted(answer(device(1)))
    assert end.outcome == "error"
    assert "cannot be seen from where the loads run: gpu0 (GPU-0): " in end.message
