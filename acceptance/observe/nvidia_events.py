"""The numbered errors of NVIDIA's kernel drivers: Xid of a GPU, SXid of an NVSwitch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from acceptance.observe.event import Event, Severity, clean, pci_address, table, worse
from acceptance.observe.kernel_line import KernelLine

# `NVRM: Xid (PCI:0000:01:00): 79, ...`; older drivers leave out `PCI:`, MIG adds ` GPU-I:05`. One line of a ticket may hold several.
_XID = re.compile(
    r"(?:NVRM: )?\bXid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)(?: [^()]*)?\): ?(?P<code>\d{1,5})\b(?P<rest>(?:(?!NVRM: |\bXid \().)*)"
)
_RECOVERY = re.compile(
    r"recovery action changed from (?:(?!recovery action ).)* to 0x(?P<value>[0-9a-fA-F]{1,4}) \((?P<name>[^)]*)\)"
)
_NON_FATAL = re.compile(r"\bnon[- ]?fatal\b", re.IGNORECASE)
_FATAL = re.compile(r"\bfatal\b", re.IGNORECASE)
_SXID = re.compile(r"\bSXid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)\): ?(?P<code>\d{1,6})\b(?P<rest>.*)")
# What follows the first line of an SXid: `10002, Severity 5 Engine instance 00 ...` and `10002, Data {0x00000001, ...}`.
_SXID_DETAIL = re.compile(r"^, (?:Severity (?P<level>\d)|Data \{)")


def xid(code: int, text: str = "") -> tuple[Severity, str, str]:
    """Severity, meaning and action of an Xid; `text` is what the driver said beside its number, where it said something."""
    entry = cast("dict[str, Any]", table("xid")["xid"]).get(str(code))
    if entry is None:
        return "error", "An Xid that rigproof's table does not know.", "Look it up in NVIDIA's Xid catalog."
    severity: Severity = entry["severity"]
    if entry.get("by_text") and _NON_FATAL.search(text):
        severity = "warning"
    elif entry.get("by_text") and _FATAL.search(text):
        severity = "fatal"
    buckets = [entry[name] for name in ("immediate", "investigatory") if name in entry]
    catalog = f" NVIDIA's catalog: {', then '.join(buckets)}." if buckets else ""
    return severity, entry["meaning"], entry["action"] + catalog


def _xid(line: KernelLine, match: re.Match[str]) -> Event:
    code = int(match["code"])
    text = match[0].split("\\n")[0]
    severity, meaning, action = xid(code, match["rest"])
    if code == 154 and (wanted := _RECOVERY.search(text)):
        severity = table("xid")["recovery_action"].get(str(int(wanted["value"], 16)), "error")
        action = f"The driver asks for: {clean(wanted['name'])}."
    return Event("xid", code, pci_address(match["pci"]), severity, line.time, clean(text), meaning, action)


def xids(line: KernelLine) -> list[Event]:
    """Every Xid in a message, in its order."""
    return [_xid(line, match) for match in _XID.finditer(line.text)] if "Xid (" in line.text else []


@cache
def _sxids() -> dict[int, Mapping[str, Any]]:
    """What is known of each SXid: the codes that are grouped, then those with an entry of their own."""
    found: dict[int, Mapping[str, Any]] = {}
    for group in table("sxid")["class"]:
        found |= dict.fromkeys(group["codes"], group)
    return found | {int(code): entry for code, entry in table("sxid")["sxid"].items()}


def sxid(line: KernelLine) -> tuple[Event, bool] | None:
    """The SXid in a message, and whether the message only adds details to the one before it; None where there is none."""
    match = _SXID.search(line.text)
    if match is None:
        return None
    code, rest = int(match["code"]), match["rest"]
    entry = _sxids().get(code)
    detail = _SXID_DETAIL.match(rest)
    severity: Severity = "error"
    if _NON_FATAL.search(rest):
        severity = "warning"
    elif _FATAL.search(rest) or (detail and detail["level"] == "1"):
        severity = "fatal"
    meaning, action = "An error of an NVSwitch.", "default" if severity != "warning" else "none"
    if entry:
        severity, meaning, action = worse(severity, entry["severity"]), entry["meaning"], entry["action"]
    advice = table("sxid")["action"][action]
    event = Event("sxid", code, pci_address(match["pci"]), severity, line.time, clean(match[0]), meaning, advice)
    return event, detail is not None
