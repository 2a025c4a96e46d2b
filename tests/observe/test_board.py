from __future__ import annotations

import os

import pytest
from machine_tree import Tree
from refusal import raised

from acceptance.machine import inventory
from acceptance.machine.inventory import DeviceNode
from acceptance.observe import board
from acceptance.observe.sysfs import SysfsError

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
