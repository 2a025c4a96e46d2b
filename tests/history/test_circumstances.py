"""What two runs may not have in common, taken from whatever a journal holds."""

from __future__ import annotations

from typing import Any

from cases import each

from acceptance.baseline.facts import circumstances
from acceptance.core.parts import CPU, ITSELF, MEMORY, Gpu, Part
from acceptance.machine.observation import decode

INVENTORY: dict[str, Any] = {
    "cpu": {"model": "EPYC", "sockets": 2, "cores": None},
    "memory": {"total_bytes": 64 << 30, "dimms": [{"slot": "A1", "size_bytes": 1, "kind": None}]},
    "disks": [{"name": "sda", "model": "SSD", "firmware": "1.0"}],
    "links": [{"name": "eth0", "speed_mbps": 10000, "driver": "mlx5"}],
    "board": {"bios_version": "F2", "nvidia_driver": "580"},
    "pci": [{"address": "0000:01:00.0", "is_display": True, "is_virtual_function": False}],
    "nvml": {"devices": [
        {"pci_address": "0000:01:00.0", "name": "H200", "vbios": "96",
         "traits": {"ecc_enabled": True, "mig_enabled": False, "power_limit_w": 700.0}},
        {"pci_address": "0000:02:00.0", "vbios": "97"},
    ]},
}  # fmt: skip


def test_facts_by_component() -> None:
    assert circumstances(
        {"kernel": "6.12", "host": "box", "boot_id": "1"}, decode(INVENTORY), profile="smoke"
    ) == {
        (ITSELF, "profile"): "smoke",
        (ITSELF, "kernel"): "6.12",
        (ITSELF, "bios_version"): "F2",
        (ITSELF, "nvidia_driver"): "580",
        (CPU, "model"): "EPYC",
        (CPU, "sockets"): "2",
        (MEMORY, "GiB"): "64",
        (Part("dimm", "A1"), "size_bytes"): "1",
        (Part("disk", "sda"), "model"): "SSD",
        (Part("disk", "sda"), "firmware"): "1.0",
        (Part("net", "eth0"), "speed_mbps"): "10000",
        (Part("net", "eth0"), "driver"): "mlx5",
        (Gpu(0), "name"): "H200",
        (Gpu(0), "pci_address"): "0000:01:00.0",
        (Gpu(0), "vbios"): "96",
        (Gpu(0), "power_limit_w"): "700.0",
        (Gpu(0), "ecc_enabled"): "on",
        (Gpu(0), "mig_enabled"): "off",
    }


@each(
    "inventory",
    [
        {},
        {"cpu": None, "memory": {"dimms": None}, "nvml": None},
        {"disks": ["sda"], "board": 3, "links": {}},
    ],
    told=["nothing", "nothing known", "another shape"],
)
def test_what_an_inventory_does_not_hold_is_absent(inventory: dict[str, Any]) -> None:
    assert circumstances({}, decode(inventory)) == {}


def test_all_that_may_explain_a_difference_is_a_fact_and_nothing_else() -> None:
    """A second book of the names: one that is left out of the first is missed
    in every comparison.
    """
    board = dict.fromkeys(
        ("vendor", "name", "bios_version", "kernel", "os", "nvidia_driver", "date"), "x"
    )
    cpu = dict.fromkeys(("model", "governor", "flags"), "x")
    cpu |= dict.fromkeys(("sockets", "cores", "threads"), 1)
    gpu = dict.fromkeys(("name", "pci_address", "vbios", "temperature"), "x")
    traits = dict.fromkeys(("ecc_enabled", "mig_enabled", "persistence"), True)
    traits |= {"power_limit_w": 1.0, "compute_mode": "x", "fan": "x"}
    disk = {"name": "sda", "model": "x", "size_bytes": 1, "firmware": "x", "used": "x"}
    dimm = {"slot": "A1", "size_bytes": 1, "kind": "x", "configured_mts": 1, "part_number": "x"}
    dimm["rank"] = 1
    found = circumstances(
        {"host": "x", "boot_id": "x", "selftest": "x", "rigproof": "x"},
        decode(
            {
                "board": board,
                "cpu": cpu,
                "memory": {"dimms": [dimm]},
                "disks": [disk],
                "pci": [{"address": "x", "is_display": True}],
                "nvml": {"devices": [{"uuid": "U", "traits": traits, **gpu}]},
            }
        ),
    )
    names: dict[str, list[str]] = {}
    for component, name in sorted(found):
        names.setdefault(component, []).append(name)
    assert names == {
        ITSELF: ["bios_version", "kernel", "name", "nvidia_driver", "os", "rigproof", "vendor"],
        CPU: ["cores", "governor", "model", "sockets", "threads"],
        Part("dimm", "A1"): ["configured_mts", "kind", "part_number", "size_bytes"],
        Part("disk", "sda"): ["firmware", "model", "size_bytes"],
        Gpu(0): [
            *(
                "compute_mode",
                "ecc_enabled",
                "mig_enabled",
                "name",
                "pci_address",
                "persistence",
                "power_limit_w",
            ),
            "vbios",
        ],
    }
