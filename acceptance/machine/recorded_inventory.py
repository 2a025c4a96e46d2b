"""The inventory as a journal recorded it: GPUs by component name, and serial numbers of parts.

An inventory is plain data here, written by any version: a value that is missing or has another
shape is absent. `acceptance.machine.gpu` names the GPUs of an inventory of this version; a test
ensures that both give the same names. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acceptance.core.record import Entry, Observed

Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedGpu:
    """A GPU that was due: its component name, its PCI function, and its NVML record.

    `device` is empty where NVML had no record of it.
    """

    name: str
    address: str
    function: Table
    device: Table


def observed_record(entries: Sequence[Entry]) -> Observed:
    """The observed machine before the run; an empty inventory where the journal has none."""
    return next((entry.body for entry in entries if isinstance(entry.body, Observed)), Observed({}))


def table(values: Table, name: str) -> Table:
    """A table of an inventory; empty where no table has this name."""
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}


def rows(values: Table, name: str) -> tuple[Table, ...]:
    """The tables in a list of an inventory; none where no list has this name."""
    found = values.get(name)
    return (
        tuple(row for row in found if isinstance(row, Mapping))
        if isinstance(found, list | tuple)
        else ()
    )


def devices(inventory: Table) -> tuple[Table, ...]:
    """NVML's record of each GPU that it knows, due or not."""
    return rows(table(inventory, "nvml"), "devices")


def recorded_gpus(inventory: Table) -> tuple[RecordedGpu, ...]:
    """The GPUs that were due, named gpu0, gpu1, ...

    They are the display functions on the PCI bus that are no virtual functions, in order. A
    function without a mark that it is a display function is left out.
    """
    known = {device.get("pci_address"): device for device in devices(inventory)}
    due = [
        (address, function)
        for function in rows(inventory, "pci")
        if function.get("is_display") is True
        and not function.get("is_virtual_function")
        and isinstance(address := function.get("address"), str)
    ]
    return tuple(
        RecordedGpu(f"gpu{number}", address, function, known.get(address, {}))
        for number, (address, function) in enumerate(due)
    )


def identities(inventory: Table) -> dict[str, str]:
    """The UUID (of GPUs) or serial number of each component, as the part reports it.

    They may be ambiguous; `matching.unique_identities` has those that identify one part alone.
    """
    by_gpu = {
        gpu.name: gpu.device.get("uuid") or gpu.device.get("serial")
        for gpu in recorded_gpus(inventory)
    }
    by_gpu |= {f"disk:{disk.get('name')}": disk.get("serial") for disk in rows(inventory, "disks")}
    by_gpu |= {
        f"dimm:{dimm.get('slot')}": dimm.get("serial")
        for dimm in rows(table(inventory, "memory"), "dimms")
    }
    return {
        component: identity
        for component, identity in by_gpu.items()
        if isinstance(identity, str) and identity
    }
