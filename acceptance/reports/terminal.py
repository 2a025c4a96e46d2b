"""The terminal: the plan before, progress during, violations and one closing line after. Calm lines where it is no terminal."""

from __future__ import annotations

import sys
from typing import IO, cast

import msgspec
from rich.console import Console
from rich.text import Text

from acceptance.judge.judgement import Finding, Kind
from acceptance.judge.language import ENGLISH, Language
from acceptance.judge.measurement import number, quantity
from acceptance.judge.plan import SESSIONS, Plan
from acceptance.judge.record import CheckEnded, CheckStarted, Entry, Event, Measured, Outcome, Skipped
from acceptance.judge.verdict import Verdict
from acceptance.reports import summary, teaching
from acceptance.reports.headline import headline
from acceptance.reports.places import NOWHERE, Places
from acceptance.reports.progress import Live, Remaining
from acceptance.reports.screen import Screen
from acceptance.reports.text import clean, counted, duration, one_line

_STYLE: dict[str, str] = {"pass": "green", "fail": "bold red", "error": "yellow", "skip": "yellow"}
_VERDICT = {"PASS": "bold green", "FAIL": "bold red", "UNJUDGED": "bold yellow"}
_HANG = 4  # columns by which the second line of a sentence is set in
_SOURCES = {"kernel-log": "kernel", "nvml": "NVML"}  # who told of an event, for people
_MOST_LINES = 2_000  # of a table: more than any machine has GPUs and network cards
_NARROW = 24  # below this many columns nothing can be laid out: lines break where the terminal breaks them

_BLOCK: tuple[tuple[str, str, tuple[Kind, ...]], ...] = (
    ("FAIL", "red", ("fail",)),
    ("UNJUDGED", "yellow", ("error",)),
    ("SKIPPED", "yellow", ("skip",)),
    ("waived", "", ("waived",)),
    ("warning", "", ("warn",)),
)


class _Check:
    """What the journal has said so far of the check that is running."""

    def __init__(self) -> None:
        self.values: dict[str, list[Measured]] = {}
        self.skips: list[str] = []

    def figures(self) -> str:
        """Its first figures; of several components the range. The page has them all."""
        return ", ".join(_figure(name, found) for name, found in list(self.values.items())[:4])


def _figure(name: str, found: list[Measured]) -> str:
    values = [body.value for body in found if body.value is not None]
    low, high, unit = min(values), max(values), found[0].unit
    return f"{name} {number(low)} .. {quantity(high, unit)}" if len(values) > 1 else f"{name} {quantity(low, unit)}"


class Terminal:
    """Writes one run to a console; untrusted text goes through as plain text, never as markup."""

    def __init__(self, console: Console, language: Language = ENGLISH) -> None:
        self._language = language
        self._console = console
        self._live: Live | None = None
        self._remaining: Remaining | None = None
        self._check = _Check()
        # A terminal gets its lines broken between words; a file gets one line a sentence, whatever its length.
        self._watched = console.file.isatty() and not console.is_dumb_terminal

    @classmethod
    def on_stdout(cls, language: Language = ENGLISH) -> Terminal:
        """A terminal that writes to standard output for as long as that can be written."""
        return cls(Console(file=cast("IO[str]", Screen(sys.stdout)), highlight=False), language)

    @property
    def failure(self) -> OSError | None:
        """Why nothing more could be printed, if that is so."""
        stream = self._console.file
        return stream.failure if isinstance(stream, Screen) else None

    def say(self, text: str, style: str = "", indent: int = 0) -> None:
        """One sentence on a line of its own, broken between words where the terminal is narrower."""
        line = Text(one_line(text), style=style)
        room = self._console.width - indent - _HANG
        if not self._watched or room < _NARROW or line.cell_len <= room + _HANG:
            self._print(Text(" " * indent).append_text(line))
            return
        for index, part in enumerate(line.wrap(self._console, room)):
            part.rstrip()
            self._print(Text(" " * (indent + (_HANG if index else 0))).append_text(part))

    def path(self, text: str) -> None:
        """A path on a line of its own, never broken: it is there to be copied."""
        self._print(Text(one_line(text)))

    def table(self, text: str) -> None:
        """Lines that were laid out already, as they are."""
        lines = text.splitlines()
        for line in lines[:_MOST_LINES]:
            self._print(Text(clean(line).replace("\t", " ")))  # no column of ours is set with tabs
        if len(lines) > _MOST_LINES:
            self.say(f"... ({counted(len(lines) - _MOST_LINES, 'more line')})")

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=True)

    def columns(self, *cells: tuple[str, int], style: str = "") -> None:
        """One indented line of texts with their widths; a negative width sets the text to the right. A terminal's edge cuts the last."""
        padded = [one_line(text).rjust(-width) if width < 0 else one_line(text).ljust(width) for text, width in cells]
        line = Text("  " + "  ".join(padded), style=style)
        if self._watched and self._console.width >= _NARROW:
            line.truncate(self._console.width, overflow="ellipsis")
        self._print(line)

    def plan(self, plan: Plan, summary_text: str, *, details: bool) -> None:
        """The plan with its ETA and what it cannot detect. With `details`, every measurement with its limit."""
        measurements = sum(len(check.due) for check in plan.checks)
        what = f"{counted(len(plan.checks), 'check')}, {counted(measurements, 'measurement')}"
        self.say(f"profile {plan.profile}: {summary_text}")
        self.say(f"plan: {what}, about {duration(plan.eta_s())}{' (partial)' if plan.scope == 'partial' else ''}")
        for session in SESSIONS:
            for check in plan.share(session):
                self.columns((check.id, 26), (f"{check.seconds:.0f} s", -6), (check.title, 0))
                for due in check.due if details else ():
                    held = f"{due.limit}: {due.limit.basis} ({due.origin})" if due.limit else None
                    told = held or f"recorded, not judged: {due.unlimited}"
                    self.say(f"{due.measurement} on {due.component} {told}", indent=6)
        for text in plan.gaps:
            self.say(f"gap: {text}", "yellow")
        for text in plan.not_tested:
            self.say(f"not tested here: {text}")
        for text in plan.cannot_detect:
            self.say(f"cannot detect: {text}")

    def start(self, plan: Plan) -> None:
        """Begin to show progress."""
        self._remaining = Remaining(plan)
        if self._watched:
            self._live = Live(self._console, plan, self._remaining)
            self._live.start()

    def stop(self) -> None:
        """End the progress display."""
        if self._live:
            self._live.stop()

    def entry(self, entry: Entry) -> None:
        """Show one record of a session as it appears."""
        body = entry.body
        if isinstance(body, CheckStarted):
            self._check = _Check()
            if self._remaining:
                self._remaining.started(body.check)
        elif isinstance(body, Measured):
            if body.value is not None and body.unit != "count":
                self._check.values.setdefault(body.measurement, []).append(body)
        elif isinstance(body, Skipped):
            self._check.skips.append(body.reason)
        elif isinstance(body, CheckEnded):
            self._ended(body)
        elif isinstance(body, Event):
            self.say(
                f"{_SOURCES.get(body.source, body.source)}: {body.severity}: {body.meaning}: {body.text}", "yellow"
            )

    def _ended(self, body: CheckEnded) -> None:
        if self._remaining:
            self._remaining.ended(body.check)
        message, outcome = body.message, body.outcome
        about = message.split("\n")[0] or self._check.figures()
        if outcome == "pass" and self._check.skips:
            # The session has nothing against a skip that is waived; it is none the less no measurement.
            outcome = "pass" if self._check.values else "skip"
            about = "; ".join([*filter(None, [about]), *dict.fromkeys(self._check.skips)])
        self._outcome(outcome, f"{one_line(body.check):<26}  {body.seconds:6.1f} s  {one_line(about, 300)}".rstrip())

    def _outcome(self, outcome: Outcome, text: str) -> None:
        line = Text(f"{outcome:<5}", style=_STYLE[outcome]).append(f"  {text}", style="default")
        if self._watched and self._console.width >= _NARROW:
            line.truncate(self._console.width, overflow="ellipsis")
        self._print(line)

    def verdict(self, verdict: Verdict, files: list[str], where: Places = NOWHERE) -> None:
        """The closing block: one line per violation with its causes and the next command, where the files are, and the verdict last."""
        for word, style, kinds in _BLOCK:
            # What is true of several checks for one reason is said once.
            checks: dict[Finding, list[str]] = {}
            for finding in verdict.of_kind(*kinds):
                checks.setdefault(msgspec.structs.replace(finding, check=""), []).append(finding.check)
            for group, details in teaching.together(checks, where, self._language):
                for finding in group:
                    names = ", ".join(dict.fromkeys(checks[finding]))
                    self.say(f"{word} {names}: {headline(finding, self._language)}", style)
                for detail in details:
                    self.say(detail, indent=_HANG)
        for text in verdict.stale_waivers:
            self.say(f"stale waiver, not needed in this run: {text}")
        unjudged = [
            judged
            for check in verdict.checks
            for judged in check.judged
            if judged.due.limit is None and judged.value is not None
        ]
        if unjudged:
            told = ", ".join(dict.fromkeys(judged.due.measurement for judged in unjudged))
            self.say(f"recorded without a limit: {told} (`rigproof plan` says why)")
        for path in files:
            self.path(path)
        self.say(summary.closing_line(verdict), _VERDICT[verdict.verdict])
