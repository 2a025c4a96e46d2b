"""The product sees in the files of a described machine what the description says."""

from __future__ import annotations

import itertools
from pathlib import Path

import described
import fake_driver
from cases import each
from machine_root import SPEEDS, sysfs_tree
from thoroughness import some

from acceptance.machine import topology
from acceptance.observe import board, pci

NAMES = sorted(path.stem for path in fake_driver.DESCRIPTIONS.glob("*.json"))


@each("name", some(NAMES, 4))
def test_a_described_machine_on_the_bus(tmp_path: Path, name: str) -> None:
    path = fake_driver.description(name)
    machine = described.read(path)
    sysfs_tree(tmp_path, path)
    functions = {function.address: function for function in pci.read(tmp_path)}
    assert [one.address for one in functions.values() if one.is_display] == [
        gpu.address for gpu in machine.gpus
    ]
    for gpu in machine.gpus:
        said, found = gpu.readings, functions[gpu.address]
        assert (found.device_id, found.driver, found.answers) == (
            said["pci_device_id"],
            "nvidia",
            True,
        )
        assert (found.link_speed_gts, found.link_width) == (
            float(SPEEDS[said["link_gen"]]),
            said["link_width"],
        )
        assert found.max_link_speed_gts == float(SPEEDS[said["max_link_gen"]])
        virtual = said["virtualisation"] == "passthrough"
        slot = (
            (None, None)
            if virtual
            else (float(SPEEDS[said["max_link_gen_here"]]), said["max_link_width_here"])
        )
        assert (found.slot_max_link_speed_gts, found.slot_max_link_width) == slot
        assert found.numa_node == (gpu.memory_affinity[0] if gpu.memory_affinity else None)


@each("name", some(NAMES, 4))
def test_a_described_machine_hangs_together(tmp_path: Path, name: str) -> None:
    path = fake_driver.description(name)
    machine = described.read(path)
    sysfs_tree(tmp_path, path)
    places = pci.places(tmp_path, [gpu.address for gpu in machine.gpus])
    for a, b in itertools.combinations(machine.gpus, 2):
        wanted = machine.pair(a.index, b.index)["path"]
        assert topology.path(places[a.address], places[b.address]) == wanted
    for gpu in machine.gpus:
        assert places[gpu.address].cpus == gpu.cpu_affinity


def test_the_driver_and_the_other_functions(tmp_path: Path) -> None:
    sysfs_tree(tmp_path, fake_driver.description("8xh100"))
    others = [function for function in pci.read(tmp_path) if not function.is_display]
    assert [(one.class_code, one.driver) for one in others] == [("068000", "nvidia-nvswitch")] * 4
    seen = board.read(tmp_path)
    assert seen.nvidia_driver == "570.133.20"
    assert [node.path for node in seen.device_nodes if node.openable] == [
        "/dev/nvidia-uvm",
        *(f"/dev/nvidia{number}" for number in range(8)),
        "/dev/nvidiactl",
    ]
    (tmp_path / "sys/module/nvidia/version").unlink()
    assert board.read(tmp_path).nvidia_driver == "570.133.20"
    assert board.nodes_by_address(tmp_path)["0000:43:00.0"] == "/dev/nvidia1"


def test_a_card_for_screens_has_sound(tmp_path: Path) -> None:
    sysfs_tree(tmp_path, fake_driver.description("2x4090"))
    sound = [function for function in pci.read(tmp_path) if not function.is_display]
    assert [(one.address, one.device_id) for one in sound] == [
        ("0000:01:00.1", "10de:22ba"),
        ("0000:41:00.1", "10de:22ba"),
    ]
