"""The messages of a kernel log, freed of their stamps: dmesg, raw kmsg, journal, syslog, console captures and pasted pieces of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from acceptance.tools import reading

_JOINED_LIMIT = 1000

_KMSG = re.compile(r"^(?P<priority>\d{1,5}),(?P<sequence>\d+),(?P<usec>\d{1,18}),[^;]*;(?P<rest>.*)$", re.DOTALL)
_KMSG_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_PRIORITY = re.compile(r"^<\d{1,3}>")
_FACILITY = re.compile(r"^(?:kern|user|daemon|syslog) *: ?(?:emerg|alert|crit|err|warn|notice|info|debug) *: ")
_SECONDS = re.compile(r"^\[ *(?P<time>\d{1,12}\.\d{1,9})\] ?")
_CALLER = re.compile(r"^\[ *[TC]\d+\] ?")
_WEEKDAY = re.compile(r"^\[ *(?P<time>(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d+ [\d:]{8}(?:\.\d+)? \d{4})\] ?")
_DELTA = re.compile(r"^\[ *(?:[A-Z][a-z]{2} ?\d+ \d\d:\d\d|[+<] *\d+\.\d+>?)\] ?")
_CLOCK = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"
_BRACKET = re.compile(rf"^\[(?P<time>{_CLOCK}(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)\] ?")
# `dmesg --time-format iso` alone writes a comma before the fraction, and no host name after it.
_DMESG_ISO = re.compile(rf"^(?P<time>{_CLOCK},\d{{6}}[+-]\d\d:\d\d) ")
_JOURNAL = re.compile(
    r"^(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
    rf"|(?:[A-Z][a-z]{{2}} )?{_CLOCK}(?:\.\d+)?(?: ?[A-Z]{{2,5}}|[+-]\d\d:?\d\d| [+-]\d\d)?"
    r"|\d{9,11}\.\d{6}) (?P<host>\S+) (?P<tag>[^\s:\[]+)(?:\[\d+\])?: ?"
)
_HOST_KERNEL = re.compile(r"^(?:[\w.-]+ )?kernel(?:\[\d+\])?: ?")
_DICTIONARY = re.compile(r"^ [A-Z_]+=")
# How a message begins that stands alone although it has no stamp: it does not continue the line before it.
_STARTS = re.compile(
    r"^(?:NVRM|nvidia|nvme|pci|EDAC|mce|MCE|AER|DPC|INFO|BUG|WARNING|Out of|Memory|CPU|EXT4|XFS|BTRFS|Buffer|blk_|ata\d|watchdog"
    r"|Kernel panic|thermal|\{\d+\}\[|\[Hardware|Missed|\*\* |#)"
)


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One message. `time` is seconds since boot as a float where the log gives them, else the wall time as it was written, else None.

    `stamped` says that a stamp which only kernel logs bear was found; `foreign` that another program wrote the line (its name in a
    journal or syslog is not `kernel`).
    """

    text: str
    time: float | str | None = None
    stamped: bool = False
    foreign: bool = False


def unescape(text: str) -> str:
    r"""The text of a /dev/kmsg record: the kernel writes control characters and bytes of UTF-8 as `\xNN`."""
    if "\\x" not in text:
        return text
    data = _KMSG_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    try:
        return data.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return data


def strip_stamps(raw: str) -> KernelLine:
    """Take every stamp off one line; they come alone or several in a row (a journal's before dmesg's, a console's before both)."""
    text, seconds, wall = raw, None, None
    stamped = foreign = False
    if match := _KMSG.match(text):
        seconds, text, stamped = int(match["usec"]) / 1e6, unescape(match["rest"]), True
    while True:
        if match := _SECONDS.match(text):
            seconds, stamped = float(match["time"]), True
        elif match := (_WEEKDAY.match(text) or _DMESG_ISO.match(text)):
            wall, stamped = wall or match["time"], True
        elif match := _DELTA.match(text) or _FACILITY.match(text) or _HOST_KERNEL.match(text):
            stamped = True
        elif match := _BRACKET.match(text):
            wall = wall or match["time"]
        elif match := _JOURNAL.match(text):
            wall = wall or match["time"]
            stamped, foreign = match["tag"] == "kernel", match["tag"] != "kernel"
        elif not (match := _CALLER.match(text) or _PRIORITY.match(text)):
            break
        text = text[match.end() :]
    return KernelLine(text, seconds if seconds is not None else wall, stamped, foreign)


_STAMPLESS: Final = (None, False, False)


def kernel_lines(text: str) -> tuple[KernelLine, ...]:
    """Every message of a log, in its order. A line without any stamp continues the one before it (terminals and mails wrap), unless it
    begins as kernel messages do. The `KEY=value` lines that follow a raw kmsg record are dropped."""
    found: list[KernelLine] = []
    raw_kmsg = False
    for raw in reading.lines(text):
        if raw_kmsg and _DICTIONARY.match(raw):
            continue
        raw_kmsg = _KMSG.match(raw) is not None or raw_kmsg
        line = strip_stamps(raw)
        pieces = [piece for piece in line.text.split("\n") if piece.strip()]
        if not pieces:
            continue
        alone = (line.time, line.stamped, line.foreign) != _STAMPLESS or _STARTS.match(line.text.lstrip()) is not None
        if found and not alone and len(found[-1].text) < _JOINED_LIMIT:
            last = found[-1]
            found[-1] = KernelLine(f"{last.text.rstrip()} {line.text.strip()}", last.time, last.stamped, last.foreign)
        else:
            found.extend(KernelLine(piece, line.time, line.stamped, line.foreign) for piece in pieces)
    return tuple(found)
