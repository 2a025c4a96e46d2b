from __future__ import annotations

from pathlib import Path

import pytest
from machine_tree import Tree

from acceptance.machine.inventory import NetworkLink
from acceptance.observe import network as observe_network
from acceptance.observe.sysfs import SysfsError


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


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
        ),
    )


def test_a_link_that_is_down_has_no_speed(tree: Tree) -> None:
    tree.nic("enp5s0", operstate="down", speed=-1)
    (link,) = observe_network.read(tree.root)
    assert (link.up, link.speed_mbps) == (False, None)


@pytest.mark.parametrize("speed", [-1, 0, 65535, 4294967295])
def test_ways_of_not_knowing_the_speed(tree: Tree, speed: int) -> None:
    tree.nic("eth0", driver="virtio_net", speed=speed)
    (link,) = observe_network.read(tree.root)
    assert (link.up, link.speed_mbps, link.virtual) == (True, None, True)


def test_an_unknown_state_is_decided_by_the_carrier(tree: Tree) -> None:
    tree.nic("eth0", operstate="unknown", carrier=1)
    tree.nic("eth1", operstate="unknown", carrier=0)
    assert [link.up for link in observe_network.read(tree.root)] == [True, False]


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
        ),
    )


def test_a_rate_that_is_none_is_refused(tree: Tree) -> None:
    infiniband(tree, 1, link_layer="InfiniBand", state="4: ACTIVE", rate="quick")
    with pytest.raises(SysfsError, match="not a rate"):
        observe_network.read(tree.root)


def test_how_a_card_is_connected(tree: Tree) -> None:
    tree.nic("enp5s0")
    device = tree.root / "sys/class/net/enp5s0/device"
    tree.link("sys/class/net/enp5s0/device/subsystem", "sys/bus/pci")
    (device / "current_link_speed").write_text("8.0 GT/s PCIe\n")
    (device / "current_link_width").write_text("8\n")
    (link,) = observe_network.read(tree.root)
    assert (link.bus, link.is_virtual_function, link.pcie_speed_gts, link.pcie_width) == (
        "pci",
        False,
        8.0,
        8,
    )
    tree.link("sys/class/net/enp5s0/device/physfn", "sys/devices/pci0000:00/0000:00:01.0")
    assert observe_network.read(tree.root)[0].is_virtual_function


def test_a_card_behind_a_controller_has_no_pcie_link_of_its_own(tree: Tree) -> None:
    tree.nic("enx0")
    device = tree.root / "sys/class/net/enx0/device"
    tree.link("sys/class/net/enx0/device/subsystem", "sys/bus/usb")
    (device / "current_link_speed").write_text("8.0 GT/s PCIe\n")
    (link,) = observe_network.read(tree.root)
    assert (link.bus, link.pcie_speed_gts, link.pcie_width) == ("usb", None, None)
