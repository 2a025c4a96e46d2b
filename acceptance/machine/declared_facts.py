"""A machine file as the facts that it declares, by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from acceptance.core.parts import Gpu
from acceptance.core.record import Declared, Fact, OwnLimit
from acceptance.machine.machine_file import DeclaredDisk, Machine

# Tables that are known by their own name, whatever their place in the file.
_NAMED = {"network": "name", "scratch": "path", "dimm": "slot"}


def declared(machine: Machine | None) -> Declared:
    """What a machine file declares; nothing without one."""
    if machine is None:
        return Declared()
    facts: dict[str, Fact] = {}
    for key in ("psu", "power", "collectives", "cpu", "memory", "system", "network", "scratch"):
        facts |= dict(_facts(key, msgspec.to_builtins(getattr(machine, key))))
    memory = machine.memory
    if memory.dimms is None and memory.dimm:
        facts["memory.dimms"] = len(memory.dimm)
    if (count := machine.gpu_count()) is not None:
        facts["gpus"] = count
    cards = [one for one in machine.gpu for _ in range(one.count)]
    for number, card in enumerate(cards):
        told = {key: value for key, value in msgspec.structs.asdict(card).items() if key != "count"}
        facts |= dict(_facts(str(Gpu(number)), told))
    for pair in machine.gpu_pair:
        told = {"path": pair.path, "p2p": pair.p2p, "write_gbs": pair.write_gbs}
        facts |= dict(_facts(f"gpu_pair[{min(pair.between)}, {max(pair.between)}]", told))
    for disk in machine.disk:
        facts |= _disk(disk, facts)
    return Declared(
        facts,
        tuple(
            OwnLimit(
                row.measurement,
                row.unit,
                None if row.component is None else str(row.component),
                row.low,
                row.high,
            )
            for row in machine.limit
        ),
    )


def _facts(key: str, value: Any) -> Iterator[tuple[str, Fact]]:
    """The facts below a key; what is not declared is none."""
    if isinstance(value, dict):
        for name, one in value.items():
            if name != "allow":  # a permission to write, and no part of the machine
                yield from _facts(f"{key}.{name}", one)
    elif isinstance(value, list | tuple):
        name = _NAMED.get(key.rpartition(".")[2])
        for one in value:
            table = dict(one) if name else {}
            label = f"{key}[{table.pop(name) if name else one}]"
            yield label, True
            yield from _facts(label, table)
    elif value is not None:
        yield key, value


def _disk(disk: DeclaredDisk, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """The facts of a table of disks, of which there may be several for one model."""
    key = f"disk[{disk.model}]"
    found: dict[str, Fact] = {f"{key}.count": disk.count + int(facts.get(f"{key}.count", 0))}
    if disk.size_gb is not None:
        found[f"{key}.size_gb"] = min(disk.size_gb, int(facts.get(f"{key}.size_gb", disk.size_gb)))
    if disk.new:
        found[f"{key}.new"] = True
    for name, text in (("serial", disk.serial), ("firmware", disk.firmware)):
        if text is not None:
            found[f"{key}.{name}[{text}]"] = True
    return found
