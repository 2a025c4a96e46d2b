"""The tables of a machine file that say what should be there: TOML's shapes and types, nothing more."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

# Far above any machine, far below what would hang a plan that names every component or overflow a float.
Positive = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
# As many as NVIDIA's driver serves in a machine: NV_MAX_DEVICES in nvlimits.h of open-gpu-kernel-modules.
DRIVER_GPUS = 32
MOST_GPUS = 2 * DRIVER_GPUS  # a later driver may serve more; a plan names every pair
MOST_LINKS = 144  # NVML lists up to 18 a GPU today
Text = Annotated[str, msgspec.Meta(min_length=1)]
# As the kernel writes it: a domain of four digits, longer only where it must be. NVML's eight-digit form would never be equal to it.
_ADDRESS = "^([0-9a-f]{4}|[1-9a-f][0-9a-f]{4,7}):[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]$"
_GpuNumber = Annotated[int, msgspec.Meta(ge=0, le=MOST_GPUS - 1)]
# What keys with a form of their own must be, as a sentence ends.
FORMS = {
    "pci_id": 'vendor and device as `lspci -n` prints them, such as "10de:2684"',
    "address": 'a PCI address as `lspci -D` prints it, such as "0000:65:00.0"',
    "link_width": "1, 2, 4, 8 or 16",
    "link_gen": "1, 2, 3, 4, 5 or 6",
    "between": "the numbers of two GPUs, such as [0, 1]",
    "path": 'what `nvidia-smi topo -m` prints: "NV" and the number of links (such as "NV12"), "PIX", "PXB", "PHB", "NODE" or "SYS"',
}


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table in which every key must be known."""


class DeclaredCpu(Strict, frozen=True):
    """`[cpu]`: `sockets`, `cores` and `threads` count the whole machine; `cpuburn` names a burn program to drive beside ours."""

    model: Text | None = None
    sockets: Positive | None = None
    cores: Positive | None = None
    threads: Positive | None = None
    governor: Text | None = None
    cpuburn: Text | None = None


class DeclaredDimm(Strict, frozen=True):
    """`[[memory.dimm]]`: one module by its slot, as dmidecode names it."""

    slot: Text
    size_gib: Positive | None = None
    rated_mts: Positive | None = None
    configured_mts: Positive | None = None
    part_number: Text | None = None


class DeclaredMemory(Strict, frozen=True):
    """`[memory]`: `total_gib` is what is installed; `test_share` is the share of free RAM that stressapptest fills."""

    total_gib: Positive | None = None
    dimms: Positive | None = None
    channels: Positive | None = None
    test_share: Annotated[float, msgspec.Meta(gt=0, le=0.95)] | None = None
    dimm: tuple[DeclaredDimm, ...] = ()


class DeclaredDisk(Strict, frozen=True):
    """`[[disk]]`: disks are matched by model and, where given, by serial, never by a kernel name that changes."""

    model: Text
    count: Positive = 1
    size_gb: Positive | None = None
    serial: Text | None = None


class DeclaredLink(Strict, frozen=True):
    """`[[network]]`: one network link by name, with its speed in Mbit/s."""

    name: Text
    speed_mbps: Positive | None = None


class DeclaredGpu(Strict, frozen=True):
    """`[[gpu]]`: one card (or `count` equal ones), in the order of their PCI addresses; each declared fact is compared with that card.

    `nvlink_links` is how many NVLinks of each card are active; 0 says that none is meant to be.
    """

    model: Text | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_GPUS)] = 1
    pci_id: Annotated[str, msgspec.Meta(pattern="^10de:[0-9a-f]{4}$")] | None = None
    address: Annotated[str, msgspec.Meta(pattern=_ADDRESS)] | None = None
    link_width: Literal[1, 2, 4, 8, 16] | None = None
    link_gen: Literal[1, 2, 3, 4, 5, 6] | None = None
    nvlink_links: Annotated[int, msgspec.Meta(ge=0, le=MOST_LINKS)] | None = None


class DeclaredGpuPair(Strict, frozen=True):
    """`[[gpu_pair]]`: what lies between two GPUs, by their numbers (gpu0 is 0), both ways.

    `path` is the way from one to the other as `nvidia-smi topo -m` names it, `p2p` whether each reads and writes the other's memory.
    """

    between: tuple[_GpuNumber, _GpuNumber]
    path: Annotated[str, msgspec.Meta(pattern="^(NV[1-9][0-9]{0,2}|PIX|PXB|PHB|NODE|SYS)$")] | None = None
    p2p: bool | None = None


class DeclaredSystem(Strict, frozen=True):
    """`[system]`: board, firmware and software, each compared as text with what is found."""

    board: Text | None = None
    bios_version: Text | None = None
    kernel: Text | None = None
    driver: Text | None = None
