"""Which disks of a machine are declared as new."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gpu_machine
import pytest
from cases import each

from acceptance.core.message import UserError
from acceptance.machine import declared_disks, machine_file
from acceptance.machine.inventory import Disk
from acceptance.machine.machine_file import DeclaredDisk, Machine

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
