"""The GPUs that are due: PCI functions joined with NVML's records."""

from __future__ import annotations

from dataclasses import dataclass

from acceptance.machine import inventory as machine_inventory
from acceptance.machine.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that is due, because it is on the PCI bus.

    `uuid`, `model`, `serial` and `nvml_index` are None where NVML does not know it. `error` is
    NVML's error when the GPU has stopped answering: it is still listed, but of no use.
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


def gpus(inventory: Inventory) -> tuple[Gpu, ...]:
    """The GPUs that are due: NVIDIA's display functions on the PCI bus, never NVML's own list.

    In address order, named gpu0, gpu1, ... SR-IOV virtual functions do not count.
    """
    known = {
        device.pci_address: device
        for device in inventory.nvml.devices
        if device.pci_address is not None
    }
    due = [
        function
        for function in inventory.pci
        if function.is_display and not function.is_virtual_function
    ]
    return tuple(
        _gpu(number, function, known.get(function.address)) for number, function in enumerate(due)
    )


def _gpu(
    number: int,
    function: machine_inventory.PciFunction,
    device: machine_inventory.NvmlDevice | None,
) -> Gpu:
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
