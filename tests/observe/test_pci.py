from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from machine_tree import Tree
from refusal import assert_raises

from acceptance.machine import inventory, topology
from acceptance.machine.inventory import PciPlace
from acceptance.observe import pci
from acceptance.observe.sysfs import SysfsError


def test_no_bus_shows_nothing(tree: Tree) -> None:
    assert pci.read(tree.root) == ()


def test_a_healthy_idle_card(tree: Tree) -> None:
    address = tree.gpu(1)
    (seen,) = pci.read(tree.root)
    assert seen == inventory.PciFunction(
        address=address,
        device_id="10de:2684",
        class_code="030000",
        is_display=True,
        is_virtual_function=False,
        driver="nvidia",
        answers=True,
        revision="a1",
        link_speed_gts=2.5,
        link_width=16,
        max_link_speed_gts=16.0,
        max_link_width=16,
        slot_max_link_speed_gts=32.0,
        slot_max_link_width=16,
        numa_node=None,
    )


def test_the_slot_is_told_where_somebody_knows_it(tree: Tree) -> None:
    for bus in (0x01, 0x41):
        tree.gpu(bus)
    tree.write("sys/bus/pci/slots/PCIEX16_1/address", "0000:01:00\n")
    assert [function.slot for function in pci.read(tree.root)] == ["PCIEX16_1", None]


def test_functions_come_in_address_order_and_other_makers_are_left_out(tree: Tree) -> None:
    for bus in (0xC1, 0x01, 0x41):
        tree.gpu(bus)
        tree.gpu(bus, function=1, class_code="0x040300", device="0x22ba")
    tree.write("sys/bus/pci/devices/0000:00:00.0/vendor", "0x8086\n")
    seen = pci.read(tree.root)
    assert [(function.address, function.is_display) for function in seen] == [
        ("0000:01:00.0", True),
        ("0000:01:00.1", False),
        ("0000:41:00.0", True),
        ("0000:41:00.1", False),
        ("0000:c1:00.0", True),
        ("0000:c1:00.1", False),
    ]
    assert pci.order("10000:01:00.0") > pci.order("0000:c1:00.0")


def test_a_card_that_has_fallen_off_the_bus(tree: Tree) -> None:
    address = tree.gpu(1, dead=True)
    (seen,) = pci.read(tree.root)
    assert (seen.answers, seen.link_speed_gts, seen.link_width) == (False, None, None)
    tree.write(f"sys/bus/pci/devices/{address}/config", b"\xde\x10")
    tree.write(f"sys/bus/pci/devices/{address}/revision", "0xff\n")
    assert pci.read(tree.root)[0].answers is False


def test_a_configuration_space_that_cannot_be_read_is_no_answer(tree: Tree) -> None:
    address = tree.gpu(1)
    (tree.root / f"sys/bus/pci/devices/{address}/config").unlink()
    (tree.root / f"sys/bus/pci/devices/{address}/revision").unlink()
    (seen,) = pci.read(tree.root)
    assert seen.answers is None
    assert seen.revision is None


@each(
    "file, text, read",
    [
        ("current_link_speed", "16.0 GT/s PCIe", (16.0, 16)),
        ("current_link_speed", "8 GT/s", (8.0, 16)),
        ("current_link_speed", "2.5 GT/s", (2.5, 16)),
        ("current_link_speed", "Unknown", (None, 16)),
        ("current_link_speed", "Unknown speed", (None, 16)),
        ("current_link_speed", "", (None, 16)),
        ("current_link_width", "16", (2.5, 16)),
        ("current_link_width", "x8", (2.5, 8)),
        ("current_link_width", "0", (2.5, None)),
        ("current_link_width", "255", (2.5, None)),
        ("current_link_width", "63", (2.5, None)),
        ("current_link_width", "Unknown", (2.5, None)),
        ("current_link_width", "", (2.5, None)),
    ],
)
def test_spellings_of_a_speed_and_a_width(
    tmp_path: Path, file: str, text: str, read: tuple[float | None, int | None]
) -> None:
    tree = Tree(tmp_path)
    tree.write(f"sys/bus/pci/devices/{tree.gpu(1)}/{file}", text)
    (seen,) = pci.read(tmp_path)
    assert (seen.link_speed_gts, seen.link_width) == read


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("current_link_speed", "fast"),
        ("current_link_width", "7"),
        ("max_link_width", "wide"),
        ("device", ""),
    ],
)
def test_what_is_not_known_is_refused(tree: Tree, file: str, text: str) -> None:
    address = tree.gpu(1)
    tree.write(f"sys/bus/pci/devices/{address}/{file}", text)
    assert_raises(SysfsError, pci.read, tree.root, match=file)


def test_numa_node_and_a_part_cut_out_by_sr_iov(tree: Tree) -> None:
    address = tree.gpu(1)
    tree.write(f"sys/bus/pci/devices/{address}/numa_node", "1\n")
    tree.link(f"sys/bus/pci/devices/{address}/physfn", "sys/devices/pci0000:00/0000:00:02.0")
    (seen,) = pci.read(tree.root)
    assert (seen.numa_node, seen.is_virtual_function) == (1, True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen.address = "0000:02:00.0"  # type: ignore[misc]


def structure(
    name: str = "PCIEX16_1",
    bus: int = 0x01,
    function: int = 0,
    segment: int = 0,
    *,
    number: int = 1,
    length: int = 0x11,
) -> bytes:
    """A System Slots structure as /sys/firmware/dmi shows it."""
    head = bytes([9, length, 0x24, 0, number, 0xB6, 0x0D, 4, 4, 1, 0, 0x0C, 1])
    formatted = (
        head + segment.to_bytes(2, "little") + bytes([bus, function]) + bytes(max(0, length - 0x11))
    )
    return formatted + name.encode() + b"\0\0"


@each(
    "raw, found",
    [
        (structure(), ("0000:01:00.0", "PCIEX16_1")),
        (
            structure("CPU SLOT7 PCI-E 5.0 X16", 0xC1, 0),
            ("0000:c1:00.0", "CPU SLOT7 PCI-E 5.0 X16"),
        ),
        (structure(bus=0, function=0b00001_010), ("0000:00:01.2", "PCIEX16_1")),
        (structure(segment=0x10), ("0010:01:00.0", "PCIEX16_1")),
        (structure(length=0x18), ("0000:01:00.0", "PCIEX16_1")),
        (structure("A\0B", number=2), ("0000:01:00.0", "B")),
        (structure(" J6B2 "), ("0000:01:00.0", "J6B2")),
        (structure(bus=0xFF, function=0xFF), None),
        (structure(number=0), None),
        (structure(number=9), None),
        (structure(""), None),
        (structure(length=0x0D), None),
        (b"", None),
        (structure()[:0x11], None),
        (bytes([17]) + structure()[1:], None),
        (structure()[:1] + b"\xff" + structure()[2:], None),
    ],
)
def test_a_structure(raw: bytes, found: tuple[str, str] | None) -> None:
    assert pci.parse_slots(raw) == found


@given(st.binary(max_size=80))
def test_no_bytes_are_too_much(raw: bytes) -> None:
    for given_raw in (raw, b"\x09" + raw, structure()[:17] + raw):
        found = pci.parse_slots(given_raw)
        assert found is None or all(found)


def test_the_firmwares_name_goes_before_the_kernels(tmp_path: Path) -> None:
    for name, address in (("1", "0000:01:00"), ("7", "0000:41"), ("9", "")):
        (tmp_path / "sys/bus/pci/slots" / name).mkdir(parents=True)
        (tmp_path / "sys/bus/pci/slots" / name / "address").write_text(f"{address}\n")
    tables = {
        "9-0": structure(),
        "9-1": structure("PCIEX16_2", 0, 0b00001_001),
        "17-0": structure("no slot", 5),
        "9-2": b"",
    }
    for name, raw in tables.items():
        (tmp_path / "sys/firmware/dmi/entries" / name).mkdir(parents=True)
        (tmp_path / "sys/firmware/dmi/entries" / name / "raw").write_bytes(raw)
    named = pci.read_slots(tmp_path)
    assert pci.slot_of("0000:01:00.0", "0000:00:01.0", named) == "PCIEX16_1"
    assert pci.slot_of("0000:01:00.1", "0000:00:01.0", named) == "PCIEX16_1", (
        "the card's other function"
    )
    assert pci.slot_of("0000:21:00.0", "0000:00:01.1", named) == "PCIEX16_2", (
        "told of the port above"
    )
    assert pci.slot_of("0000:41:00.0", "0000:00:01.3", named) == "7"
    assert pci.slot_of("0000:05:00.0", "0000:00:01.4", named) is None


def test_a_machine_that_shows_neither(tmp_path: Path) -> None:
    assert pci.read_slots(tmp_path) == {}


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
