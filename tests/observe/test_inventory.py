from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from cases import each
from machine_tree import NO_DMI, Programs, Tree, completed
from refusal import raised

from acceptance.core.parts import Gpu
from acceptance.machine import inventory
from acceptance.machine.gpu import gpus, uuids
from acceptance.machine.inventory import DeviceNode, Inventory, NvmlAnswer, NvmlDevice
from acceptance.observe import board, nvml, nvml_call
from acceptance.observe.inventory import observe
from acceptance.observe.sysfs import SysfsError
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


NVRM_CLOSED = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 "
    "UTC "
    "2023\nGCC version:  gcc\n"
)
NVRM_OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  "
    "(dvs-builder)  Thu Jan\n"
)
# Made up: the open module's line on Arm.
NVRM_ARM = NVRM_OPEN.replace("x86_64", "aarch64")


def test_a_bare_virtual_machine_shows_nothing(tree: Tree) -> None:
    seen = board.read(tree.root)
    assert seen == inventory.Board(
        vendor=None,
        name=None,
        product=None,
        serial=None,
        bios_vendor=None,
        bios_version=None,
        bios_date=None,
        secure_boot=None,
        kernel=None,
        os=None,
        hostname=None,
        machine_id=None,
        boot_id=None,
        nouveau_loaded=False,
        nvidia_driver=None,
        device_nodes=(),
    )


def test_a_board_and_its_system(tree: Tree) -> None:
    tree.files(
        "sys/class/dmi/id",
        board_vendor="ASUSTeK COMPUTER INC.",
        board_name="ProArt X670E-CREATOR WIFI",
        product_name="System Product Name",
        product_serial="To Be Filled By O.E.M.",
        board_serial="230011",
        bios_vendor="American Megatrends Inc.",
        bios_version="3024",
        bios_date="02/21/2025",
    )
    tree.write(
        "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
        b"\x06\0\0\0\x01",
    )
    tree.files("proc/sys/kernel", osrelease="6.8.0-51-generic", hostname="rig")
    tree.write("proc/sys/kernel/random/boot_id", "d3a13e29\n")
    tree.write("etc/machine-id", "3d12\n")
    tree.write("etc/os-release", 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n')
    seen = board.read(tree.root)
    assert (seen.vendor, seen.name) == ("ASUSTeK COMPUTER INC.", "ProArt X670E-CREATOR WIFI")
    assert (seen.product, seen.serial) == (None, "230011")
    assert (seen.bios_vendor, seen.bios_version, seen.bios_date) == (
        "American Megatrends Inc.",
        "3024",
        "02/21/2025",
    )
    assert (seen.secure_boot, seen.kernel, seen.hostname) == (True, "6.8.0-51-generic", "rig")
    assert (seen.os, seen.machine_id, seen.boot_id) == ("Ubuntu 24.04.1 LTS", "3d12", "d3a13e29")


@pytest.mark.parametrize("line", ["PRETTY_NAME=Debian", "PRETTY_NAME='Debian'"])
def test_the_system_names_itself_elsewhere_and_otherwise(tree: Tree, line: str) -> None:
    tree.write("usr/lib/os-release", line + "\n")
    tree.write("etc/machine-id", "uninitialized\n")
    seen = board.read(tree.root)
    assert (seen.os, seen.machine_id) == ("Debian", None)


def test_nouveau_is_seen_in_either_place(tree: Tree) -> None:
    tree.write("proc/modules", "drm 1 0 - Live 0x0\nnouveau 2 1 - Live 0x0\n")
    assert board.read(tree.root).nouveau_loaded is True
    tree.write("proc/modules", "nouveau_not 1 0 - Live 0x0\n")
    assert board.read(tree.root).nouveau_loaded is False
    (tree.root / "sys/module/nouveau").mkdir(parents=True)
    assert board.read(tree.root).nouveau_loaded is True


@pytest.mark.parametrize(
    ("text", "version"),
    [(NVRM_CLOSED, "535.129.03"), (NVRM_OPEN, "570.86.15"), (NVRM_ARM, "570.86.15")],
)
def test_driver_version_from_proc(tree: Tree, text: str, version: str) -> None:
    tree.write("proc/driver/nvidia/version", text)
    assert board.read(tree.root).nvidia_driver == version


def test_a_driver_that_names_no_version_is_refused(tree: Tree) -> None:
    tree.write("proc/driver/nvidia/version", "NVRM version: soon\n")
    assert "names no driver version" in raised(SysfsError, board.read, tree.root)


def test_whose_node_is_whose(tree: Tree) -> None:
    tree.write(
        "proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t RTX\nDevice Minor: \t 3\n"
    )
    tree.write("proc/driver/nvidia/gpus/0000:02:00.0/information", "Model: \t Unknown\n")
    assert board.read(tree.root).gpu_nodes == {"0000:01:00.0": "/dev/nvidia3"}


def test_device_nodes_and_whether_they_open(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.driver(
        nodes=("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps", "null")
    )
    # Asked of the function, because root may open everything.
    monkeypatch.setattr(os, "access", lambda path, _mode: path.name != "nvidia0")
    seen = board.read(tree.root)
    assert seen.nvidia_driver == "570.86.15"
    assert seen.device_nodes == (
        DeviceNode("/dev/nvidia-uvm", True),
        DeviceNode("/dev/nvidia0", False),
        DeviceNode("/dev/nvidiactl", True),
    )
