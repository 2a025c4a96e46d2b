"""KernelEvent: one kernel message about the machine's health; and the tables that explain it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal

from acceptance import resources
from acceptance.core.parts import Component, Function
from acceptance.core.record import Event, Suspicion

Severity = Literal["fatal", "error", "warning", "info"]
RANK: dict[str, int] = {"info": 0, "warning": 1, "error": 2, "fatal": 3}
# Kinds of part whose failure in a run is a fault of the machine: a GPU, a disk with its SATA port,
# a network card, and the bridges above them.
PartKind = Literal["gpu", "disk", "network", "bridge"]

_TEXT_LIMIT = 400
_PCI = re.compile(
    r"^(?:(?P<domain>[0-9A-Fa-f]{1,8}):)?(?P<bus>[0-9A-Fa-f]{2,4}):"
    r"(?P<device>[0-9A-Fa-f]{2})(?:\.(?P<function>[0-7]))?$"
)


@dataclass(frozen=True, slots=True)
class KernelEvent:
    """One event.

    `kind`: xid, sxid, gpu-lost, gpu-hang, rm-init, driver, aer, pcie, iommu, mce, apei, edac,
    memory-failure, thermal, disk, network, oom, hung-task, kernel, lost, unknown. `code`: the Xid
    or SXid number, else a word. `component`: a PCI address with its function (`0000:01:00.0`),
    `cpu3`, `dimm:LABEL`, `mc0`, a disk, a network port; None if the text names none. `time`:
    seconds since boot (float) if the log has them, else the wall time as written (str), else None.
    `text`: the message, cleaned and cut to 400 characters. `hardware`: whether an error of this
    kind proves a fault of the machine. `count`: how many errors the message itself reports.
    `catalog`: what
    NVIDIA's Xid catalog asks for, in its words, at once and then.

    `parts`, `elsewhere`, `resolved`: sound machines print some messages while they start. Such an
    event has its severity for a part of these kinds under test, and `elsewhere` for any other;
    `resolved` says that a later message takes it back. `weigh` decides.
    """

    kind: str
    code: int | str | None
    component: Component | None
    severity: Severity
    time: float | str | None
    text: str
    meaning: str
    action: str
    hardware: bool = True
    count: int = 1
    catalog: tuple[str, ...] = ()
    parts: tuple[PartKind, ...] = ()
    elsewhere: Severity | None = None
    resolved: bool = False

    @property
    def advice(self) -> str:
        """The action, and NVIDIA's own words for it."""
        return (
            f"{self.action} NVIDIA's catalog: {', then '.join(self.catalog)}."
            if self.catalog
            else self.action
        )

    def to_record(self, boot_s: float | None, suspicion: Suspicion | None = None) -> Event:
        """The event as a record of the journal.

        `boot_s` is its time in seconds since boot; None if it came before every check.
        """
        return Event(
            kind=self.kind,
            severity=self.severity,
            text=self.text,
            meaning=self.meaning,
            action=self.action,
            code=self.code,
            component=self.component,
            boot_s=boot_s,
            hardware=self.hardware,
            catalog=self.catalog,
            suspicion=suspicion,
        )

    def to_json_object(self) -> dict[str, object]:
        """The fields that describe the event, by name; `action` is the whole advice."""
        where = str(self.component) if self.component is not None else None
        fields = asdict(self) | {"action": self.advice, "component": where}
        for name in ("hardware", "catalog", "parts", "elsewhere", "resolved"):
            del fields[name]
        return fields


def kind_of(event: KernelEvent, tested: Mapping[str, PartKind]) -> PartKind | None:
    """The kind of the part that an event names; None if it is not under test."""
    name = str(event.component)
    # `ata3.00` is the first disk of the port `ata3`.
    return tested.get(name) or tested.get(name.partition(".")[0])


def weigh(
    events: Iterable[KernelEvent], tested: Mapping[str, PartKind], *, in_run: bool
) -> tuple[KernelEvent, ...]:
    """The events with the severity that they have here.

    `tested`: the parts under test, by their names in messages; empty for a log from before the run.
    Within a run a part under test must not fail even for a moment, so that only outside it a later
    message takes an event back.
    """
    return tuple(_weigh(event, tested, in_run=in_run) for event in events)


def _weigh(event: KernelEvent, tested: Mapping[str, PartKind], *, in_run: bool) -> KernelEvent:
    if event.elsewhere is None:
        return event
    return (
        event
        if kind_of(event, tested) in event.parts and (in_run or not event.resolved)
        else replace(event, severity="info" if event.resolved else event.elsewhere)
    )


def clean(text: str) -> str:
    """A message in the form for reports: one line, control characters escaped, cut."""
    cut = " ".join(text.split())[:_TEXT_LIMIT]
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in cut
    )


def pci_function(text: str) -> Function | None:
    """The PCI function at an address, `0000:01:00.0`, or None.

    Drivers write addresses without function, without domain, with a domain of eight digits, or as
    `0001:00`.
    """
    match = _PCI.match(text)
    if match is None:
        return None
    domain, bus = int(match["domain"] or "0", 16), int(match["bus"], 16)
    address = f"{domain:04x}:{bus:02x}:{match['device'].lower()}.{match['function'] or '0'}"
    return Function(address)


def worse(first: Severity, second: Severity) -> Severity:
    """The worse of two severities."""
    return max(first, second, key=RANK.__getitem__)


def own_load(kind: str, code: int | str | None) -> tuple[bool, bool]:
    """Whether an event suspects the GPU where a good load shows it, and may be a consequence."""
    entry = table("xid")["xid"].get(str(code), {}) if kind == "xid" else {}
    return bool(entry.get("own_load")), bool(entry.get("consequence"))


@cache
def table(name: str) -> dict[str, Any]:
    """One of the tables in fixtures/events. Raises SetupError."""
    with resources.locate(f"events/{name}.toml").open("rb") as file:
        return tomllib.load(file)
