"""What a machine file declares, as facts by key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gpu_machine
import msgspec
import pytest
from cases import each

from acceptance import resources
from acceptance.core.message import UserError
from acceptance.core.record import Declared, OwnLimit
from acceptance.fleet import ending
from acceptance.machine import declared_disks, machine_file
from acceptance.machine.declared_facts import declared
from acceptance.machine.inventory import Disk
from acceptance.machine.machine_file import DeclaredDisk, Machine


def facts(**tables: Any) -> dict[str, Any]:
    found = declared(msgspec.convert({"schema": 1, "name": "m", **tables}, Machine)).facts
    usual = {"power.pulses": True, "collectives.multicast": False}
    assert usual.items() <= found.items()
    return {key: value for key, value in found.items() if key not in usual}


def test_without_a_file_nothing_is_declared() -> None:
    assert declared(None) == Declared()


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({}, {}),
        ({"gpus": 0}, {"gpus": 0}),
        ({"gpu": [{"model": "X", "count": 2}]}, {"gpus": 2, "gpu0.model": "X", "gpu1.model": "X"}),
        (
            {"gpus": 2, "gpu_pair": [{"between": [1, 0], "p2p": False}]},
            {"gpus": 2, "gpu_pair[0, 1].p2p": False},
        ),
        ({"cpu": {"cores": 8, "model": "C"}}, {"cpu.cores": 8, "cpu.model": "C"}),
        ({"memory": {"total_gib": 64, "dimms": 2}}, {"memory.total_gib": 64, "memory.dimms": 2}),
        (
            {"memory": {"dimm": [{"slot": "A1", "size_gib": 32}, {"slot": "B1"}]}},
            {
                "memory.dimms": 2,
                "memory.dimm[A1]": True,
                "memory.dimm[A1].size_gib": 32,
                "memory.dimm[B1]": True,
            },
        ),
        (
            {"gpus": 1, "network": [{"name": "ib0", "speed_mbps": 400000, "gpus": [0]}]},
            {
                "gpus": 1,
                "network[ib0]": True,
                "network[ib0].speed_mbps": 400000,
                "network[ib0].gpus[0]": True,
            },
        ),
        (
            {"disk": [{"model": "M", "new": True}, {"model": "N"}]},
            {"disk[M].count": 1, "disk[M].new": True, "disk[N].count": 1},
        ),
        (
            {"scratch": [{"path": "/data", "allow": ["nfs"]}]},
            {"scratch[/data]": True, "scratch[/data].keep": True},
        ),
        (
            {"disk": [{"model": "D", "count": 2, "size_gb": 900}, {"model": "D", "size_gb": 800}]},
            {"disk[D].count": 3, "disk[D].size_gb": 800},
        ),
        (
            {"disk": [{"model": "D", "serial": "S", "firmware": "F"}]},
            {"disk[D].count": 1, "disk[D].serial[S]": True, "disk[D].firmware[F]": True},
        ),
        (
            {"system": {"driver": "580"}, "psu": {"watts": 900}},
            {"system.driver": "580", "psu.watts": 900},
        ),
        ({"order": {"number": "7"}, "description": "ours"}, {}),
    ],
)
def test_facts(tables: dict[str, Any], expected: dict[str, Any]) -> None:
    assert facts(**tables) == expected


def test_limits_of_its_own() -> None:
    rows = [
        {"measurement": "gemm_bf16", "unit": "TFLOP/s", "basis": "x", "low": 1.0},
        {"measurement": "gemm_bf16", "unit": "TFLOP/s", "basis": "x", "high": 2.0},
    ]
    rows[1]["component"] = "gpu0"
    machine = msgspec.convert(
        {"schema": 1, "name": "m", "limit": rows},
        Machine,
        dec_hook=lambda kind, text: machine_file.parts.parse(text),
    )
    assert declared(machine).limits == (
        OwnLimit("gemm_bf16", "TFLOP/s", None, 1.0),
        OwnLimit("gemm_bf16", "TFLOP/s", "gpu0", None, 2.0),
    )


def test_each_shipped_file_declares_as_much_as_itself_and_more_than_none() -> None:
    for path in sorted(resources.locate("machines").glob("*.toml")):
        found = declared(machine_file.read(path)).facts
        assert list(ending.fewer_facts(found, found)) == []
        assert len(list(ending.fewer_facts({}, found))) == len(found)


OLD, NEW = DeclaredDisk("M", serial="S1"), DeclaredDisk("M", new=True)


def disk(name: str, model: str = "M", serial: str | None = None, gb: int = 2000) -> Disk:
    return Disk(name, model, serial, gb * 10**9, "ssd", "sata", "F1")


@each(
    "tables, disks, new",
    [
        ((), (disk("sda"),), []),
        ((NEW,), (disk("sda"), disk("sdb", "N")), ["disk:sda"]),
        ((OLD, NEW), (disk("sda", serial="S2"), disk("sdb", serial="S1")), ["disk:sda"]),
        # one more than is declared
        ((NEW,), (disk("sda"), disk("sdb")), ["disk:sda", "disk:sdb"]),
        ((OLD,), (disk("sda", serial="S1"), disk("sdb")), []),
        # smaller than declared, so another disk
        ((DeclaredDisk("M", size_gb=4000, new=True),), (disk("sda"),), []),
    ],
)
def test_new_disks(
    tables: tuple[DeclaredDisk, ...], disks: tuple[Disk, ...], new: list[str]
) -> None:
    inventory = replace(gpu_machine.machine(), disks=disks)
    machine = Machine(schema=1, name="m", disk=tables)
    assert [str(one) for one in declared_disks.new_disks(machine, inventory)] == new
    assert declared_disks.new_disks(None, inventory) == ()


def read(path: Path, text: str) -> Machine:
    path.write_text(f'schema = 1\nname = "m"\n{text}')
    return machine_file.read(path)


@each(
    "text, line, why",
    [
        ('[[disk]]\nmodel = "x"\nnew = "yes"', 5, "disk (number 1).new must be true or false"),
        ('[[disk]]\nmodel = "x"\nnew = 1', 5, "disk (number 1).new must be true or false"),
        ('[[disk]]\nmodel = "x"\nnwe = true', 5, "did you mean new?"),
        (
            '[[disk]]\nmodel = "x"\n[[disk]]\nmodel = "X"\nnew = true',
            7,
            "disk (number 1) and disk (number 2) are of one model, and only one is new",
        ),
        (
            '[[disk]]\nmodel = "x"\nnew = true\n[[disk]]\nmodel = "x"',
            5,
            "give the serial numbers of these disks",
        ),
    ],
)
def test_what_cannot_be_new_is_refused(text: str, line: int, why: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path / "machine.toml", text)
    assert f"line {line}: " in str(caught.value)
    assert why in str(caught.value)


@each("apart", ['serial = "1"', 'firmware = "2"', "size_gb = 3", "new = true"])
def test_tables_of_one_model_that_differ(apart: str, tmp_path: Path) -> None:
    tables = f'[[disk]]\nmodel = "x"\n{apart}\n[[disk]]\nmodel = "x"\nnew = true'
    assert read(tmp_path / "machine.toml", tables).disk[1].new
