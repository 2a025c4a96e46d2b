"""Why a GPU that is due cannot be tested: it is dead, or the machine is not set up for it. Pure."""

from __future__ import annotations

from typing import Literal

from acceptance.observe import nvml
from acceptance.observe.inventory import Gpu, Inventory, gpus
from acceptance.observe.nvml_call import LOST

Kind = Literal["dead", "set-up"]


def kind(inventory: Inventory, gpu: Gpu) -> Kind | None:
    """ "dead" where what was seen speaks against the card, "set-up" where it does not, None for a GPU that is there as it should be.

    A dead card reads as all ones on the bus; or NVML says that it is lost, or refuses its identity; or the driver works for others and
    not for it, though its device node can be opened; or the driver answers nobody any more.
    """
    if gpu.answers is False:
        return "dead"
    answer, drivers = inventory.nvml, {function.address: function.driver for function in inventory.pci}
    if drivers[gpu.pci_address] != "nvidia":
        alike = any(function.device_id == gpu.device_id and function.driver == "nvidia" for function in inventory.pci)
        return "dead" if drivers[gpu.pci_address] is None and alike else "set-up"
    if answer.error is not None:
        return "dead" if answer.error_code in LOST or answer.error.endswith(nvml.HANGS) else "set-up"
    if gpu.nvml_index is None:
        return "dead" if _passed_over(inventory) and reachable(inventory, gpu) else "set-up"
    if gpu.error is None:
        return None
    code = next(device.error_code for device in answer.devices if device.index == gpu.nvml_index)
    return "set-up" if code == nvml.NO_PERMISSION else "dead"


def _passed_over(inventory: Inventory) -> bool:
    """Whether a GPU that NVML knows by no address is one that it could not start: it gives others, or refuses one without saying which."""
    nameless = [device for device in inventory.nvml.devices if device.pci_address is None]
    if any(device.error_code in (None, nvml.NO_PERMISSION) for device in nameless):
        return False
    return bool(nameless) or works_for_others(inventory)


def withheld(inventory: Inventory, gpu: Gpu) -> bool:
    """Whether the driver holds a GPU that it does not give to this user, while it gives others: a job that got a part of the machine."""
    bound = any(function.address == gpu.pci_address and function.driver == "nvidia" for function in inventory.pci)
    left_out = bound and gpu.answers is not False and gpu.nvml_index is None
    return left_out and works_for_others(inventory) and not reachable(inventory, gpu)


def paravirtualised(inventory: Inventory) -> bool:
    """Whether NVML knows GPUs of which the PCI bus shows nothing: WSL, or another layer that shares them out."""
    return not inventory.pci and bool(inventory.nvml.devices)


def works_for_others(inventory: Inventory) -> bool:
    """Whether NVML answers for at least one GPU."""
    return any(device.error is None for device in inventory.nvml.devices)


def reachable(inventory: Inventory, gpu: Gpu) -> bool:
    """Whether this user may open the GPU's device node; where the driver does not number its GPUs, all that there must be."""
    openable = {node.path: node.openable for node in inventory.board.device_nodes}
    numbered = inventory.board.gpu_nodes
    if numbered:
        return openable.get(numbered.get(gpu.pci_address, ""), False)
    cards = [may for path, may in openable.items() if path.removeprefix("/dev/nvidia").isdigit()]
    return len(cards) >= len(gpus(inventory)) and all(cards)
