"""The terminal: the plan before a run, a live view during it, findings and a closing line after it.

Off a terminal there are plain lines in place of the live view.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, cast

from rich.console import Console
from rich.text import Text

from acceptance.core.collection import SESSIONS
from acceptance.core.finding import FindingKind
from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import number, quantity
from acceptance.core.plan import Due, Plan
from acceptance.core.record import (
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    ForeignProcess,
    Measured,
    Outcome,
    Skipped,
)
from acceptance.core.verdict import Verdict
from acceptance.reports import closing, summary
from acceptance.reports.gauges import Gauges
from acceptance.reports.glyphs import plain_locale
from acceptance.reports.heartbeat import Heartbeat
from acceptance.reports.lines import HANG, LineWriter
from acceptance.reports.locations import NO_LOCATIONS, Locations
from acceptance.reports.progress import RunProgress
from acceptance.reports.safe_output import SafeOutput
from acceptance.reports.text import duration, one_line

if TYPE_CHECKING:
    from rich.live import Live


_STYLE: dict[str, str] = {"pass": "green", "fail": "bold red", "error": "yellow", "skip": "yellow"}
_VERDICT = {"PASS": "bold green", "FAIL": "bold red", "UNJUDGED": "bold yellow"}
_SOURCES = {"kernel-log": "kernel", "nvml": "NVML"}  # the source of an event, for people
_MOST_EVENTS = 100  # different events printed as they come; the reports have all


def _block(language: Language) -> tuple[tuple[str, str, FindingKind], ...]:
    """The kinds of findings in order, each with its word and style."""
    return (
        (language("FAIL"), "red", "fail"),
        (language("UNJUDGED"), "yellow", "error"),
        (language("SKIPPED"), "yellow", "skip"),
        (language("waived"), "", "waived"),
        (language("warning"), "", "warn"),
    )


class _Check:
    """The journal's records of the running check so far."""

    def __init__(self) -> None:
        self.values: dict[str, list[Measured]] = {}
        self.skips: list[str] = []

    def figures(self) -> str:
        """Its first measurements; a range over several components. The page has them all."""
        return ", ".join(_figure(name, found) for name, found in list(self.values.items())[:4])


def _figure(name: str, measured: list[Measured]) -> str:
    values = [body.value for body in measured if body.value is not None]
    low, high, unit = min(values), max(values), measured[0].unit
    return (
        f"{name} {number(low)} .. {quantity(high, unit)}"
        if len(values) > 1
        else f"{name} {quantity(low, unit)}"
    )


class _Shown:
    """The views of a live run: its progress, its gauges, and the dashboard or the heartbeat."""

    def __init__(
        self, plan: Plan, addresses: Mapping[str, str], language: Language, lines: LineWriter
    ) -> None:
        self.remaining = RunProgress(plan)
        self.gauges = Gauges(plan.gpus, addresses)
        self.live: Live | None = None
        self.calm: Heartbeat | None = None
        if lines.watched:
            from acceptance.reports import dashboard  # only for a terminal

            board = dashboard.Dashboard(self.remaining, self.gauges, language, lines.signs)
            self.live = dashboard.live(lines.console, board)
            self.live.start()
        else:
            self.calm = Heartbeat(self.remaining, self.gauges, language, lines.signs)


class Terminal(LineWriter):
    """Show one run, in one language."""

    def __init__(self, console: Console, language: Language = ENGLISH) -> None:
        super().__init__(console)
        self._language = language
        self._shown: _Shown | None = None
        self._check = _Check()
        self._told: set[tuple[str, object, str | None]] = set()

    @classmethod
    def on_stdout(cls, language: Language = ENGLISH) -> Terminal:
        """A terminal on standard output, for as long as that can be written."""
        plain = language.code == "en" and plain_locale(os.environ)
        return cls(
            Console(file=cast("IO[str]", SafeOutput(sys.stdout, plain=plain)), highlight=False),
            language,
        )

    def plan(self, plan: Plan, summary_text: str, *, details: bool) -> None:
        """Print the plan with its duration and what it cannot detect.

        With `details`, every measurement with its limit too.
        """
        language = self._language
        measurements = sum(len(check.due) for check in plan.checks)
        self.say(
            language("profile {name}: {text}", name=plan.profile, text=language.text(summary_text))
        )
        checks = language.ngettext("{n} check", "{n} checks", len(plan.checks))
        figures = language.ngettext("{n} measurement", "{n} measurements", measurements)
        time = duration(plan.eta_s())
        words = language(
            "plan: {checks}, {figures}, about {time}", checks=checks, figures=figures, time=time
        )
        partial = language("partial")
        self.say(f"{words} ({partial})" if plan.scope == "partial" else words)
        for session in SESSIONS:
            for check in plan.share(session):
                self.columns(
                    (check.id, 26), (f"{check.seconds:.0f} s", -6), (language.text(check.title), 0)
                )
                self.say_all(
                    (self._limit_text(due) for due in (check.due if details else ())), indent=6
                )
        for text in plan.gaps:
            self.say(language("gap: {text}", text=text), "yellow")
        for text in plan.not_tested:
            self.say(language("not tested here: {text}", text=text))
        for text in plan.cannot_detect:
            self.say(language("cannot detect: {text}", text=language.text(text)))

    def _limit_text(self, due: Due) -> str:
        """The limit of one measurement of one component."""
        held = f"{due.limit}: {due.limit.basis} ({due.origin})" if due.limit else None
        text = held or self._language("recorded, not judged: {why}", why=due.unlimited)
        if due.ceiling is not None:
            most = quantity(due.ceiling.high or 0.0, due.unit)
            text = self._language("{told}; no more than {most} is possible", told=text, most=most)
        return self._language(
            "{what} on {where} {told}", what=due.measurement, where=due.component, told=text
        )

    def start(self, plan: Plan, addresses: Mapping[str, str] | None = None) -> None:
        """Start the live view or the heartbeat.

        `addresses` are the names of GPUs by the PCI addresses in events.
        """
        self._shown = _Shown(plan, addresses or {}, self._language, self)

    def stop(self) -> None:
        """End the live view; it leaves nothing behind."""
        if self._shown and self._shown.live:
            self._shown.live.stop()

    def entry(self, entry: Entry) -> None:
        """Show one record of the run as it appears."""
        body, shown = entry.body, self._shown
        if shown:
            shown.gauges.entry(entry)
        if isinstance(body, CheckStarted):
            self._check = _Check()
            if shown:
                shown.remaining.started(body.check)
        elif isinstance(body, Measured):
            if body.value is not None and body.unit != "count":
                self._check.values.setdefault(body.measurement, []).append(body)
        elif isinstance(body, Skipped):
            self._check.skips.append(body.reason)
        elif isinstance(body, CheckEnded):
            self._ended(body)
        elif isinstance(body, Event):
            self._event(body)
        elif isinstance(body, ForeignProcess) and body.until_s is None:
            self.say(
                self._language("{gpu} is also used by {who}", gpu=body.component, who=body.who),
                "yellow",
            )
        if shown and shown.calm and (line := shown.calm.line()):
            self.put(Text(line))

    def _event(self, body: Event) -> None:
        """Print an event once.

        The kernel log and NVML report the same event, and a storm repeats itself.
        """
        name = (body.kind, body.code, body.component)
        if name in self._told or len(self._told) >= _MOST_EVENTS or body.severity == "info":
            return
        self._told.add(name)
        source = _SOURCES.get(body.source, body.source)
        where = self._shown.gauges.name(body.component) if self._shown else None
        # name the component only if that adds to its address
        on = (
            f" on {where}" if where and where != body.component else ""
        )  # a name is told for an address alone
        meaning = self._language.text(body.meaning).rstrip(".")
        self.say(f"{source}: {body.severity}{on}: {meaning}: {body.text}", "yellow")
        if len(self._told) == _MOST_EVENTS:
            self.say(
                self._language("more events are not shown here; the reports have them all"),
                "yellow",
            )

    def _ended(self, body: CheckEnded) -> None:
        message, outcome = body.message, body.outcome
        about = message.split("\n")[0] or self._check.figures()
        if outcome == "pass" and self._check.skips:
            # The session accepts a waived skip, but it is no measurement.
            outcome = "pass" if self._check.values else "skip"
            about = "; ".join([*filter(None, [about]), *dict.fromkeys(self._check.skips)])
        if self._shown:
            self._shown.remaining.ended(body.check, outcome)
            if self._shown.calm:
                self._shown.calm.reset()
        self._outcome(
            outcome,
            f"{one_line(body.check):<26}  {body.seconds:6.1f} s  {one_line(about, 300)}".rstrip(),
        )

    def _outcome(self, outcome: Outcome, text: str) -> None:
        self.cut(Text(f"{outcome:<5}", style=_STYLE[outcome]).append(f"  {text}", style="default"))

    def verdict(self, verdict: Verdict, files: list[str], where: Locations = NO_LOCATIONS) -> None:
        """Print the closing block: findings with explanations, files, and the verdict last."""
        language, taught, shown = self._language, False, self._shown is not None
        for word, style, kind in _block(language):
            for said in closing.entries(verdict.of_kind(kind), where, language):
                if taught or (shown and said.below):
                    self.put(Text(""))  # an entry with its causes is set apart from its neighbours
                taught, shown = bool(said.below), True
                for checks, text in said.lines:
                    self.say(f"{word} {', '.join(checks)}: {text}", style)
                for detail in said.below:
                    self._detail(detail)
        if taught:
            self.put(Text(""))
        for text in verdict.stale_waivers:
            self.say(language("stale waiver, not needed in this run: {text}", text=text))
        unjudged = [
            judged
            for check in verdict.checks
            for judged in check.judged
            if judged.due.limit is None and judged.value is not None
        ]
        if unjudged:
            names = ", ".join(dict.fromkeys(judged.due.measurement for judged in unjudged))
            self.say(
                language(
                    "recorded without a limit: {names} (`rigproof plan` says why)", names=names
                )
            )
        for path in files:
            self.path(path)
        self.say(summary.closing_line(verdict, language), _VERDICT[verdict.verdict])

    def _detail(self, text: str) -> None:
        """Print a line below an entry; a command is not wrapped, so that it can be copied."""
        if text.startswith(f"{self._language('next')}: "):
            self.path(text, indent=HANG)
        else:
            self.say(text, indent=HANG)
