"""The layer at which a GPU is missing: PCI bus, driver, device nodes or NVML; and the fix."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from acceptance.machine import inventory as machine_inventory
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Inventory, known
from acceptance.observe import nvml, nvml_call
from acceptance.observe.nvml_call import LOST

AbsenceKind = Literal["dead", "set-up"]


def absence_kind(inventory: Inventory, gpu: Gpu) -> AbsenceKind | None:
    """ "dead" for a faulty card, "set-up" for a wrong set-up, None for a GPU that is usable.

    A dead card reads as all ones on the bus; or NVML says that it is lost, or refuses its identity;
    or the driver works for other GPUs and not for this one, though its device node can be opened;
    or the driver no longer answers at all.
    """
    if gpu.answers is False:
        return "dead"
    answer, driver = inventory.nvml, gpu.function.driver
    if driver != "nvidia":
        alike = any(
            function.device_id == gpu.device_id and function.driver == "nvidia"
            for function in inventory.pci or ()
        )
        return "dead" if driver is None and alike else "set-up"
    if answer.error is not None:
        return (
            "dead" if answer.error_code in LOST or answer.error.endswith(nvml.HANGS) else "set-up"
        )
    if gpu.device is None:
        return "dead" if _passed_over(inventory) and reachable(inventory, gpu) else "set-up"
    if gpu.device.error is None:
        return None
    return "set-up" if gpu.device.error_code == nvml_call.NO_PERMISSION else "dead"


def _passed_over(inventory: Inventory) -> bool:
    """Whether NVML could not start a GPU that it lists under no address.

    That is so if NVML gives access to others, or refuses one without its address.
    """
    nameless = [device for device in inventory.nvml.devices if device.pci_address is None]
    if any(device.error_code in (None, nvml_call.NO_PERMISSION) for device in nameless):
        return False
    return bool(nameless) or works_for_others(inventory)


def is_withheld(inventory: Inventory, gpu: Gpu) -> bool:
    """Whether the driver gives this user other GPUs but not this one, which it drives.

    That is usual for a job that got a part of the machine.
    """
    bound = gpu.function.driver == "nvidia"
    left_out = bound and gpu.answers is not False and gpu.device is None
    return left_out and works_for_others(inventory) and not reachable(inventory, gpu)


def paravirtualised(inventory: Inventory) -> bool:
    """Whether NVML lists GPUs and the PCI bus none: WSL, or another layer that shares GPUs."""
    return not inventory.pci and bool(inventory.nvml.devices)


def works_for_others(inventory: Inventory) -> bool:
    """Whether NVML answers for at least one GPU."""
    return any(device.error is None for device in inventory.nvml.devices)


def reachable(inventory: Inventory, gpu: Gpu) -> bool:
    """Whether this user may open the GPU's device node.

    If the driver does not number its GPUs, every GPU must have a node that can be opened.
    """
    openable = {node.path: node.openable for node in inventory.board.device_nodes}
    numbered = inventory.board.gpu_nodes
    if numbered:
        return openable.get(numbered.get(gpu.pci_address, ""), False)
    cards = [may for path, may in openable.items() if path.removeprefix("/dev/nvidia").isdigit()]
    return len(cards) >= len(gpus(inventory)) and all(cards)


NOT_ON_THE_BUS = (
    "power off, reseat the card and its power cables; in the BIOS enable `Above 4G decoding` and "
    "the slot; try it without the riser "
    "and in another slot"
)
FALLEN_OFF = (
    "the card has fallen off the bus: switch the machine off at the wall for ten seconds, reseat "
    "the card and its power cables, and look "
    "for Xid 79 in `dmesg`"
)
NOUVEAU = (
    "`echo 'blacklist nouveau' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf`, `sudo "
    "update-initramfs -u`, install NVIDIA's driver, "
    "reboot"
)
INSTALL = (
    "`sudo modprobe nvidia`; if there is no such module, install NVIDIA's driver from the "
    "distribution (`nvidia-driver`) and reboot"
)
SECURE_BOOT = (
    "Secure Boot is on and refuses an unsigned module: enrol the signing key (`sudo mokutil "
    "--import`, then reboot) or switch Secure "
    "Boot off in the BIOS"
)
BUS_FIRST = "the card has to be on the PCI bus first"
DRIVER_FIRST = "the driver has to be loaded first"
NODES = "`sudo nvidia-modprobe -c=0 -u` makes the nodes; install `nvidia-modprobe` if it is missing"
NODES_CLOSED = (
    "add yourself to the group that owns them (`ls -l /dev/nvidia*`, often `video` or `render`) "
    "and log in again, or run "
    "with sudo"
)
MISMATCH = "the driver was updated and its old module is still loaded: reboot"
HUNG = "look for Xid and NVRM lines in `dmesg`, then power-cycle the machine"
LIBRARY = (
    "install the library that belongs to the driver (`libnvidia-ml1`, or NVIDIA's driver package)"
)


PARTLY = (
    "the job was given only some of the GPUs: name them with --gpus, or ask for all; where it "
    "should have all, "
    "`sudo nvidia-modprobe -c=0 -u` makes the nodes that are missing"
)
PARAVIRTUALISED = (
    "this is a layer that shares GPUs out (WSL, say), and the cards themselves cannot be tested "
    "through it: run on the machine "
    "itself"
)


@dataclass(frozen=True, slots=True)
class PresenceLayer:
    """One layer: its name, what was observed there, and the fix; None if nothing needs doing."""

    what: str
    found: str
    cure: str | None


def presence(inventory: Inventory) -> tuple[PresenceLayer, ...]:
    """PCI bus, kernel driver, device nodes, NVML; each layer needs the previous one."""
    due = gpus(inventory)
    return (
        _bus(inventory, due),
        _driver(inventory, due),
        _nodes(inventory, due),
        _nvml(inventory, due),
    )


def _gpu_list(gpus: list[Gpu]) -> str:
    return ", ".join(f"{gpu.name} ({gpu.pci_address}, {gpu.device_id})" for gpu in gpus)


def _bus(inventory: Inventory, due: tuple[Gpu, ...]) -> PresenceLayer:
    what = "PCI bus"
    if paravirtualised(inventory):
        count = len(inventory.nvml.devices)
        found = f"no NVIDIA device, and NVML lists {count} GPU{'s' if count > 1 else ''}"
        return PresenceLayer(what, found, PARAVIRTUALISED)
    if not due:
        others = ", ".join(
            f"{function.address} class {known(function.class_code)[:4]}"
            for function in inventory.pci or ()
        )
        found = f"no GPU, only other NVIDIA functions: {others}" if others else "no NVIDIA device"
        return PresenceLayer(what, found, NOT_ON_THE_BUS)
    dead = [gpu for gpu in due if gpu.answers is False]
    unread = [gpu for gpu in due if gpu.answers is None]
    if dead:
        return PresenceLayer(
            what, f"{len(dead)} of {len(due)} do not answer (rev ff): {_gpu_list(dead)}", FALLEN_OFF
        )
    if unread:
        return PresenceLayer(
            what,
            f"the configuration space cannot be read of {_gpu_list(unread)}",
            "mount /sys with the host's devices",
        )
    return PresenceLayer(
        what, f"{len(due)} GPU{'s' if len(due) > 1 else ''}: {_gpu_list(list(due))}", None
    )


def _driver(inventory: Inventory, due: tuple[Gpu, ...]) -> PresenceLayer:
    what, board = "kernel driver", inventory.board
    if board.nouveau_loaded and board.nvidia_driver is None:
        return PresenceLayer(what, "nouveau is loaded instead of NVIDIA's driver", NOUVEAU)
    elsewhere = [gpu for gpu in due if gpu.function.driver not in (None, "nvidia")]
    if elsewhere:
        holders = ", ".join(f"{gpu.name} by {gpu.function.driver}" for gpu in elsewhere)
        cure = (
            NOUVEAU
            if board.nouveau_loaded
            else (
                "release it: remove the card from the configuration that reserves it (vfio, a "
                "VM), reboot"
            )
        )
        return PresenceLayer(what, f"held by another driver: {holders}", cure)
    if board.nvidia_driver is None:
        cure = BUS_FIRST if not due else SECURE_BOOT if board.secure_boot else INSTALL
        return PresenceLayer(what, "NVIDIA's driver is not loaded", cure)
    loose = [gpu for gpu in due if gpu.function.driver is None]
    if loose:
        cure = (
            "`sudo dmesg | grep NVRM` says why: too old a driver for the card, or a card that "
            "needs the open kernel modules"
        )
        return PresenceLayer(
            what,
            f"version {board.nvidia_driver} is loaded but does not drive {_gpu_list(loose)}",
            cure,
        )
    return PresenceLayer(
        what, f"version {board.nvidia_driver} is loaded", None if due else BUS_FIRST
    )


def _nodes(inventory: Inventory, due: tuple[Gpu, ...]) -> PresenceLayer:
    what, board = "device nodes", inventory.board
    paths = [node.path for node in board.device_nodes]
    cards = [path for path in paths if re.fullmatch(r"/dev/nvidia\d+", path)]
    found = ", ".join(paths) or "none"
    if not due:
        return PresenceLayer(what, found, BUS_FIRST)
    if board.nvidia_driver is None:
        return PresenceLayer(what, found, DRIVER_FIRST)
    kept = [gpu for gpu in due if is_withheld(inventory, gpu)]
    if kept:
        return PresenceLayer(
            what, f"{found}; this user may not open those of {_gpu_list(kept)}", PARTLY
        )
    if len(cards) < len(due) or "/dev/nvidiactl" not in paths:
        return PresenceLayer(
            what, f"{found}; {len(due)} GPUs need as many /dev/nvidiaN, and /dev/nvidiactl", NODES
        )
    closed = [node.path for node in board.device_nodes if not node.openable]
    if closed:
        return PresenceLayer(what, f"this user may not open {', '.join(closed)}", NODES_CLOSED)
    # /dev/nvidia-uvm appears with the first CUDA program after a boot, so its absence is no fault.
    return PresenceLayer(what, found, None)


def _nvml(inventory: Inventory, due: tuple[Gpu, ...]) -> PresenceLayer:
    what, answer = "NVML", inventory.nvml
    if answer.error is not None:
        return PresenceLayer(what, answer.error, _nvml_cure(inventory, due))
    sick = [
        f"GPU {device.index}: {device.error}"
        for device in answer.devices
        if device.error is not None
    ]
    if sick:
        return PresenceLayer(what, "; ".join(sick), _sick_cure(answer))
    unknown = [gpu for gpu in due if gpu.device is None]
    if unknown:
        partly = all(is_withheld(inventory, gpu) for gpu in unknown)
        cure = PARTLY if partly else "`sudo dmesg | grep NVRM` says why the driver does not take it"
        return PresenceLayer(
            what, f"driver {answer.driver_version} does not know {_gpu_list(unknown)}", cure
        )
    count = len(answer.devices)
    missing = PARAVIRTUALISED if paravirtualised(inventory) else BUS_FIRST
    found = f"driver {answer.driver_version}, {count} GPU{'s' if count != 1 else ''}"
    return PresenceLayer(what, found, None if due else missing)


def _sick_cure(answer: machine_inventory.NvmlAnswer) -> str:
    codes = {device.error_code for device in answer.devices if device.error is not None}
    if nvml_call.GPU_IS_LOST in codes:
        return FALLEN_OFF
    return NODES_CLOSED if codes == {nvml_call.NO_PERMISSION} else HUNG


def _nvml_cure(inventory: Inventory, due: tuple[Gpu, ...]) -> str:
    code = inventory.nvml.error_code
    if code == nvml_call.VERSION_MISMATCH:
        return MISMATCH
    if not due:
        return BUS_FIRST
    if inventory.board.nvidia_driver is None:
        return DRIVER_FIRST
    if code == nvml_call.LIBRARY_NOT_FOUND:
        return LIBRARY
    return NODES_CLOSED if code == nvml_call.NO_PERMISSION else HUNG
