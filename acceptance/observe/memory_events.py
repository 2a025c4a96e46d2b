"""Machine checks, firmware-reported errors (APEI) and memory errors (EDAC) in a kernel log."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from acceptance.core.parts import Component, Named, Part, parse
from acceptance.observe.event import KernelEvent, Severity, clean
from acceptance.observe.kernel_line import KernelLine

_HW = "[Hardware Error]"
# arch/x86/kernel/cpu/mce/core.c prints the bank's status register, whose bits are architectural
# (Intel SDM 3B 17.3.2.2, AMD APM 2 9.3.2).
_BANK = re.compile(
    r"CPU:? ?(?P<cpu>\d+):? Machine Check(?: Exception| Event)?: (?:0x)?(?P<mcg>[0-9a-f]{1,16}) "
    r"Bank (?P<bank>\d+): (?:0x)?(?P<status>[0-9a-f]{6,16})\b"
)
_UNCORRECTED, _CONTEXT_CORRUPT = 1 << 61, 1 << 57
# Bit of the global status: a machine check exception interrupted the CPU.
_IN_PROGRESS = 1 << 2
# drivers/edac/mce_amd.c
_AMD = re.compile(
    r"\[Hardware Error\]: (?:Error Status: )?(?P<what>Corrected error|Uncorrected|Deferred "
    r"error|System Fatal error|Fatal error)"
)
_AMD_STATUS = re.compile(
    r"CPU:(?P<cpu>\d+) (?:(?!CPU:).)*MC(?P<bank>\d+)_STATUS\[[^][]*\]: "
    r"0x(?P<status>[0-9a-f]{6,16})\b"
)
_UNRECOVERED = re.compile(
    r"mce: Uncorrected hardware memory error|Machine check: (?!events logged)(?P<what>\S.*)"
)
_LOGGED = re.compile(
    r"(?:mce|MCE): (?:(?!mce: |MCE: ).)*[Mm]achine check events logged|Hardware Error\]: "
    r"Machine check events logged"
)
# drivers/acpi/apei/ghes.c, bert.c
_APEI = re.compile(
    r"(?P<id>\{\d+\})?\[Hardware Error\]: (?:Hardware error from APEI|event severity: )"
)
_APEI_SEVERITY = re.compile(r"event severity: (?P<severity>\w+)")
_APEI_TYPE = re.compile(r"section_type: (?P<type>.+)$")
_APEI_DEVICE = re.compile(r"device_id: (?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
# `EDAC MC0: 1 CE memory read error on LABEL (...`; older kernels print no count and `label
# "LABEL"`, amd64_edac prints its name before MC0.
_EDAC = re.compile(
    r"^EDAC (?:\w+ )?MC(?P<mc>\d+): (?:(?P<count>\d{1,9}) "
    r"|(?=[CU]E\b))(?P<kind>[CU]E\b)?(?P<rest>.*)"
)
_LABEL = re.compile(r" on (?P<label>[^()\s](?:(?! on )[^()])*?) \(|, label \"(?P<old>[^\"]+)\"")
_NO_LABELS = frozenset({"unknown memory", "any memory", "unknown label"})

_ACTION_MCE = (
    "Read it with rasdaemon or in the BMC's log: it names the CPU, the cache or the memory module."
)
_ACTION_DIMM = "Reseat or replace the memory module; test again."
_APEI_GRADES: dict[str, Severity] = {
    "fatal": "fatal",
    "recoverable": "error",
    "corrected": "warning",
    "info": "info",
}
_AMD_GRADES: dict[str, Severity] = {
    "Corrected error": "warning",
    "Deferred error": "error",
    "Uncorrected": "error",
}
_EDAC_KINDS: dict[str | None, tuple[Severity, str]] = {
    "CE": ("warning", "A memory error was corrected."),
    "UE": ("fatal", "Memory data was lost."),
    None: ("error", "A memory error of which the message does not say whether it was corrected."),
}
_BROKEN_LINES = 2
_EDAC_LINES = 8
_EXPLAINS = frozenset({"mce", "apei", "edac", "memory-failure", "thermal"})
_NEAR_LINES = 20
_NEAR_S = 5.0


def _status(status: int) -> tuple[Severity, str]:
    """Severity and meaning of a machine check bank's status register."""
    if not status & _UNCORRECTED:
        return "warning", "The CPU found an error and corrected it."
    return (
        (
            "fatal",
            "The CPU found an error that it could not correct, and its own state was damaged.",
        )
        if status & _CONTEXT_CORRUPT
        else ("error", "The CPU found an error that it could not correct.")
    )


def _label(lines: Sequence[KernelLine], index: int, rest: str) -> str | None:
    """The module that the message at `index` names, or None.

    If another message broke it in two, its second half is in one of the next lines.
    """
    texts = [rest]
    if "(" not in rest:
        texts += [
            line.text
            for line in lines[index + 1 : index + 1 + _BROKEN_LINES]
            if not _EDAC.match(line.text)
        ]
    found = next((match for text in texts if (match := _LABEL.search(text))), None)
    label = (found["label"] or found["old"]).rpartition(" on ")[2] if found else ""
    return label if label not in {"", *_NO_LABELS} else None


def edac(lines: Sequence[KernelLine], index: int) -> KernelEvent | None:
    """A memory error that EDAC counted, with the module's label if the message has it; or None."""
    line = lines[index]
    match = None if line.foreign else _EDAC.match(line.text)
    if match is None:
        return None
    label = _label(lines, index, match["rest"])
    component = Part("dimm", label) if label else Named(f"mc{match['mc']}")
    severity, meaning = _EDAC_KINDS[match["kind"]]
    count = int(match["count"] or 1)
    return KernelEvent(
        "edac",
        match["kind"],
        component,
        severity,
        line.time,
        clean(line.text),
        meaning,
        _ACTION_DIMM,
        count=count,
    )


@dataclass(slots=True)
class HardwareErrorReader:
    """Reads the `[Hardware Error]` records of a log one by one.

    A record has many lines; `_until` is the index of the first line after it.
    """

    lines: Sequence[KernelLine]
    notices: list[tuple[int, KernelEvent]] = field(default_factory=list)
    _until: int = 0

    def read(self, index: int) -> list[KernelEvent]:
        """The event that begins at `index`, or an empty list."""
        line = self.lines[index]
        if line.foreign:
            return []
        text = line.text
        if _LOGGED.search(text):
            self.notices.append((index, self._notice(line)))
            return []
        if match := _BANK.search(text):
            if text.startswith("EDAC ") and self._counted_below(index):
                return []
            self._until = index + 6
            severity, meaning = _status(int(match["status"], 16))
            if int(match["mcg"], 16) & _IN_PROGRESS and severity == "warning":
                severity, meaning = "error", "The CPU stopped on a machine check."
            return [
                self._event(
                    "mce",
                    f"bank{match['bank']}",
                    Named(f"cpu{match['cpu']}"),
                    severity,
                    line,
                    meaning,
                )
            ]
        if match := _UNRECOVERED.search(text):
            return [
                self._event(
                    "mce",
                    "uncorrected",
                    None,
                    "fatal",
                    line,
                    "The CPU met an error that could not be corrected.",
                )
            ]
        if _HW not in text:
            return []
        if match := _AMD.search(text):
            return [self._amd(index, line, match)]
        if index >= self._until and (match := _APEI.search(text)):
            return [self._apei(index, line, match["id"] or "")]
        if index >= self._until and (match := _AMD_STATUS.search(text)):
            self._until = index + 8
            severity, meaning = _status(int(match["status"], 16))
            return [
                self._event(
                    "mce",
                    f"bank{match['bank']}",
                    Named(f"cpu{match['cpu']}"),
                    severity,
                    line,
                    meaning,
                )
            ]
        if index >= self._until and not self._told_below(index):
            self._until = index + 12
            return [
                self._event(
                    "mce",
                    "unknown",
                    None,
                    "error",
                    line,
                    "A hardware error of a form that rigproof does not know.",
                )
            ]
        return []

    def unexplained(
        self, events: Sequence[tuple[int, KernelEvent]]
    ) -> list[tuple[int, KernelEvent]]:
        """Notices `Machine check events logged` without an event near them that explains them.

        `events` are in the order of their lines. Such a notice is an error: a machine check
        happened, and the log does not say that it was corrected.
        """
        explaining = [(where, event) for where, event in events if event.kind in _EXPLAINS]
        found = []
        for index, notice in self.notices:
            first = bisect_left(explaining, index - _NEAR_LINES, key=itemgetter(0))
            last = bisect_right(explaining, index + _NEAR_LINES, key=itemgetter(0))
            if not any(_near(event, notice) for _, event in explaining[first:last]):
                found.append((index, notice))
        return found

    def _counted_below(self, index: int) -> bool:
        """Whether a later EDAC line names the module.

        EDAC prints the machine check before it decodes it.
        """
        below = (_EDAC.match(line.text) for line in self.lines[index + 1 : index + 1 + _EDAC_LINES])
        return any(match and match["kind"] for match in below)

    def _told_below(self, index: int) -> bool:
        """Whether this is the line before an AMD record's severity, which becomes the event.

        Example: `MC4 Error (node 0): ...`
        """
        below = (line.text for line in self.lines[index + 1 : index + 5])
        return "Error (node" in self.lines[index].text and any(
            _HW in text and _AMD.search(text) for text in below
        )

    def _amd(self, index: int, line: KernelLine, match: re.Match[str]) -> KernelEvent:
        self._until = index + 10
        severity = _AMD_GRADES.get(match["what"], "fatal")
        meaning = {"warning": "The CPU found an error and corrected it."}.get(
            severity, "The CPU found an error that it could not correct."
        )
        for below in self.lines[index + 1 : index + 5]:
            if where := _AMD_STATUS.search(below.text):
                return self._event(
                    "mce",
                    f"bank{where['bank']}",
                    Named(f"cpu{where['cpu']}"),
                    severity,
                    line,
                    meaning,
                    below.text,
                )
        return self._event("mce", match["what"], None, severity, line, meaning)

    def _apei(self, index: int, line: KernelLine, mark: str) -> KernelEvent:
        end = index
        while (
            end < len(self.lines)
            and f"{mark}{_HW}" in self.lines[end].text
            and not _LOGGED.search(self.lines[end].text)
        ):
            if end > index and "Hardware error from APEI" in self.lines[end].text:
                break
            end += 1
        self._until = end
        body = "\n".join(each.text.rstrip() for each in self.lines[index:end])
        grade, kind, device = (
            _APEI_SEVERITY.search(body),
            re.search(_APEI_TYPE.pattern, body, re.MULTILINE),
            _APEI_DEVICE.search(body),
        )
        severity: Severity = _APEI_GRADES.get(grade["severity"], "error") if grade else "error"
        meaning = (
            "The firmware reported an error and corrected it."
            if severity in {"warning", "info"}
            else "The firmware reported an error."
        )
        code = kind["type"].strip() if kind else None
        more = "; ".join(found[0] for found in (grade, kind, device) if found)
        return self._event(
            "apei", code, parse(device["pci"]) if device else None, severity, line, meaning, more
        )

    def _notice(self, line: KernelLine) -> KernelEvent:
        return self._event(
            "mce",
            "logged",
            None,
            "error",
            line,
            "A machine check was logged; the text does not say that it was corrected.",
        )

    def _event(
        self,
        kind: str,
        code: str | None,
        component: Component | None,
        severity: Severity,
        line: KernelLine,
        meaning: str,
        more: str = "",
    ) -> KernelEvent:
        text = f"{line.text.strip()}; {more.strip()}" if more else line.text
        return KernelEvent(
            kind, code, component, severity, line.time, clean(text), meaning, _ACTION_MCE
        )


def _near(first: KernelEvent, second: KernelEvent) -> bool:
    return (
        not (isinstance(first.time, float) and isinstance(second.time, float))
        or abs(first.time - second.time) <= _NEAR_S
    )
