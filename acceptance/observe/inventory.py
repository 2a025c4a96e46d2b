"""What is there: the machine as it shows itself, and the GPUs that are therefore due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from acceptance import command
from acceptance.command import Completed
from acceptance.deadline import Deadline
from acceptance.observe import board, cpu, memory, network, nvml, pci, pci_place, storage
from acceptance.observe.pci_place import PciPlace

OBSERVE_S = 90.0  # most of it for NVML, see nvml.PROBE_S


@dataclass(frozen=True, slots=True)
class Inventory:
    """The observed machine. `pci` holds NVIDIA's functions only; `places` where GPUs and network cards hang in the PCI tree, by address."""

    cpu: cpu.Cpu
    memory: memory.Memory
    disks: tuple[storage.Disk, ...]
    links: tuple[network.Link, ...]
    pci: tuple[pci.PciFunction, ...]
    board: board.Board
    nvml: nvml.NvmlAnswer
    places: dict[str, PciPlace] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that is due: it is on the PCI bus. `uuid`, `model`, `serial` and `nvml_index` are None where NVML does not know it.

    `error` is what NVML says when the GPU has stopped answering it: such a GPU is known, and of no use.
    """

    name: str
    pci_address: str
    device_id: str
    answers: bool | None
    uuid: str | None
    model: str | None
    serial: str | None
    nvml_index: int | None
    error: str | None = None


def observe(
    root: Path = Path("/"),
    *,
    deadline: Deadline | None = None,
    run: Callable[..., Completed] = command.run,
    dmidecode: str | None = None,
) -> Inventory:
    """Look at the machine; about a second, and up to a minute where the driver has to bring many GPUs up first.

    DIMMs and the board's serial number need root and are absent without it; `memory.dimms_unread` says so. `run` and `dmidecode` (its
    path) are for tests. Raises SysfsError when the kernel shows no CPU, no memory size, or something unknown.
    """
    deadline = deadline or Deadline.after(OBSERVE_S)
    # NVML first: asking it may create the device nodes that the board then lists.
    answer = nvml.probe(run, deadline=deadline)
    links, functions = network.read(root), pci.read(root)
    placed = [function.address for function in functions if function.is_display]
    placed += [link.pci_address for link in links if link.pci_address is not None]
    return Inventory(
        cpu=cpu.read(root),
        memory=memory.read(root, deadline=deadline, run=run, program=dmidecode),
        disks=storage.read(root),
        links=links,
        pci=functions,
        board=board.read(root),
        nvml=answer,
        places=pci_place.read(root, tuple(dict.fromkeys(placed))),
    )


def gpus(inventory: Inventory) -> tuple[Gpu, ...]:
    """The GPUs that are due: NVIDIA's display functions on the PCI bus in address order, never NVML's own list.

    Named gpu0, gpu1, ... Parts cut out of a GPU by SR-IOV are not counted beside it.
    """
    known = {device.pci_address: device for device in inventory.nvml.devices if device.pci_address is not None}
    due = [function for function in inventory.pci if function.is_display and not function.is_virtual_function]
    return tuple(_gpu(number, function, known.get(function.address)) for number, function in enumerate(due))


def _gpu(number: int, function: pci.PciFunction, device: nvml.NvmlDevice | None) -> Gpu:
    return Gpu(
        name=f"gpu{number}",
        pci_address=function.address,
        device_id=function.device_id,
        answers=function.answers,
        uuid=device.uuid if device else None,
        model=device.name if device else None,
        serial=device.serial if device else None,
        nvml_index=device.index if device else None,
        error=device.error if device else None,
    )
