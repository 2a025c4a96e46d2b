"""stress-ng: its command line, and the parser of its text (versions 0.11 to 0.20).

Readings, each with the stressor's name (`cpu`, `matrix`, `vm`) as component:

- `stress_ng_bogo_ops`, count: the work of all workers of that stressor together. It shows that they
  worked, not how fast: upstream says so, and it changes from version to version.
- `stress_ng_time`, s: wall time of that stressor ("real time").
- `stress_ng_workers`, count: started processes, from the line `dispatching hogs`, which every
  complete text has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acceptance.core import disk_error, parts, plain_text
from acceptance.core.disk_error import Operation
from acceptance.core.message import Listed, Message, english, known
from acceptance.core.parts import CPU, Component
from acceptance.process.unreadable import UnreadableOutput, number
from acceptance.tools.proof import option
from acceptance.tools.reading import Reading, ToolOutput, foreign, plain_lines

_NAME = re.compile(r"^[a-z][a-z0-9-]*$")


def argv(
    binary: str,
    *,
    seconds: int,
    stressor: str = "cpu",
    workers: int = 0,
    options: Mapping[str, str] | None = None,
    temp_path: str | None = None,
) -> tuple[str, ...]:
    """The command line of one verified stressor. `workers` 0 means one for each logical CPU.

    `options` are long options without their dashes; without any, the `cpu` stressor runs all its
    methods. `temp_path` is a writable directory: stress-ng does not start where it cannot write,
    even for a stressor that writes nothing. Raises ValueError for a time below a second, a negative
    number of workers, and an invalid name.
    """
    if seconds < 1 or workers < 0:
        raise ValueError(
            "stress-ng needs at least 1 second and no negative number of workers, not "
            f"{seconds} and {workers}"
        )
    chosen = {"cpu-method": "all"} if options is None and stressor == "cpu" else dict(options or {})
    for name in (stressor, *chosen):
        if not _NAME.match(name):
            raise ValueError(f"'{plain_text.quote(name)}' is no name of a stress-ng option")
    words = [binary, f"--{stressor}", str(workers)]
    for name, value in chosen.items():
        words += [f"--{name}", value]
    words += ["--verify", "--metrics-brief", "--timeout", f"{seconds}s"]
    if temp_path is not None:
        words += ["--temp-path", temp_path]
    return tuple(words)


def shortfall(argv: Sequence[str], output: ToolOutput) -> Message | None:
    """Why a pass is not of this command line of the `cpu` stressor, or None."""
    threads = option(argv, "--cpu")
    started = output.reading("stress_ng_workers")
    if started.get(CPU) != threads:
        return Message(
            english(
                "workers_differ",
                "stress-ng tells of {workers} workers, and there are {threads} logical CPUs to "
                "load",
            ),
            {"workers": f"{started.get(CPU)}", "threads": threads},
        )
    if set(started) != {CPU}:
        stressors = Listed(tuple(map(str, sorted(started))))
        return Message(
            english(
                "stressors_differ",
                "stress-ng tells of the stressors {stressors}, and cpu alone was started",
            ),
            {"stressors": stressors},
        )
    return None


_ERRNO = re.compile(r"errno=(?P<errno>\d{1,4})\b")
# The call that failed, for those of files: `hdd: pwrite failed, errno=5 (Input/output error)`.
_OF_DATA = re.compile(
    r"\b(?:p?(?:read|write)v?2?|f(?:data)?sync|msync|sync_file_range)\b.{0,200}? failed\b"
)
_OF_FILE = re.compile(
    r"\b(?:open|openat|creat|mkdir|rmdir|unlink|rename|link|symlink|(?:posix_)?fallocate"
    r"|f?truncate|[fl]?stat|statx|lseek)\b.{0,200}? failed\b"
)
_HINDERED = re.compile(
    r"operation not permitted|permission denied|out of memory|cannot allocate memory|no space "
    r"left|not implemented|not supported"
    r"|resource temporarily unavailable|temp-path|SIGKILL|SIGTERM|\boom\b"
    # The worker was killed before it closed its counters (stress-ng issues 117 and 125), so nothing
    # was compared.
    r"|metrics-check|corrupted bogo-ops counter|hash error in bogo-ops",
    re.IGNORECASE,
)
# Signals that wrong arithmetic or a wrong address causes; a kill or a time-out sends others.
_SIGNAL = re.compile(
    r"terminated (?:on signal|with unexpected signal|by signal)\b.*?(?P<signal>SIG[A-Z]+|\d+|$)"
)
_FATAL_SIGNALS = frozenset(
    {"SIGSEGV", "SIGILL", "SIGBUS", "SIGFPE", "SIGTRAP", "4", "5", "7", "8", "11"}
)
_STRESSOR_FAILED = re.compile(r"terminated with an error, exit status=2\b")
_NO_PROOF = re.compile(r"finished prematurely|untrustworthy|bogo-op counters are zero")
_SKIP = re.compile(r"not implemented|skipp(?:ed|ing)|disabled '")


@dataclass(slots=True)
class Complaints:
    """Error messages in the text, as printed, in order.

    `faults` are evidence against the machine, `hindrances` against the set-up of the run.
    """

    faults: list[str] = field(default_factory=list)
    hindrances: list[str] = field(default_factory=list)
    stressor_failed: bool = False
    _skips: list[str] = field(default_factory=list)

    def note(self, level: str, text: str) -> None:
        """Sort one line of level fail, error or warn."""
        if self._signal(text):
            return
        if level == "fail":
            fault = _is_fault(text)
            (self.faults if fault else self.hindrances).append(text)
        elif level == "error":
            if _STRESSOR_FAILED.search(text):
                # its `fail` line gives the reason; without that line, this one must count
                self.stressor_failed = True
            else:
                self.hindrances.append(text)
        elif level == "warn" and _NO_PROOF.search(text):
            self.hindrances.append(text)

    def info(self, text: str) -> None:
        """Store an `info` line about a signal or a skipped stressor."""
        if not self._signal(text) and not text.startswith("skipped: ") and _SKIP.search(text):
            self._skips.append(text)

    def skip(self) -> str | None:
        """The first line about a skipped stressor, or None."""
        return plain_text.quote(self._skips[0]) if self._skips else None

    def _signal(self, text: str) -> bool:
        match = _SIGNAL.search(text)
        if match is None:
            return False
        (self.faults if match["signal"] in _FATAL_SIGNALS else self.hindrances).append(text)
        return True


def _is_fault(text: str) -> bool:
    """Whether a `fail` line is evidence against the machine.

    A sound system returns no number besides those of the set-up to a stressor, other than for a
    file, which also the file system may refuse.
    """
    operation = (
        Operation.DATA
        if _OF_DATA.search(text)
        else Operation.FILE
        if _OF_FILE.search(text)
        else Operation.ANY
    )
    if match := _ERRNO.search(text):
        number = int(match["errno"])
        if disk_error.is_fault(number, operation):
            return True
        if disk_error.is_set_up(number) or operation >= Operation.FILE:
            return False
    return _HINDERED.search(text) is None


TOOL = "stress-ng"
# A stressor's time may be shorter than requested by the alarm's rounding, but never by a twentieth.
_SHORTFALL = 0.95

# Any prefix may come before `stress-ng:` (syslog, a CI time stamp); `--timestamp` puts a time
# before the level.
_LINE = re.compile(
    r"^.*?stress-ng: (?:[\d:.]+ )?(?P<level>debug|error|fail|info|metrc|warn): +\[\d+\] "
    r"(?P<text>.*)$"
)
_SETTING = re.compile(r"^(?:setting to|defaulting to) an? (?P<time>.+?) run per stressor$")
_DISPATCH = re.compile(r"^dispatching hogs:(?P<hogs>.*)$")
_HOG = re.compile(r"^(?P<count>\d+) (?P<name>[a-z][\w-]*)$")
_HEADER = re.compile(r"^stressor +bogo ops +real time")
_UNITS = re.compile(r"^ *\(secs\)")
# Name, bogo ops, real, user and system seconds, two rates; 0.14 added CPU used, 0.15 RSS, 0.18 a
# note such as `<--- (1)`.
_ROW = re.compile(
    r"^(?P<name>[a-z][\w-]*) +(?P<ops>\d+) +(?P<real>\d+\.\d+)(?: +\d+\.\d+){4}(?: "
    r"+\d+(?:\.\d+)?)*(?: *<---.*)?$"
)
_COUNT = re.compile(
    r"^(?P<what>skipped|passed|failed|metrics untrustworthy): (?P<count>\d+)(?:: (?P<items>.*))?$"
)
_END = re.compile(r"^(?P<un>un)?successful run completed in (?P<time>.+)$")
_TIMES = re.compile(r"^for a (?P<time>\d+\.\d+)s run time:$")
_DURATION_PART = re.compile(
    r"^(?P<number>\d+(?:\.\d+)?) ?(?P<unit>s|sec|second|min|minute|hour|day|week)s?$"
)
_SECONDS = {
    "s": 1,
    "sec": 1,
    "second": 1,
    "min": 60,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
}


@dataclass(slots=True)
class _Text:
    """Content of the lines, before it is judged."""

    asked: str | None = None
    asked_s: float | None = None
    ended_s: float | None = None
    metrics_level: bool = False
    unsuccessful: bool = False
    hogs: dict[str, int] = field(default_factory=dict)
    dispatched: bool = False
    bogo_ops: dict[str, float] = field(default_factory=dict)
    real_s: dict[str, float] = field(default_factory=dict)
    counts: dict[str, tuple[int, str]] = field(default_factory=dict)
    trouble: Complaints = field(default_factory=Complaints)


def duration(line: str, text: str) -> float:
    """Seconds in `3.00s`, `8.65 secs`, `1 min, 2.50 secs`, `6352.60s (1 hour, ...)`.

    Raises UnreadableOutput, quoting `line`.
    """
    total = 0.0
    for part in text.partition(" (")[0].split(", "):
        match = _DURATION_PART.match(part)
        if match is None:
            raise UnreadableOutput(TOOL, line, Message("time_unknown"))
        total += number(TOOL, line, match["number"]) * _SECONDS[match["unit"]]
    return total


def _hogs(found: _Text, line: str, text: str) -> None:
    found.dispatched = True
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _HOG.match(part)
        if match is None or match["name"] in found.hogs:
            raise UnreadableOutput(
                TOOL,
                line,
                Message(
                    english(
                        "stressors_unknown",
                        "the list of stressors has an unknown form or names one twice",
                    )
                ),
            )
        found.hogs[match["name"]] = int(number(TOOL, line, match["count"]))


def _statement(found: _Text, line: str, text: str) -> None:
    """Read one `info` line. Only a few kinds describe the run; the others are ignored."""
    if match := _SETTING.match(text):
        if found.asked not in (None, match["time"]):
            raise UnreadableOutput(
                TOOL,
                line,
                Message(english("times_differ", "two times are asked for: give one run at a time")),
            )
        found.asked = match["time"]
        found.asked_s = (
            None if match["time"] in {"infinite", "n infinite"} else duration(line, match["time"])
        )
    elif match := _DISPATCH.match(text):
        _hogs(found, line, match["hogs"])
    elif match := _COUNT.match(text):
        if match["what"] in found.counts:
            raise UnreadableOutput(
                TOOL,
                line,
                Message(english("count_twice", "a count is given twice: give one run at a time")),
            )
        found.counts[match["what"]] = (
            int(number(TOOL, line, match["count"])),
            match["items"] or "",
        )
    elif match := _END.match(text):
        if found.ended_s is not None and found.unsuccessful is not bool(match["un"]):
            raise UnreadableOutput(
                TOOL,
                line,
                Message(
                    english(
                        "ends_differ", "the run ends twice and not alike: give one run at a time"
                    )
                ),
            )
        found.ended_s, found.unsuccessful = duration(line, match["time"]), bool(match["un"])
    elif match := _TIMES.match(text):
        # `--times` prints it once every stressor has ended. It proves the end as well as the line
        # above, which may come after it.
        found.ended_s = found.ended_s or duration(line, match["time"] + "s")


def _row(found: _Text, line: str, text: str) -> bool:
    """Read a row of the metrics table; False if the line is no row."""
    match = _ROW.match(text)
    if match is None:
        return False
    if match["name"] in found.bogo_ops:
        raise UnreadableOutput(
            TOOL,
            line,
            Message(english("stressor_rows", "a stressor has two rows: give one run at a time")),
        )
    found.bogo_ops[match["name"]] = number(TOOL, line, match["ops"])
    found.real_s[match["name"]] = number(TOOL, line, match["real"])
    return True


def _collect(text: str) -> _Text:
    found = _Text()
    in_table = False
    ours = 0
    for line in plain_lines(text):
        match = _LINE.match(line)
        if match is None:
            if "stress-ng: " in line:
                raise UnreadableOutput(
                    TOOL, line, Message(english("line_unknown", "a line of unknown form"))
                )
            continue  # the echoed command line, a shell's message, another program's output
        ours += 1
        level, said = match["level"], match["text"]
        found.metrics_level = found.metrics_level or level == "metrc"
        if level in {"metrc", "info"} and _HEADER.match(said):
            in_table = True
        elif (
            in_table
            and level in {"metrc", "info"}
            and (_UNITS.match(said) or _row(found, line, said))
        ):
            pass
        elif level == "metrc":
            # After the table come "miscellaneous metrics", whose rows have other columns.
            if said.startswith("miscellaneous metrics") or (
                in_table and not _ROW.match(said) and said.startswith(" ")
            ):
                in_table = False
            elif in_table or _ROW.match(said):
                raise UnreadableOutput(
                    TOOL,
                    line,
                    Message(
                        english(
                            "metrics_row_unknown",
                            "a row of the metrics table has an unknown form or stands outside it",
                        )
                    ),
                )
        elif level == "info":
            in_table = False
            _statement(found, line, said)
            found.trouble.info(said)
        else:
            found.trouble.note(level, said)
    if ours == 0:
        raise foreign(TOOL, text)
    return found


def _worthless(text: _Text) -> Message | None:
    """Why a run without any error message still proves nothing, or None."""
    counts = {what: count for what, (count, _) in text.counts.items()}
    skip = text.trouble.skip()
    if text.ended_s is None:
        return Message(english("run_unended", "the text ends before the run did"))
    if text.unsuccessful:
        return Message(
            english("run_unsuccessful", "stress-ng calls the run unsuccessful and does not say why")
        )
    if counts.get("metrics untrustworthy"):
        return Message(
            english("metrics_untrustworthy", "stress-ng calls its own metrics untrustworthy")
        )
    if counts.get("skipped"):
        return Message(
            english("workers_skipped", "stress-ng skipped {count} of its workers[ ('{line}')]"),
            known(count=counts["skipped"], line=skip),
        )
    if text.dispatched and not text.hogs:
        return Message(
            english("no_stressor", "no stressor was started[ ('{line}')]"), known(line=skip)
        )
    if not text.bogo_ops:
        return Message(
            english("no_metrics", "no metrics: run it with --metrics-brief[ ('{line}')]"),
            known(line=skip),
        )
    # Without these lines it is unknown what should have run, and for how long.
    if not text.dispatched:
        return Message("line_missing", {"line": "dispatching hogs"})
    if text.metrics_level and text.asked is None:
        return Message("line_missing", {"line": "setting to a ... run per stressor"})
    missing = sorted(set(text.hogs) - set(text.bogo_ops))
    if missing:
        return Message(
            english(
                "stressor_without_metrics", "{stressor} was started and has no metrics[ ('{line}')]"
            ),
            known(stressor=missing[0], line=skip),
        )
    idle = sorted(name for name, count in text.bogo_ops.items() if count == 0)
    if idle:
        return Message(
            english("stressor_idle", "{stressor} did no work: 0 bogo ops[ ('{line}')]"),
            known(stressor=idle[0], line=skip),
        )
    if "passed" in counts and counts["passed"] != sum(text.hogs.values()):
        workers = sum(text.hogs.values())
        return Message(
            english("workers_passed", "{passed} of {workers} workers passed"),
            {"passed": counts["passed"], "workers": workers},
        )
    if text.asked_s is not None and text.ended_s < text.asked_s * _SHORTFALL:
        times = {"ran": f"{text.ended_s:.4g}", "due": f"{text.asked_s:.4g}"}
        return Message(
            english("stopped_before_time", "it was stopped after {ran} of {due} s"), times
        )
    # The column is the mean over a stressor's workers: a worker that died early shortens it.
    short = sorted(
        name for name, real_s in text.real_s.items() if real_s < (text.asked_s or 0.0) * _SHORTFALL
    )
    if short:
        times = {"ran": f"{text.real_s[short[0]]:.4g}", "due": f"{text.asked_s:.4g}"}
        return Message(
            english(
                "workers_short", "the workers of {stressor} ran for {ran} of {due} s on average"
            ),
            {"stressor": short[0], **times},
        )
    return None


def _by_stressor(values: Mapping[str, float]) -> dict[Component, float]:
    return {parts.parse(name): float(value) for name, value in values.items()}


def parse(text: str) -> ToolOutput:
    """Parse stress-ng's text: standard output and error together, in any order of lines.

    *fail*: a verification failed, or a stressor died of a signal that wrong arithmetic causes.
    *error*: a permission, a resource or a missing system call stopped it, it was stopped early, it
    did no work, or the text is truncated. The exit code is ignored, because versions differ
    (stress-ng issue 272: `fail:` lines with exit code 0). The text does not say whether `--verify`
    was on; argv() requests it. Raises UnreadableOutput.
    """
    found = _collect(text)
    faults, hindrances = found.trouble.faults, found.trouble.hindrances
    failed, names = found.counts.get("failed", (0, ""))
    if faults:
        values = known(line=plain_text.quote(faults[0]), more=len(faults) - 1 or None)
        return ToolOutput(
            TOOL,
            "fail",
            Message(
                english(
                    "stress_ng_fault",
                    "stress-ng found a fault: '{line}'[ (and {more} more like it)]",
                ),
                values,
            ),
        )
    if hindrances:
        return ToolOutput(
            TOOL,
            "error",
            Message(
                english(
                    "stress_ng_hindered",
                    "something kept stress-ng from its work, which tells nothing of the hardware: "
                    "'{line}'",
                ),
                {"line": plain_text.quote(hindrances[0])},
            ),
        )
    if failed or found.trouble.stressor_failed:
        values = known(
            count=failed or Message(english("at_least_one", "at least one")),
            which=plain_text.quote(names) or None,
        )
        return ToolOutput(
            TOOL,
            "fail",
            Message(
                english(
                    "workers_failed", "stress-ng counts {count} of its workers as failed[: {which}]"
                ),
                values,
            ),
        )
    why = _worthless(found)
    if why is not None:
        return ToolOutput(TOOL, "error", why)
    workers = Reading("stress_ng_workers", "count", _by_stressor(found.hogs))
    readings = (
        Reading("stress_ng_bogo_ops", "count", _by_stressor(found.bogo_ops)),
        Reading("stress_ng_time", "s", _by_stressor(found.real_s)),
        workers,
    )
    ran = tuple(
        Message(
            english("stressor_ran", "{stressor} {count} bogo ops in {ran} s"),
            {"stressor": name, "count": f"{count:.0f}", "ran": f"{found.real_s[name]:.4g}"},
        )
        for name, count in found.bogo_ops.items()
    )
    return ToolOutput(
        TOOL,
        "pass",
        Message(
            english("stress_ng_passed", "completed without a failure: {ran}"), {"ran": Listed(ran)}
        ),
        readings,
    )
