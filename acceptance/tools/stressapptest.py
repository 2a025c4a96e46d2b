"""stressapptest: its command line, and the parser of its text (versions 1.0.0 to 1.0.11).

Readings, all of component `memory`:

- `stressapptest_copy`, GB/s: the line `Memory Copy`. Upstream's M is 2^20 bytes (`kMegabyte` in
  src/sattypes.h), and each copied page counts twice, as read and as written (`CopyThread` in
  src/worker.h), so this is bytes moved, not bytes copied.
- `stressapptest_incidents`, count: wrong data found.
- `stressapptest_errors`, count: procedural errors, the meaning of the word in upstream's closing
  line (`statuscount_` in src/sat.cc).
- `stressapptest_time`, s: run time of the longest thread.
- `stressapptest_tested`, GiB: memory under test, from `Starting SAT`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from acceptance.core import disk_error, plain_text
from acceptance.core.disk_error import Operation
from acceptance.core.limit import GIB, MIB
from acceptance.core.message import Message, english, known
from acceptance.core.parts import MEMORY
from acceptance.process.unreadable import UnreadableOutput, number
from acceptance.tools.proof import option
from acceptance.tools.reading import Reading, ToolOutput, foreign, plain_lines

TOOL = "stressapptest"
FILLED = 0.99  # of what was asked for: it rounds to its blocks of one MiB
# time(2) counts whole seconds at both ends, so a run may end up to a second early: 39999.55 of
# 40000 s in upstream's issue 117.
_EARLY_S = 1.5

# 1.0.7 and later print `2019/09/24-17:39:39(UTC) ` before each line.
_STAMP = re.compile(r"^\s*_?(?:\d{4}/\d\d/\d\d-\d\d:\d\d:\d\d\(\w+\)\s)?")
_COMMAND = re.compile(r"^Log: Commandline - (?P<words>.*)$")
_STARTING = re.compile(r"^Stats: Starting SAT, (?P<mega>\d+)M, (?P<seconds>\d+) seconds$")
_FOUND = re.compile(r"^Stats: Found (?P<count>\d+) hardware incidents$")
_THREAD = re.compile(r"^Log: Thread \d+ found (?P<count>\d+) hardware incidents$")
_COMPLETED = re.compile(
    r"^Stats: Completed: (?P<data>\d+\.\d+)M in (?P<seconds>\d+\.\d+)s (?P<rate>\d+\.\d+)MB/s, "
    r"with (?P<incidents>\d+) hardware incidents, (?P<errors>\d+) errors$"
)
_COPY = re.compile(r"^Stats: Memory Copy: (?P<data>\d+\.\d+)M at (?P<rate>\d+\.\d+)MB/s$")
_STATUS = re.compile(
    r"^Status: (?P<what>PASS - please verify|FAIL - test discovered HW|FAIL - test "
    r"encountered proc)"
)
# Wrong data, whatever the final status: upstream's issue 56 is a PASS despite CRC mismatches.
_INCIDENT = re.compile(r"(?:Hardware|Page|Block|Report) Error:|CRC mismatch|\bmiscompare on\b")
_PROCEDURE = re.compile(r"^(?:Process Error:|Assertion failed)")
# Of these, the only ones with a number of errno: `Unable to submit async read on disk /dev/sda
# (thread 0). Error 5, Input/output error`.
_SUBMIT = re.compile(r"Unable to submit async \w+ on disk .*\bError (?P<errno>\d{1,4}), ")
_EARLY = re.compile(r"^Log: (?:User exiting|Exiting) early")
# Options that make a PASS worthless: no result check, no error polling, no load, injected errors.
_SPOILT = frozenset(
    {"-F", "--no_errors", "--monitor_mode", "--force_errors", "--force_errors_like_crazy"}
)
_NEEDED = {
    "Stats: Starting SAT": _STARTING,
    "Stats: Completed": _COMPLETED,
    "Stats: Memory Copy": _COPY,
    "Stats: Found": _FOUND,
}


def argv(binary: str, *, megabytes: int, seconds: int, threads: int) -> tuple[str, ...]:
    """The command line: `threads` copy threads over `megabytes` (2^20 bytes) of memory.

    The copy is the one that heats the CPU most (-W). Raises ValueError when it could not run: each
    thread needs room for 3 blocks of 1 MB (with fewer: `freepages < neededpages`).
    """
    if seconds < 1 or threads < 1:
        raise ValueError(
            f"stressapptest needs at least 1 second and 1 thread, not {seconds} and {threads}"
        )
    if megabytes < 3 * threads:
        raise ValueError(
            f"stressapptest needs 3 MB for each of its {threads} threads, not {megabytes} MB in all"
        )
    return (binary, "-s", str(seconds), "-M", str(megabytes), "-m", str(threads), "-W")


def shortfall(argv: Sequence[str], output: ToolOutput) -> Message | None:
    """Why a pass is not of this command line, or None: it filled less."""
    filled = output.reading("stressapptest_tested")[MEMORY]
    due = option(argv, "-M") * MIB / GIB
    if filled < FILLED * due:
        return Message(
            english("filled_less", "stressapptest filled {filled} GiB and was to fill {due} GiB"),
            {"filled": f"{filled:.2f}", "due": f"{due:.2f}"},
        )
    return None


@dataclass(slots=True)
class _Text:
    """Content of the lines, before it is judged."""

    matches: dict[str, re.Match[str]] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    status: str | None = None
    incidents: list[str] = field(default_factory=list)
    procedural: list[str] = field(default_factory=list)
    early: str | None = None


def _collect(text: str) -> _Text:
    found = _Text()
    ours = 0
    for raw in plain_lines(text):
        line = _STAMP.sub("", raw, count=1)
        ours += line.startswith(
            ("Log: ", "Stats: ", "Status: ", "Report Error:", "Hardware Error:", "Process Error:")
        )
        if _INCIDENT.search(line):
            found.incidents.append(line)
        elif _PROCEDURE.match(line):
            submit = _SUBMIT.search(line)
            fault = submit and disk_error.is_fault(int(submit["errno"]), Operation.DATA)
            (found.incidents if fault else found.procedural).append(line)
        elif _EARLY.match(line):
            found.early = line
        elif match := _THREAD.match(line):
            if number(TOOL, line, match["count"]) > 0:
                found.incidents.append(line)
        elif match := _COMMAND.match(line):
            # The options of every such line: a second line must not hide the options of the first.
            found.command += match["words"].split()
        elif line.startswith("Status: "):
            status = _STATUS.match(line)
            if status is None or found.status not in (None, status["what"]):
                raise UnreadableOutput(
                    TOOL,
                    line,
                    Message(
                        english(
                            "status_unknown", "a status that is unknown, or that gainsays another"
                        )
                    ),
                )
            found.status = status["what"]
        else:
            _figure(found, line)
    if ours == 0:
        raise foreign(TOOL, text)
    return found


def _figure(text: _Text, line: str) -> None:
    """Store a line with required figures.

    Raises UnreadableOutput if such a line has an unknown form or comes twice.
    """
    for start, pattern in _NEEDED.items():
        if line.startswith(start):
            match = pattern.match(line)
            if match is None:
                raise UnreadableOutput(
                    TOOL,
                    line,
                    Message(english("figures_unknown", "a line of figures has an unknown form")),
                )
            if start in text.matches:
                raise UnreadableOutput(TOOL, line, Message("line_twice"))
            text.matches[start] = match


def _figures(text: _Text) -> dict[str, float]:
    """Every number of the required lines, as `<line>.<group>`."""
    return {
        f"{start.removeprefix('Stats: ')}.{name}": number(TOOL, match.string, digits)
        for start, match in text.matches.items()
        for name, digits in match.groupdict().items()
    }


def _worthless(text: _Text, figures: dict[str, float]) -> Message | None:
    """Why a run without wrong data still proves nothing, or None."""
    spoilt = sorted(_SPOILT & set(text.command))
    if text.procedural:
        line = plain_text.quote(text.procedural[0])
        return Message("no_work", {"tool": TOOL, "line": line})
    if text.status == "FAIL - test encountered proc" or figures.get("Completed.errors"):
        return Message(
            english(
                "procedural_errors",
                "stressapptest reports procedural errors, which say nothing about the memory",
            )
        )
    if text.early is not None:
        return Message(
            english("stopped_early", "it was stopped early: '{line}'"),
            {"line": plain_text.quote(text.early)},
        )
    for start in _NEEDED:
        if start not in text.matches:
            return Message("line_missing", {"line": start})
    if text.status is None:
        return Message("line_missing", {"line": "Status:"})
    if not text.command:
        return Message(
            english(
                "command_line_missing",
                "the text is cut: the line 'Log: Commandline' is missing, so the checking may "
                "have been left out",
            )
        )
    if spoilt:
        return Message(
            english(
                "option_spoils",
                "it ran with {option}, which leaves out the checking or injects errors",
            ),
            {"option": spoilt[0]},
        )
    if (
        figures["Completed.data"] == 0
        or figures["Memory Copy.data"] == 0
        or figures["Memory Copy.rate"] == 0
    ):
        return Message(english("no_data_copied", "no data was copied"))
    if figures["Completed.seconds"] < figures["Starting SAT.seconds"] - _EARLY_S:
        ran, due = figures["Completed.seconds"], figures["Starting SAT.seconds"]
        return Message("ran_short", {"ran": f"{ran:.4g}", "due": f"{due:.4g}"})
    return None


def parse(text: str) -> ToolOutput:
    """Parse stressapptest's text.

    Any sign of wrong data is a *fail*, whatever the status line says. *pass* needs the status, zero
    incidents, zero errors, copied data, and the requested time. Raises UnreadableOutput.
    """
    found = _collect(text)
    figures = _figures(found)
    counted = max(figures.get("Completed.incidents", 0.0), figures.get("Found.count", 0.0))
    if found.incidents:
        more = len(found.incidents) - 1
        values = known(line=plain_text.quote(found.incidents[0]), more=more or None)
        reason = Message(
            english("wrong_data", "wrong data: '{line}'[ (and {more} more such lines)]"), values
        )
    elif counted or found.status == "FAIL - test discovered HW":
        reason = Message(
            english("incidents_found", "stressapptest found wrong data ({count} incidents)"),
            {"count": f"{counted:.0f}"},
        )
    else:
        why = _worthless(found, figures)
        if why is not None:
            return ToolOutput(TOOL, "error", why)
        ran = figures["Completed.seconds"]
        copied = figures["Memory Copy.rate"] * MIB / 1e9
        tested = figures["Starting SAT.mega"] * MIB / GIB
        readings = (
            Reading("stressapptest_copy", "GB/s", {MEMORY: copied}),
            Reading("stressapptest_incidents", "count", {MEMORY: counted}),
            Reading("stressapptest_errors", "count", {MEMORY: figures["Completed.errors"]}),
            Reading("stressapptest_time", "s", {MEMORY: ran}),
            Reading("stressapptest_tested", "GiB", {MEMORY: tested}),
        )
        return ToolOutput(
            TOOL,
            "pass",
            Message(
                english("stressapptest_passed", "{tested} GiB for {ran} s without wrong data"),
                {"tested": f"{tested:.4g}", "ran": f"{ran:.4g}"},
            ),
            readings,
        )
    counts = (Reading("stressapptest_incidents", "count", {MEMORY: counted}),) if counted else ()
    return ToolOutput(TOOL, "fail", reason, counts)
