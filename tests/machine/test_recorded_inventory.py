"""The GPUs and identities of an inventory that a journal holds, as plain data of any version."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import journals
import msgspec
import sample_machines
import sample_runs
from cases import each

from acceptance.core.record import Note, Observed
from acceptance.journal import reader
from acceptance.machine import gpu as machine_gpu
from acceptance.machine import recorded_inventory
from acceptance.machine.inventory import Inventory
from selftest import drawn_runs

RUNS = Path(__file__).resolve().parents[2] / "fixtures/recordings/h200/runs"


def function(address: str, **more: object) -> dict[str, Any]:
    return {"address": address, "is_display": True, "is_virtual_function": False, **more}


@functools.cache
def recorded() -> dict[str, Inventory]:
    """The inventories of all recorded runs, and of the machines that the sample
    runs are made of.
    """
    found = {}
    for run in sorted(path.parent for path in RUNS.glob("*/journal.jsonl")):
        plain = recorded_inventory.observed_record(reader.read(run).entries).inventory
        if plain:
            found[run.name] = msgspec.convert(plain, Inventory)
    for name, made in sample_runs.MADE.items():
        found[name] = sample_machines.inventory(drawn_runs.named(made.machine), made.dead_links)
    return found


def test_the_gpus_are_those_that_the_product_itself_finds_due() -> None:
    assert len(recorded()) > 6
    for name, machine in recorded().items():
        due = machine_gpu.gpus(machine)
        found = recorded_inventory.recorded_gpus(msgspec.to_builtins(machine))
        assert [
            (gpu.name, gpu.address, gpu.device.get("uuid"), gpu.device.get("name")) for gpu in found
        ] == [(gpu.name, gpu.pci_address, gpu.uuid, gpu.model) for gpu in due], name
        assert due, name


@each(
    "plain",
    [
        {"address": "0000:01:00.0"},
        function("0000:01:00.0", is_display=False),
        function("0000:01:00.0", is_virtual_function=True),
        function("0000:01:00.0", is_display="yes"),
        {"is_display": True},
        "0000:01:00.0",
    ],
    told=["says nothing", "sound", "cut out", "another shape", "without address", "no table"],
)
def test_what_does_not_say_that_it_is_a_gpu_is_none(plain: object) -> None:
    found = recorded_inventory.recorded_gpus({"pci": [plain, function("0000:02:00.0")]})
    assert [(gpu.name, gpu.address, dict(gpu.device)) for gpu in found] == [
        ("gpu0", "0000:02:00.0", {})
    ]


@each("inventory", [{}, {"pci": None, "nvml": []}, {"pci": "x", "nvml": {"devices": "y"}}])
def test_an_inventory_of_another_shape_has_no_gpus(inventory: dict[str, Any]) -> None:
    assert recorded_inventory.recorded_gpus(inventory) == ()
    assert recorded_inventory.devices(inventory) == ()
    assert recorded_inventory.identities(inventory) == {}


def test_a_part_is_identified_by_its_uuid_or_serial_number() -> None:
    inventory = {
        "pci": [function(f"0000:0{number}:00.0") for number in range(1, 4)],
        "nvml": {
            "devices": [
                {"pci_address": "0000:01:00.0", "uuid": "GPU-1", "serial": "11"},
                {"pci_address": "0000:02:00.0", "uuid": None, "serial": "22"},
                {"pci_address": None, "uuid": "GPU-9"},
            ]
        },
        "disks": [
            {"name": "sda", "serial": "D1"},
            {"name": "sdb", "serial": None},
            {"name": "sdc", "serial": ""},
        ],
        "memory": {"dimms": [{"slot": "A1", "serial": "M1"}, {"slot": "A2"}]},
    }
    assert recorded_inventory.identities(inventory) == {
        "gpu0": "GPU-1",
        "gpu1": "22",
        "disk:sda": "D1",
        "dimm:A1": "M1",
    }


def test_the_first_look_at_the_machine_counts() -> None:
    entries = journals.entries(
        [Note("x"), Observed({"cpu": {"cores": 1}}), Observed({"cpu": {"cores": 2}})]
    )
    assert recorded_inventory.table(
        recorded_inventory.observed_record(entries).inventory, "cpu"
    ) == {"cores": 1}
    assert recorded_inventory.observed_record(()).inventory == {}
