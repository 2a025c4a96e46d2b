from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cases import each
from machine_tree import Tree
from refusal import raised

from acceptance.machine.inventory import NetworkLink
from acceptance.observe import network as observe_network
from acceptance.observe.sysfs import SysfsError
from selftest import network_card
from selftest.fault import NetworkCard


def test_a_card_that_is_up(tree: Tree) -> None:
    tree.nic("enp5s0")
    tree.write("sys/class/net/lo/operstate", "unknown\n")
    assert observe_network.read(tree.root) == (
        NetworkLink(
            "enp5s0",
            "ethernet",
            "igc",
            2500,
            "aa:bb:cc:00:11:22",
            True,
            False,
            "0000:05:00.0",
            is_virtual_function=False,
            state="up",
        ),
    )


UNKNOWN = (-1, 0, 65535, 4294967295)


@each(
    "files, up, speed, virtual",
    [
        ({"operstate": "down", "speed": -1}, False, None, False),
        *(({"driver": "virtio_net", "speed": speed}, True, None, True) for speed in UNKNOWN),
        ({"operstate": "unknown", "carrier": 1}, True, 2500, False),
        ({"operstate": "unknown", "carrier": 0}, False, None, False),
    ],
)
def test_state_and_speed(
    tmp_path: Path, files: dict[str, Any], up: bool, speed: int | None, virtual: bool
) -> None:
    """A link that is down has no speed, the carrier decides an unknown state, and counters of
    virtual devices are not read.
    """
    tree = Tree(tmp_path)
    tree.nic("eth0", **files)
    tree.link("sys/class/net/eth0/device/subsystem", "sys/bus/pci")
    tree.files("sys/class/net/eth0/statistics", rx_errors=3)
    (link,) = observe_network.read(tree.root)
    assert (link.up, link.speed_mbps, link.virtual) == (up, speed, virtual)
    assert (link.counters == {}) == virtual


def test_wireless_and_ip_over_infiniband(tree: Tree) -> None:
    tree.nic("wlan0")
    (tree.root / "sys/class/net/wlan0/phy80211").mkdir()
    tree.nic("ib0", type=32)
    assert [(link.name, link.kind) for link in observe_network.read(tree.root)] == [
        ("ib0", "infiniband"),
        ("wlan0", "wireless"),
    ]


def test_a_device_off_the_pci_bus(tree: Tree) -> None:
    tree.link("sys/class/net/usb0/device", "sys/devices/platform/usb")
    tree.write("sys/class/net/usb0/operstate", "up\n")
    (link,) = observe_network.read(tree.root)
    assert (link.pci_address, link.driver, link.mac) == (None, None, None)


def infiniband(tree: Tree, port: int, **files: str) -> None:
    device = "sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0"
    if not (tree.root / "sys/class/infiniband/mlx5_0").exists():
        tree.link("sys/class/infiniband/mlx5_0", f"{device}/infiniband/mlx5_0")
        tree.link(f"{device}/infiniband/mlx5_0/device", device)
        tree.link(f"{device}/driver", "sys/bus/pci/drivers/mlx5_core")
    tree.files(f"{device}/infiniband/mlx5_0/ports/{port}", **files)


def test_infiniband_ports(tree: Tree) -> None:
    infiniband(tree, 1, link_layer="InfiniBand", state="4: ACTIVE", rate="400 Gb/sec (4X NDR)")
    infiniband(tree, 2, link_layer="InfiniBand", state="1: DOWN", rate="2.5 Gb/sec (1X SDR)")
    infiniband(tree, 3, link_layer="Ethernet", state="4: ACTIVE", rate="100 Gb/sec (4X EDR)")
    infiniband(tree, 4, link_layer="InfiniBand", state="4: ACTIVE")
    assert observe_network.read(tree.root) == (
        NetworkLink(
            "mlx5_0/1",
            "infiniband",
            "mlx5_core",
            400_000,
            None,
            True,
            False,
            "0000:81:00.0",
            is_virtual_function=False,
            state="ACTIVE",
        ),
        NetworkLink(
            "mlx5_0/2",
            "infiniband",
            "mlx5_core",
            None,
            None,
            False,
            False,
            "0000:81:00.0",
            is_virtual_function=False,
            state="DOWN",
        ),
        NetworkLink(
            "mlx5_0/4",
            "infiniband",
            "mlx5_core",
            None,
            None,
            True,
            False,
            "0000:81:00.0",
            is_virtual_function=False,
            state="ACTIVE",
        ),
    )


def test_a_rate_that_is_none_is_refused(tree: Tree) -> None:
    infiniband(tree, 1, link_layer="InfiniBand", state="4: ACTIVE", rate="quick")
    assert "not a rate" in raised(SysfsError, observe_network.read, tree.root)


def test_how_a_card_is_connected(tree: Tree) -> None:
    """A card behind a controller has no PCI Express link of its own."""
    for place, (name, bus) in enumerate((("enp5s0", "pci"), ("enx0", "usb")), 5):
        tree.nic(name, bus=place)
        device = f"sys/class/net/{name}/device"
        tree.link(f"{device}/subsystem", f"sys/bus/{bus}")
        tree.files(device, current_link_speed="8.0 GT/s PCIe", current_link_width=8)
    assert [
        (link.bus, link.is_virtual_function, link.pcie_speed_gts, link.pcie_width)
        for link in observe_network.read(tree.root)
    ] == [("pci", False, 8.0, 8), ("usb", False, None, None)]
    tree.link("sys/class/net/enp5s0/device/physfn", "sys/devices/pci0000:00/0000:00:01.0")
    assert observe_network.read(tree.root)[0].is_virtual_function


def test_a_card_with_its_link_and_counters(tree: Tree) -> None:
    network_card.lay(tree.root, 0, NetworkCard("ens7", width=8))
    assert observe_network.read(tree.root) == (
        NetworkLink(
            "ens7",
            "ethernet",
            "mlx5_core",
            400_000,
            "b8:00:00:00:00:00",
            True,
            False,
            "9998:01:00.0",
            bus="pci",
            is_virtual_function=False,
            pcie_speed_gts=32.0,
            pcie_width=8,
            max_pcie_speed_gts=32.0,
            max_pcie_width=16,
            slot_max_pcie_speed_gts=32.0,
            slot_max_pcie_width=16,
            device_id="15b3:1021",
            state="up",
            counters={
                "rx_errors": 0,
                "rx_length_errors": 0,
                "tx_errors": 0,
                "rx_crc_errors": 0,
                "carrier_changes": 2,
            },
        ),
    )


def test_an_infiniband_card(tree: Tree) -> None:
    card = NetworkCard("mlx7_0/1", then={"counters/symbol_error": "N/A (no PMA)"})
    network_card.lay(tree.root, 3, card)
    (link,) = observe_network.read(tree.root)
    assert (link.name, link.guid, link.state, link.phys_state, link.rdma) == (
        "mlx7_0/1",
        "0011:2233:4455:6603",
        "ACTIVE",
        "LinkUp",
        None,
    )
    assert set(link.counters) == {
        "symbol_error",
        "link_error_recovery",
        "link_downed",
        "port_rcv_errors",
        "port_rcv_remote_physical_errors",
        "local_link_integrity_errors",
        "excessive_buffer_overrun_errors",
    }
    network_card.change(tree.root, card)  # a device without performance management
    (link,) = observe_network.read(tree.root)
    assert "symbol_error" not in link.counters
    assert len(link.counters) == 6


def test_an_rdma_port_is_one_with_its_interface(tree: Tree) -> None:
    network_card.lay(tree.root, 0, NetworkCard("ens7"))
    function = "sys/devices/pci9998:00/9998:00:01.0/9998:01:00.0"
    device = f"{function}/infiniband/rocep1s0"
    tree.write(f"{device}/node_guid", "0011:2233:4455:6677\n")
    for number, downed in ((1, 4), (2, 9)):
        tree.files(f"{device}/ports/{number}", link_layer="Ethernet", state="4: ACTIVE")
        tree.files(f"{device}/ports/{number}/counters", link_downed=downed)
    tree.link(f"{device}/device", function)
    tree.link("sys/class/infiniband/rocep1s0", device)
    (link,) = observe_network.read(tree.root)
    assert (link.rdma, link.guid) == ("rocep1s0/1", "0011:2233:4455:6677")
    assert (link.counters["link_downed"], link.counters["carrier_changes"]) == (4, 2)
    tree.files("sys/class/net/ens7", dev_port=1)
    (link,) = observe_network.read(tree.root)
    assert (link.rdma, link.counters["link_downed"]) == ("rocep1s0/2", 9)


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("ens7", "operstate", "sideways"),
        ("ens7", "statistics/rx_errors", "many"),
        ("ens7", "statistics/rx_errors", "-1"),
        ("ens7", "carrier_changes", "2.5"),
        ("mlx7_0/1", "state", "ACTIVE"),
        ("mlx7_0/1", "state", "4: SLEEPY"),
        ("mlx7_0/1", "phys_state", "LinkUp"),
        ("mlx7_0/1", "link_layer", "Carrier pigeon"),
        ("mlx7_0/1", "counters/link_downed", "N/A"),
    ],
)
def test_what_is_not_understood_is_refused_by_its_file(
    tree: Tree, name: str, file: str, text: str
) -> None:
    card = NetworkCard(name, then={file: text})
    network_card.lay(tree.root, 0, card)
    network_card.change(tree.root, card)
    assert f"{file} holds '{text.rpartition(': ')[2]}'" in raised(
        SysfsError, observe_network.read, tree.root
    )
