"""PciPlace: the place of a function in the PCI tree, from sysfs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from acceptance.machine.inventory import PciPlace
from acceptance.observe import sysfs

_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_HOST_BRIDGE = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}")


def read(root: Path, addresses: Iterable[str]) -> dict[str, PciPlace]:
    """The places of these functions, by address.

    A function that sysfs does not show below a host bridge is absent. Raises SysfsError for a file
    with an unknown value.
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
            found[address] = PciPlace(
                address, hosts[-1], bridges, None if node == -1 else node, cpus
            )
    return found
