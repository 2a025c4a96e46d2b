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
from attack_rules import COUNTED, LOST, MOVES, NOT_NEEDED, UNSEEN_END
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
from acceptance.wording.errors import NotMeasurable

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings"
INDEX: list[dict[str, Any]] = tomllib.loads((RECORDINGS / "INDEX.toml").read_text())["recording"]

# How many times as many attacks as in CI.
TIMES = max(1, int(os.environ.get("RIGPROOF_ATTACKS", "1")))
# Only these say that a text proves nothing; any other exception is a crash.
DECLARED = (UnreadableOutput, LoadFailed, NotMeasurable)
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


def listed(rules: dict[str, tuple[str, ...]], tool: str, line: str) -> bool:
    return any(re.search(pattern, line) for pattern in rules.get(tool, ()))


def figures(worth: Any) -> dict[tuple[str, str], Any]:
    """Every reading of a tool's pass by name and component."""
    return {
        (name, where): (unit, value)
        for name, (unit, by) in worth[0].items()
        for where, value in by.items()
    }


def fewer(whole: Any, left: Any) -> bool:
    """Whether all that is left of a pass is as it was: a judge then misses a reading, and finds
    none that was altered.
    """
    if not isinstance(whole, tuple):  # one object of facts, each absent or as it was
        return all(
            there in (getattr(whole, name), None)
            for name, there in _facts(left, whole)
            if name not in ("dimms", "ecc")
        ) and getattr(left, "ecc", None) in (None, getattr(whole, "ecc", None))
    if whole[1]:  # of a log, that has no other figures than counts of its events
        return all(event in whole[1] for event in left[1])
    return figures(left).items() <= figures(whole).items()


def _facts(left: Any, whole: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(left, name)) for name in type(whole).__slots__]


def moved(whole: Any, left: Any) -> bool:
    """Whether only what is taken over all progress lines moved, and by little; counts of wrong
    results never do.
    """
    one, other = figures(whole), figures(left)
    return one.keys() == other.keys() and all(
        other[key] == value
        or (key[0] in MOVES and abs(other[key][1] - value[1]) <= MOVES[key[0]] * value[1])
        for key, value in one.items()
    )


def without_a_line(healthy: Healthy, places: Sequence[int]) -> None:
    """No text is a pass without a line that it needs."""
    lines, whole = pieces(healthy.text), healthy.worth(healthy.text)
    assert whole != NOT_A_PASS
    for place in places:
        line = lines[place].strip()
        left = healthy.worth("".join(lines[:place] + lines[place + 1 :]))
        if left == NOT_A_PASS:
            continue
        if left == whole:
            assert not line or listed(NOT_NEEDED, healthy.tool, line), (
                f"a pass without the line {line!r}"
            )
        elif listed(LOST, healthy.tool, line):
            assert fewer(whole, left), f"other readings without the line {line!r}"
        else:
            assert healthy.tool == "gpu-burn", (
                f"a pass with other readings without the line {line!r}"
            )
            assert listed(NOT_NEEDED, healthy.tool, line), line
            assert moved(whole, left), line


def with_a_line_again(healthy: Healthy, places: Sequence[int]) -> None:
    """A line that comes twice or too early alters no pass."""
    lines, whole = pieces(healthy.text), healthy.worth(healthy.text)
    for place in places:
        line, before, after = lines[place], lines[:place], lines[place + 1 :]
        # A JSON text is one value: where its lines stand is what it says.
        one_value = healthy.text.lstrip().startswith("{\n") or '"nvbandwidth"' in healthy.text
        swapped = [] if one_value else [[*before, *after[:1], line, *after[1:]]]
        for other in ([*before, line, line, *after], *swapped):
            left = healthy.worth("".join(other))
            if left in (NOT_A_PASS, whole):
                continue
            shown = f"a pass with other readings, for the line {line!r}"
            if listed(COUNTED, healthy.tool, line.strip()):
                continue
            assert listed(LOST, healthy.tool, line.strip()), shown
            assert fewer(whole, left), shown


def ended_early(healthy: Healthy, places: Sequence[int]) -> None:
    """A text that ends too early is no pass."""
    lines, whole = pieces(healthy.text), healthy.worth(healthy.text)
    for place in places:
        left = healthy.worth("".join(lines[:place]))
        if left == NOT_A_PASS:
            continue
        gone = [line.strip() for line in lines[place:] if line.strip()]
        if left == whole:
            assert all(listed(NOT_NEEDED, healthy.tool, line) for line in gone), gone
        else:
            ends = healthy.tool in UNSEEN_END or all(
                listed(LOST, healthy.tool, line) or listed(NOT_NEEDED, healthy.tool, line)
                for line in gone
            )
            assert ends, f"a pass with other readings, cut before {gone[0]!r}"
            assert fewer(whole, left), gone
