from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from machine_tree import NO_DMI, Programs, Tree, completed

from acceptance import components
from acceptance.deadline import Deadline
from acceptance.judge import machine
from acceptance.observe.cpu import CoreGroup
from acceptance.observe.inventory import Inventory, observe

NOTHING: frozenset[str] = frozenset()
EVERYTHING = frozenset({"cpu_temperature_c", "cpu_throttle_count", "load_1m"})


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Four cores of two threads, and nothing else."""
    tree = Tree(tmp_path / "root")
    tree.cpus([(core, core + 4) for core in range(4)])
    tree.memory()
    return tree


def look(tree: Tree) -> Inventory:
    programs = Programs(nvml=completed("", "no library", 1), dmidecode=completed(*NO_DMI))
    return observe(tree.root, deadline=Deadline.after(9), run=programs, dmidecode="dmidecode")


def declared(folder: Path, text: str) -> machine.Machine:
    file = folder / "machine.toml"
    file.write_text(f'schema = 1\nname = "box"\n{text}')
    return machine.read(file)


def test_a_machine_that_declares_nothing(tree: Tree) -> None:
    tree.gpu(0x41)
    tree.gpu(0x01)
    tree.gpu(0x01, function=1, class_code="0x040300")  # its sound function is no GPU
    tree.disk("nvme0n1", "pci0000:00/0000:04:00.0/nvme/nvme0")
    assert components.resolve(None, look(tree), EVERYTHING) == {
        "machine": ("machine",),
        "system": ("system",),
        "cpu": ("cpu",),
        "memory": ("memory",),
        "core": ("core:0", "core:1", "core:2", "core:3"),
        "core-with-peers": ("core:0", "core:1", "core:2", "core:3"),
        "cpu-thermometer": ("cpu",),
        "cpu-throttle-counter": ("cpu",),
        "cpuburn": (),
        "disk": ("disk:nvme0n1",),
        "gpu": ("gpu0", "gpu1"),
        "dimm": (),
        "declared-disk": (),
        "declared-link": (),
    }
    assert components.not_offered(components.resolve(None, look(tree), EVERYTHING)) == ()


def test_what_is_declared_is_due(tree: Tree, tmp_path: Path) -> None:
    text = """
        cpu = {cpuburn = "burnP6"}
        memory = {dimm = [{slot = "A1"}, {slot = "B 1"}]}
        disk = [{model = "x"}, {model = "y"}]
        network = [{name = "eth0"}]
    """
    found = components.resolve(declared(tmp_path, text), look(tree), NOTHING)
    assert found["cpuburn"] == ("cpu",)
    assert found["dimm"] == ("dimm:A1", "dimm:B 1")
    assert found["declared-disk"] == ("declared-disk:1", "declared-disk:2")
    assert found["declared-link"] == ("net:eth0",)
    assert found["gpu"] == ()


@pytest.mark.parametrize(
    ("text", "seen", "due"),
    [
        ("", 0, 0),
        ("", 2, 2),
        ("gpus = 0", 0, 0),
        ("gpus = 0", 1, 1),  # one too many is looked at as well
        ("gpus = 3", 2, 3),
        ("gpus = 1", 2, 2),
        ("gpu = [{count = 4}]", 2, 4),
    ],
)
def test_gpus_are_those_seen_or_those_declared_whichever_is_more(
    tree: Tree, tmp_path: Path, text: str, seen: int, due: int
) -> None:
    for bus in range(seen):
        tree.gpu(bus + 1)
    found = components.resolve(declared(tmp_path, text), look(tree), NOTHING)
    assert found["gpu"] == tuple(f"gpu{number}" for number in range(due))


def test_cores_are_held_against_their_own_kind(tree: Tree) -> None:
    seen = look(tree)
    groups = (CoreGroup("performance", ((0, 1), (2, 3))), CoreGroup("efficiency", ((4,),)))
    found = components.resolve(None, replace(seen, cpu=replace(seen.cpu, core_groups=groups)), NOTHING)
    assert found["core"] == ("core:0", "core:2", "core:4")
    assert found["core-with-peers"] == ("core:0", "core:2")


def test_what_a_machine_does_not_show_is_said(tree: Tree) -> None:
    seen = look(tree)
    bare = replace(seen, cpu=replace(seen.cpu, core_groups=()))
    lines = components.not_offered(components.resolve(None, bare, NOTHING))
    assert [line.split(":")[0] for line in lines] == [
        "processor temperature",
        "processor throttling",
        "single cores",
        "disk health",
    ]
    one = replace(seen, cpu=replace(seen.cpu, core_groups=(CoreGroup("all", ((0,),)),)))
    assert [line.split(":")[0] for line in components.not_offered(components.resolve(None, one, EVERYTHING))] == [
        "slow cores",
        "disk health",
    ]
