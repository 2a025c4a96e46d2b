"""Network links: hardware Ethernet and wireless interfaces, and InfiniBand ports.

Formats of sysfs: Documentation/ABI/stable/sysfs-class-infiniband, testing/sysfs-class-net and
testing/sysfs-class-net-statistics of the kernel, and drivers/infiniband/core/sysfs.c.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from acceptance.core.message import english
from acceptance.machine.inventory import NetworkLink
from acceptance.observe import pci, sysfs

_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_RATE = re.compile(r"(\d+(?:\.\d+)?) Gb/sec\b.*")
_VIRTUAL_DRIVERS = frozenset(
    {"virtio_net", "hv_netvsc", "netvsc", "vmxnet3", "xen_netfront", "vif", "xen-netfront"}
)
_NO_SPEED = frozenset({-1, 0, 0xFFFF, 0xFFFFFFFF})  # values that kernels use for "not known"
_INFINIBAND_TYPE = 32  # ARPHRD_INFINIBAND, linux/if_arp.h
# RFC 2863 states, as sysfs-class-net lists them.
_OPERSTATES = frozenset(
    {"unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up"}
)
_LINK_LAYERS = frozenset({"InfiniBand", "Ethernet", "Unknown"})
_STATES = frozenset({"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER", "UNKNOWN"})
_NUMBERED = re.compile(r"\d+: (\S.*)")
_STATISTICS = ("rx_errors", "rx_length_errors", "tx_errors", "rx_crc_errors")
_PORT_COUNTERS = (
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
)
_NO_COUNTER = "N/A (no PMA)"  # the device has no performance management


def read(root: Path = Path("/")) -> tuple[NetworkLink, ...]:
    """Every link of a hardware device, by name.

    Loopback, bridges, bonds and tunnels are left out. An Ethernet port of an RDMA device (RoCE)
    is part of its interface. Raises SysfsError for a file with an unknown value.
    """
    net = root / "sys/class/net"
    found = {
        entry.name: _interface(entry) for entry in sysfs.entries(net) if (entry / "device").exists()
    }
    # The interface of an RDMA port, by PCI function and number, which `dev_port` counts from 0.
    numbered = {
        (link.pci_address, str(1 + (sysfs.number(net / name / "dev_port") or 0))): name
        for name, link in found.items()
        if link.kind == "ethernet"
    }
    ports = []
    for device in sysfs.entries(root / "sys/class/infiniband"):
        for port in sysfs.entries(device / "ports"):
            layer = sysfs.text(port / "link_layer")
            if layer is not None and layer not in _LINK_LAYERS:
                raise sysfs.unexpected(
                    english(
                        "no_link_layer_in_file",
                        "{path} holds {value}, which is not a link layer: the driver, the kernel "
                        "or rigproof is at fault: please report it",
                    ),
                    port / "link_layer",
                    layer,
                )
            if layer == "InfiniBand":
                ports.append(_port(port))
            place = _pci_address(device / "device"), port.name
            if layer == "Ethernet" and place in numbered:
                name = numbered[place]
                found[name] = _with_rdma(found[name], port)
    return (*found.values(), *ports)


def _interface(entry: Path) -> NetworkLink:
    driver = sysfs.target(entry / "device/driver")
    state = sysfs.text(entry / "operstate")
    if state is not None and state not in _OPERSTATES:
        raise sysfs.unexpected(
            english(
                "no_operstate_in_file",
                "{path} holds {value}, which is not a state of a network interface: the driver, "
                "the kernel or rigproof is at fault: please report it",
            ),
            entry / "operstate",
            state,
        )
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
        state=state,
    )
    link = _connected(link, entry / "device")
    # Counters of other devices, which come and go, are not read.
    if link.bus != "pci" or link.virtual:
        return link
    files = {name: entry / "statistics" / name for name in _STATISTICS}
    return replace(
        link, counters=_counters({**files, "carrier_changes": entry / "carrier_changes"})
    )


def _counters(files: Mapping[str, Path]) -> dict[str, int]:
    """The counters that the kernel offers among these files."""
    found = {}
    for name, path in files.items():
        if sysfs.text(path) != _NO_COUNTER and (value := sysfs.number(path)) is not None:
            if value < 0:
                raise sysfs.unexpected(
                    english(
                        "no_number_in_file",
                        "{path} holds {value}, which is not a number: the driver, the kernel or "
                        "rigproof is at fault: please report it",
                    ),
                    path,
                    str(value),
                )
            found[name] = value
    return found


def _connected(link: NetworkLink, device: Path) -> NetworkLink:
    """The link with the connection of its device.

    Only a device on the PCI bus itself has a PCIe link: for any other it would be a controller's.
    """
    bus = sysfs.target(device / "subsystem")
    link = replace(link, bus=bus, is_virtual_function=(device / "physfn").exists())
    if bus != "pci":
        return link
    slot = device.resolve().parent  # the bridge above; a root complex has no link files
    vendor, number = sysfs.number(device / "vendor"), sysfs.number(device / "device")
    return replace(
        link,
        device_id=None if vendor is None or number is None else f"{vendor:04x}:{number:04x}",
        pcie_speed_gts=pci.speed(device / "current_link_speed"),
        pcie_width=pci.width(device / "current_link_width"),
        max_pcie_speed_gts=pci.speed(device / "max_link_speed"),
        max_pcie_width=pci.width(device / "max_link_width"),
        slot_max_pcie_speed_gts=pci.speed(slot / "max_link_speed"),
        slot_max_pcie_width=pci.width(slot / "max_link_width"),
    )


def _kind(entry: Path) -> str:
    if (entry / "wireless").exists() or (entry / "phy80211").exists():
        return "wireless"
    return "infiniband" if sysfs.number(entry / "type") == _INFINIBAND_TYPE else "ethernet"


def _port(port: Path) -> NetworkLink:
    device = port.parent.parent
    state = _numbered(port / "state")
    if state is not None and state not in _STATES:
        raise sysfs.unexpected(
            english(
                "no_port_state_in_file",
                "{path} holds {value}, which is not a state of an InfiniBand port: the driver, "
                "the kernel or rigproof is at fault: please report it",
            ),
            port / "state",
            state,
        )
    up = state in ("ACTIVE", "ACTIVE_DEFER")
    match = sysfs.matched(
        english(
            "no_rate_in_file",
            "{path} holds {value}, which is not a rate: the driver, the kernel or rigproof is at "
            "fault: please report it",
        ),
        port / "rate",
        _RATE,
    )
    link = NetworkLink(
        name=f"{device.name}/{port.name}",
        kind="infiniband",
        driver=sysfs.target(device / "device/driver"),
        speed_mbps=round(float(match[1]) * 1000) if up and match else None,
        mac=None,
        up=up,
        virtual=False,
        pci_address=_pci_address(device / "device"),
        guid=sysfs.text(device / "node_guid"),
        state=state,
        phys_state=_numbered(port / "phys_state"),
        counters=_port_counters(port),
    )
    return _connected(link, device / "device")


def _with_rdma(link: NetworkLink, port: Path) -> NetworkLink:
    """An Ethernet interface with what its RDMA port adds."""
    return replace(
        link,
        rdma=f"{port.parent.parent.name}/{port.name}",
        guid=sysfs.text(port.parent.parent / "node_guid"),
        counters={**link.counters, **_port_counters(port)},
    )


def _port_counters(port: Path) -> dict[str, int]:
    return _counters({name: port / "counters" / name for name in _PORT_COUNTERS})


def _numbered(path: Path) -> str | None:
    """The word of a state that is written with its number: "4: ACTIVE"."""
    match = sysfs.matched("no_port_state_in_file", path, _NUMBERED)
    return None if match is None else match[1]


def _pci_address(device: Path) -> str | None:
    """The nearest PCI function above a device: a virtio or USB device has its own node below it."""
    parts = [part for part in device.resolve().parts if _ADDRESS.fullmatch(part)]
    return parts[-1] if parts else None
