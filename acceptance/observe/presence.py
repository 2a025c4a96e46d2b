"""The layer at which a GPU is missing: PCI bus, driver, device nodes or NVML; and the fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from acceptance.core.limit import Limit
from acceptance.core.message import Listed, Message, Text, Value, Values, english, known, plural
from acceptance.core.parts import Component
from acceptance.machine import inventory as machine_inventory
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Inventory
from acceptance.machine.inventory import known as given
from acceptance.observe import nvml_call
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
        return "dead" if answer.error_code in LOST or answer.hung else "set-up"
    if gpu.device is None:
        return "dead" if _passed_over(inventory) and reachable(inventory, gpu) else "set-up"
    if gpu.device.error is None:
        return None
    return "set-up" if gpu.device.error_code == nvml_call.NO_PERMISSION else "dead"


def missing_gpus(inventory: Inventory, names: Iterable[Component]) -> tuple[Component, ...]:
    """Those of the named GPUs that are not on the bus or dead: nothing of them can be measured.

    A GPU that only the set-up keeps from use is none of them.
    """
    found = {gpu.name: gpu for gpu in gpus(inventory)}
    return tuple(
        name
        for name in names
        if name not in found or absence_kind(inventory, found[name]) == "dead"
    )


def shortfalls(
    inventory: Inventory,
    count: Limit | None,
    names: Sequence[Component],
    addresses: Sequence[str] = (),
) -> tuple[Message, ...]:
    """What the check of presence fails for, in clauses; empty where it need not fail.

    `count` is the limit of the number of GPUs on the bus, `names` are the GPUs under test, and
    `addresses` those that the machine file declares.
    """
    cards, told = gpus(inventory), []
    if count is not None and count.grade(len(cards)) == "fail":
        told.append(_wrong_number([card.pci_address for card in cards], count, addresses))
    there = {card.name for card in cards}
    dead = tuple(str(name) for name in missing_gpus(inventory, names) if name in there)
    if dead:
        told.append(
            Message(
                plural("gpus_do_not_answer", "{gpus} does not answer", "{gpus} do not answer"),
                {"n": len(dead), "gpus": Listed(dead)},
            )
        )
    return tuple(told)


def _wrong_number(found: Sequence[str], count: Limit, addresses: Sequence[str]) -> Message:
    """Too many GPUs, or too few: by their addresses, which alone tell the missing from the others.

    A GPU's number is its place among those that are there.
    """
    if count.high is not None and len(found) > count.high:
        return Message(
            plural(
                "gpus_above_declared",
                "{n} GPU is on the PCI bus, and the machine file declares {due}",
                "{n} GPUs are on the PCI bus, and the machine file declares {due}",
            ),
            {"n": len(found), "due": count.high},
        )
    if count.high is None:
        return Message(
            english(
                "no_gpu_on_bus",
                "no GPU is on the PCI bus, and at least one is due unless a machine file says "
                "gpus = 0",
            )
        )
    short = int(count.high) - len(found)
    away = tuple(address for address in addresses if address not in found)
    unknown = (
        Message(english("numbers_do_not_tell", "the numbers of the others do not tell which"))
        if found
        else None
    )
    which = Listed(away) if len(away) == short else unknown
    return Message(
        plural(
            "gpus_not_on_bus",
            "{n} of {due} GPUs is not on the PCI bus[ ({which})]",
            "{n} of {due} GPUs are not on the PCI bus[ ({which})]",
        ),
        known(n=short, due=count.high, which=which),
    )


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


NOT_ON_THE_BUS = Message(
    english(
        "bus_without_gpu_cure",
        "power off, reseat the card and its power cables; in the BIOS enable `Above 4G decoding` "
        "and the slot; try it without the riser and in another slot",
    )
)
FALLEN_OFF = Message(
    english(
        "card_fallen_off_cure",
        "the card has fallen off the bus: switch the machine off at the wall for ten seconds, "
        "reseat the card and its power cables, and look for Xid 79 in `dmesg`",
    )
)
NOUVEAU = Message(
    english(
        "nouveau_cure",
        "`echo 'blacklist nouveau' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf`, `sudo "
        "update-initramfs -u`, install NVIDIA's driver, reboot",
    )
)
INSTALL = Message(
    english(
        "driver_install_cure",
        "`sudo modprobe nvidia`; if there is no such module, install NVIDIA's driver from the "
        "distribution (`nvidia-driver`) and reboot",
    )
)
SECURE_BOOT = Message(
    english(
        "secure_boot_cure",
        "Secure Boot is on and refuses an unsigned module: enrol the signing key (`sudo mokutil "
        "--import`, then reboot) or switch Secure Boot off in the BIOS",
    )
)
BUS_FIRST = Message(english("bus_first", "the card has to be on the PCI bus first"))
DRIVER_FIRST = Message(english("driver_first", "the driver has to be loaded first"))
NODES = Message(
    english(
        "nodes_cure",
        "`sudo nvidia-modprobe -c=0 -u` makes the nodes; install `nvidia-modprobe` if it is "
        "missing",
    )
)
NODES_CLOSED = Message(
    english(
        "nodes_closed_cure",
        "add yourself to the group that owns them (`ls -l /dev/nvidia*`, often `video` or "
        "`render`) and log in again, or run with sudo",
    )
)
MISMATCH = Message(
    english(
        "driver_module_old", "the driver was updated and its old module is still loaded: reboot"
    )
)
HUNG = Message(
    english(
        "driver_hung_cure", "look for Xid and NVRM lines in `dmesg`, then power-cycle the machine"
    )
)
LIBRARY = Message(
    english(
        "nvml_library_cure",
        "install the library that belongs to the driver (`libnvidia-ml1`, or NVIDIA's driver "
        "package)",
    )
)
PARTLY = Message(
    english(
        "gpus_withheld_cure",
        "the job was given only some of the GPUs: name them with --gpus, or ask for all; where it "
        "should have all, `sudo nvidia-modprobe -c=0 -u` makes the nodes that are missing",
    )
)
PARAVIRTUALISED = Message(
    english(
        "gpus_shared_out_cure",
        "this is a layer that shares GPUs out (WSL, say), and the cards themselves cannot be "
        "tested through it: run on the machine itself",
    )
)


@dataclass(frozen=True, slots=True)
class PresenceLayer:
    """One layer: its name, what was observed there, and the fix; None if nothing needs doing."""

    what: Text
    found: Value
    cure: Message | None

    @property
    def message(self) -> Message:
        """The layer in one line."""
        return Message(
            english("layer_shows", "{layer}: {found}[ -> {cure}]"),
            known(layer=self.what, found=self.found, cure=self.cure),
        )


def presence(inventory: Inventory) -> tuple[PresenceLayer, ...]:
    """PCI bus, kernel driver, device nodes, NVML; each layer needs the previous one."""
    due = gpus(inventory)
    return (
        _bus(inventory, due),
        _driver(inventory, due),
        _nodes(inventory, due),
        _nvml(inventory, due),
    )


def presence_lines(layers: Iterable[PresenceLayer]) -> Message:
    """One line for each layer."""
    bus, driver, nodes, library = (layer.message for layer in layers)
    return Message(
        english("layers", "{bus}\n{driver}\n{nodes}\n{nvml}"),
        {"bus": bus, "driver": driver, "nodes": nodes, "nvml": library},
    )


def at_index(index: int | None, error: Text) -> Message:
    """What a GPU says that NVML knows by its number."""
    return Message(
        english("gpu_at_index", "GPU {index}: {why}"), {"index": str(index), "why": error}
    )


def _listed(gpus: Iterable[Gpu]) -> Listed:
    return Listed(
        tuple(
            Message(
                english("gpu_at_address", "{gpu} ({address}, {device})"),
                {"gpu": str(gpu.name), "address": gpu.pci_address, "device": str(gpu.device_id)},
            )
            for gpu in gpus
        )
    )


def _bus(inventory: Inventory, due: tuple[Gpu, ...]) -> PresenceLayer:
    what = Message(english("pci_bus", "PCI bus"))
    if paravirtualised(inventory):
        count = Message(
            plural("number_of_gpus", "{n} GPU", "{n} GPUs"), {"n": len(inventory.nvml.devices)}
        )
        return PresenceLayer(
            what,
            Message(
                english("bus_shared_out", "no NVIDIA device, and NVML lists {count}"),
                {"count": count},
            ),
            PARAVIRTUALISED,
        )
    if not due:
        others = tuple(
            Message(
                english("function_of_class", "{function} class {class}"),
                {"function": function.address, "class": given(function.class_code)[:4]},
            )
            for function in inventory.pci or ()
        )
        empty = Message(english("bus_empty", "no NVIDIA device"))
        found = (
            Message(
                english("bus_without_gpu", "no GPU, only other NVIDIA functions: {functions}"),
                {"functions": Listed(others)},
            )
            if others
            else empty
        )
        return PresenceLayer(what, found, NOT_ON_THE_BUS)
    dead = [gpu for gpu in due if gpu.answers is False]
    unread = [gpu for gpu in due if gpu.answers is None]
    if dead:
        counts: Values = {"dead": str(len(dead)), "all": str(len(due)), "gpus": _listed(dead)}
        return PresenceLayer(
            what,
            Message(
                english("gpus_fallen_off", "{dead} of {all} do not answer (rev ff): {gpus}"), counts
            ),
            FALLEN_OFF,
        )
    if unread:
        found = Message(
            english("configuration_unread", "the configuration space cannot be read of {gpus}"),
            {"gpus": _listed(unread)},
        )
        return PresenceLayer(
            what, found, Message(english("sysfs_cure", "mount /sys with the host's devices"))
        )
    count = Message("number_of_gpus", {"n": len(due)})
    found = Message(
        english("gpus_on_bus", "{count}: {gpus}"), {"count": count, "gpus": _listed(due)}
    )
    return PresenceLayer(what, found, None)


def _driver(inventory: Inventory, due: tuple[Gpu, ...]) -> PresenceLayer:
    what, board = Message(english("kernel_driver", "kernel driver")), inventory.board
    if board.nouveau_loaded and board.nvidia_driver is None:
        return PresenceLayer(
            what,
            Message(english("nouveau_loaded", "nouveau is loaded instead of NVIDIA's driver")),
            NOUVEAU,
        )
    held = tuple(
        Message(
            english("gpu_held_by", "{gpu} by {driver}"),
            {"gpu": str(gpu.name), "driver": gpu.function.driver},
        )
        for gpu in due
        if gpu.function.driver is not None and gpu.function.driver != "nvidia"
    )
    if held:
        cure = (
            NOUVEAU
            if board.nouveau_loaded
            else Message(
                english(
                    "gpu_release_cure",
                    "release it: remove the card from the configuration that reserves it (vfio, a "
                    "VM), reboot",
                )
            )
        )
        return PresenceLayer(
            what,
            Message(english("gpus_held", "held by another driver: {gpus}"), {"gpus": Listed(held)}),
            cure,
        )
    if board.nvidia_driver is None:
        cure = BUS_FIRST if not due else SECURE_BOOT if board.secure_boot else INSTALL
        return PresenceLayer(
            what, Message(english("driver_not_loaded", "NVIDIA's driver is not loaded")), cure
        )
    loose = [gpu for gpu in due if gpu.function.driver is None]
    if loose:
        values: Values = {"version": board.nvidia_driver, "gpus": _listed(loose)}
        return PresenceLayer(
            what,
            Message(
                english("gpus_not_driven", "version {version} is loaded but does not drive {gpus}"),
                values,
            ),
            Message(
                english(
                    "nvrm_lines_cure",
                    "`sudo dmesg | grep NVRM` says why: too old a driver for the card, or a card "
                    "that needs the open kernel modules",
                )
            ),
        )
    found = Message(
        english("driver_loaded", "version {version} is loaded"), {"version": board.nvidia_driver}
    )
    return PresenceLayer(what, found, None if due else BUS_FIRST)


def _nodes(inventory: Inventory, due: tuple[Gpu, ...]) -> PresenceLayer:
    what, board = Message(english("device_nodes", "device nodes")), inventory.board
    paths = [node.path for node in board.device_nodes]
    cards = [path for path in paths if re.fullmatch(r"/dev/nvidia\d+", path)]
    found = Listed(tuple(paths)) if paths else Message(english("none", "none"))
    if not due:
        return PresenceLayer(what, found, BUS_FIRST)
    if board.nvidia_driver is None:
        return PresenceLayer(what, found, DRIVER_FIRST)
    kept = [gpu for gpu in due if is_withheld(inventory, gpu)]
    if kept:
        withheld = Message(
            english("nodes_withheld", "{nodes}; this user may not open those of {gpus}"),
            {"nodes": found, "gpus": _listed(kept)},
        )
        return PresenceLayer(what, withheld, PARTLY)
    if len(cards) < len(due) or "/dev/nvidiactl" not in paths:
        few = Message(
            english(
                "nodes_too_few",
                "{nodes}; {count} GPUs need as many /dev/nvidiaN, and /dev/nvidiactl",
            ),
            {"nodes": found, "count": str(len(due))},
        )
        return PresenceLayer(what, few, NODES)
    closed = tuple(node.path for node in board.device_nodes if not node.openable)
    if closed:
        told = Message(
            english("nodes_closed", "this user may not open {nodes}"), {"nodes": Listed(closed)}
        )
        return PresenceLayer(what, told, NODES_CLOSED)
    # /dev/nvidia-uvm appears with the first CUDA program after a boot, so its absence is no fault.
    return PresenceLayer(what, found, None)


def _nvml(inventory: Inventory, due: tuple[Gpu, ...]) -> PresenceLayer:
    what, answer = "NVML", inventory.nvml
    if answer.error is not None:
        return PresenceLayer(what, answer.error, _nvml_cure(inventory, due))
    sick = tuple(
        at_index(device.index, device.error)
        for device in answer.devices
        if device.error is not None
    )
    if sick:
        return PresenceLayer(what, sick, _sick_cure(answer))
    version = str(answer.driver_version)
    unknown = [gpu for gpu in due if gpu.device is None]
    if unknown:
        partly = all(is_withheld(inventory, gpu) for gpu in unknown)
        cure = (
            PARTLY
            if partly
            else Message(
                english(
                    "driver_refusal_cure",
                    "`sudo dmesg | grep NVRM` says why the driver does not take it",
                )
            )
        )
        values: Values = {"version": version, "gpus": _listed(unknown)}
        return PresenceLayer(
            what,
            Message(english("gpus_not_known", "driver {version} does not know {gpus}"), values),
            cure,
        )
    missing = PARAVIRTUALISED if paravirtualised(inventory) else BUS_FIRST
    count = Message("number_of_gpus", {"n": len(answer.devices)})
    found = Message(
        english("driver_and_gpus", "driver {version}, {count}"),
        {"version": version, "count": count},
    )
    return PresenceLayer(what, found, None if due else missing)


def _sick_cure(answer: machine_inventory.NvmlAnswer) -> Message:
    codes = {device.error_code for device in answer.devices if device.error is not None}
    if nvml_call.GPU_IS_LOST in codes:
        return FALLEN_OFF
    return NODES_CLOSED if codes == {nvml_call.NO_PERMISSION} else HUNG


def _nvml_cure(inventory: Inventory, due: tuple[Gpu, ...]) -> Message:
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
