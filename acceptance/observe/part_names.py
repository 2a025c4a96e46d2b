"""What the kernel calls the GPUs, disks and network ports of this machine in its messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from acceptance.core.evidence import Scratch
from acceptance.core.parts import GPUS, Component, Gpu, parse
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, NetworkLink
from acceptance.observe import sysfs

_FUNCTION = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# A disk's controller, ATA port and SCSI address, in the path of its device.
_CONTROLLER = re.compile(r"nvme\d+|ata\d+|\d+:\d+:\d+:\d+")
_NVIDIA_NUMBER = "gpu#"  # the driver's own number of a GPU, which need not be ours


class PartNames:
    """Finds the part that a message names, among those with these names.

    The first of two parts of one name has it: a bridge above a GPU and a disk is the GPU's.
    """

    def __init__(self, names: Mapping[Component, Iterable[str]]) -> None:
        parts: dict[str, Component] = {}
        for part, words in names.items():
            for word in words:
                parts.setdefault(word.lower(), part)
        self._parts = tuple(parts.values())
        patterns = "|".join(f"({_pattern(name)})" for name in parts) or r"(?!)"
        self._pattern = re.compile(patterns, re.IGNORECASE)

    def part_in(self, text: str) -> Component | None:
        """The part that a message names first, or None."""
        match = self._pattern.search(text)
        return self._parts[match.lastindex - 1] if match and match.lastindex else None


def _pattern(name: str) -> str:
    """A pattern without groups for a name as a word of its own, never a part of a longer one."""
    if name == _NVIDIA_NUMBER:
        return r"(?<![\w.:])GPU:?\d+(?!\w)"
    if _FUNCTION.fullmatch(name):
        # Drivers leave out function 0: `PCI:0000:01:00`.
        word = re.escape(name.removesuffix(".0")) + (r"(?:\.0)?" if name.endswith(".0") else "")
        return rf"(?<![\w.])(?:PCI:)?{word}(?!\w|[.:]\d)"
    device = r"(?:\.\d+)?" if name.startswith("ata") else ""
    return rf"(?<![\w.:]){re.escape(name)}{device}(?!\w|[.:]\d)"


def find(
    inventory: Inventory,
    tested: Iterable[Component],
    scratches: Iterable[Scratch] = (),
    root: Path = Path("/"),
) -> PartNames:
    """The names of the tested GPUs and the bridges above them, and of all disks and ports.

    What lies under a scratch folder has its component: the members of a RAID, too.
    """
    names: dict[Component, list[str]] = {}
    there = set(tested)
    for gpu in gpus(inventory):
        if gpu.name not in there:
            continue
        place = inventory.places.get(gpu.pci_address)
        names[parse(gpu.pci_address)] = [gpu.pci_address, *([gpu.uuid] if gpu.uuid else [])]
        names |= {parse(one): [one] for one in (place.bridges if place else ())}
    if any(isinstance(one, Gpu) for one in there):
        names[GPUS] = [_NVIDIA_NUMBER]
    for scratch in scratches:
        below = [name for disk in scratch.disks for name in _of_disk(disk, root)]
        names[scratch.component] = [scratch.source.removeprefix("/dev/"), *below]
    for disk in inventory.disks or ():
        names.setdefault(disk.component, list(_of_disk(disk.name, root)))
    for port in inventory.links or ():
        names[port.component] = list(_of_port(port))
    return PartNames(names)


def _of_disk(disk: str, root: Path) -> Iterator[str]:
    """A disk, its partitions and what lies on them, its controller, and its port."""
    block = root / "sys/block" / disk
    parts = [one for one in sysfs.entries(block) if one.name.startswith(disk)]
    yield disk
    yield from (one.name for one in parts)
    for one in (block, *parts):
        yield from (holder.name for holder in sysfs.entries(one / "holders"))
    if controller := re.match(r"nvme\d+", disk):
        yield controller[0]
    path = (block / "device").resolve()
    above = [one.name for one in (path, *path.parents)]
    yield from (name for name in above if _CONTROLLER.fullmatch(name))
    yield from [name for name in above if _FUNCTION.fullmatch(name)][:1]


def _of_port(port: NetworkLink) -> Iterator[str]:
    """An interface or InfiniBand port, its RDMA device, and its card."""
    for name in (port.name, port.rdma):
        if name:
            yield name.partition("/")[0]
    if port.pci_address:
        yield port.pci_address
