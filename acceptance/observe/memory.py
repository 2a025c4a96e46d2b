"""The memory: how much there is, and what is in which slot."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from acceptance import command
from acceptance.command import CommandError, Completed
from acceptance.deadline import Deadline
from acceptance.observe import sysfs
from acceptance.observe.sysfs import SysfsError
from acceptance.tools import dmidecode
from acceptance.tools.dmidecode import Dimm
from acceptance.tools.reading import UnreadableOutput

DMIDECODE_S = 10.0


@dataclass(frozen=True, slots=True)
class Memory:
    """The machine's memory.

    `total_bytes` is what the kernel manages, a little less than what is plugged in; `available_bytes` what a program could take now.
    `dimms` is None when they could not be read (root only), and `dimms_unread` then says why and the cure; `slots_total` counts empty
    slots too; `ecc` is the firmware's own word.
    """

    total_bytes: int
    available_bytes: int | None
    dimms: tuple[Dimm, ...] | None
    dimms_unread: str | None
    slots_total: int | None
    ecc: str | None


def read(
    root: Path = Path("/"),
    *,
    deadline: Deadline,
    run: Callable[..., Completed] = command.run,
    program: str | None = None,
) -> Memory:
    """Read the memory; DIMMs need root and dmidecode, and are left unread with a reason otherwise.

    `program` names dmidecode where it is known; without it, it is looked for. Raises SysfsError without /proc/meminfo.
    """
    total, available = _meminfo(root / "proc/meminfo")
    try:
        tables = _tables(deadline, run, program)
    except (CommandError, dmidecode.NotReadable, UnreadableOutput) as error:
        return Memory(total, available, None, str(error), None, None)
    return Memory(total, available, tables.dimms, None, tables.slots_total, tables.ecc)


def _tables(deadline: Deadline, run: Callable[..., Completed], program: str | None) -> dmidecode.MemoryTables:
    argv = dmidecode.argv(program or command.find(dmidecode.PROGRAM, dmidecode.PACKAGE))
    done = run(argv, deadline=deadline.sooner(DMIDECODE_S))
    if done.timed_out or done.truncated:
        why = done.describe() if done.timed_out else "printed more than could be kept"
        raise dmidecode.NotReadable(f"the DIMMs could not be read because dmidecode {why}: run it by hand to see why")
    return dmidecode.parse(f"{done.stdout}\n\n{done.stderr}", done.returncode)


def _meminfo(path: Path) -> tuple[int, int | None]:
    """Bytes in all, and bytes available (kernels before 3.14 do not say)."""
    text = sysfs.text(path) or ""
    kib = {name: int(amount) for name, amount in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}
    if "MemTotal" not in kib:
        raise SysfsError(f"{path} does not say how much memory there is: mount /proc")
    available = kib.get("MemAvailable")
    return kib["MemTotal"] * 1024, None if available is None else available * 1024
