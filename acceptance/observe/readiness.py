"""Whether each GPU is set up for the test: obstacles that are no fault of the card, with fixes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from acceptance.core import plain_text, record
from acceptance.core.message import Listed, Message, english, known
from acceptance.core.parts import Component
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
# A driver's version as NVIDIA writes it: 535.183.01, 570.86.
_VERSION = re.compile(r"[0-9]{2,4}(?:\.[0-9]{1,4}){0,3}")


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One obstacle to testing a GPU, and its fix."""

    gpu: Component
    what: Message
    cure: Message

    @property
    def message(self) -> Message:
        """The GPU, the obstacle and its fix."""
        about = {"why": self.what, "cure": self.cure}
        why = Message(english("with_cure", "{why}: {cure}"), about)
        return Message(
            english("component_says", "{component}: {why}"),
            {"component": str(self.gpu), "why": why},
        )


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


def remarks(inventory: Inventory, due: tuple[Gpu, ...]) -> tuple[Message, ...]:
    """Remarks for the reader of the report about GPUs that are ready."""
    found: list[Message] = []
    for gpu, traits in known_gpus(inventory.nvml, due):
        if traits.display_active:
            names = tuple(map(process_name, traits.graphics_processes or ()))
            drawing = Listed(names) if names else None
            values = known(gpu=str(gpu.name), drawing=drawing)
            found.append(
                Message(
                    english(
                        "gpu_drives_display",
                        "{gpu} drives the display[ ({drawing})]: a part of its memory and some of "
                        "its rate go there; for the last per cent test it without one (`sudo "
                        "systemctl isolate multi-user.target`)",
                    ),
                    values,
                )
            )
        limit_w, default_w = traits.power_limit_w, traits.power_limit_default_w
        if limit_w is not None and default_w is not None and limit_w < default_w:
            watts = {"limit": f"{limit_w:g}", "usual": f"{default_w:g}"}
            values = {"gpu": str(gpu.name), "target": _target(gpu), **watts}
            found.append(
                Message(
                    english(
                        "gpu_power_limit_low",
                        "{gpu} may take {limit} W, less than its usual {usual} W, so it may miss "
                        "the floors of its model: `sudo nvidia-smi -i {target} -pl {usual}`",
                    ),
                    values,
                )
            )
        for mode, now, then in (
            ("ECC", traits.ecc_enabled, traits.ecc_pending),
            ("MIG", traits.mig_enabled, traits.mig_pending),
        ):
            if now is not None and then is not None and now != then:
                code = (
                    english(
                        "gpu_mode_on_pending",
                        "{gpu}: {mode} is off, and will be on after the next reset of the GPU: "
                        "what was measured then no longer holds",
                    )
                    if then
                    else english(
                        "gpu_mode_off_pending",
                        "{gpu}: {mode} is on, and will be off after the next reset of the GPU: "
                        "what was measured then no longer holds",
                    )
                )
                found.append(Message(code, {"gpu": str(gpu.name), "mode": mode}))
        if traits.compute_processes is None:
            found.append(
                Message(
                    english(
                        "gpu_processes_untold",
                        "{gpu}: the driver does not tell which processes compute on it; there may "
                        "be some",
                    ),
                    {"gpu": str(gpu.name)},
                )
            )
        if traits.virtualised:
            found.append(
                Message(
                    english(
                        "gpu_passed_through",
                        "{gpu} is passed through to a virtual machine, which may withhold what "
                        "its slot can do and what the host does beside",
                    ),
                    {"gpu": str(gpu.name)},
                )
            )
    return tuple(found)


def known_gpus(answer: NvmlAnswer, due: tuple[Gpu, ...]) -> Iterator[tuple[Gpu, GpuTraits]]:
    """Each of these GPUs whose traits NVML reported, with the traits."""
    for gpu in joined(due, answer):
        if gpu.traits is not None:
            yield gpu, gpu.traits


def _mode(gpu: Gpu, traits: GpuTraits) -> Iterator[Obstacle]:
    target = {"target": _target(gpu)}
    if traits.mig_enabled:
        yield Obstacle(
            gpu.name,
            Message(english("mig_is_on", "MIG is on, and a part of a GPU is not the GPU")),
            Message(
                english(
                    "mig_off_cure",
                    "end what runs in its instances, then `sudo nvidia-smi -i {target} -mig 0` "
                    "(it may ask for a reset of the card)",
                ),
                target,
            ),
        )
    cure = Message(english("compute_mode_cure", "`sudo nvidia-smi -i {target} -c DEFAULT`"), target)
    if traits.compute_mode == "prohibited":
        yield Obstacle(
            gpu.name,
            Message(english("compute_mode_prohibited", "compute mode is prohibited")),
            cure,
        )
    elif traits.compute_mode is not None and traits.compute_mode != "default":
        what = Message(
            english(
                "compute_mode_exclusive",
                "compute mode is {mode}, and some tools need more than one context",
            ),
            {"mode": traits.compute_mode},
        )
        yield Obstacle(gpu.name, what, cure)
    yield from _fabric(gpu, traits)


def fabric_obstacles(answer: NvmlAnswer, due: tuple[Gpu, ...]) -> tuple[Obstacle, ...]:
    """The GPUs that are not in their NVLink fabric."""
    return tuple(one for gpu, traits in known_gpus(answer, due) for one in _fabric(gpu, traits))


def _fabric(gpu: Gpu, traits: GpuTraits) -> Iterator[Obstacle]:
    if traits.fabric_state in ("not-started", "in-progress"):
        waiting = traits.fabric_state == "in-progress"
        what = Message(
            english(
                "fabric_in_progress",
                "the NVLink fabric is in progress: CUDA would answer 802, system not yet "
                "initialized",
            )
            if waiting
            else english(
                "fabric_not_started",
                "the NVLink fabric is not started: CUDA would answer 802, system not yet "
                "initialized",
            )
        )
        yield Obstacle(
            gpu.name,
            what,
            Message(
                english(
                    "fabric_start_cure",
                    "install the nvidia-fabricmanager of exactly the driver's version, `sudo "
                    "systemctl enable --now nvidia-fabricmanager`, and look at `journalctl -u "
                    "nvidia-fabricmanager`",
                )
            ),
        )
    elif traits.fabric_state == "completed" and traits.fabric_status not in (0, None):
        what = Message(
            english(
                "fabric_without_gpu",
                "the NVLink fabric did not take this GPU (NVML status {status})",
            ),
            {"status": str(traits.fabric_status)},
        )
        yield Obstacle(
            gpu.name,
            what,
            Message(
                english(
                    "fabric_log_cure",
                    "`journalctl -u nvidia-fabricmanager` says why; then look for SXid in `dmesg`",
                )
            ),
        )
    elif traits.fabric_state not in ("completed", "not-supported", None):
        what = Message(
            english(
                "fabric_state_unknown",
                "the NVLink fabric is in state {state}, which rigproof does not know",
            ),
            {"state": traits.fabric_state},
        )
        yield Obstacle(gpu.name, what, Message("fabric_log_cure"))


def _driver(inventory: Inventory, gpu: Gpu, traits: GpuTraits) -> Iterator[Obstacle]:
    version = inventory.nvml.driver_version
    if version is None or _VERSION.fullmatch(version) is None:
        shown = plain_text.quote(version or "") or None
        what = Message(
            english(
                "driver_unknown",
                "the version of the driver is not known[ (NVML says '{version}')], so nobody can "
                "say whether it is new enough",
            ),
            known(version=shown),
        )
        yield Obstacle(
            gpu.name,
            what,
            Message(
                english(
                    "driver_unknown_cure",
                    "see what `nvidia-smi` says, install the driver anew, and reboot",
                )
            ),
        )
        return
    numbers = tuple(int(part) for part in version.split("."))
    major = (traits.compute_capability or "").partition(".")[0]
    blackwell = major.isdigit() and int(major) >= BLACKWELL
    oldest = OLDEST_FOR_BLACKWELL if blackwell else OLDEST_DRIVER
    if numbers < oldest:
        needed = ".".join(map(str, oldest))
        what = Message(
            english(
                "driver_too_old",
                "driver {version} is too old for the CUDA 12.8 programs of the test, which need "
                "{needed} or newer for this GPU",
            ),
            {"version": version, "needed": needed},
        )
        yield Obstacle(
            gpu.name,
            what,
            Message(
                english(
                    "driver_newer_cure",
                    "install a newer driver (`apt install nvidia-driver`, or NVIDIA's), and reboot",
                )
            ),
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
        what = Message(
            english(
                "gpu_computed_on",
                "{process} computes on it, which would disturb every figure and be disturbed",
            ),
            {"process": process_name(one)},
        )
        yield Obstacle(
            gpu.name,
            what,
            Message(
                english(
                    "process_end_cure",
                    "end it (`ps -p {pid}` says whose it is), or come back when it is done",
                ),
                {"pid": str(one.pid)},
            ),
        )


def _target(gpu: Gpu) -> str:
    """The GPU in a form that nvidia-smi's -i accepts."""
    return gpu.uuid or gpu.pci_address


def process_name(process: GpuProcess) -> Message:
    """A process in a message: its name, its process id, and its share of the GPU's memory."""
    return record.process(process.pid, process.name, process.memory_bytes)
