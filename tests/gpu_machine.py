"""Machines with GPUs, for tests: their files under a root, and what NVML says of them, healthy
until a test changes it.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import msgspec
from machine_tree import NO_DMI, Programs, Tree, completed

from acceptance.core.parts import Gpu as GpuName
from acceptance.machine.gpu import Gpu
from acceptance.machine.inventory import (
    GpuCounters,
    GpuProcess,
    GpuTraits,
    Inventory,
    NvLink,
    NvmlAnswer,
    NvmlDevice,
    NvmlPair,
    PciFunction,
)
from acceptance.observe.inventory import observe
from acceptance.process.deadline import Deadline

TRAITS = GpuTraits(
    compute_capability="8.9",
    cuda_cores=16384,
    max_sm_clock_mhz=3105.0,
    max_memory_clock_mhz=10501.0,
    memory_bus_bits=384,
    max_link_gen=4,
    max_link_gen_here=4,
    max_link_width_here=16,
    power_limit_w=450.0,
    power_limit_default_w=450.0,
    max_temperature_c=84.0,
    slowdown_temperature_c=None,
    shutdown_temperature_c=None,
    memory_max_temperature_c=None,
    mig_enabled=None,
    compute_mode="default",
    display_active=False,
    persistence=True,
    ecc_enabled=False,
    numa_node=0,
    cpu_affinity=(0, 1),
    fabric_state="not-supported",
    fabric_status=None,
    virtualised=False,
    compute_processes=(),
    graphics_processes=(),
    memory_thermometer=False,
)
NO_COUNTERS = GpuCounters(*[None] * len(GpuCounters.__slots__))
COUNTERS = GpuCounters(
    ecc_corrected=0,
    ecc_uncorrected=0,
    ecc_corrected_total=0,
    ecc_uncorrected_total=0,
    remapped_corrected=0,
    remapped_uncorrected=0,
    remap_pending=False,
    remap_failed=False,
    retired_single=0,
    retired_double=0,
    retired_pending=False,
    pcie_replays=0,
    nvlink_replays=0,
    nvlink_recoveries=0,
    nvlink_crc_errors=0,
)
SOMEBODY = GpuProcess(4711, "python3", 3 << 29)


def uuid(index: int) -> str:
    """The UUID of the GPU with this index."""
    return f"GPU-{index:08x}-0000-4000-8000-000000000000"


def address(index: int) -> str:
    """The PCI address of the GPU with this index."""
    return f"0000:{index + 1:02x}:00.0"


def link(
    number: int, *, active: bool = True, to: int | None = None, speed_gbs: float | None = 25.0
) -> NvLink:
    """An NVLink; `to` is the index of the GPU at its other end."""
    remote = address(to) if to is not None else None
    return NvLink(
        number,
        active,
        "4.0",
        speed_gbs if active else None,
        remote,
        "gpu" if remote else None,
        0,
        0,
        0,
    )


def device(index: int, /, *, traits: GpuTraits | None = TRAITS, **more: object) -> NvmlDevice:
    """A GeForce RTX 4090, with the error counters of a data centre card."""
    known = NvmlDevice(
        index=index,
        uuid=uuid(index),
        name="NVIDIA GeForce RTX 4090",
        pci_address=address(index),
        serial=None,
        vbios=None,
        memory_bytes=24564 << 20,
        error=None,
        error_code=None,
        traits=traits,
        counters=COUNTERS,
    )
    return replace(known, **more)  # type: ignore[arg-type]


def gpu(index: int, /, **more: object) -> Gpu:
    """That GPU as it is due; `more` changes NVML's record of it."""
    function = PciFunction(
        address(index), "10de:2684", "030000", True, False, "nvidia", True, "a1",
        16.0, 16, 16.0, 16, 16.0, 16, 0,
    )  # fmt: skip
    return Gpu(GpuName(index), function, device(index, **more))  # type: ignore[arg-type]


def pairs(
    count: int, read: str | None = "ok", write: str | None = "ok", path: str = "PHB"
) -> tuple[NvmlPair, ...]:
    """Every ordered pair of so many GPUs."""
    return tuple(
        NvmlPair(a, b, path, read, write, "not-supported") for a, b in permutations(range(count), 2)
    )


def tree_of(root: Path, count: int) -> Tree:
    """The files of a machine with so many GPUs."""
    tree = Tree(root)
    tree.cpus([(core, core + 4) for core in range(4)])
    tree.memory(64)
    for index in range(count):
        tree.gpu(index + 1)
    tree.driver(nodes=(*(f"nvidia{index}" for index in range(count)), "nvidiactl", "nvidia-uvm"))
    return tree


def answer(
    devices: Sequence[NvmlDevice], found: Sequence[NvmlPair] = (), driver: str | None = "570.86.15"
) -> NvmlAnswer:
    """What NVML says of these GPUs."""
    return NvmlAnswer(driver, "12.8", tuple(devices), None, None, tuple(found))


def look(
    tree: Tree,
    devices: Sequence[NvmlDevice],
    found: Sequence[NvmlPair] = (),
    driver: str | None = "570.86.15",
) -> Inventory:
    """The machine as it shows itself."""
    told = msgspec.json.encode(answer(devices, found, driver)).decode()
    programs = Programs(nvml=completed(told), dmidecode=completed(*NO_DMI))
    return observe(tree.root, deadline=Deadline.after(9), run=programs, dmidecode="dmidecode")


@functools.cache
def empty(count: int) -> Inventory:
    """What the kernel shows of a machine with so many GPUs; NVML says nothing yet."""
    with tempfile.TemporaryDirectory() as root:
        return look(tree_of(Path(root), count), ())


def machine(*devices: NvmlDevice, found: Sequence[NvmlPair] | None = None) -> Inventory:
    """A machine with these GPUs, all of which reach each other."""
    return replace(
        empty(len(devices)), nvml=answer(devices, pairs(len(devices)) if found is None else found)
    )
