"""GPUs and driver as a tool's text names them, compared with those that are due. A difference proves nothing of the card.

A text of other GPUs is another machine's, an older run's, or changed: what it measured is not this machine's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acceptance import gpu_limits
from acceptance.judge.measurement import MIB
from acceptance.observe.gpu_traits import GpuTraits
from acceptance.observe.inventory import Gpu, Inventory
from acceptance.observe.nvml import NvmlDevice
from acceptance.tools.cuda_device import Device
from acceptance.tools.proof import ToolTrouble
from acceptance.tools.reading import GpuEntry, ToolOutput

# CUDA shows what the driver leaves of NVML's total: 0.44 GB less on a Tesla T4, 0.62 on an H200, 1.1 on a GH200 of 96 GB.
_RESERVED_MIB = 1024
_RESERVED_SHARE = 0.01
# CUDA states the boost clock, NVML the highest that can be set: 2520 and 3105 MHz on an RTX 4090, 1980 and 1980 on an H200.
_CLOCK_ROUNDING = 1.01
_CURE = "the text is of other GPUs or of another run: see what is on the PATH under its name, and run it again"


def require(tool: str, mismatches: Iterator[str]) -> None:
    """Raise ToolTrouble with the first mismatch, where there is one."""
    if (first := next(mismatches, None)) is not None:
        raise ToolTrouble(f"{tool} {first}: {_CURE}")


def of_load(gpu: Gpu) -> dict[str, str | None]:
    """What a load of ours that runs on this GPU must say of it in its hello."""
    return {"uuid": gpu.uuid, **({"gpu": gpu.model} if gpu.model is not None else {})}


def in_order(output: ToolOutput, due: Sequence[Gpu]) -> Iterator[str]:
    """Where the GPUs that a text lists are not the due ones, each once and in their order; a clause each.

    What the text leaves out of an entry is not compared, nor is a GPU missing at the end of the list
    a mismatch: it has no figure then, which the check says.
    """
    indices = [entry.index for entry in output.gpus]
    if not indices or indices != list(range(len(indices))) or len(indices) > len(due):
        numbers = ", ".join(map(str, indices)) or "none"
        yield f"lists {len(indices)} GPUs numbered {numbers}, and {len(due)} are due"
        return
    for entry, gpu in zip(output.gpus, due, strict=False):
        yield from entry_mismatches(entry, gpu)


def entry_mismatches(entry: GpuEntry, gpu: Gpu) -> Iterator[str]:
    """Where one entry names another GPU than this one."""
    for what, printed, wanted in (
        ("named", entry.name, gpu.model),
        ("with the UUID", entry.uuid, gpu.uuid),
        ("at", entry.pci_address, gpu.pci_address),
    ):
        if printed is not None and wanted is not None and printed != wanted:
            yield f"lists GPU {entry.index} {what} {printed}, and {gpu.name} is {wanted}"


def known_to_driver(output: ToolOutput, due: Sequence[Gpu], inventory: Inventory) -> Iterator[str]:
    """Where a list of `nvidia-smi -L` is not of this machine: it may hold GPUs that are not due, in the driver's order."""
    devices: dict[str | None, NvmlDevice] = {device.uuid: device for device in inventory.nvml.devices}
    uuids = [entry.uuid for entry in output.gpus]
    if (indices := [entry.index for entry in output.gpus]) != list(range(len(uuids))):
        yield f"lists GPUs numbered {', '.join(map(str, indices))}"
    for entry in output.gpus:
        device = devices.get(entry.uuid)
        if device is None or entry.uuid is None:
            yield f"lists GPU {entry.index} with the UUID {entry.uuid}, which the driver does not know"
        elif entry.name != device.name:
            yield f"lists GPU {entry.index} named {entry.name}, and the driver calls {entry.uuid} {device.name}"
    for gpu in due:
        if gpu.uuid is not None and uuids.count(gpu.uuid) != 1:
            yield f"lists {gpu.name} ({gpu.uuid}) {uuids.count(gpu.uuid)} times, and it is due once"
    order = [device.uuid for device in inventory.nvml.devices]
    if [uuid for uuid in order if uuid in uuids] != [uuid for uuid in uuids if uuid in order]:
        yield "lists the GPUs in another order than the driver"


def memory(sizes_mib: Sequence[int], due: Sequence[Gpu], inventory: Inventory) -> Iterator[str]:
    """Where the memory of a GPU, as CUDA shows it, is not what NVML's total leaves of it; by the tool's own count."""
    for index, (size, gpu) in enumerate(zip(sizes_mib, due, strict=False)):
        device = gpu_limits.device_of(inventory, gpu)
        if device is None or device.memory_bytes is None:
            continue
        total = device.memory_bytes // MIB
        least = total - _RESERVED_MIB - _RESERVED_SHARE * total
        if not least <= size <= total + 1:
            yield f"says that device {index} has {size} MB of memory, and {gpu.name} has {total} MB by NVML"


def driver(output: ToolOutput, inventory: Inventory) -> Iterator[str]:
    """Where a text names another driver than the one that answers NVML."""
    there = inventory.nvml.driver_version
    if output.driver is not None and there is not None and output.driver != there:
        yield f"ran with driver {output.driver}, and this machine's is {there}"


def of_cuda(device: Device, gpu: Gpu, inventory: Inventory) -> Iterator[str]:
    """Where deviceQuery's block of a GPU gainsays what NVML says of it; what either does not tell is not compared.

    Multiprocessors are not: fewer of them is a fault of the card, which has its limit.
    """
    entry = GpuEntry(device.index, device.name, None, device.pci_address, device.memory_mib)
    yield from entry_mismatches(entry, gpu)
    cuda = inventory.nvml.cuda_driver_version
    if device.driver_version is not None and cuda is not None and device.driver_version != cuda:
        yield f"says that the driver is for CUDA {device.driver_version}, and NVML that it is for CUDA {cuda}"
    known = gpu_limits.device_of(inventory, gpu)
    if known is None or known.traits is None:
        return
    yield from _traits(device, gpu, known.traits)
    yield from memory([device.memory_mib], [gpu], inventory)


def _traits(device: Device, gpu: Gpu, traits: GpuTraits) -> Iterator[str]:
    for what, unit, printed, wanted in (
        ("compute capability", "", device.compute_capability, traits.compute_capability),
        ("a memory bus of", " bits", device.bus_bits, traits.memory_bus_bits),
        ("ECC", "", _switch(device.ecc_enabled), _switch(traits.ecc_enabled)),
    ):
        if printed is not None and wanted is not None and printed != wanted:
            yield f"says {what} {printed}{unit} of {gpu.name}, and NVML {wanted}{unit}"
    for what, clock, highest in (
        ("SM", device.max_clock_mhz, traits.max_sm_clock_mhz),
        ("memory", device.memory_clock_mhz, traits.max_memory_clock_mhz),
    ):
        if clock is not None and highest is not None and clock > _CLOCK_ROUNDING * highest:
            yield f"says that the {what} clock of {gpu.name} goes to {clock:.0f} MHz, and NVML to {highest:.0f} MHz"


def _switch(on: bool | None) -> str | None:
    return None if on is None else "enabled" if on else "disabled"
