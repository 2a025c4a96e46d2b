"""The NUMA node of a GPU, and pinning this process to its CPUs.

The kernel places a page on the node whose CPU touches it first. (Binding memory to a node by
`set_mempolicy` is refused in a container.) Standard library only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from acceptance.loads.program import LoadError


@dataclass(frozen=True, slots=True)
class Placement:
    """The CPUs of a GPU's own node that this process may use; empty where it is not to be pinned.

    `told` is a sentence that says which, or why not.
    """

    cpus: frozenset[int]
    told: str


def pci_address(domain: int, bus: int, device: int) -> str:
    """A PCI address in sysfs spelling: 0000:c1:00.0."""
    return f"{domain:04x}:{bus:02x}:{device:02x}.0"


def placement(address: str, allowed: Set[int], root: Path = Path("/")) -> Placement:
    """The CPUs beside the GPU at this PCI address; raises LoadError."""
    free = "host memory is wherever the kernel puts it"
    path = root / "sys/bus/pci/devices" / address / "numa_node"
    text = _content(path)
    if text is None:
        return Placement(frozenset(), f"the kernel shows no NUMA node of {address}: {free}")
    if not re.fullmatch(r"-1|\d{1,5}", text, re.ASCII):
        raise LoadError(f"the NUMA node of {address} is not a number: {text!r}")
    if text == "-1":
        return Placement(frozenset(), f"the firmware gives {address} no NUMA node: {free}")
    listed = _content(root / f"sys/devices/system/node/node{text}/cpulist")
    if listed is None:
        return Placement(
            frozenset(), f"{address} is on NUMA node {text}, which the kernel does not show: {free}"
        )
    cpus = frozenset(allowed & cpu_list(listed))
    if not cpus:
        why = (
            "has no CPU" if not listed else f"has the CPUs {listed}, none of which may be used here"
        )
        return Placement(cpus, f"{address} is on NUMA node {text}, which {why}: {free}")
    return Placement(
        cpus, f"host memory on NUMA node {text}, that of {address}, by its CPUs {listed}"
    )


def cpu_list(text: str) -> frozenset[int]:
    """The CPUs of a list in the kernel's format, 0-3,8,10-11; raises LoadError."""
    cpus: set[int] = set()
    for part in text.split(",") if text else ():
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part, re.ASCII)
        if match is None:
            raise LoadError(f"{text!r} is not a list of CPUs")
        cpus.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(cpus)


def pin_process(address: str) -> str:
    """Pin this process to the CPUs beside the GPU at this address, where there are any.

    Returns a sentence that says what was done. Raises LoadError.
    """
    found = placement(address, os.sched_getaffinity(0))
    if found.cpus:
        os.sched_setaffinity(0, found.cpus)
    return found.told


def _content(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
