"""The files under /sys, /proc and /dev that go with a described machine: its PCI tree, and the
loaded driver.

A bridge stands where two GPUs have it in common: PHB is one host bridge, PIX one switch, PXB a
switch of switches; GPUs with less than that in common hang on host bridges of their own. A GPU that
is passed through hangs on the host bridge itself, as virtual machines show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import described
from described import Gpu, Machine
from machine_tree import Tree

SPEEDS = {
    1: "2.5",
    2: "5.0",
    3: "8.0",
    4: "16.0",
    5: "32.0",
    6: "64.0",
}  # GT/s a lane, by PCI Express generation
NVIDIA = "0x10de"
_NEAR = {
    "PHB": ("INTERNAL", "PIX", "PXB", "PHB"),
    "PXB": ("INTERNAL", "PIX", "PXB"),
    "PIX": ("INTERNAL", "PIX"),
}
# The sound function that a GeForce card has beside its display function, by architecture; GPUs
# without one are not listed.
_SOUND = {"8.6": "0x1aef", "8.9": "0x22ba"}
_SWITCH = "0x22a3"  # an NVSwitch of the Hopper generation


def sysfs_tree(root: Path, path: Path) -> Tree:
    """Write the files of a description under a root."""
    machine, tree = described.read(path), Tree(root)
    bridges = _Bridges()
    for gpu in machine.gpus:
        _gpu(tree, gpu, _folder(machine, gpu, bridges))
    for address in sorted(_switches(machine)):
        folder = f"sys/devices/pci0000:f0/{bridges.one('f0', address)}/{address}"
        _function(tree, folder, _SWITCH, "0x068000", "nvidia-nvswitch", 1)
    _driver(tree, machine)
    return tree


class _Bridges:
    """Addresses of bridges, one for each name, below a host bridge of that bus."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def one(self, bus: str, name: str) -> str:
        number = self.numbers.setdefault(name, len(self.numbers))
        return f"0000:{bus}:{number // 8:02x}.{number % 8}"


def _near(machine: Machine, gpu: Gpu, distance: str) -> tuple[int, ...]:
    """The GPUs that have at least so much in common with this one, itself included."""
    paths = _NEAR[distance]
    others = (
        other.index
        for other in machine.gpus
        if machine.pair(gpu.index, other.index).get("path") in paths
    )
    return tuple(sorted({gpu.index, *others}))


def _folder(machine: Machine, gpu: Gpu, bridges: _Bridges) -> str:
    host, outer, inner = (_near(machine, gpu, distance) for distance in ("PHB", "PXB", "PIX"))
    bus = f"{host[0] * 0x10:02x}"
    names = []
    if gpu.readings.get("virtualisation") != "passthrough":
        names.append(f"port {outer}")
    if outer != inner:
        names += [f"outer {outer}", f"outer {outer} to {inner}"]
    if len(outer) > 1:
        names += [f"inner {inner}", f"inner {inner} to {gpu.index}"]
    return "/".join(
        [f"sys/devices/pci0000:{bus}", *(bridges.one(bus, name) for name in names), gpu.address]
    )


def _gpu(tree: Tree, gpu: Gpu, folder: str) -> None:
    said = gpu.readings
    above = folder.rpartition("/")[0]
    if not above.rpartition("/")[2].startswith("pci"):
        tree.files(above, **_link("max", said["max_link_gen_here"], said["max_link_width_here"]))
    device = f"0x{said['pci_device_id'].split(':')[1]}"
    sound = _SOUND.get(said["compute_capability"]) if "GeForce" in said["name"] else None
    _function(tree, folder, device, "0x030000" if sound else "0x030200", "nvidia", _node(gpu))
    tree.files(
        folder,
        **_link("current", said["link_gen"], said["link_width"]),
        **_link("max", said["max_link_gen"], 16),
    )
    if gpu.cpu_affinity is not None:
        tree.files(folder, local_cpulist=",".join(map(str, gpu.cpu_affinity)))
    if sound:
        _function(tree, f"{folder[:-1]}1", sound, "0x040300", "snd_hda_intel", _node(gpu))
    information = (
        f"Model: \t\t {said['name']}\nBus Location: \t {gpu.address}\nDevice Minor: \t "
        f"{said['minor']}\n"
    )
    tree.write(f"proc/driver/nvidia/gpus/{gpu.address}/information", information)


def _link(which: str, generation: int, width: int) -> dict[str, str | int]:
    return {f"{which}_link_speed": f"{SPEEDS[generation]} GT/s PCIe", f"{which}_link_width": width}


def _node(gpu: Gpu) -> int:
    return gpu.memory_affinity[0] if gpu.memory_affinity else -1


def _function(
    tree: Tree, folder: str, device: str, class_code: str, driver: str, numa_node: int
) -> None:
    tree.files(
        folder,
        vendor=NVIDIA,
        device=device,
        revision="0xa1",
        numa_node=numa_node,
        **{"class": class_code},
    )
    low, high = int(device, 16) & 0xFF, int(device, 16) >> 8
    tree.write(f"{folder}/config", bytes([0xDE, 0x10, low, high]) + bytes(252))
    tree.link(f"sys/bus/pci/devices/{folder.rpartition('/')[2]}", folder)
    tree.link(f"{folder}/driver", f"sys/bus/pci/drivers/{driver}")


def _switches(machine: Machine) -> Iterator[str]:
    """The addresses of the NVSwitches that links lead to, each once; a virtual machine hides
    them behind all ones.
    """
    links = [
        link
        for gpu in machine.gpus
        for link in (gpu.links or {}).values()
        if link.get("remote_kind") == "switch"
    ]
    yield from {
        link["remote_address"][4:].lower()
        for link in links
        if not link["remote_address"].startswith("FFFF")
    }


def _driver(tree: Tree, machine: Machine) -> None:
    nodes = [f"nvidia{gpu.readings['minor']}" for gpu in machine.gpus]
    tree.driver(machine.driver_version, [*nodes, "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"])
    tree.write(
        "proc/driver/nvidia/version",
        (
            f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {machine.driver_version}  Fri Nov "
            "20 12:00:00 UTC 2026\n"
        ),
    )
