"""The GPUs that are due: PCI functions joined with NVML's records."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from acceptance.core import parts
from acceptance.core.message import Text
from acceptance.core.parts import Component
from acceptance.machine import pcie
from acceptance.machine.inventory import (
    GpuCounters,
    GpuTraits,
    Inventory,
    NvLink,
    NvmlAnswer,
    NvmlDevice,
    PciFunction,
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that is due, because it is on the PCI bus.

    `device` is NVML's record of it, None where NVML does not know it; what NVML reports is then
    None too. A record with an `error` is that of a GPU that has stopped answering: it is still
    listed, but of no use.
    """

    name: Component
    function: PciFunction
    device: NvmlDevice | None

    @property
    def pci_address(self) -> str:
        """The address of its function."""
        return self.function.address

    @property
    def device_id(self) -> str | None:
        """The PCI id of its function, "10de:2684"."""
        return self.function.device_id

    @property
    def answers(self) -> bool | None:
        """Whether it answers on the PCI bus; None where that could not be read."""
        return self.function.answers

    @property
    def uuid(self) -> str | None:
        """Its UUID by NVML."""
        return self.device.uuid if self.device else None

    @property
    def model(self) -> str | None:
        """Its model's name by NVML."""
        return self.device.name if self.device else None

    @property
    def serial(self) -> str | None:
        """Its board's serial number by NVML."""
        return self.device.serial if self.device else None

    @property
    def nvml_index(self) -> int | None:
        """Its number in NVML's list."""
        return self.device.index if self.device else None

    @property
    def error(self) -> Text | None:
        """NVML's error where it has stopped answering."""
        return self.device.error if self.device else None

    @property
    def memory_bytes(self) -> int | None:
        """The size of its memory by NVML."""
        return self.device.memory_bytes if self.device else None

    @property
    def traits(self) -> GpuTraits | None:
        """Its properties and settings by NVML."""
        return self.device.traits if self.device else None

    @property
    def counters(self) -> GpuCounters | None:
        """Its health counters by NVML."""
        return self.device.counters if self.device else None

    @property
    def links(self) -> tuple[NvLink, ...]:
        """Its NVLinks; empty where NVML does not know it."""
        return self.device.links if self.device else ()

    @property
    def active_links(self) -> int:
        """How many of its NVLinks are active."""
        return sum(bool(link.active) for link in self.links)

    @property
    def slot_link(self) -> tuple[int | None, int | None]:
        """The slot's maximum: PCI Express generation and lanes.

        None where it is not shown, and for both in a VM: the port that a VM shows above a
        passed-through card is the hypervisor's own, and says nothing about the slot.
        """
        if self.traits is not None and self.traits.virtualised:
            return None, None
        function = self.function
        return pcie.generation(function.slot_max_link_speed_gts), function.slot_max_link_width

    @property
    def link_generation(self) -> int | None:
        """The highest PCI Express generation of card and slot together, as the kernel shows it."""
        card = pcie.generation(self.function.max_link_speed_gts)
        return pcie.lower_maximum(card, self.slot_link[0])

    @property
    def link_width(self) -> int | None:
        """The most lanes of card and slot together, as the kernel shows it."""
        return pcie.lower_maximum(self.function.max_link_width, self.slot_link[1])


def gpus(inventory: Inventory, names: Collection[Component] | None = None) -> tuple[Gpu, ...]:
    """The GPUs that are due: NVIDIA's display functions on the PCI bus, never NVML's own list.

    In address order, named gpu0, gpu1, ... SR-IOV virtual functions do not count. With `names`
    only those of these names.
    """
    due = [
        function
        for function in inventory.pci or ()
        if function.is_display and not function.is_virtual_function
    ]
    every = (Gpu(parts.Gpu(number), function, None) for number, function in enumerate(due))
    chosen = (gpu for gpu in every if names is None or gpu.name in names)
    return joined(chosen, inventory.nvml)


def joined(due: Iterable[Gpu], answer: NvmlAnswer) -> tuple[Gpu, ...]:
    """The same GPUs with their records in this answer of NVML."""
    known = {
        device.pci_address: device for device in answer.devices if device.pci_address is not None
    }
    return tuple(replace(gpu, device=known.get(gpu.pci_address)) for gpu in due)


def uuids(due: Iterable[Gpu]) -> dict[Component, str | None]:
    """The UUID of each GPU by its name; None where NVML does not know it."""
    return {gpu.name: gpu.uuid for gpu in due}
