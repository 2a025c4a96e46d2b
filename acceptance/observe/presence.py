"""Where the GPUs are: what was looked at, in order, what it showed, and what to do about each answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from acceptance.observe import nvml
from acceptance.observe.absence import paravirtualised, withheld
from acceptance.observe.inventory import Gpu, Inventory, gpus

NOT_ON_THE_BUS = (
    "power off, reseat the card and its power cables; in the BIOS enable `Above 4G decoding` and the slot; try it without the riser "
    "and in another slot"
)
FALLEN_OFF = (
    "the card has fallen off the bus: switch the machine off at the wall for ten seconds, reseat the card and its power cables, and look "
    "for Xid 79 in `dmesg`"
)
NOUVEAU = (
    "`echo 'blacklist nouveau' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf`, `sudo update-initramfs -u`, install NVIDIA's driver, "
    "reboot"
)
INSTALL = "`sudo modprobe nvidia`; if there is no such module, install NVIDIA's driver from the distribution (`nvidia-driver`) and reboot"
SECURE_BOOT = (
    "Secure Boot is on and refuses an unsigned module: enrol the signing key (`sudo mokutil --import`, then reboot) or switch Secure "
    "Boot off in the BIOS"
)
BUS_FIRST = "the card has to be on the PCI bus first"
DRIVER_FIRST = "the driver has to be loaded first"
NODES = "`sudo nvidia-modprobe -c=0 -u` makes the nodes; install `nvidia-modprobe` if it is missing"
NODES_CLOSED = (
    "add yourself to the group that owns them (`ls -l /dev/nvidia*`, often `video` or `render`) and log in again, or run "
    "with sudo"
)
MISMATCH = "the driver was updated and its old module is still loaded: reboot"
HUNG = "look for Xid and NVRM lines in `dmesg`, then power-cycle the machine"
LIBRARY = "install the library that belongs to the driver (`libnvidia-ml1`, or NVIDIA's driver package)"


PARTLY = (
    "the job was given only some of the GPUs: name them with --gpus, or ask for all; where it should have all, "
    "`sudo nvidia-modprobe -c=0 -u` makes the nodes that are missing"
)
PARAVIRTUALISED = (
    "this is a layer that shares GPUs out (WSL, say), and the cards themselves cannot be tested through it: run on the machine "
    "itself"
)


@dataclass(frozen=True, slots=True)
class Looked:
    """One place that was looked at, what was found there, and the cure; None where nothing needs doing."""

    what: str
    found: str
    cure: str | None


def presence(inventory: Inventory) -> tuple[Looked, ...]:
    """The PCI bus, the kernel driver, the device nodes, NVML: in the order in which one makes the next possible."""
    due = gpus(inventory)
    return (
        _bus(inventory, due),
        _driver(inventory, due),
        _nodes(inventory, due),
        _nvml(inventory, due),
    )


def _named(found: list[Gpu]) -> str:
    return ", ".join(f"{gpu.name} ({gpu.pci_address}, {gpu.device_id})" for gpu in found)


def _bus(inventory: Inventory, due: tuple[Gpu, ...]) -> Looked:
    what = "PCI bus"
    if paravirtualised(inventory):
        count = len(inventory.nvml.devices)
        found = f"no NVIDIA device, and NVML lists {count} GPU{'s' if count > 1 else ''}"
        return Looked(what, found, PARAVIRTUALISED)
    if not due:
        others = ", ".join(f"{function.address} class {function.class_code[:4]}" for function in inventory.pci)
        found = f"no GPU, only other NVIDIA functions: {others}" if others else "no NVIDIA device"
        return Looked(what, found, NOT_ON_THE_BUS)
    dead = [gpu for gpu in due if gpu.answers is False]
    unread = [gpu for gpu in due if gpu.answers is None]
    if dead:
        return Looked(what, f"{len(dead)} of {len(due)} do not answer (rev ff): {_named(dead)}", FALLEN_OFF)
    if unread:
        return Looked(
            what, f"the configuration space cannot be read of {_named(unread)}", "mount /sys with the host's devices"
        )
    return Looked(what, f"{len(due)} GPU{'s' if len(due) > 1 else ''}: {_named(list(due))}", None)


def _driver(inventory: Inventory, due: tuple[Gpu, ...]) -> Looked:
    what, board = "kernel driver", inventory.board
    bound = {function.address: function.driver for function in inventory.pci}
    if board.nouveau_loaded and board.nvidia_driver is None:
        return Looked(what, "nouveau is loaded instead of NVIDIA's driver", NOUVEAU)
    elsewhere = [gpu for gpu in due if bound[gpu.pci_address] not in (None, "nvidia")]
    if elsewhere:
        holders = ", ".join(f"{gpu.name} by {bound[gpu.pci_address]}" for gpu in elsewhere)
        cure = (
            NOUVEAU
            if board.nouveau_loaded
            else "release it: remove the card from the configuration that reserves it (vfio, a VM), reboot"
        )
        return Looked(what, f"held by another driver: {holders}", cure)
    if board.nvidia_driver is None:
        cure = BUS_FIRST if not due else SECURE_BOOT if board.secure_boot else INSTALL
        return Looked(what, "NVIDIA's driver is not loaded", cure)
    loose = [gpu for gpu in due if bound[gpu.pci_address] is None]
    if loose:
        cure = "`sudo dmesg | grep NVRM` says why: too old a driver for the card, or a card that needs the open kernel modules"
        return Looked(what, f"version {board.nvidia_driver} is loaded but does not drive {_named(loose)}", cure)
    return Looked(what, f"version {board.nvidia_driver} is loaded", None if due else BUS_FIRST)


def _nodes(inventory: Inventory, due: tuple[Gpu, ...]) -> Looked:
    what, board = "device nodes", inventory.board
    paths = [node.path for node in board.device_nodes]
    cards = [path for path in paths if re.fullmatch(r"/dev/nvidia\d+", path)]
    found = ", ".join(paths) or "none"
    if not due:
        return Looked(what, found, BUS_FIRST)
    if board.nvidia_driver is None:
        return Looked(what, found, DRIVER_FIRST)
    kept = [gpu for gpu in due if withheld(inventory, gpu)]
    if kept:
        return Looked(what, f"{found}; this user may not open those of {_named(kept)}", PARTLY)
    if len(cards) < len(due) or "/dev/nvidiactl" not in paths:
        return Looked(what, f"{found}; {len(due)} GPUs need as many /dev/nvidiaN, and /dev/nvidiactl", NODES)
    closed = [node.path for node in board.device_nodes if not node.openable]
    if closed:
        return Looked(what, f"this user may not open {', '.join(closed)}", NODES_CLOSED)
    # /dev/nvidia-uvm comes with the first CUDA program after a boot, so its absence is no fault.
    return Looked(what, found, None)


def _nvml(inventory: Inventory, due: tuple[Gpu, ...]) -> Looked:
    what, answer = "NVML", inventory.nvml
    if answer.error is not None:
        return Looked(what, answer.error, _nvml_cure(inventory, due))
    sick = [f"GPU {device.index}: {device.error}" for device in answer.devices if device.error is not None]
    if sick:
        return Looked(what, "; ".join(sick), _sick_cure(answer))
    unknown = [gpu for gpu in due if gpu.nvml_index is None]
    if unknown:
        partly = all(withheld(inventory, gpu) for gpu in unknown)
        cure = PARTLY if partly else "`sudo dmesg | grep NVRM` says why the driver does not take it"
        return Looked(what, f"driver {answer.driver_version} does not know {_named(unknown)}", cure)
    count = len(answer.devices)
    missing = PARAVIRTUALISED if paravirtualised(inventory) else BUS_FIRST
    found = f"driver {answer.driver_version}, {count} GPU{'s' if count != 1 else ''}"
    return Looked(what, found, None if due else missing)


def _sick_cure(answer: nvml.NvmlAnswer) -> str:
    codes = {device.error_code for device in answer.devices if device.error is not None}
    if nvml.GPU_IS_LOST in codes:
        return FALLEN_OFF
    return NODES_CLOSED if codes == {nvml.NO_PERMISSION} else HUNG


def _nvml_cure(inventory: Inventory, due: tuple[Gpu, ...]) -> str:
    code = inventory.nvml.error_code
    if code == nvml.VERSION_MISMATCH:
        return MISMATCH
    if not due:
        return BUS_FIRST
    if inventory.board.nvidia_driver is None:
        return DRIVER_FIRST
    if code == nvml.LIBRARY_NOT_FOUND:
        return LIBRARY
    return NODES_CLOSED if code == nvml.NO_PERMISSION else HUNG
