"""What the machines of the sample runs show of themselves: their GPUs as the self-test has them,
and all that a real one has besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import synthetic_machines

from acceptance.machine.inventory import Dimm, Disk, Inventory, NetworkLink, PciPlace
from selftest import drawn_runs


def inventory(machine: drawn_runs.Machine, dead_links: Mapping[str, tuple[int, ...]]) -> Inventory:
    """What such a machine shows; `dead_links` are those NVLinks of a GPU that are not active."""
    box = machine.box
    seen = synthetic_machines.inventory(box)
    if machine.board and box.count > 2:
        seen = drawn_runs._switched(seen)
    big = box.count > 2
    devices = tuple(
        replace(
            device,
            serial=f"16537{device.index:02d}51203" if machine.board else None,
            vbios="96.00.A5.00.1A" if machine.board else "95.02.3C.40.B8",
            traits=replace(
                device.traits,
                power_limit_w=700.0 if machine.board else 450.0,
                numa_node=device.index // 4,
            ),
            links=tuple(
                replace(link, active=False, speed_gbs=None, remote_address=None)
                if link.link in dead_links.get(f"gpu{device.index}", ())
                else link
                for link in device.links
            ),
        )
        for device in seen.nvml.devices
        if device.traits is not None
    )
    ways = tuple(
        replace(pair, path="SYS" if pair.a // 4 != pair.b // 4 else pair.path)
        for pair in seen.nvml.pairs
    )
    cards = tuple(_network(box.count))
    functions = tuple(
        replace(function, slot=f"PCIEX16_{place + 1}" if not big else f"OAM {place}")
        for place, function in enumerate(seen.pci)
    )
    return replace(
        seen,
        pci=functions,
        cpu=replace(
            seen.cpu,
            model="INTEL(R) XEON(R) PLATINUM 8558"
            if big
            else "AMD Ryzen 9 7950X 16-Core Processor",
            sockets=2 if big else 1,
            cores=96 if big else 16,
            threads=192 if big else 32,
        ),
        memory=replace(
            seen.memory,
            total_bytes=(1024 if big else 128) << 30,
            dimms=tuple(_dimm(slot) for slot in range(32 if big else 4)),
            dimms_unread=None,
        ),
        disks=(
            Disk(
                "nvme0n1",
                "Samsung SSD 990 PRO 4TB",
                "S7KGNU0X",
                4_000_787_030_016,
                "nvme",
                "nvme",
                "4B2QJXD7",
            ),
        ),
        links=cards,
        nvml=replace(seen.nvml, devices=devices, pairs=ways),
        board=replace(
            seen.board,
            vendor="Supermicro" if big else "ASUSTeK COMPUTER INC.",
            name="X13DEG-OAD" if big else "ProArt X670E-CREATOR WIFI",
            bios_version="2.4",
            kernel="6.8.0-48-generic",
            os="Ubuntu 24.04.3 LTS",
        ),
        places=_places(seen, cards, big),
    )


def _dimm(slot: int) -> Dimm:
    name = f"P{slot // 16 + 1}-DIMM{'ABCDEFGH'[slot // 2 % 8]}{slot % 2 + 1}"
    return Dimm(
        name, 32 << 30, "DDR5", 5600, 5600, "Micron", "MTC40F2046S1RC56BD1", None, 64, 80, None
    )


def _network(gpus: int) -> Iterator[NetworkLink]:
    yield NetworkLink(
        "enp5s0", "ethernet", "ixgbe", 10_000, "02:00:00:00:00:01", True, False, "0000:f0:00.0"
    )
    if gpus > 2:
        for port in range(4):
            address = f"0000:{0xA0 + port:02x}:00.0"
            speed = 400_000 if port != 3 else None
            yield NetworkLink(
                f"mlx5_{port}/1", "infiniband", "mlx5_core", speed, None, port != 3, False, address
            )


def _places(seen: Inventory, cards: Sequence[NetworkLink], big: bool) -> dict[str, PciPlace]:
    """Two GPUs and a network card on a switch where there are many; else each
    on a port of its own.
    """
    found = {}
    for index, device in enumerate(seen.nvml.devices):
        address, node = str(device.pci_address), index // 4
        host, bridges = (
            _switch(index // 2, index % 2) if big else ("pci0000:00", (f"0000:00:0{index + 1}.1",))
        )
        near = tuple(range(48 * node, 48 * node + 48)) if big else tuple(range(32))
        found[address] = PciPlace(address, host, bridges, node, near)
    for port, link in enumerate(cards):
        address = str(link.pci_address)
        host, bridges = _switch(port - 1, 4) if port else ("pci0000:00", ("0000:00:1c.0",))
        found[address] = PciPlace(address, host, bridges, max(0, port - 1) // 2, None)
    return found


def _switch(number: int, port: int) -> tuple[str, tuple[str, ...]]:
    """A host bridge, and the bridges below it up to a port of its switch."""
    bus = 0x10 * (number + 1)
    return f"pci0000:{bus:02x}", (
        f"0000:{bus:02x}:01.0",
        f"0000:{bus + 1:02x}:00.0",
        f"0000:{bus + 2:02x}:0{port}.0",
    )
