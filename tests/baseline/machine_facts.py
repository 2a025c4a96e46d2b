"""A machine as two runs find it, for tests: plain data as a journal holds it,
and the run that told it.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import journals
import msgspec
from known import known

from acceptance.baseline import changes, facts
from acceptance.baseline.changes import MachineChange
from acceptance.core.evidence import Observed
from acceptance.core.machine_facts import MachineFacts
from acceptance.core.parts import Gpu
from acceptance.core.record import Entry, Measured

BOOK = changes.read(Path(__file__).resolve().parents[2] / "fixtures" / "changes.toml")
DAY = "2026-01-01"  # of the journals of `journals`


def gpu(number: int, **more: Any) -> dict[str, Any]:
    """What NVML tells of a GPU."""
    traits = {
        "cuda_cores": 16896,
        "max_link_gen_here": 5,
        "max_link_width_here": 16,
        "power_limit_w": 700.0,
        "mig_enabled": False,
        "persistence": True,
        "ecc_enabled": True,
        "compute_mode": "default",
    }
    return {
        "index": number,
        "uuid": f"GPU-{number}",
        "name": "NVIDIA H200",
        "pci_address": f"0000:{number + 1:02x}:00.0",
        "serial": f"16{number}",
        "vbios": "96.00",
        "memory_bytes": 150_000_000_000,
        "error": None,
        "traits": traits,
        "links": [{"link": 0, "active": True}, {"link": 1, "active": True}],
        **more,
    }


def function(number: int, slot: str | None = None) -> dict[str, Any]:
    """The same GPU on the PCI bus."""
    return {
        "address": f"0000:{number + 1:02x}:00.0",
        "is_display": True,
        "is_virtual_function": False,
        "slot": slot,
    }


def link(name: str = "eth0", **more: Any) -> dict[str, Any]:
    """A network link on a card of its own."""
    return {
        "name": name,
        "kind": "ethernet",
        "driver": "mlx5_core",
        "speed_mbps": 100_000,
        "mac": "b8:00:00:00:00:01",
        "up": True,
        "virtual": False,
        "pci_address": "0000:41:00.0",
        "bus": "pci",
        "is_virtual_function": False,
        "pcie_speed_gts": 16.0,
        "pcie_width": 16,
        **more,
    }


def disk(name: str = "nvme0n1", **more: Any) -> dict[str, Any]:
    """A disk of the machine's own."""
    return {
        "name": name,
        "model": "SSD",
        "serial": f"S-{name}",
        "size_bytes": 10**12,
        "kind": "nvme",
        "transport": "nvme",
        "firmware": "1.0",
        **more,
    }


def dimm(slot: str, **more: Any) -> dict[str, Any]:
    """A memory module."""
    return {
        "slot": slot,
        "size_bytes": 1 << 35,
        "kind": "DDR5",
        "configured_mts": 4800,
        "part_number": "HMCG",
        "serial": f"D-{slot}",
        **more,
    }


def machine(gpus: int = 2) -> dict[str, Any]:
    """A sound machine, to be changed by a test: every call gives another."""
    return copy.deepcopy(
        {
            "cpu": {
                "model": "EPYC",
                "sockets": 2,
                "cores": 128,
                "threads": 256,
                "governor": "performance",
            },
            "memory": {
                "total_bytes": 1 << 40,
                "ecc": "Multi-bit ECC",
                "dimms": [dimm("A1"), dimm("B1")],
            },
            "disks": [disk(), disk("nvme1n1")],
            "links": [link()],
            "pci": [function(number) for number in range(gpus)],
            "board": {
                "vendor": "Supermicro",
                "name": "X13",
                "serial": "B-1",
                "bios_version": "1.1",
                "kernel": "6.12",
                "os": "Debian 13",
                "nvidia_driver": "580.1",
            },
            "nvml": {"devices": [gpu(number) for number in range(gpus)]},
        }
    )


def run(inventory: dict[str, Any], **measured: float) -> list[Entry]:
    """A whole run of this machine; `measured` are values of gpu0 by measurement."""
    bodies = journals.bodies(journals.plan())
    bodies.insert(1, Observed(inventory))
    bodies += [
        Measured("watch.pcie_link", name, Gpu(0), "count", value)
        for name, value in measured.items()
    ]
    return journals.entries(bodies)


def born(inventory: dict[str, Any], **measured: float) -> MachineFacts:
    """What that run tells of the machine."""
    return known(facts.facts_of(run(inventory, **measured)))


def ruled(then: MachineFacts) -> MachineFacts:
    """A birth as a plan has it, with the rules that ship."""
    return msgspec.structs.replace(then, book=BOOK)


def brief(told: tuple[MachineChange, ...]) -> list[tuple[str, str, str | None]]:
    """Kind, event and component of each change."""
    return [(one.kind, one.event, one.component) for one in told]
