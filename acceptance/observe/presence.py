"""The layer at which a GPU is missing: PCI bus, driver, device nodes or NVML; and the fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from acceptance.core.limit import Limit
from acceptance.core.message import Listed, Message, Text, Value, Values, known
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
        told.append(Message("gpus_do_not_answer", {"n": len(dead), "gpus": Listed(dead)}))
    return tuple(told)


def _wrong_number(found: Sequence[str], count: Limit, addresses: Sequence[str]) -> Message:
    """Too many GPUs, or too few: by their addresses, which alone tell the missing from the others.

    A GPU's number is its place among those that are there.
    """
    if count.high is not None and len(found) > count.high:
        return Message("gpus_above_declared", {"n": len(found), "due": count.high})
    if count.high is None:
        return Message("no_gpu_on_bus")
    short = int(count.high) - len(found)
    away = tuple(address for address in addresses if address not in found)
    unknown = Message("numbers_do_not_tell") if found else None
    which = Listed(away) if len(away) == short else unknown
    return Message("gpus_not_on_bus", known(n=short, due=count.high, which=which))


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


NOT_ON_THE_BUS = Message("bus_without_gpu_cure")
FALLEN_OFF = Message("card_fallen_off_cure")
NOUVEAU = Message("nouveau_cure")
INSTALL = Message("driver_install_cure")
SECURE_BOOT = Message("secure_boot_cure")
BUS_FIRST = Message("bus_first")
DRIVER_FIRST = Message("driver_first")
NODES = Message("nodes_cure")
NODES_CLOSED = Message("nodes_closed_cure")
MISMATCH = Message("driver_module_old")
HUNG = Message("driver_hung_cure")
LIBRARY = Message("nvml_library_cure")
PARTLY = Message("gpus_withheld_cure")
PARAVIRTUALISED = Message("gpus_shared_out_cure")


@dataclass(frozen=True, slots=True)
class PresenceLayer:
    """One layer: its name, what was observed there, and the fix; None if nothing needs doing."""

    what: Text
    found: Value
    cure: Message | None

    @property
    def message(self) -> Message:
        """The layer in one line."""
        return Message("layer_shows", known(layer=self.what, found=self.found, cure=self.cure))


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
    return Message("layers", {"bus": bus, "driver": driver, "nodes": nodes, "nvml": library})


def at_index(index: int | None, error: Text) -> Message:
    """What a GPU says that NVML knows by its number."""
    return Message("gpu_at_index", {"index": str(index), "why": error})


def _listed(gpus: Iterable[Gpu]) -> Listed:
    return Listed(
        tuple(
            Message(
                "gpu_at_address",
                {"gpu": str(gpu.name), "address": gpu.pci_address, "device": str(gpu.device_id)},
            )
            for gpu in gpus
        )
    )


def _bus(inventory: Inventory, due: tuple[Gpu, ...]) -> PresenceLayer:
    what = Message("pci_bus")
    if paravirtualised(inventory):
        count = Message("number_of_gpus", {"n": len(inventory.nvml.devices)})
        return PresenceLayer(what, Message("bus_shared_out", {"count": count}), PARAVIRTUALISED)
    if not due:
        others = tuple(
            Message(
                "function_of_class",
                {"function": function.address, "class": given(function.class_code)[:4]},
            )
            for function in inventory.pci or ()
        )
        empty = Message("bus_empty")
        found = Message("bus_without_gpu", {"functions": Listed(others)}) if others else empty
        return PresenceLayer(what, found, NOT_ON_THE_BUS)
    dead = [gpu for gpu in due if gpu.answers is False]
    unread = [gpu for gpu in due if gpu.answers is None]
    if dead:
        counts: Values = {"dead": str(len(dead)), "all": str(len(due)), "gpus": _listed(dead)}
        return PresenceLayer(what, Message("gpus_fallen_off", counts), FALLEN_OFF)
    if unread:
        found = Message("configuration_unread", {"gpus": _listed(unread)})
        return PresenceLayer(what, found, Message("sysfs_cure"))
    count = Message("number_of_gpus", {"n": len(due)})
    found = Message("gpus_on_bus", {"count": count, "gpus": _listed(due)})
    return PresenceLayer(what, found, None)


def _driver(inventory: Inventory, due: tuple[Gpu, ...]) -> PresenceLayer:
    what, board = Message("kernel_driver"), inventory.board
    if board.nouveau_loaded and board.nvidia_driver is None:
        return PresenceLayer(what, Message("nouveau_loaded"), NOUVEAU)
    held = tuple(
        Message("gpu_held_by", {"gpu": str(gpu.name), "driver": gpu.function.driver})
        for gpu in due
        if gpu.function.driver is not None and gpu.function.driver != "nvidia"
    )
    if held:
        cure = NOUVEAU if board.nouveau_loaded else Message("gpu_release_cure")
        return PresenceLayer(what, Message("gpus_held", {"gpus": Listed(held)}), cure)
    if board.nvidia_driver is None:
        cure = BUS_FIRST if not due else SECURE_BOOT if board.secure_boot else INSTALL
        return PresenceLayer(what, Message("driver_not_loaded"), cure)
    loose = [gpu for gpu in due if gpu.function.driver is None]
    if loose:
        values: Values = {"version": board.nvidia_driver, "gpus": _listed(loose)}
        return PresenceLayer(what, Message("gpus_not_driven", values), Message("nvrm_lines_cure"))
    found = Message("driver_loaded", {"version": board.nvidia_driver})
    return PresenceLayer(what, found, None if due else BUS_FIRST)


def _nodes(inventory: Inventory, due: tuple[Gpu, ...]) -> PresenceLayer:
    what, board = Message("device_nodes"), inventory.board
    paths = [node.path for node in board.device_nodes]
    cards = [path for path in paths if re.fullmatch(r"/dev/nvidia\d+", path)]
    found = Listed(tuple(paths)) if paths else Message("none")
    if not due:
        return PresenceLayer(what, found, BUS_FIRST)
    if board.nvidia_driver is None:
        return PresenceLayer(what, found, DRIVER_FIRST)
    kept = [gpu for gpu in due if is_withheld(inventory, gpu)]
    if kept:
        withheld = Message("nodes_withheld", {"nodes": found, "gpus": _listed(kept)})
        return PresenceLayer(what, withheld, PARTLY)
    if len(cards) < len(due) or "/dev/nvidiactl" not in paths:
        few = Message("nodes_too_few", {"nodes": found, "count": str(len(due))})
        return PresenceLayer(what, few, NODES)
    closed = tuple(node.path for node in board.device_nodes if not node.openable)
    if closed:
        told = Message("nodes_closed", {"nodes": Listed(closed)})
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
        cure = PARTLY if partly else Message("driver_refusal_cure")
        values: Values = {"version": version, "gpus": _listed(unknown)}
        return PresenceLayer(what, Message("gpus_not_known", values), cure)
    missing = PARAVIRTUALISED if paravirtualised(inventory) else BUS_FIRST
    count = Message("number_of_gpus", {"n": len(answer.devices)})
    found = Message("driver_and_gpus", {"version": version, "count": count})
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
