"""Healthy texts of every tool and load, how each is read, and what may be done to them."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import load_texts
from gpu_machine import gpu
from nccl_texts import V2_18, V2_28, kinds, processes
from parsers import PARSERS

from acceptance.core.parts import CPU, GPUS, Gpu
from acceptance.loads import asks
from acceptance.loads.asks import AnyAsk
from acceptance.loads.burn import contract as burn
from acceptance.loads.collective import contract as collective
from acceptance.loads.copy import contract as copy
from acceptance.loads.cpu import contract as cpu
from acceptance.loads.gemm import contract as gemm
from acceptance.loads.pulse import contract as pulse
from acceptance.loads.vram import contract as vram
from acceptance.observe import dmi, smart
from acceptance.process.command import ProgramResult
from acceptance.process.unreadable import UnreadableOutput
from acceptance.session import loads
from acceptance.session.loads import LoadFailed, Place
from acceptance.tools import device_query
from acceptance.tools.read import nccl_log
from acceptance.tools.reading import ToolOutput

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings"
INDEX: list[dict[str, Any]] = tomllib.loads((RECORDINGS / "INDEX.toml").read_text())["recording"]

# How many times as many attacks as in CI.
TIMES = max(1, int(os.environ.get("RIGPROOF_ATTACKS", "1")))
# Only these say that a text proves nothing; any other exception is a crash.
DECLARED = (UnreadableOutput, LoadFailed, dmi.DmiUnreadable, smart.SmartUnreadable)
NOT_A_PASS = "no pass"

# What a text is worth: NOT_A_PASS, or all that a judge is given of a pass, to be compared.
Read = Callable[[str], object]


def _tool(
    parse: Callable[[str], ToolOutput], more: Callable[[str], object] = lambda _: None
) -> Read:
    def worth(text: str) -> object:
        try:
            output = parse(text)
            if output.outcome != "pass":
                return NOT_A_PASS
            found = {
                reading.name: (reading.unit, dict(reading.values)) for reading in output.readings
            }
            return found, [dict(event) for event in output.events], more(text)
        except DECLARED:
            return NOT_A_PASS

    return worth


def _load(ask: AnyAsk, place: Place) -> Read:
    def worth(text: str) -> object:
        try:
            output = loads.read(ProgramResult(asks.argv("python", ask), 0, text, "", 1000.0), place)
        except DECLARED:
            return NOT_A_PASS
        # The order of these lines means nothing; that of the wrong results does.
        return (
            frozenset(output.readings),
            frozenset(output.absences),
            frozenset(output.tables),
            output.miscompares,
        )

    return worth


def _facts(parse: Callable[[str, int], Any]) -> Read:
    """dmidecode and smartctl are given the exit code too, and their *pass* is a
    report without a fault.
    """

    def worth(text: str) -> object:
        try:
            found = parse(text, 0)
        except DECLARED:
            return NOT_A_PASS
        return NOT_A_PASS if isinstance(found, smart.Health) and smart.faults(found) else found

    return worth


def _nccl(text: str) -> object:
    """All that NCCL's log says, in the form of a tool's readings; what is said twice is said."""
    try:
        log = nccl_log.parse([text])
    except DECLARED:
        return NOT_A_PASS
    every: dict[str, dict[Any, Any]] = {
        "version": {log.version: True},
        "communicators": dict.fromkeys(log.communicators, True),
        "transports": {ends: one.kind for ends, one in log.transports.items()},
        "remarks": dict.fromkeys(log.remarks, True),
        "choices": dict.fromkeys(log.choices, True),
        "multicast": dict(log.multicast),
        "environment": dict(log.environment),
    }
    return {name: ("", values) for name, values in every.items()}, [], None


GROUP = collective.Ask(backend="nccl", ranks=2, seconds=8.0)
BURN = burn.Ask(dtypes=("f64", "f8"), seconds=8.0, peers=1)
COPY = copy.Ask(seconds=8.0, peers=1)
PULSE = pulse.Ask(gpus=2, steps=(pulse.Step("cold", 8.0), pulse.Step("square", 9.0, 2.0)))
GEMM = gemm.Ask(dtypes=("f64", "f8"), seconds=8.0)
VRAM = vram.Ask(seconds=8.0)
CORES = cpu.Gemm(dtype="float64", seconds=8.0, cores={"all": ((0,), (1,))})
MEMORY = cpu.MemoryBandwidth(seconds=8.0, cores={"all": ((0,), (1,))}, llc_bytes=1 << 20)
OFF = Place(CPU)
ON = Place(Gpu(0), (gpu(0), gpu(1)))
ON_ALL = Place(GPUS, (gpu(0), gpu(1)))
LOADS: Sequence[tuple[AnyAsk, Place]] = (
    *((ask, OFF) for ask in (CORES, MEMORY)),
    *((ask, ON) for ask in (COPY, GEMM, BURN, VRAM)),
    *((ask, ON_ALL) for ask in (GROUP, PULSE)),
)
READ: dict[str, Read] = {
    **{name: _tool(parse) for name, parse in PARSERS.items()},
    "deviceQuery": _tool(device_query.parse, device_query.devices),
    "nccl-log": _nccl,
    "smartctl": _facts(smart.parse),
    "dmidecode": _facts(dmi.parse),
    **{ask.load: _load(ask, place) for ask, place in LOADS},
}


@dataclass(frozen=True, slots=True)
class Healthy:
    """A text that reads as a pass."""

    name: str
    tool: str
    text: str

    def worth(self, text: str) -> object:
        """What the same reader makes of another text."""
        return READ[self.tool](text)


def _recorded() -> Iterator[Healthy]:
    for entry in INDEX:
        if entry.get("outcome") == "pass":
            yield Healthy(entry["path"], entry["tool"], (RECORDINGS / entry["path"]).read_text())


def _loads() -> Iterator[Healthy]:
    uuids = [str(one.uuid) for one in ON_ALL.gpus]
    addresses = [one.pci_address for one in ON_ALL.gpus]
    for ask, place in LOADS:
        about = {"uuids": uuids} if place == ON_ALL else {"uuid": uuids[0]} if place == ON else {}
        own = {"addresses": addresses} if ask == GROUP else {}
        yield Healthy(ask.load, ask.load, load_texts.printed(ask, about, **own))


_NVME = {
    "critical_warning": 0,
    "temperature": 35,
    "available_spare": 100,
    "available_spare_threshold": 10,
    "percentage_used": 3,
    "power_on_hours": 12,
    "media_errors": 0,
}
_SATA = [
    {
        "id": 5,
        "name": "Reallocated_Sector_Ct",
        "when_failed": "",
        "raw": {"value": 0, "string": "0"},
    },
    {
        "id": 197,
        "name": "Current_Pending_Sector",
        "when_failed": "",
        "raw": {"value": 0, "string": "0"},
    },
    {
        "id": 198,
        "name": "Offline_Uncorrectable",
        "when_failed": "",
        "raw": {"value": 0, "string": "0"},
    },
]
_SMARTCTL = {"smartctl": {"version": [7, 4], "exit_status": 0}, "smart_status": {"passed": True}}
_MODULE = """Handle 0x00{0}, DMI type 17, 84 bytes
Memory Device
\tArray Handle: 0x0010
\tTotal Width: 72 bits
\tData Width: 64 bits
\tSize: 64 GB
\tForm Factor: DIMM
\tLocator: DIMM_A{0}
\tBank Locator: BANK {0}
\tType: DDR5
\tSpeed: 4800 MT/s
\tManufacturer: Samsung
\tSerial Number: 0123AB{0}
\tPart Number: M321R8GA0BB0-CQK
\tConfigured Memory Speed: 4800 MT/s

"""
_ARRAY = """# dmidecode 3.5
Getting SMBIOS data from sysfs.
SMBIOS 3.5.0 present.

Handle 0x0010, DMI type 16, 23 bytes
Physical Memory Array
\tLocation: System Board Or Motherboard
\tUse: System Memory
\tError Correction Type: Multi-bit ECC
\tNumber Of Devices: 2

"""


def _hosts() -> Iterator[Healthy]:
    nvme = {**_SMARTCTL, "nvme_smart_health_information_log": _NVME, "temperature": {"current": 35}}
    yield Healthy("smartctl nvme", "smartctl", json.dumps(nvme, indent=2) + "\n")
    sata = {**_SMARTCTL, "ata_smart_attributes": {"table": _SATA}, "power_on_time": {"hours": 12}}
    yield Healthy("smartctl sata", "smartctl", json.dumps(sata, indent=2) + "\n")
    yield Healthy("dmidecode", "dmidecode", _ARRAY + _MODULE.format(11) + _MODULE.format(12))
    yield Healthy(
        "dmidecode of one",
        "dmidecode",
        _ARRAY.replace("Devices: 2", "Devices: 1") + _MODULE.format(11),
    )


def _nccl_logs() -> Iterator[Healthy]:
    said = (
        "P2P is disabled between connected GPUs 1 and 2. You can repress this message with "
        "NCCL_IGNORE_DISABLED_P2P=1.",
        "NCCL_P2P_LEVEL set by environment to SYS",
    )
    for version in (V2_18, V2_28):
        texts = processes(4, kinds, version, exchange=True, extra=said)
        yield Healthy(f"nccl {version.name}", "nccl-log", "".join(texts))


HEALTHY = (*_recorded(), *_loads(), *_hosts(), *_nccl_logs())


def pieces(text: str) -> list[str]:
    r"""The lines of a text with their ends, those that are drawn with `\r` too."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text)
