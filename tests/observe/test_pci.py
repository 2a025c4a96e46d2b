from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from cases import each
from machine_tree import Tree

from acceptance.machine import inventory
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
    with pytest.raises(SysfsError, match=file):
        pci.read(tree.root)


def test_numa_node_and_a_part_cut_out_by_sr_iov(tree: Tree) -> None:
    address = tree.gpu(1)
    tree.write(f"sys/bus/pci/devices/{address}/numa_node", "1\n")
    tree.link(f"sys/bus/pci/devices/{address}/physfn", "sys/devices/pci0000:00/0000:00:02.0")
    (seen,) = pci.read(tree.root)
    assert (seen.numa_node, seen.is_virtual_function) == (1, True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen.address = "0000:02:00.0"  # type: ignore[misc]
