"""Whether each GPU is set up for the test: obstacles that are no fault of the card, with fixes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acceptance.core.limit import GIB
from acceptance.machine.gpu import Gpu, joined
from acceptance.machine.inventory import (
    GpuProcess,
    GpuTraits,
    Inventory,
    NvmlAnswer,
    Users,
)

# NVIDIA, "CUDA Compatibility": programs built with any CUDA 12 run on drivers from 525.60.13 on
# (minor version compatibility).
OLDEST_DRIVER = (525, 60, 13)
# The first driver branch for Linux that supports Blackwell (compute capability 10.0 and above):
# 570.
OLDEST_FOR_BLACKWELL = (570,)
BLACKWELL = 10


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One obstacle to testing a GPU, and its fix."""

    gpu: str
    what: str
    cure: str

    def __str__(self) -> str:
        return f"{self.gpu}: {self.what}: {self.cure}"


def obstacles(inventory: Inventory, due: tuple[Gpu, ...]) -> tuple[Obstacle, ...]:
    """All obstacles to testing the GPUs that are due; empty if all are ready.

    A GPU that NVML does not know, or that stopped answering, is no matter of set-up: `presence`
    reports it.
    """
    return tuple(
        obstacle
        for gpu, traits in known_gpus(inventory.nvml, due)
        for obstacle in (
            *_mode(gpu, traits),
            *_driver(inventory, gpu, traits),
            *_processes(gpu, traits),
        )
    )


def remarks(inventory: Inventory, due: tuple[Gpu, ...]) -> tuple[str, ...]:
    """Remarks for the reader of the report about GPUs that are ready."""
    found = []
    for gpu, traits in known_gpus(inventory.nvml, due):
        if traits.display_active:
            drawing = ", ".join(process_name(one) for one in traits.graphics_processes or ())
            text = f" ({drawing})" if drawing else ""
            found.append(
                f"{gpu.name} drives the display{text}: a part of its memory and some of its rate "
                "go there; for the last per cent test it "
                "without one (`sudo systemctl isolate multi-user.target`)"
            )
        limit_w, default_w = traits.power_limit_w, traits.power_limit_default_w
        if limit_w is not None and default_w is not None and limit_w < default_w:
            found.append(
                f"{gpu.name} may take {limit_w:g} W, less than its usual {default_w:g} W, so it "
                "may miss the floors of its model: "
                f"`sudo nvidia-smi -i {_target(gpu)} -pl {default_w:g}`"
            )
        if traits.compute_processes is None:
            found.append(
                f"{gpu.name}: the driver does not tell which processes compute on it; there "
                "may be some"
            )
        if traits.virtualised:
            found.append(
                f"{gpu.name} is passed through to a virtual machine, which may withhold what "
                "its slot can do and what the host does beside"
            )
    return tuple(found)


def known_gpus(answer: NvmlAnswer, due: tuple[Gpu, ...]) -> Iterator[tuple[Gpu, GpuTraits]]:
    """Each of these GPUs whose traits NVML reported, with the traits."""
    for gpu in joined(due, answer):
        if gpu.traits is not None:
            yield gpu, gpu.traits


def _mode(gpu: Gpu, traits: GpuTraits) -> Iterator[Obstacle]:
    target = _target(gpu)
    if traits.mig_enabled:
        cure = (
            f"end what runs in its instances, then `sudo nvidia-smi -i {target} -mig 0` (it "
            "may "
            "ask for a reset of the card)"
        )
        yield Obstacle(gpu.name, "MIG is on, and a part of a GPU is not the GPU", cure)
    if traits.compute_mode == "prohibited":
        yield Obstacle(
            gpu.name, "compute mode is prohibited", f"`sudo nvidia-smi -i {target} -c DEFAULT`"
        )
    elif traits.compute_mode not in (None, "default"):
        what = f"compute mode is {traits.compute_mode}, and some tools need more than one context"
        yield Obstacle(gpu.name, what, f"`sudo nvidia-smi -i {target} -c DEFAULT`")
    if traits.fabric_state in ("not-started", "in-progress"):
        what = (
            f"the NVLink fabric is {traits.fabric_state.replace('-', ' ')}: CUDA would answer "
            "802, system not yet initialized"
        )
        cure = (
            "install the nvidia-fabricmanager of exactly the driver's version, `sudo systemctl "
            "enable --now nvidia-fabricmanager`, "
            "and look at `journalctl -u nvidia-fabricmanager`"
        )
        yield Obstacle(gpu.name, what, cure)
    elif traits.fabric_state == "completed" and traits.fabric_status not in (0, None):
        what = f"the NVLink fabric did not take this GPU (NVML status {traits.fabric_status})"
        yield Obstacle(
            gpu.name,
            what,
            "`journalctl -u nvidia-fabricmanager` says why; then look for SXid in `dmesg`",
        )


def _driver(inventory: Inventory, gpu: Gpu, traits: GpuTraits) -> Iterator[Obstacle]:
    version = inventory.nvml.driver_version
    numbers = tuple(int(part) for part in (version or "").split(".") if part.isdigit())
    if not numbers:
        return
    major = (traits.compute_capability or "").partition(".")[0]
    blackwell = major.isdigit() and int(major) >= BLACKWELL
    oldest = OLDEST_FOR_BLACKWELL if blackwell else OLDEST_DRIVER
    if numbers < oldest:
        needed = ".".join(map(str, oldest))
        what = (
            f"driver {version} is too old for the CUDA 12.8 programs of the test, which need "
            f"{needed} or newer for this GPU"
        )
        yield Obstacle(
            gpu.name,
            what,
            "install a newer driver (`apt install nvidia-driver`, or NVIDIA's), and reboot",
        )


def compute_processes_of(traits: GpuTraits | Users) -> tuple[GpuProcess, ...]:
    """The compute processes of a GPU, except those that draw on an active display.

    A compositor both computes and draws ("C+G"), and exists as long as the display does.
    """
    drawing = (
        {one.pid for one in traits.graphics_processes or ()} if traits.display_active else set()
    )
    return tuple(one for one in traits.compute_processes or () if one.pid not in drawing)


def _processes(gpu: Gpu, traits: GpuTraits) -> Iterator[Obstacle]:
    for one in compute_processes_of(traits):
        what = (
            f"{process_name(one)} computes on it, which would disturb every figure and be disturbed"
        )
        yield Obstacle(
            gpu.name,
            what,
            f"end it (`ps -p {one.pid}` says whose it is), or come back when it is done",
        )


def _target(gpu: Gpu) -> str:
    """The GPU in a form that nvidia-smi's -i accepts."""
    return gpu.uuid or gpu.pci_address


def process_name(process: GpuProcess) -> str:
    """A process in a message: its name, its process id, and its share of the GPU's memory."""
    held = f", {process.memory_bytes / GIB:.1f} GiB" if process.memory_bytes is not None else ""
    return f"{process.name or 'a process'} (process {process.pid}{held})"
