"""The memory: its size, and the module in each slot."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from acceptance.core.message import Message, Unmeasured, no_answer, not_permitted
from acceptance.machine.inventory import Memory
from acceptance.observe import dmi, sysfs
from acceptance.observe.sysfs import SysfsError
from acceptance.process import command
from acceptance.process.command import CommandError, ProgramMissing, ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.process.unreadable import UnreadableOutput
from acceptance.wording.errors import NotMeasurable

DMIDECODE_S = 10.0


def read(
    root: Path = Path("/"),
    *,
    deadline: Deadline,
    run: Callable[..., ProgramResult] = command.run,
    program: str | None = None,
) -> Memory:
    """Read the memory; without root or dmidecode the DIMMs are absent, with the reason.

    `program` is dmidecode's path; without it, PATH is searched. Raises SysfsError without
    /proc/meminfo.
    """
    total, available = _meminfo(root / "proc/meminfo")
    try:
        tables = _tables(deadline, run, program)
    except ProgramMissing as missing:
        gap = not_permitted(missing.message)
    except NotMeasurable as error:
        gap = error.gap
    except (CommandError, UnreadableOutput) as error:
        gap = no_answer(error.message)
    else:
        return Memory(
            total,
            available,
            tables.dimms,
            None,
            tables.slots_total,
            tables.ecc,
            tables.empty_slots,
        )
    return Memory(total, available, None, gap.reason, None, None, dimms_unread_why=gap.why)


def _tables(
    deadline: Deadline, run: Callable[..., ProgramResult], program: str | None
) -> dmi.MemoryTables:
    argv = dmi.argv(program or command.find(dmi.PROGRAM, dmi.PACKAGE))
    done = run(argv, deadline=deadline.sooner(DMIDECODE_S))
    if done.timed_out or done.truncated:
        why = done.describe() if done.timed_out else Message("printed_too_much")
        raise NotMeasurable("dmidecode_cut", Unmeasured.NO_ANSWER, how=why)
    return dmi.parse(f"{done.stdout}\n\n{done.stderr}", done.returncode)


def _meminfo(path: Path) -> tuple[int, int | None]:
    """Total bytes and available bytes (None for kernels before 3.14, which do not report it)."""
    text = sysfs.text(path) or ""
    kib = {
        name: int(amount) for name, amount in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)
    }
    if "MemTotal" not in kib:
        raise SysfsError("memory_size_unread", path=str(path))
    available = kib.get("MemAvailable")
    return kib["MemTotal"] * 1024, None if available is None else available * 1024
