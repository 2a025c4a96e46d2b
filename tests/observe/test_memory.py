from __future__ import annotations

from pathlib import Path

import pytest
from machine_tree import GIB, NO_DMI, Programs, Tree, completed
from refusal import raised
from worded import worded

from acceptance.machine import inventory as machine_inventory
from acceptance.observe import inventory as observe_memory
from acceptance.observe.sysfs import SysfsError
from acceptance.process.command import ProgramMissing, ProgramResult
from acceptance.process.deadline import Deadline

TABLES = """\
# dmidecode 3.5
Getting SMBIOS data from sysfs.
SMBIOS 3.5.0 present.

Handle 0x0013, DMI type 16, 23 bytes
Physical Memory Array
\tUse: System Memory
\tError Correction Type: None
\tNumber Of Devices: 2

Handle 0x0018, DMI type 17, 92 bytes
Memory Device
\tArray Handle: 0x0013
\tSize: 32 GB
\tLocator: DIMM_A2
\tType: DDR5

Handle 0x0019, DMI type 17, 92 bytes
Memory Device
\tArray Handle: 0x0013
\tSize: No Module Installed
\tLocator: DIMM_B2
\tType: Unknown

"""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.memory(64)
    return tree


def read(tree: Tree, answer: ProgramResult | Exception) -> machine_inventory.Memory:
    return observe_memory.read(
        tree.root, deadline=Deadline.after(9), run=Programs(dmidecode=answer), program="dmidecode"
    )


def test_modules_and_slots(tree: Tree) -> None:
    seen = read(tree, completed(TABLES))
    assert (seen.total_bytes, seen.available_bytes) == (64 * GIB, 64 * GIB - (1 << 20))
    assert seen.dimms is not None
    assert [(dimm.slot, dimm.size_bytes) for dimm in seen.dimms] == [("DIMM_A2", 32 * GIB)]
    assert (seen.dimms_unread, seen.slots_total, seen.ecc) == (None, 2, "None")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (completed(*NO_DMI), "shows no DMI tables"),
        (
            completed("", "/sys/firmware/dmi/tables/smbios_entry_point: Permission denied\n", 1),
            "needs root",
        ),
        (completed(TABLES, truncated=True), "printed more than could be kept"),
        (completed(timed_out=True), "did not end within its time"),
        (completed(TABLES[:-60]), "cut short"),
        (ProgramMissing("dmidecode is not installed: get it"), "dmidecode is not installed"),
    ],
)
def test_modules_that_could_not_be_read_are_never_none_at_all(
    tree: Tree, answer: ProgramResult | Exception, why: str
) -> None:
    seen = read(tree, answer)
    assert (seen.dimms, seen.slots_total, seen.ecc) == (None, None, None)
    assert seen.dimms_unread is not None
    assert why in worded(seen.dimms_unread)


def test_a_program_that_is_not_there(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(program: str, package: str | None = None) -> str:
        raise ProgramMissing(f"{program} is not installed: install {package}")

    monkeypatch.setattr("acceptance.process.command.find", missing)
    seen = observe_memory.read(tree.root, deadline=Deadline.after(9), run=Programs())
    assert worded(seen.dimms_unread) == "dmidecode is not installed: install dmidecode"


def test_an_old_kernel_does_not_say_what_is_available(tree: Tree) -> None:
    tree.write("proc/meminfo", "MemTotal:       1024 kB\n")
    assert read(tree, completed(TABLES)).available_bytes is None


def test_without_proc_there_is_no_answer(tmp_path: Path) -> None:
    assert "how much memory" in raised(SysfsError, read, Tree(tmp_path), completed(TABLES))
