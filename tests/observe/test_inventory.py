from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from cases import each
from machine_tree import NO_DMI, Programs, Tree, completed

from acceptance.core.parts import Gpu
from acceptance.machine.gpu import gpus, uuids
from acceptance.machine.inventory import Inventory, NvmlAnswer, NvmlDevice
from acceptance.observe import nvml, nvml_call
from acceptance.observe.inventory import observe
from acceptance.process.deadline import Deadline


def known(index: int, address: str) -> NvmlDevice:
    return NvmlDevice(
        index,
        f"GPU-{index}",
        "NVIDIA GeForce RTX 4090",
        address,
        None,
        None,
        25757220864,
        None,
        None,
    )


def look(tree: Tree, answer: NvmlAnswer) -> Inventory:
    programs = Programs(
        nvml=completed(msgspec.json.encode(answer).decode()), dmidecode=completed(*NO_DMI)
    )
    return observe(tree.root, deadline=Deadline.after(9), run=programs, dmidecode="dmidecode")


@pytest.fixture
def tower(tmp_path: Path) -> Tree:
    """Two RTX 4090 in a tower."""
    tree = Tree(tmp_path)
    tree.cpus([(core, core + 16) for core in range(16)])
    tree.memory(128)
    for bus in (0x41, 0x01):
        tree.gpu(bus)
        tree.gpu(bus, function=1, class_code="0x040300", device="0x22ba", driver="snd_hda_intel")
    tree.driver(nodes=("nvidia0", "nvidia1", "nvidiactl"))
    tree.disk("nvme0n1", "pci0000:00/0000:04:00.0/nvme/nvme0")
    tree.nic("enp5s0")
    return tree


def test_an_inventory_survives_json(tower: Tree) -> None:
    seen = look(
        tower,
        NvmlAnswer(
            "570.86.15", "12.8", (known(0, "0000:01:00.0"), known(1, "0000:41:00.0")), None, None
        ),
    )
    assert msgspec.json.decode(msgspec.json.encode(seen), type=Inventory) == seen
    assert (seen.cpu.cores, len(seen.disks), len(seen.links), len(seen.pci)) == (16, 1, 1, 4)


def test_gpus_are_those_on_the_bus_in_bus_order(tower: Tree) -> None:
    # NVML may number them otherwise, and know one only: the bus says what is due.
    seen = look(tower, NvmlAnswer("570.86.15", "12.8", (known(0, "0000:41:00.0"),), None, None))
    first, second = gpus(seen)
    assert (first.name, first.pci_address, first.device_id, first.device) == (
        Gpu(0),
        "0000:01:00.0",
        "10de:2684",
        None,
    )
    assert (second.name, second.pci_address, second.answers, second.uuid, second.nvml_index) == (
        Gpu(1),
        "0000:41:00.0",
        True,
        "GPU-0",
        0,
    )
    for names in ((), (Gpu(1),), (Gpu(0), Gpu(1))):
        assert tuple(gpu.name for gpu in gpus(seen, (*names, Gpu(2)))) == names
    assert uuids((first, second)) == {Gpu(0): None, Gpu(1): "GPU-0"}


@each(
    "address, bound",
    [
        (None, [(None, None, None), ("GPU-1", 1, None)]),
        ("0000:01:00.0", [(None, 0, "NVML says: GPU is lost"), ("GPU-1", 1, None)]),
    ],
    told=["without its address it binds to nothing", "with it, it is known with its error"],
)
def test_a_lost_device(
    tower: Tree, address: str | None, bound: list[tuple[str | None, int | None, str | None]]
) -> None:
    told = "NVML says: GPU is lost"
    lost = NvmlDevice(0, None, None, address, None, None, None, told, nvml_call.GPU_IS_LOST)
    answer = NvmlAnswer("570.86.15", "12.8", (lost, known(1, "0000:41:00.0")), None, None)
    assert [(gpu.uuid, gpu.nvml_index, gpu.error) for gpu in gpus(look(tower, answer))] == bound


def test_a_virtual_machine_without_anything(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.cpus([(0,), (1,)], flags="fpu hypervisor")
    tree.memory(24)
    seen = look(tree, nvml.failed_answer(nvml.LIBRARY_MISSING, nvml_call.LIBRARY_NOT_FOUND))
    assert (gpus(seen), seen.disks, seen.links, seen.pci) == ((), (), (), ())
    assert seen.memory.dimms is None
    assert msgspec.json.decode(msgspec.json.encode(seen), type=Inventory) == seen


def test_parts_cut_out_by_sr_iov_are_not_gpus_of_their_own(tower: Tree) -> None:
    tower.link("sys/bus/pci/devices/0000:41:00.0/physfn", "sys/bus/pci/devices/0000:01:00.0")
    assert [gpu.pci_address for gpu in gpus(look(tower, nvml.failed_answer("nothing")))] == [
        "0000:01:00.0"
    ]


@pytest.mark.tools
def test_this_machine() -> None:
    seen = observe()
    assert seen.cpu.threads >= (seen.cpu.cores or 1) >= (seen.cpu.sockets or 1)
    assert seen.memory.total_bytes > 0
    assert (seen.memory.dimms is None) == (seen.memory.dimms_unread is not None)
    assert seen.board.kernel
    assert msgspec.json.decode(msgspec.json.encode(seen), type=Inventory) == seen
