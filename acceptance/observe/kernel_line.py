"""The messages of a kernel log, without their stamps.

Reads dmesg, raw kmsg, the system journal, syslog, console captures and pasted parts of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from acceptance.core import plain_text


def _objects(text: str) -> list[dict[str, Any]]:
    """The records of a text of JSON objects; an empty list for any other text."""
    if not text.lstrip().startswith("{"):
        return []
    try:
        whole = json.loads(text)
        found = (
            whole["dmesg"]
            if isinstance(whole, dict) and isinstance(whole.get("dmesg"), list)
            else [whole]
        )
    except ValueError:
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            return []
    except RecursionError:
        return []
    return found if all(isinstance(each, dict) for each in found) else []


def _message(record: dict[str, Any]) -> str | None:
    """A record's message; the journal writes one that is not plain text as a list of bytes."""
    message = record.get("MESSAGE", record.get("msg"))
    if isinstance(message, list) and all(
        isinstance(each, int) and 0 <= each < 256 for each in message
    ):
        return bytes(message).decode("utf-8", errors="replace")
    return message if isinstance(message, str) else None


def _word(value: object) -> str:
    """A text or a whole number as text; empty for anything else, which may be nested too deep."""
    return str(value) if isinstance(value, str | int) else ""


def _stamp(record: dict[str, Any]) -> str | None:
    """The stamp that a plain text log would have before the message.

    It is dmesg's seconds, or the journal's time, host and program, after the priority where the
    record has one; None if the record has neither.
    """
    number = _word(record.get("PRIORITY", record.get("pri", "")))
    priority = f"<{number}>" if number.isascii() and number.isdigit() and len(number) <= 3 else ""
    time = record.get("time")
    if isinstance(time, float | int) and 0 <= time < 1e12:
        return f"{priority}[{time:.6f}] "
    micros = _word(record.get("__REALTIME_TIMESTAMP", ""))
    kernel = record.get("_TRANSPORT") == "kernel"
    program = "".join(_word(record.get("SYSLOG_IDENTIFIER", "")).split()) or "unknown"
    if micros.isascii() and micros.isdigit() and len(micros) > 14:
        return f"{priority}{micros[:-6]}.{micros[-6:]} host {'kernel' if kernel else program}: "
    return f"{priority}kernel: " if kernel or "msg" in record else None


def json_as_text(text: str) -> str:
    """The same log as lines; a text that is no such JSON is returned unchanged."""
    lines = [(_stamp(record), _message(record)) for record in _objects(text)]
    if not lines or any(stamp is None or message is None for stamp, message in lines):
        return text
    return "".join(
        f"{stamp}{line}\n" for stamp, message in lines for line in (message or "").splitlines()
    )


_JOINED_LIMIT = 1000
_TIMES_LIMIT = 1000
# For the whole text: each of its lines may claim a thousand repeats.
_COPIES_LIMIT = 100_000
# The kernel's own messages end before 1024 characters (LOG_LINE_MAX), and continued ones are joined
# up to _JOINED_LIMIT. A longer line is read in pieces, so that the time grows only as the text
# does, whatever is in its lines.
LONGEST = 4096
# Stamps in one line; console, journal and dmesg together have about six.
_STAMPS_LIMIT = 32
# Terminals break lines at their width, within words. Narrower lines were broken by a mail program,
# between words.
_TERMINAL_WIDTH = 72

_KMSG = re.compile(
    r"^(?P<priority>\d{1,5}),(?P<sequence>\d+),(?P<usec>\d{1,18}),[^;]*;(?P<rest>.*)$", re.DOTALL
)
_KMSG_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_PRIORITY = re.compile(r"^<(?P<priority>\d{1,3})>")
_FACILITIES = "kern|user|mail|daemon|auth|syslog|local\\d"
_LEVELS = {
    **{"emerg": 0, "alert": 1, "crit": 2, "err": 3, "error": 3},
    **{"warn": 4, "warning": 4, "notice": 5, "info": 6, "debug": 7},
}
_PRIORITIES = "|".join(_LEVELS)
_FACILITY = re.compile(rf"^(?:{_FACILITIES}) *: *(?P<level>{_PRIORITIES}) *: ")
_SECONDS = re.compile(r"^\[ *(?P<time>\d{1,12}\.\d{1,9})\] ?")
_CALLER = re.compile(r"^\[ *[TC]\d+\] ?")
# `dmesg -T` and the journal write days and months in the language of the terminal.
_WEEKDAY = re.compile(r"^\[ *(?P<time>\w{1,5}\.? +\w{1,6}\.? +\d+ [\d:]{8}(?:\.\d+)? \d{4})\] ?")
_DELTA = re.compile(r"^\[ *(?:[A-Z][a-z]{2} ?\d+ \d\d:\d\d|[+<] *\d+\.\d+>?)\] ?")
_CLOCK = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"
_BRACKET = re.compile(rf"^\[(?P<time>{_CLOCK}(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)\]:? ?")
# Only `dmesg --time-format iso` has a comma before the fraction and no host name after the time.
_DMESG_ISO = re.compile(rf"^(?P<time>{_CLOCK},\d{{6}}[+-]\d\d:\d\d) ")
_WALL = (
    r"(?P<time>\w{1,6}\.? [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
    rf"|(?:\w{{1,5}}\.? )?{_CLOCK}(?:[.,]\d+)?(?: ?[A-Z]{{1,5}}|[+-]\d\d:?\d\d| [+-]\d\d)?"
    r"|\d{9,11}\.\d{6}) "
)
# Two words and a colon that begin a message: they are no host and program.
_NO_PROGRAM = (
    r"(?:[0-9a-f]{4,8}:[0-9a-f]{2}:|MC\d+: |nvme\d+: |\d+:\d+:|thermal_zone|\([\w-]+\): "
    r"|(?:failure|WATCHDOG|check|arm-smmu\S+): )"
)
# `journalctl --no-hostname` leaves the host out, and busybox's syslogd puts the facility before the
# program. Without a host, the program is the kernel or has a process number: a message may begin
# with any other word and a colon.
_JOURNAL = re.compile(
    rf"^{_WALL}(?!\S+ {_NO_PROGRAM})"
    rf"(?:(?P<host>\S*[^\s:]) (?:(?:{_FACILITIES})\.(?:{_PRIORITIES}) )?"
    r"(?P<tag>[^\s:\[]+)(?:\[\d+\])?:"
    r"|(?P<alone>kernel|[^\s:\[]+(?=\[\d+\]:))(?:\[\d+\])?:) ?"
)
# A time and nothing else before the message: container logs, `ts`.
_TIME = re.compile(rf"^{_WALL}")
# OpenWrt's logread.
_LOGREAD = re.compile(
    rf"^(?P<time>\w{{3}} \w{{3}} +\d+ [\d:]{{8}} \d{{4}}) (?:{_FACILITIES})\.(?:{_PRIORITIES}) "
    r"(?P<tag>[^\s:\[]+)(?:\[\d+\])?: ?"
)
_RFC5424 = re.compile(
    r"^<\d{1,3}>1 (?P<time>\S+) (?P<host>\S+) (?P<tag>\S+) \S+ \S+ (?:-|\[[^\]]*\]) ?"
)
_REPEATED = re.compile(
    r"^message repeated (?P<times>\d{1,6}) times: \[ ?(?P<message>.*?)\]?$", re.DOTALL
)
# Pasted text: list marks, quotes and code marks before a line.
_MARKDOWN = re.compile(r"^\s*(?:(?:>|[*+-](?= +[\[\w`<]))\s*)*`*(?=\S)")
# Prefixes of a stamped line: `grep` adds file and line number, `pdsh` and Talos the host, a console
# its prompt.
_PREFIX = re.compile(
    r"^(?:[\w.-]+ login: |\S{1,200}?[:-] ?)"
    rf"(?=(?:{_FACILITIES}) *: *(?:{_PRIORITIES}) *: \[|"
    r"\[ *\d{1,9}\.\d{3,9}\] |\w{3,6}\.? [ \d]\d \d\d:\d\d:\d\d[. ]|\d{4}-\d\d-\d\d[ "
    r"T]\d\d:\d\d:)"
)
_HOST_KERNEL = re.compile(r"^(?:[\w.-]+ )?kernel(?:\[\d+\])?: ?")
_DICTIONARY = re.compile(r"^ [A-Z_]+=")
# Beginnings of messages: such a line does not continue the previous one, even without a stamp.
_STARTS = re.compile(
    r"^(?:NVRM|nvidia|nouveau|nvme|pci|EDAC|mce|MCE|AER|DPC|INFO|BUG|WARNING|Out "
    r"of|Memory|CPU[\d:]|EXT4|XFS|BTRFS|Buffer|blk_|ata\d"
    r"|watchdog|NMI|rcu:|RAS:|GHES|BERT|I/O error|critical (?:medium|target|nexus)|protection "
    r"error|kernel BUG|Oops|general protection"
    r"|SError|Internal error|Unable to handle|Mem abort|Call trace:"
    r"|Uhhuh|Call Trace|RIP:|Modules linked|Hardware name|perf:|usb \d|sd "
    r"\d|md/|systemd|audit|DMAR|AMD-Vi|iommu"
    r"|JBD2|Aborting journal|\d+ printk messages|device-mapper|zio pool=|NETDEV "
    r"WATCHDOG|mpt[23]sas|mpi3mr|mega|aacraid|AAC|Solaris: WARNING|arm-smmu|dmar:"
    r"|VERIFY\d?\(|PANIC at|\w+: \d+ callbacks suppressed|[0-9a-f]{16} bad mem addr"
    r"|\w[\w-]* [0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?: [^\s:]+)?: "
    r"|Kernel panic|thermal|\{\d+\}\[|\[Hardware|Missed|message repeated|\*\* |#)"
)


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One message.

    `time` is seconds since boot (float) if the log has them, else the wall time as written, else
    None.

    `stamped`: the line had a stamp that only kernel logs have. `foreign`: another program wrote the
    line (its name in a journal or syslog is not `kernel`). `times`: the number of repeats that
    syslog reports for a message it wrote once. `cut`: the line was too long to be read as a whole.
    `level`: the priority, 0 (emergency) to 7 (debug), if the log has it.
    """

    text: str
    time: float | str | None = None
    stamped: bool = False
    foreign: bool = False
    times: int = 1
    cut: bool = False
    level: int | None = None


def pieces(line: KernelLine) -> tuple[KernelLine, ...]:
    """Split a message that is longer than any kernel message; `cut` marks the first piece."""
    text = line.text
    if len(text) <= LONGEST:
        return (line,)
    parts = [text[begin : begin + LONGEST] for begin in range(0, len(text), LONGEST)]
    return tuple(replace(line, text=part, cut=not number) for number, part in enumerate(parts))


def unescape(text: str) -> str:
    r"""The text of a /dev/kmsg record: control characters and UTF-8 bytes are written as `\xNN`."""
    if "\\x" not in text:
        return text
    data = _KMSG_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    try:
        return data.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return data


def strip_stamps(raw: str) -> KernelLine:
    """Remove every stamp from one line.

    A line may have several in a row: a journal's before dmesg's, a console's before both.
    """
    text, seconds, wall, times = _MARKDOWN.sub("", raw), None, None, 1
    if text != raw:
        text = text.removesuffix("`")
    text = _PREFIX.sub("", text)
    stamped = foreign = False
    level: int | None = None
    if match := _KMSG.match(text):
        seconds, text, stamped = int(match["usec"]) / 1e6, unescape(match["rest"]), True
        level = int(match["priority"]) & 7
    for _ in range(_STAMPS_LIMIT):
        if match := _SECONDS.match(text):
            seconds, stamped = float(match["time"]), True
        elif match := (_WEEKDAY.match(text) or _DMESG_ISO.match(text)):
            wall, stamped = wall or match["time"], True
        elif match := _FACILITY.match(text):
            stamped, level = True, _LEVELS[match["level"]]
        elif match := _DELTA.match(text) or _HOST_KERNEL.match(text):
            stamped = True
        elif match := _BRACKET.match(text):
            wall = wall or match["time"]
        elif match := (_JOURNAL.match(text) or _RFC5424.match(text) or _LOGREAD.match(text)):
            wall = wall or match["time"]
            tag = match["tag"] or match["alone"]
            stamped, foreign = tag == "kernel", tag != "kernel"
        elif match := _REPEATED.match(text):
            times, text = min(int(match["times"]), _TIMES_LIMIT), match["message"]
            continue
        elif match := _TIME.match(text):
            wall = wall or match["time"]
        elif match := _PRIORITY.match(text):
            level = int(match["priority"]) & 7
        elif not (match := _CALLER.match(text)):
            break
        text = text[match.end() :]
    time = seconds if seconds is not None else wall
    return KernelLine(text, time, stamped, foreign, times, level=level)


_STAMPLESS: Final = (None, False, False)


def _width(lines: Sequence[str]) -> int | None:
    """The width at which a terminal broke these lines, or None.

    It is the length of the longest lines, if there are several of them.
    """
    widest = max(map(len, lines), default=0)
    return (
        widest
        if widest >= _TERMINAL_WIDTH and sum(len(line) == widest for line in lines) > 1
        else None
    )


def kernel_lines(text: str) -> tuple[KernelLine, ...]:
    """All messages of a log, in order, each as often as it was logged.

    A line without a stamp continues the previous one (terminals and mail programs wrap lines),
    unless it begins like a kernel message. The `KEY=value` lines after a raw kmsg record are
    dropped.
    """
    found: list[KernelLine] = []
    raw_lines = plain_text.lines(json_as_text(text))
    width, before, raw_kmsg, copies = _width(raw_lines), 0, False, 0
    for raw in raw_lines:
        if raw_kmsg and _DICTIONARY.match(raw):
            continue
        raw_kmsg = _KMSG.match(raw) is not None or raw_kmsg
        line = strip_stamps(raw)
        texts = [text for text in line.text.split("\n") if text.strip()]
        if not texts:
            continue
        unstamped = (line.time, line.stamped, line.foreign) == _STAMPLESS
        alone = not unstamped or _STARTS.match(line.text.lstrip()) is not None
        if (
            found
            and not alone
            and len(found[-1].text) < _JOINED_LIMIT
            and len(line.text) <= LONGEST
        ):
            between = "" if before == width else " "
            found[-1] = replace(
                found[-1], text=f"{found[-1].text.rstrip()}{between}{line.text.strip()}"
            )
        else:
            if (
                found and unstamped and raw[:1].isspace()
            ):  # a later line of one message: dmesg and the journal indent it
                line = replace(found[-1], text=line.text)
            read = [part for text in texts for part in pieces(replace(line, text=text, times=1))]
            found.extend(read)
            more = min(line.times - 1, (_COPIES_LIMIT - copies) // len(read))
            copies += more * len(read)
            # Syslog does not say when the repeats occurred.
            found.extend(replace(one, time=None) for one in read * more)
        before = len(raw)
    return tuple(found)
