"""Observes the whole machine: everything that an inventory holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from acceptance.machine.inventory import Inventory
from acceptance.observe import (
    board,
    cpu,
    filesystem,
    kernel_counters,
    memory,
    network,
    nvml,
    pci,
    storage,
)
from acceptance.observe.sysfs import SysfsError
from acceptance.process import command
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline

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
        memory=memory.read(root, deadline=deadline, run=run, program=dmidecode),
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
