"""Observes the whole machine: everything that an inventory holds.

The memory: its size, and the module in each slot.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from acceptance.core.message import Message, Unmeasured, english, no_answer, not_permitted
from acceptance.machine.inventory import Inventory, Memory
from acceptance.observe import (
    board,
    cpu,
    dmi,
    filesystem,
    kernel_counters,
    network,
    nvml,
    pci,
    storage,
    sysfs,
)
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
        why = (
            done.describe()
            if done.timed_out
            else Message(english("printed_too_much", "printed more than could be kept"))
        )
        raise NotMeasurable(
            english(
                "dmidecode_cut",
                "the DIMMs could not be read because dmidecode {how}: run it by hand to see why",
            ),
            Unmeasured.NO_ANSWER,
            how=why,
        )
    return dmi.parse(f"{done.stdout}\n\n{done.stderr}", done.returncode)


def _meminfo(path: Path) -> tuple[int, int | None]:
    """Total bytes and available bytes (None for kernels before 3.14, which do not report it)."""
    text = sysfs.text(path) or ""
    kib = {
        name: int(amount) for name, amount in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)
    }
    if "MemTotal" not in kib:
        raise SysfsError(
            english(
                "memory_size_unread", "{path} does not say how much memory there is: mount /proc"
            ),
            path=str(path),
        )
    available = kib.get("MemAvailable")
    return kib["MemTotal"] * 1024, None if available is None else available * 1024


OBSERVE_S = 90.0  # most of it for NVML, see nvml.PROBE_S


def observe(
    root: Path = Path("/"),
    *,
    deadline: Deadline | None = None,
    run: Callable[..., ProgramResult] = command.run,
    dmidecode: str | None = None,
) -> Inventory:
    """Observe the machine. Takes about a second, or up to a minute if the driver initialises GPUs.

    DIMMs and the board's serial number need root and are absent without it; `memory.dimms_unread`
    gives the reason. `run` and `dmidecode` (its path) are for tests. Raises SysfsError when the
    kernel shows no CPU, no size of the memory, or an unknown value.
    """
    deadline = deadline or Deadline.after(OBSERVE_S)
    # NVML first: it may create the device nodes that the board then lists.
    answer = nvml.probe(run, deadline=deadline)
    links, functions = network.read(root), pci.read(root)
    placed = [function.address for function in functions if function.is_display]
    placed += [link.pci_address for link in links if link.pci_address is not None]
    found = Inventory(
        cpu=cpu.read(root),
        memory=read(root, deadline=deadline, run=run, program=dmidecode),
        disks=storage.read(root),
        links=links,
        pci=functions,
        board=board.read(root),
        nvml=answer,
        places=pci.places(root, tuple(dict.fromkeys(placed))),
        writable=_writable(root),
    )
    return replace(found, counters=kernel_counters.read(found, root))


def _writable(root: Path) -> tuple[str, ...] | None:
    try:
        return tuple(name for name, writable in filesystem.local(root).items() if writable)
    except SysfsError:
        return None
