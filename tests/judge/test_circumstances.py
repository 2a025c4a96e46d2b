"""What two runs may not have in common, taken from whatever a journal holds."""

from __future__ import annotations

from typing import Any

import pytest

from acceptance.judge.circumstances import circumstances

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
    assert circumstances({"kernel": "6.12", "host": "box", "boot_id": "1"}, INVENTORY, profile="smoke", scope=None) == {
        ("", "profile"): "smoke",
        ("", "kernel"): "6.12",
        ("", "bios_version"): "F2",
        ("", "nvidia_driver"): "580",
        ("cpu", "model"): "EPYC",
        ("cpu", "sockets"): "2",
        ("memory", "GiB"): "64",
        ("dimm:A1", "size_bytes"): "1",
        ("disk:sda", "model"): "SSD",
        ("disk:sda", "firmware"): "1.0",
        ("net:eth0", "speed_mbps"): "10000",
        ("net:eth0", "driver"): "mlx5",
        ("gpu0", "name"): "H200",
        ("gpu0", "pci_address"): "0000:01:00.0",
        ("gpu0", "vbios"): "96",
        ("gpu0", "power_limit_w"): "700.0",
        ("gpu0", "ecc_enabled"): "on",
        ("gpu0", "mig_enabled"): "off",
    }


@pytest.mark.parametrize(
    "inventory",
    [{}, {"cpu": None, "memory": {"dimms": None}, "nvml": None}, {"disks": ["sda"], "board": 3, "links": {}}],
    ids=["nothing", "nothing known", "another shape"],
)
def test_what_an_inventory_does_not_hold_is_absent(inventory: dict[str, Any]) -> None:
    assert circumstances({}, inventory) == {}
