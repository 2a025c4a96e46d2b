"""Network links: hardware Ethernet and wireless interfaces, and InfiniBand ports."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from acceptance.machine.inventory import NetworkLink
from acceptance.observe import pci, sysfs

_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_RATE = re.compile(r"(\d+(?:\.\d+)?) Gb/sec\b.*")
_VIRTUAL_DRIVERS = frozenset(
    {"virtio_net", "hv_netvsc", "netvsc", "vmxnet3", "xen_netfront", "vif", "xen-netfront"}
)
_NO_SPEED = frozenset({-1, 0, 0xFFFF, 0xFFFFFFFF})  # values that kernels use for "not known"
_INFINIBAND_TYPE = 32  # ARPHRD_INFINIBAND, linux/if_arp.h


def read(root: Path = Path("/")) -> tuple[NetworkLink, ...]:
    """Every link of a hardware device, by name.

    Loopback, bridges, bonds and tunnels are left out.
    """
    interfaces = sysfs.entries(root / "sys/class/net")
    ports = [
        port
        for device in sysfs.entries(root / "sys/class/infiniband")
        for port in sysfs.entries(device / "ports")
        # an Ethernet port is already listed as an interface
        if sysfs.text(port / "link_layer") == "InfiniBand"
    ]
    return (
        *(_interface(entry) for entry in interfaces if (entry / "device").exists()),
        *map(_port, ports),
    )


def _interface(entry: Path) -> NetworkLink:
    driver = sysfs.target(entry / "device/driver")
    state = sysfs.text(entry / "operstate")
    up = state == "up" or (state in (None, "unknown") and sysfs.text(entry / "carrier") == "1")
    speed = sysfs.number(entry / "speed")
    link = NetworkLink(
        name=entry.name,
        kind=_kind(entry),
        driver=driver,
        speed_mbps=speed if up and speed is not None and speed not in _NO_SPEED else None,
        mac=sysfs.text(entry / "address"),
        up=up,
        virtual=driver in _VIRTUAL_DRIVERS,
        pci_address=_pci_address(entry / "device"),
    )
    return _connected(link, entry / "device")


def _connected(link: NetworkLink, device: Path) -> NetworkLink:
    """The link with the connection of its device.

    Only a device on the PCI bus itself has a PCIe link: for any other it would be a controller's.
    """
    bus = sysfs.target(device / "subsystem")
    own = bus == "pci"
    return replace(
        link,
        bus=bus,
        is_virtual_function=(device / "physfn").exists(),
        pcie_speed_gts=pci.speed(device / "current_link_speed") if own else None,
        pcie_width=pci.width(device / "current_link_width") if own else None,
    )


def _kind(entry: Path) -> str:
    if (entry / "wireless").exists() or (entry / "phy80211").exists():
        return "wireless"
    return "infiniband" if sysfs.number(entry / "type") == _INFINIBAND_TYPE else "ethernet"


def _port(port: Path) -> NetworkLink:
    device = port.parent.parent
    up = (sysfs.text(port / "state") or "").endswith("ACTIVE")
    rate = sysfs.text(port / "rate")
    match = _RATE.fullmatch(rate or "")
    if rate is not None and match is None:
        raise sysfs.unexpected("no_rate_in_file", port / "rate", rate)
    link = NetworkLink(
        name=f"{device.name}/{port.name}",
        kind="infiniband",
        driver=sysfs.target(device / "device/driver"),
        speed_mbps=round(float(match[1]) * 1000) if up and match else None,
        mac=None,
        up=up,
        virtual=False,
        pci_address=_pci_address(device / "device"),
    )
    return _connected(link, device / "device")


def _pci_address(device: Path) -> str | None:
    """The nearest PCI function above a device: a virtio or USB device has its own node below it."""
    parts = [part for part in device.resolve().parts if _ADDRESS.fullmatch(part)]
    return parts[-1] if parts else None
