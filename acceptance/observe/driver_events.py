"""Messages of NVIDIA's kernel driver: Xid and SXid errors, lost GPUs, GPUs that do not start."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple, cast

from acceptance.core.parts import Component
from acceptance.observe.event import KernelEvent, Severity, clean, pci_function, table, worse
from acceptance.observe.kernel_line import KernelLine

# `NVRM: Xid (PCI:0000:01:00): 79, ...`; older drivers omit `PCI:`, MIG adds ` GPU-I:05`. One line
# of a support ticket may hold several.
_XID = re.compile(
    r"(?:NVRM: )?\bXid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)(?: [^()]*)?\): "
    r"?(?P<code>\d{1,5})\b(?P<rest>(?:(?!NVRM: |\bXid \().)*)"
)
_RECOVERY = re.compile(
    r"recovery action changed from (?:(?!recovery action ).)* to "
    r"0x(?P<value>[0-9a-fA-F]{1,4}) \((?P<name>[^)]*)\)"
)
# `ROBUST_CHANNEL_PREEMPTIVE_REMOVAL` (45) says so since driver 580, in krcErrorSetNotifier.
_CAUSE = re.compile(r"caused by previous Xid (?P<code>\d{1,5})\b")
_NON_FATAL = re.compile(r"\bnon[- ]?fatal\b", re.IGNORECASE)
_FATAL = re.compile(r"\bfatal\b", re.IGNORECASE)
_SXID = re.compile(r"\bSXid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)\): ?(?P<code>\d{1,6})\b(?P<rest>.*)")
# Lines after the first line of an SXid: `10002, Severity 5 Engine instance 00 ...` and `10002,
# Data {0x00000001, ...}`.
_SXID_DETAIL = re.compile(r"^, (?:Severity (?P<level>\d)|Data \{)")


def xid(code: int, text: str = "") -> tuple[Severity, str, str, tuple[str, ...]]:
    """Severity, meaning, action of an Xid, and NVIDIA's catalog's own words for that action.

    `text` is the driver's text after the number.
    """
    entry = cast("dict[str, Any]", table("xid")["xid"]).get(str(code))
    if entry is None:
        return (
            "error",
            "An Xid that rigproof's table does not know.",
            "Look it up in NVIDIA's Xid catalog.",
            (),
        )
    severity: Severity = entry["severity"]
    if entry.get("by_text") and _NON_FATAL.search(text):
        severity = "warning"
    elif entry.get("by_text") and _FATAL.search(text):
        severity = "fatal"
    catalog = tuple(entry[name] for name in ("immediate", "investigatory") if name in entry)
    return severity, entry["meaning"], entry["action"], catalog


def _xid(line: KernelLine, match: re.Match[str]) -> KernelEvent:
    """The event of an Xid; one that another caused counts as that one."""
    cause = _CAUSE.search(match["rest"])
    code = int(cause["code"] if cause else match["code"])
    text = match[0].split("\\n")[0]
    severity, meaning, action, catalog = xid(code, match["rest"])
    if code == 154 and (wanted := _RECOVERY.search(text)):
        severity = table("xid")["recovery_action"].get(str(int(wanted["value"], 16)), "error")
        action, catalog = f"The driver asks for: {clean(wanted['name'])}.", ()
    return KernelEvent(
        "xid",
        code,
        pci_function(match["pci"]),
        severity,
        line.time,
        clean(text),
        meaning,
        action,
        catalog=catalog,
    )


def xids(line: KernelLine) -> list[KernelEvent]:
    """Every Xid in a message, in its order."""
    return [_xid(line, match) for match in _XID.finditer(line.text)] if "Xid (" in line.text else []


@cache
def _sxids() -> dict[int, Mapping[str, Any]]:
    """Table entries by SXid code: those of groups, replaced by a code's own entry if it has one."""
    found: dict[int, Mapping[str, Any]] = {}
    for group in table("sxid")["class"]:
        found |= dict.fromkeys(group["codes"], group)
    return found | {int(code): entry for code, entry in table("sxid")["sxid"].items()}


def sxid(line: KernelLine) -> tuple[KernelEvent, bool] | None:
    """The SXid in a message, or None.

    The flag says whether the message only adds details to the previous one.
    """
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
        severity, meaning, action = (
            worse(severity, entry["severity"]),
            entry["meaning"],
            entry["action"],
        )
    advice = table("sxid")["action"][action]
    event = KernelEvent(
        "sxid",
        code,
        pci_function(match["pci"]),
        severity,
        line.time,
        clean(match[0]),
        meaning,
        advice,
    )
    return event, detail is not None


_XID_MENTION = re.compile(r"NVRM: Xid \(")
_ADDRESS = re.compile(
    r"\b(?:PCI:)?(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)\b"
)
# Status 0x0f is NV_ERR_GPU_IS_LOST (nvstatuscodes.h).
_LOST = re.compile(
    r"fallen off the bus|GPU lost from the bus|NV_ERR_GPU_IS_LOST|"
    r"GspRm\w+ failed.*status=0x0000000f",
    re.IGNORECASE,
)
# NVIDIA's other drivers (`nvidia-gpu` for the USB-C port) fail to probe if nobody needs them.
_INIT = re.compile(
    r"RmInitAdapter failed|rm_init_adapter\S* failed|^nvidia: probe of \S+ failed with "
    r"error|probe with driver nvidia failed with error"
)
# `RmInitAdapter failed! (0x62:0x51:1941)`: where, status, line. 0x51 is NV_ERR_NO_MEMORY: the host
# had none for the driver (nvstatuscodes.h).
_NO_MEMORY = re.compile(r"RmInitAdapter failed! \(0x[0-9a-fA-F]+:0x51:")
_BOARD = re.compile(r"NVRM: GPU at PCI:(?P<pci>[0-9A-Fa-f:.]+): (?P<uuid>GPU-[0-9A-Fa-f-]{36})")
_SERIAL = re.compile(
    r"NVRM: GPU (?:(?P<pci>[0-9A-Fa-f:.]+): GPU serial number is|Board Serial Number:) "
    r"(?P<serial>\d+)"
)
_NEAR_LINES = 4
# The driver may complain about a lost GPU for a while before it logs the Xid.
_AHEAD_LINES = 40


class _Said(NamedTuple):
    """A driver message that means the same wherever it occurs.

    Kind `driver` is for a message that software alone can cause.
    """

    pattern: re.Pattern[str]
    kind: str
    code: str
    meaning: str
    action: str


_SAID = (
    _Said(
        re.compile(r"requires use of the NVIDIA open kernel modules"),
        "driver",
        "open-modules",
        "This GPU needs the open kernel modules, and the closed ones are loaded.",
        "Install the -open flavour of the driver.",
    ),
    _Said(
        re.compile(r"installed in this system is not supported"),
        "driver",
        "unsupported",
        "This driver does not know the GPU.",
        "Install a driver that supports it.",
    ),
    _Said(
        re.compile(r"API mismatch"),
        "driver",
        "mismatch",
        "The driver's kernel module and its libraries are of different versions.",
        "Reboot, or reload the kernel module.",
    ),
    _Said(
        re.compile(r"is already bound to \S|probe routine was not called for"),
        "driver",
        "bound",
        "Another driver holds the GPU.",
        "Keep nouveau (or vfio-pci) from loading, rebuild the initramfs, and reboot.",
    ),
    _Said(
        re.compile(r"No NVIDIA (?:GPU|graphics adapter)s? found"),
        "rm-init",
        "none",
        "The driver found no GPU on the PCI bus.",
        "Reseat the card, its riser and its power cables; look at it with lspci.",
    ),
    _Said(
        re.compile(r"does not have the necessary power cables connected"),
        "rm-init",
        "power",
        "The card's auxiliary power is not connected.",
        "Plug in every power cable of the card.",
    ),
    _Said(
        re.compile(r"BAR\d is 0M @"),
        "rm-init",
        "bar",
        "The firmware gave the GPU no room in the address space.",
        "Turn on Above 4G Decoding in the firmware's setup; update the firmware.",
    ),
)


def address_in(text: str) -> Component | None:
    """The PCI function of the first address in a message, or None."""
    match = _ADDRESS.search(text)
    return pci_function(match["pci"]) if match else None


@dataclass(slots=True)
class NvidiaReader:
    """Reads the messages of a log one by one.

    It knows the whole log, so that it reports each incident only once.
    """

    lines: Sequence[KernelLine]
    _sxids: list[tuple[Component | None, int | str | None]] = field(default_factory=list)
    _lost: set[Component | None] = field(default_factory=set)
    _initialising: list[tuple[int, Component | None]] = field(default_factory=list)
    _no_memory: set[Component | None] = field(default_factory=set)
    _said: list[tuple[int, str]] = field(default_factory=list)
    _xids: set[str] = field(default_factory=set)
    _xids_79: list[tuple[int, Component | None]] = field(default_factory=list)
    _boards: dict[Component | None, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Collect, for the whole log, the driver's own Xids, the losses of GPUs, and the boards."""
        named: Component | None = None
        for index, line in enumerate(self.lines):
            if board := _BOARD.search(line.text):
                named = pci_function(board["pci"])
                self._boards.setdefault(named, {})["uuid"] = board["uuid"]
            elif serial := _SERIAL.search(line.text):
                where = pci_function(serial["pci"]) if serial["pci"] else named
                self._boards.setdefault(where, {})["serial"] = f"board serial {serial['serial']}"
            for event in xids(line):
                if not line.foreign:
                    self._xids.add(event.text)
                if event.code == 79:
                    self._xids_79.append((index, event.component))

    def read(self, index: int) -> list[KernelEvent]:
        """Events of the message at `index`.

        A message that merely mentions Xids (RPC history, stack traces) has none.
        """
        line = self.lines[index]
        if found := xids(line):
            self._lost.update(event.component for event in found if event.code == 79)
            # Another program in the system journal may quote the kernel's message.
            return [
                self._of_board(event)
                for event in found
                if not (line.foreign and event.text in self._xids)
            ]
        if switch := sxid(line):
            event, detail = switch
            repeated = detail and (event.component, event.code) in self._sxids[-5:]
            self._sxids.append((event.component, event.code))
            return [] if repeated else [event]
        return (
            []
            if line.foreign or not line.text.lstrip().startswith(("NVRM", "nvidia"))
            else self._message(index, line)
        )

    def _message(self, index: int, line: KernelLine) -> list[KernelEvent]:
        text = line.text.strip()
        if _XID_MENTION.search(text):
            meaning = "An Xid line that cannot be read."
            return [
                self._event(
                    line, "xid", None, meaning, "Look at the line itself.", address_in(text)
                )
            ]
        if _LOST.search(text):
            return self._lost_gpu(index, line)
        if _INIT.search(text):
            return self._not_started(index, line)
        for said in _SAID:
            if said.pattern.search(text):
                return self._reported(index, line, said)
        return []

    def _reported(self, index: int, line: KernelLine, said: _Said) -> list[KernelEvent]:
        here = address_in(line.text)
        again = here is None and any(
            code == said.code and index - at < _NEAR_LINES for at, code in self._said[-_NEAR_LINES:]
        )
        self._said.append((index, said.code))
        where = here or self._address_before(index)
        return (
            []
            if again
            else [self._event(line, said.kind, said.code, said.meaning, said.action, where)]
        )

    def _lost_gpu(self, index: int, line: KernelLine) -> list[KernelEvent]:
        component = address_in(line.text) or self._address_before(index)
        first = bisect_right(self._xids_79, index, key=itemgetter(0))
        last = bisect_right(self._xids_79, index + _AHEAD_LINES, key=itemgetter(0))
        explained = {where for _, where in self._xids_79[first:last]}
        if (
            component in self._lost
            or component in explained
            or (component is None and (self._lost or explained))
        ):
            return []
        self._lost.add(component)
        meaning = "The GPU no longer answers on the PCIe bus."
        action = (
            "Power the machine off and on, reseat the card and its power cables; if it comes "
            "back, replace the GPU."
        )
        event = self._event(line, "gpu-lost", "bus", meaning, action, component)
        return [self._of_board(replace(event, severity="fatal"))]

    def _not_started(self, index: int, line: KernelLine) -> list[KernelEvent]:
        """One event for the two or three messages with which the driver gives up on a GPU."""
        component = address_in(line.text)
        near = [
            where for at, where in self._initialising[-_NEAR_LINES:] if index - at < _NEAR_LINES
        ]
        self._initialising.append((index, component))
        echo = component in near or (near and (component is None or None in near))
        # every attempt begins to fail with these words
        if echo and "RmInitAdapter failed" not in line.text:
            return []
        if "RmInitAdapter failed" not in line.text and component in self._no_memory:
            return []
        if _NO_MEMORY.search(line.text):
            self._no_memory.add(component)
            meaning = "The driver got no memory from the host, so that it could not start the GPU."
            action = "Free memory, or reboot, and test again; this proves no fault of the GPU."
            return [self._event(line, "driver", "no-memory", meaning, action, component)]
        meaning = "The driver could not start the GPU."
        action = (
            "Look at the lines before it: a driver that does not know the card, a card "
            "without "
            "power, a slot without room."
        )
        return [self._event(line, "rm-init", "adapter", meaning, action, component)]

    def _address_before(self, index: int) -> Component | None:
        """The address in an earlier line of the same message.

        Example: `The NVIDIA GPU ADDRESS` / `installed in this system has` / ...
        """
        for line in reversed(self.lines[max(0, index - _NEAR_LINES) : index]):
            if line.text.lstrip().startswith("NVRM") and (found := address_in(line.text)):
                return found
        return None

    def _of_board(self, event: KernelEvent) -> KernelEvent:
        """The event with the GPU's UUID and the board's serial number, if the driver logs them."""
        board = self._boards.get(event.component) if event.component else None
        return (
            replace(event, text=clean(f"{event.text}; {', '.join(board.values())}"))
            if board
            else event
        )

    @staticmethod
    def _event(
        line: KernelLine,
        kind: str,
        code: str | None,
        meaning: str,
        action: str,
        where: Component | None,
    ) -> KernelEvent:
        hardware = kind != "driver"
        return KernelEvent(
            kind,
            code,
            where,
            "error",
            line.time,
            clean(line.text),
            meaning,
            action,
            hardware=hardware,
        )
