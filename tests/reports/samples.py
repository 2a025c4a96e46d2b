"""Runs to render: a small one with every kind of outcome, one that passes, and one whose every
text is hostile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import journals
import msgspec
from runs import judged

from acceptance.core.evidence import Observed, Sample, ToolRan
from acceptance.core.finding import Plausible, Waiver, Within
from acceptance.core.limit import Limit
from acceptance.core.message import Message
from acceptance.core.parts import CPU, MACHINE, MEMORY, SYSTEM, Core, Gpu, Part, decode
from acceptance.core.plan import Due, Plan, PlannedCheck
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    Measured,
    Note,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Skipped,
)
from acceptance.journal.run import Run
from acceptance.journal.samples import TimedSample
from acceptance.journal.segment import encoded

PROVENANCE = {"rigproof": "0.1.0", "host": "box", "kernel": "6.12", "commit": "abc"}
LOOKED = "PCI bus: no NVIDIA device -> reseat the card\nkernel driver: not loaded -> the card first"
INVENTORY: dict[str, Any] = {
    "cpu": {"model": "EPYC 9554", "sockets": 1, "cores": 64, "threads": 128},
    "memory": {
        "total_bytes": 24 << 30,
        "dimms": [
            {
                "slot": "A1",
                "size_bytes": 32 << 30,
                "kind": "DDR5",
                "configured_mts": 4800,
                "part_number": "PART",
            },
            {
                "slot": "B1",
                "size_bytes": None,
                "kind": None,
                "configured_mts": None,
                "part_number": None,
            },
        ],
        "dimms_unread": "no rights",
    },
    "disks": [{"name": "nvme0n1", "model": None, "size_bytes": 10**12, "kind": "nvme"}],
    "links": [
        {"name": "eth0", "up": True, "speed_mbps": 10000, "driver": "mlx5"},
        {"name": "eth1", "up": False, "speed_mbps": None, "driver": None},
    ],
    "pci": [
        {"address": "0000:01:00.0", "device_id": "10de:2684", "is_display": True, "driver": None}
    ],
    "nvml": {
        "devices": [
            {
                **{
                    "index": 0,
                    "uuid": "GPU-1",
                    "name": "NVIDIA H200",
                    "pci_address": "0000:01:00.0",
                    "serial": "77",
                },
                **{"vbios": "96.00", "memory_bytes": 141 << 30, "error": None},
                "traits": {"power_limit_w": 700.0, "ecc_enabled": True},
                "links": [{"active": True}, {"active": False}],
            },
            {
                **{"index": 1, "uuid": None, "name": None, "pci_address": None, "serial": None},
                **{
                    "vbios": None,
                    "memory_bytes": None,
                    "error": "NVML says: GPU is lost",
                    "traits": None,
                    "links": [],
                },
            },
        ]
    },
    "board": {
        "vendor": "Maker",
        "name": None,
        "bios_version": "1",
        "kernel": "6",
        "os": "Debian",
        "nvidia_driver": None,
    },
}


def run(bodies: Sequence[Body], torn: Sequence[Message] = ()) -> Run:
    """A run of these records."""
    return judged(journals.entries(bodies), torn)


def seen(
    found: Run, inventory: dict[str, Any] = INVENTORY, matrix: Sequence[tuple[str, ...]] = ()
) -> Run:
    """The run with what the machine showed of itself."""
    return judged((*found.entries, entry(Observed(inventory, tuple(matrix)))), found.torn)


def passing(*checks: PlannedCheck) -> Run:
    """A run in which everything passed."""
    return run(journals.bodies(journals.plan(*checks)))


def mixed_plan() -> Plan:
    """A check for each outcome, with a waiver."""
    floor = Limit("GB/s", "half of the peak", low=10.0, warn_low=12.0)
    none = Limit("count", "no fault is sound", high=0.0)
    waiver = Waiver(reason="a virtual disk", skip="storage.health", component="disk:*")
    spare = Waiver(reason="never needed", measurement="bandwidth", component="memory", worst=1.0)
    checks = (
        journals.check(
            "gpu.present",
            journals.due("gpu_count", MACHINE, "count", Limit("count", "declared", 1.0, 1.0)),
        ),
        journals.check(
            "storage.health", journals.due("disk_faults", Part("disk", "vda"), "count", none)
        ),
        journals.check("memory.bandwidth", journals.due("bandwidth", MEMORY, "GB/s", floor)),
        journals.check(
            "cpu.gemm[f64]",
            *(journals.due("gemm", Core(n), "GFLOP/s", None) for n in range(3)),
        ),
        journals.check("cpu.burn", journals.due("failures", CPU, "count", none)),
        journals.check("cpu.last", journals.due("late", CPU, "count", none)),
        journals.check(
            "kernel_log.during_run", journals.due("kernel_faults", SYSTEM, "count", none)
        ),
    )
    return journals.plan(*checks, waivers=[waiver, spare])


def mixed_bodies() -> list[Body]:
    """What a run of that plan journalled: a fail, a waived skip, a warning, an error, a check
    that never ran, and an Xid.
    """
    made = mixed_plan()
    ids = tuple(check.id for check in made.checks)
    return [
        RunStarted("run-1", made, PROVENANCE, "machine-1"),
        Note("the kernel log was not followed: no rights"),
        SessionStarted("load", made.digest, ids),
        CheckStarted("gpu.present"),
        Measured("gpu.present", "gpu_count", MACHINE, "count", 0.0, note=LOOKED),
        CheckEnded(
            "gpu.present",
            "fail",
            "gpu_count on machine: measured 0, limit = 1; basis: declared",
            0.1,
            ("outside_limit",),
        ),
        CheckStarted("storage.health"),
        Skipped(
            "storage.health",
            "smartctl cannot read it: run it as root",
            "disk_faults",
            Part("disk", "vda"),
        ),
        CheckEnded("storage.health", "pass", "", 0.2),
        CheckStarted("memory.bandwidth"),
        Measured("memory.bandwidth", "bandwidth", MEMORY, "GB/s", 11.0, serial="SN1"),
        ToolRan(
            "memory.bandwidth", ("python", "-m", "load"), 0, 3.0, "logs/memory.bandwidth-1.log"
        ),
        CheckEnded("memory.bandwidth", "pass", "", 3.0),
        CheckStarted("cpu.gemm[f64]"),
        *(Measured("cpu.gemm[f64]", "gemm", Core(n), "GFLOP/s", 30.0 + n) for n in range(3)),
        CheckEnded("cpu.gemm[f64]", "pass", "", 4.0),
        CheckStarted("cpu.burn"),
        Event(
            "xid",
            "fatal",
            "NVRM: Xid 79",
            "the GPU has fallen off the bus",
            "reseat it",
            code=79,
            component=Gpu(0),
        ),
        CheckEnded("cpu.burn", "error", "stress-ng was ended by signal 11", 1.0),
        SessionEnded("load", True, "ended with exit code 1", 9.0),
        RunEnded(False, "stopped by SIGINT"),
    ]


def mixed() -> Run:
    """That run, judged."""
    return run(
        mixed_bodies(), [Message("torn_segment", {"segment": "journal-load.jsonl", "line": "'{'"})]
    )


def hostile(text: str) -> Run:
    """A run in which everything that comes from outside is this text."""
    limit = Limit("count", f"basis {text}", high=0.0)
    due = Due("errors", Part("disk", text), "count", (Within(limit),), f"origin {text}")
    most = Limit("GB/s", f"the most {text}", high=1e9)
    unlimited = Due(
        "rate", Part("disk", text), "GB/s", (Plausible(most),), "none", unlimited=f"because {text}"
    )
    skipped = Due(
        "skipped",
        Part("disk", text),
        "GB/s",
        (Within(Limit("GB/s", f"basis {text}", low=1.0)),),
        "none",
    )
    checks = tuple(
        PlannedCheck(f"subject.{name}", f"title {text}", "load", 1.0, (due, unlimited, skipped))
        for name in ("one", "two", "three")
    )
    made = journals.plan(
        *checks,
        gaps=[f"gap {text}"],
        waivers=[Waiver(reason=f"waiver {text}", skip="subject.three", component=None)],
    )
    bodies: list[Body] = [
        RunStarted("run-1", made, {"host": f"host {text}", "machine": text}, "machine-1"),
        SessionStarted("load", made.digest, tuple(check.id for check in checks)),
        Note(f"note {text}"),
        Note(f"trouble {text}", trouble=True),
        Event(
            "xid",
            "fatal",
            f"said {text}",
            f"meaning {text}",
            f"action {text}",
            component=f"gpu {text}",
            code=text,
        ),
    ]
    for check in checks:
        component = Part("disk", text)
        bodies += [
            CheckStarted(check.id),
            Measured(
                check.id,
                "errors",
                component,
                "count",
                3.0,
                serial=f"serial {text}",
                note=f"note {text}",
            ),
            Measured(
                check.id,
                "rate",
                component,
                "GB/s",
                3.0,
                serial=f"serial {text}",
                note=f"one {text}\ntwo {text}",
            ),
            Skipped(check.id, f"reason {text}", "skipped", component),
            ToolRan(check.id, (f"tool {text}", text), 1, 1.0, f"logs/{text}"),
            Event(
                "xid",
                "error",
                f"said {text}",
                f"meaning {text}",
                f"action {text}",
                component=f"gpu {text}",
            ),
            CheckEnded(
                check.id, "fail" if check.id.endswith("one") else "error", f"message {text}", 1.0
            ),
        ]
    bodies += [SessionEnded("load", False, f"detail {text}", 1.0), RunEnded(False, f"end {text}")]
    return run(
        bodies, [Message("torn_segment", {"segment": "journal-load.jsonl", "line": f"torn {text}"})]
    )


def with_samples(found: Run) -> Run:
    """The run whose samples are those among its own records."""
    seen = [
        msgspec.json.decode(encoded(one), type=TimedSample, dec_hook=decode)
        for one in found.entries
        if isinstance(one.body, Sample)
    ]
    return dataclasses.replace(found, samples=lambda: iter(seen))


def entry(body: Body) -> Entry:
    """A record as a view is shown it."""
    return journals.entries([body])[0]
