"""What NVIDIA's kernel driver says: Xid, SXid, a GPU that is gone, an adapter that does not start."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from acceptance.observe.event import Event, Severity, clean, pci_address, table, worse
from acceptance.observe.kernel_line import KernelLine

# `NVRM: Xid (PCI:0000:01:00): 79, ...`; older drivers leave out `PCI:`, MIG adds ` GPU-I:05`. One line of a ticket may hold several.
_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)(?: [^)]*)?\): (?P<code>\d{1,5})\b(?P<rest>(?:(?!NVRM: ).)*)"
)
_XID_MENTION = re.compile(r"NVRM: Xid \(")
_RECOVERY = re.compile(r"recovery action changed from .* to 0x(?P<value>[0-9a-fA-F]{1,4}) \((?P<name>[^)]*)\)")
_NON_FATAL = re.compile(r"\bnon-?fatal\b", re.IGNORECASE)
_FATAL = re.compile(r"\bfatal\b", re.IGNORECASE)
_SXID = re.compile(r"\bSXid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)\): (?P<code>\d{1,6})\b(?P<rest>.*)")
_SXID_DETAIL = re.compile(r"^, (?:Severity (?P<level>\d)|Data \{)")
_ADDRESS = re.compile(r"\b(?:PCI:)?(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)\b")
_LOST = re.compile(r"fallen off the bus|GPU lost from the bus|NV_ERR_GPU_IS_LOST", re.IGNORECASE)
_INIT = re.compile(
    r"RmInitAdapter failed|rm_init_adapter\S* failed|probe (?:of \S+|with driver nvidia) failed with error"
)
_OPEN_MODULES = re.compile(r"requires use of the NVIDIA open kernel modules")
_MISMATCH = re.compile(r"API mismatch")


def address_in(text: str) -> str | None:
    """The first PCI address in a message, or None."""
    match = _ADDRESS.search(text)
    return pci_address(match["pci"]) if match else None


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
    return severity, entry["meaning"], entry["action"]


def _xid(line: KernelLine, match: re.Match[str]) -> Event:
    code = int(match["code"])
    text = match[0].split("\\n")[0]
    severity, meaning, action = xid(code, text)
    if code == 154 and (wanted := _RECOVERY.search(text)):
        severity = table("xid")["recovery_action"].get(str(int(wanted["value"], 16)), "error")
        action = f"The driver asks for: {clean(wanted['name'])}."
    return Event("xid", code, pci_address(match["pci"]), severity, line.time, clean(text), meaning, action)


def _sxid(line: KernelLine, match: re.Match[str]) -> Event:
    code, rest = int(match["code"]), match["rest"]
    entry = cast("dict[str, Any]", table("sxid")["sxid"]).get(str(code), {})
    detail = _SXID_DETAIL.match(rest)
    severity: Severity = "error"
    if _NON_FATAL.search(rest):
        severity = "warning"
    elif _FATAL.search(rest) or (detail and detail["level"] == "1"):
        severity = "fatal"
    if entry:
        severity = worse(severity, entry["severity"])
    meaning = entry.get("meaning", "An error of an NVSwitch.")
    action = "Reset all GPUs and NVSwitches (or reboot); if it comes back, replace the baseboard."
    return Event("sxid", code, pci_address(match["pci"]), severity, line.time, clean(match[0]), meaning, action)


@dataclass(slots=True)
class NvidiaReader:
    """Reads a log's messages one by one; it remembers what it needs so that one incident is not told twice."""

    lines: Sequence[KernelLine]
    _sxids: list[tuple[str | None, int | str | None]] = field(default_factory=list)
    _lost: set[str | None] = field(default_factory=set)
    _initialising: int | None = None

    def read(self, index: int) -> list[Event]:
        """The events of the message at `index`; none for what merely speaks of Xids (RPC history, stack traces)."""
        line = self.lines[index]
        if xids := [_xid(line, match) for match in _XID.finditer(line.text)]:
            self._lost.update(event.component for event in xids if event.code == 79)
            return xids
        if match := _SXID.search(line.text):
            event = _sxid(line, match)
            repeated = _SXID_DETAIL.match(match["rest"]) and (event.component, event.code) in self._sxids[-5:]
            self._sxids.append((event.component, event.code))
            return [] if repeated else [event]
        if line.foreign or not line.text.lstrip().startswith(("NVRM", "nvidia")):
            return []
        return self._message(index, line)

    def _message(self, index: int, line: KernelLine) -> list[Event]:
        text = line.text
        if _XID_MENTION.search(text):
            return [
                self._event("xid", None, "error", line, "An Xid line that cannot be read.", "Look at the line itself.")
            ]
        if _LOST.search(text):
            component = address_in(text) or self._address_before(index)
            if component in self._lost or (component is None and self._lost):
                return []
            self._lost.add(component)
            meaning = "The GPU no longer answers on the PCIe bus."
            action = (
                "Power the machine off and on, reseat the card and its power cables; if it comes back, replace the GPU."
            )
            return [self._event("gpu-lost", "bus", "fatal", line, meaning, action, component)]
        if _INIT.search(text):
            told = self._initialising is not None and index - self._initialising <= 3
            self._initialising = index
            action = "Look at the lines before it: a driver that does not know the card, a card without power, a slot without room."
            return (
                []
                if told
                else [self._event("rm-init", "adapter", "error", line, "The driver could not start the GPU.", action)]
            )
        if _OPEN_MODULES.search(text):
            meaning = "This GPU needs the open kernel modules, and the closed ones are loaded."
            return [
                self._event(
                    "driver", "open-modules", "error", line, meaning, "Install the -open flavour of the driver."
                )
            ]
        if _MISMATCH.search(text):
            meaning = "The driver's kernel module and its libraries are of different versions."
            return [self._event("driver", "mismatch", "error", line, meaning, "Reboot, or reload the kernel module.")]
        return []

    def _address_before(self, index: int) -> str | None:
        """The address of a message that runs over several lines: `The NVIDIA GPU ADDRESS` / `installed in this system has` / ..."""
        for line in reversed(self.lines[max(0, index - 4) : index]):
            if line.text.lstrip().startswith("NVRM") and (found := address_in(line.text)):
                return found
        return None

    def _event(
        self,
        kind: str,
        code: str | None,
        severity: Severity,
        line: KernelLine,
        meaning: str,
        action: str,
        component: str | None = None,
    ) -> Event:
        where = component or address_in(line.text)
        return Event(
            kind, code, where, severity, line.time, clean(line.text), meaning, action, hardware=kind != "driver"
        )
