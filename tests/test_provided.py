from __future__ import annotations

import itertools
from pathlib import Path

import journals
import msgspec
import pytest
from machine_tree import NO_DMI, Programs, Tree, completed
from product_session import Product
from runs import machine_root, write_segment

from acceptance.deadline import Deadline
from acceptance.judge.declared import DeclaredCpu
from acceptance.judge.machine import Machine
from acceptance.judge.record import Body, Note, Sample, ToolRan
from acceptance.observe import inventory
from acceptance.provided import check_id


def test_what_checks_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    product = Product(tmp_path, monkeypatch)
    tree = Tree(tmp_path / "seen")
    tree.cpus([(0,), (1,)], model="AMD EPYC")
    tree.memory(64)
    seen = Programs(nvml=completed("", "no library", 1), dmidecode=completed(*NO_DMI))
    product.inventory = inventory.observe(tree.root, deadline=Deadline.after(9), run=seen, dmidecode="dmidecode")
    product.machine = Machine(1, "box", gpus=0, cpu=DeclaredCpu(model="AMD EPYC"))
    product.suite(
        "link",
        """
@copy
def test_context(check, machine, inventory, planned, load_s, memory_gib, kernel_log_after, root):
    "The plan, the machine and where to look."
    assert planned.id == "link.context"
    assert machine.cpu.model == inventory.cpu.model == "AMD EPYC"
    assert (load_s, memory_gib, kernel_log_after) == ({}, 1.0, 41)
    assert (root / "etc/machine-id").read_text() == "machine-1\\n"
    check("copy", {"gpu0": 120.0})

@copy
def test_programs(check, programs):
    "Programs, with log and record."
    done = programs.run(["sh", "-c", "echo 120"])
    check("copy", {"gpu0": float(done.stdout)})

@copy
def test_telemetry(check, telemetry):
    "The samples so far, thinned ones with their bounds."
    heat = telemetry["cpu_temperature_c"]
    assert (heat.maximum(), heat.minimum(), heat.unit, heat.component) == (91.0, 40.0, "degC", "cpu")
    assert [value for _, value in telemetry["cpu_throttle_count"].points] == [3.0, 4.0, 5.0]
    check("copy", {"gpu0": 120.0})

@pytest.fixture
def without_telemetry(request):
    from pathlib import Path
    (Path(request.config.getoption("--rigproof-context")).parent / "telemetry.jsonl").unlink()

@copy
def test_no_telemetry(without_telemetry, telemetry, check):
    "Without the supervisor's samples nothing can be said."
    check("copy", {"gpu0": 120.0})
""",
    )
    samples: list[Body] = [
        Sample({"cpu_temperature_c": 40.0}),
        Note("not a sample"),
        Sample(
            {"cpu_temperature_c": 80.0, "cpu_throttle_count": 4.0},
            10.0,
            {"cpu_temperature_c": 70.0, "cpu_throttle_count": 3.0},
            {"cpu_temperature_c": 91.0, "cpu_throttle_count": 5.0},
        ),
    ]
    path = write_segment(product.run_dir / "telemetry.jsonl", samples, machine_root(tmp_path / "root"))
    with path.open("ab") as file:
        file.write(b'{"seq":3,"boot')  # the supervisor is just writing
    names = ("link.context", "link.programs", "link.telemetry", "link.no_telemetry")
    done = product.run(product.plan(*(journals.check(name) for name in names)))
    assert list(product.outcomes().values()) == ["pass", "pass", "pass", "error"], done.stdout
    ran = [body for body in product.journalled() if isinstance(body, ToolRan)]
    assert [(body.check, body.argv, body.log) for body in ran] == [
        ("link.programs", ("sh", "-c", "echo 120"), "logs/link.programs-1.log")
    ]
    assert (product.run_dir / "logs/link.programs-1.log").read_text() == "120\n"
    assert any("telemetry.jsonl: cannot be read" in str(msgspec.to_builtins(body)) for body in product.journalled())


class Item:
    def __init__(self, path: str, name: str) -> None:
        self.path = Path(path)
        self.name = name


@pytest.mark.parametrize(
    "folder", ["/usr/lib/python3/site-packages/acceptance/suites", "/home/me/rigproof/acceptance/suites"]
)
def test_an_id_does_not_depend_on_where_it_is_installed(folder: str) -> None:
    names = ("test_gemm[f64]", "test_test_pattern", "gemm")
    items = itertools.starmap(Item, [(f"{folder}/cpu.py", name) for name in names])
    assert [check_id(item) for item in items] == ["cpu.gemm[f64]", "cpu.test_pattern", "cpu.gemm"]  # type: ignore[arg-type]
