"""PCIe Advanced Error Reporting: one event for each report of several kernel messages.

Linux 4 to 6 (drivers/pci/pcie/aer.c) prints a header (`AER: Corrected error received: id=0010`),
then `PCIe Bus Error: severity=...`, then the device's status and the names of its bits (`[12]
Replay Timer Timeout`). If the firmware handles the reports, it prints `aer_status: ...` instead,
the names, and for uncorrected errors `aer_uncor_severity: ...`, whose bits mark the fatal ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from acceptance.observe.event import KernelEvent, Severity, clean, pci_function
from acceptance.observe.kernel_line import KernelLine

_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_CLASS = (
    r"(?P<cls>Corrected|Correctable|Uncorrected|Uncorrectable)(?: "
    r"\((?P<fatality>Fatal|Non-Fatal)\))?"
)
_HEADER = re.compile(
    rf"^\S+ (?P<pci>{_ADDRESS}): AER: (?:Multiple )?{_CLASS} error (?:message )?received",
    re.IGNORECASE,
)
_BUS = re.compile(
    (
        rf"^\S+ (?P<pci>{_ADDRESS}): (?:AER: )?PCIe Bus Error: severity={_CLASS}(?:, "
        r"type=(?P<type>[\w ]+))?"
    ),
    re.IGNORECASE,
)
_BIT = re.compile(rf"^\S+ (?P<pci>{_ADDRESS}):(?: AER:)? +\[ *\d+\] (?P<name>\S.*)$", re.IGNORECASE)
_STATUS = re.compile(
    rf"^\S+ (?P<pci>{_ADDRESS}): (?:AER: )?aer_status: 0x(?P<status>[0-9a-f]{{1,8}})\b",
    re.IGNORECASE,
)
_LEVELS = re.compile(
    rf"^\S+ (?P<pci>{_ADDRESS}): (?:AER: )?aer_uncor_severity: 0x(?P<fatal>[0-9a-f]{{1,8}})\b", re.I
)
# Other AER messages that report an error.
_OTHER = re.compile(
    rf"^\S+ (?P<pci>{_ADDRESS}): (?:AER: )?(?:PCIe Bus Error|aer_(?:un)?cor_status)", re.IGNORECASE
)
# The kernel's names for the bits of the correctable status register, in versions 4 to 6.
_CORRECTABLE = frozenset(
    {
        *(
            "RxErr",
            "BadTLP",
            "BadDLLP",
            "Rollover",
            "Timeout",
            "NonFatalErr",
            "CorrIntErr",
            "HeaderOF",
        ),
        *("Receiver Error", "Bad TLP", "Bad DLLP", "RELAY_NUM Rollover", "REPLAY_NUM Rollover"),
        *("Replay Timer Timeout", "Advisory Non-Fatal", "Advisory Non-Fatal Error"),
        *("Corrected Internal Error", "Header Log Overflow"),
    }
)

_DETAIL_LINES = 12
_MEANING = {
    "corrected": "The link lost or repeated packets and recovered.",
    "non-fatal": (
        "A packet was lost or damaged and could not be recovered; the link itself still works."
    ),
    "fatal": "The link failed.",
    "unknown": "An error of the link that the message does not class.",
}
_ACTION = {
    "corrected": (
        "If it repeats: reseat the card and its riser, shorten or replace the cable, "
        "try the "
        "slot at a lower PCIe generation."
    ),
    "non-fatal": "Reseat the card and its riser; try another slot.",
    "fatal": "Reseat the card, its riser and its power cables; try another slot.",
    "unknown": "Look at the line itself.",
}
_SEVERITY: dict[str, Severity] = {
    "corrected": "warning",
    "non-fatal": "error",
    "fatal": "fatal",
    "unknown": "error",
}


def _code(match: re.Match[str]) -> str:
    if match["cls"].lower().startswith("correct"):
        return "corrected"
    return "fatal" if (match["fatality"] or "").lower() == "fatal" else "non-fatal"


def _event(line: KernelLine, code: str, address: str, bits: Sequence[str] = ()) -> KernelEvent:
    text = f"{line.text.strip()}; {', '.join(bits)}" if bits else line.text
    return KernelEvent(
        "aer",
        code,
        pci_function(address),
        _SEVERITY[code],
        line.time,
        clean(text),
        _MEANING[code],
        _ACTION[code],
    )


def _details(lines: Sequence[KernelLine], index: int) -> Iterator[KernelLine]:
    """Messages after the report that begins at `index`, up to the next report."""
    for line in lines[index + 1 : index + 1 + _DETAIL_LINES]:
        if any(pattern.match(line.text) for pattern in (_HEADER, _BUS, _STATUS)):
            return
        yield line


def _bits(lines: Sequence[KernelLine], index: int, address: str) -> list[str]:
    """Names of the error bits that belong to the report at `index`."""
    found = (_BIT.match(line.text) for line in _details(lines, index))
    # `(First)` is removed here: a pattern that tries it at the end of every run of blanks would
    # take very long.
    return [
        match["name"].rstrip().removesuffix("(First)").rstrip()
        for match in found
        if match and match["pci"].lower() == address.lower()
    ]


def _class(
    lines: Sequence[KernelLine], index: int, status: re.Match[str], bits: Sequence[str]
) -> str:
    """Class of a report that came through the firmware, from the messages after it."""
    for line in _details(lines, index):
        if (levels := _LEVELS.match(line.text)) and levels["pci"].lower() == status["pci"].lower():
            return "fatal" if int(status["status"], 16) & int(levels["fatal"], 16) else "non-fatal"
    return "corrected" if bits and _CORRECTABLE.issuperset(bits) else "unknown"


def _told_below(lines: Sequence[KernelLine], index: int, code: str) -> bool:
    """Whether a bus error of the same class follows the header at `index`, before the next one."""
    for line in lines[index + 1 : index + 1 + _DETAIL_LINES]:
        if _HEADER.match(line.text):
            return False
        if (match := _BUS.match(line.text)) and _code(match) == code:
            return True
    return False


def read(lines: Sequence[KernelLine], index: int) -> list[KernelEvent]:
    """The event that the message at `index` reports, or an empty list."""
    line = lines[index]
    if line.foreign:
        return []
    if match := _BUS.match(line.text):
        return [_event(line, _code(match), match["pci"], _bits(lines, index, match["pci"]))]
    if match := _HEADER.match(line.text):
        code = _code(match)
        return [] if _told_below(lines, index, code) else [_event(line, code, match["pci"])]
    if match := _STATUS.match(line.text):
        bits = _bits(lines, index, match["pci"])
        return [_event(line, _class(lines, index, match, bits), match["pci"], bits)]
    return [_event(line, "unknown", match["pci"])] if (match := _OTHER.match(line.text)) else []
