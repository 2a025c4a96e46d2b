"""A network card below a described root: its PCI function with a link, and a port that is up.

What the port says later is written over its files while a check runs.
"""

from __future__ import annotations

import os
from pathlib import Path

from selftest.fault import NetworkCard

_BUS = "pci9998:00"
_COUNTERS = (
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
)
_STATISTICS = ("rx_errors", "rx_length_errors", "tx_errors", "rx_crc_errors")


def lay(root: Path, number: int, card: NetworkCard) -> None:
    """Write the card below a described root; `number` tells cards apart."""
    bridge = root / "sys/devices" / (card.below or f"{_BUS}/9998:00:{number + 1:02x}.0")
    function = bridge / f"9998:{number + 1:02x}:00.0"
    port = _port(function, card)
    files: dict[Path, dict[str, str | int]] = {
        function: {
            "vendor": "0x15b3",
            "device": "0x1021",
            "numa_node": -1,
            "current_link_speed": "32.0 GT/s PCIe",
            "current_link_width": card.width,
            "max_link_speed": "32.0 GT/s PCIe",
            "max_link_width": 16,
        },
    }
    if not card.below:
        files[bridge] = {"max_link_speed": "32.0 GT/s PCIe", "max_link_width": 16}
    if "/" in card.name:
        files[port] = {
            "link_layer": "InfiniBand",
            "state": "4: ACTIVE",
            "phys_state": "5: LinkUp",
            "rate": f"{card.speed_mbps // 1000} Gb/sec (4X NDR)",
        }
        files[port / "counters"] = dict.fromkeys(_COUNTERS, 0)
        files[port.parent.parent] = {"node_guid": f"0011:2233:4455:66{number:02x}"}
    else:
        files[port] = {
            "operstate": "up",
            "carrier": 1,
            "carrier_changes": 2,
            "speed": card.speed_mbps,
            "type": 1,
            "address": f"b8:00:00:00:00:{number:02x}",
        }
        files[port / "statistics"] = dict.fromkeys(_STATISTICS, 0)
    for place, texts in files.items():
        place.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (place / name).write_text(f"{text}\n", encoding="ascii")
    link(root, function / "subsystem", root / "sys/bus/pci")
    link(root, function / "driver", root / "sys/bus/pci/drivers/mlx5_core")
    link(root, root / "sys/bus/pci/devices" / function.name, function)
    named = port.parent.parent if "/" in card.name else port
    kind = "infiniband" if "/" in card.name else "net"
    link(root, named / "device", function)
    link(root, root / "sys/class" / kind / named.name, named)


def change(root: Path, card: NetworkCard) -> None:
    """What the port says from now on."""
    device, _, number = card.name.partition("/")
    port = root / (
        f"sys/class/infiniband/{device}/ports/{number}" if number else f"sys/class/net/{device}"
    )
    for name, text in card.then.items():
        (port / name).write_text(f"{text}\n", encoding="ascii")


def _first(card: NetworkCard) -> Path:
    """The folder of the port's device below its PCI function."""
    device, port, _ = card.name.partition("/")
    return Path("infiniband" if port else "net") / device


def _port(function: Path, card: NetworkCard) -> Path:
    _, port, number = card.name.partition("/")
    device = function / _first(card)
    return device / "ports" / number if port else device


def link(root: Path, place: Path, target: Path) -> None:
    """A relative symbolic link, as sysfs has them, both below the root."""
    assert place.is_relative_to(root)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(os.path.relpath(target, place.parent))
