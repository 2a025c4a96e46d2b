"""PciPlace: where a function hangs in the PCI tree, as sysfs shows it; and how two of them reach each other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from acceptance.observe import sysfs

_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_HOST_BRIDGE = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class PciPlace:
    """A function's place. `host_bridge` is "pci0000:00"; `bridges` are the addresses between it and the function, the nearest last.

    `numa_node` and `cpus` (logical CPUs that are near) are None where the kernel does not tell.
    """

    address: str
    host_bridge: str
    bridges: tuple[str, ...]
    numa_node: int | None
    cpus: tuple[int, ...] | None


def read(root: Path, addresses: Iterable[str]) -> dict[str, PciPlace]:
    """The places of these functions, by address; one that sysfs does not show, or not below a host bridge, is absent.

    Raises SysfsError for a file that holds something unknown.
    """
    found = {}
    for address in addresses:
        device = root / "sys/bus/pci/devices" / address
        parts = device.resolve().parts if device.exists() else ()
        hosts = [part for part in parts if _HOST_BRIDGE.fullmatch(part)]
        if hosts:
            below = parts[parts.index(hosts[-1]) + 1 :]
            bridges = tuple(part for part in below if _ADDRESS.fullmatch(part) and part != address)
            node = sysfs.number(device / "numa_node")
            cpus = sysfs.cpus(device / "local_cpulist")
            found[address] = PciPlace(address, hosts[-1], bridges, None if node == -1 else node, cpus)
    return found


def path(a: PciPlace, b: PciPlace) -> str:
    """What lies between two functions, in the words of `nvidia-smi topo`.

    "PIX": one bridge or switch; "PXB": several, and no host bridge; "PHB": a host bridge; "NODE": host bridges of one NUMA node; "SYS":
    more than that, or nodes that the kernel does not tell.
    """
    if a.host_bridge != b.host_bridge:
        return "NODE" if a.numa_node is not None and a.numa_node == b.numa_node else "SYS"
    common = 0
    while common < min(len(a.bridges), len(b.bridges)) and a.bridges[common] == b.bridges[common]:
        common += 1
    if common == 0:
        return "PHB"
    # A switch is two bridges in a row: the port towards the host, which both have in common, and one port towards each function.
    return "PIX" if max(len(a.bridges), len(b.bridges)) - common <= 1 else "PXB"
