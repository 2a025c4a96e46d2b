from __future__ import annotations

from pathlib import Path

from cases import each
from machine_tree import Tree

from acceptance.machine import topology
from acceptance.machine.inventory import PciPlace
from acceptance.observe import pci


def place(host: str, *bridges: str, node: int | None = 0) -> PciPlace:
    return PciPlace("0000:ff:00.0", host, bridges, node, None)


def test_places(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    switch = "sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0/0000:42:04.0/0000:45:00.0"
    tree.files(switch, numa_node=1, local_cpulist="8-10,24")
    tree.link("sys/bus/pci/devices/0000:45:00.0", switch)
    tree.files("sys/devices/pci0000:00/0000:00:06.0", numa_node=-1)
    tree.link("sys/bus/pci/devices/0000:00:06.0", "sys/devices/pci0000:00/0000:00:06.0")
    tree.link("sys/bus/pci/devices/0000:77:00.0", "sys/devices/platform/strange/0000:77:00.0")
    assert pci.places(
        tmp_path, ["0000:45:00.0", "0000:00:06.0", "0000:77:00.0", "0000:99:00.0"]
    ) == {
        "0000:45:00.0": PciPlace(
            "0000:45:00.0",
            "pci0000:40",
            ("0000:40:01.1", "0000:41:00.0", "0000:42:04.0"),
            1,
            (8, 9, 10, 24),
        ),
        "0000:00:06.0": PciPlace("0000:00:06.0", "pci0000:00", (), None, None),
    }


def test_a_domain_of_its_own_below_another_bridge(tmp_path: Path) -> None:
    # Intel's volume management device shows what is behind it as a host bridge of its own.
    tree = Tree(tmp_path)
    device = "sys/devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/10000:e1:00.0"
    tree.link("sys/bus/pci/devices/10000:e1:00.0", device)
    found = pci.places(tmp_path, ["10000:e1:00.0"])["10000:e1:00.0"]
    assert (found.host_bridge, found.bridges) == ("pci10000:e0", ("10000:e0:06.0",))


@each(
    "a, b, path",
    [
        (place("A", "port", "up", "d1"), place("A", "port", "up", "d2"), "PIX"),  # one switch
        (place("A", "port"), place("A", "port"), "PIX"),  # two functions behind one port
        (
            place("A", "port", "up", "d1", "up2", "e1"),
            place("A", "port", "up", "d2"),
            "PXB",
        ),  # two switches in a row
        (place("A", "port1"), place("A", "port2"), "PHB"),
        (place("A"), place("A"), "PHB"),  # a virtual machine's flat bus
        (place("A", "port1"), place("B", "port2"), "NODE"),
        (place("A", node=None), place("B", node=None), "SYS"),
        (place("A", "port1"), place("B", "port2", node=1), "SYS"),
        (place("A", node=None), place("B", node=0), "SYS"),
    ],
)
def test_paths(a: PciPlace, b: PciPlace, path: str) -> None:
    assert (topology.path(a, b), topology.path(b, a)) == (path, path)
