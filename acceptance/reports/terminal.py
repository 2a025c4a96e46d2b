"""The terminal: the plan before a run, a live view during it, findings and a closing line after it.

Off a terminal there are plain lines in place of the live view.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, cast

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from acceptance.core import plain_text
from acceptance.core.finding import Finding, FindingKind
from acceptance.core.grouping import grouped
from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import number
from acceptance.core.message import Message
from acceptance.core.parts import Component
from acceptance.core.plan import GPU_LOAD, HOST_LOAD, SESSIONS, Due, LimitSet, Plan
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
from acceptance.journal.run import Run
from acceptance.reports import closing, explanation, languages, pair_table, summary
from acceptance.reports.gauges import Gauges
from acceptance.reports.heartbeat import Heartbeat
from acceptance.reports.lines import HANG, LineWriter, SafeOutput
from acceptance.reports.locations import find_locations
from acceptance.reports.margins import Margins
from acceptance.reports.progress import RunProgress, eta_s, time_basis
from acceptance.reports.text import duration, first_line, one_line, plain_locale, sentence
from acceptance.wording import words
from acceptance.wording.words import limit_text, quantity

if TYPE_CHECKING:
    from acceptance.reports.dashboard import View


# Frames of the live view a second: drawing eight GPUs takes a core ten milliseconds, and must not
# disturb what is measured.
FRAMES = 1.0
_STYLE: dict[str, str] = {"pass": "green", "fail": "bold red", "error": "yellow", "skip": "yellow"}
VERDICT_STYLE = {"PASS": "green", "FAIL": "red", "UNJUDGED": "yellow"}
_SOURCES = {"kernel-log": "kernel", "nvml": "NVML"}  # the source of an event, for people
_ABOUT = 300  # characters of what came of a check, off a terminal
_LEAST_ABOUT = 30  # and on a narrow one
_BEFORE = 46  # columns before it: outcome, check and seconds
_MOST_EVENTS = 100  # different events printed as they come; the reports have all


def _block(verdict: Verdict, language: Language) -> Iterator[tuple[str, str, list[Finding]]]:
    """The findings of each kind in order, with its word and style."""
    unrun: list[Finding] = []
    kinds: tuple[tuple[str, str, FindingKind], ...] = (
        (language("FAIL"), "red", "fail"),
        (language("UNJUDGED"), "yellow", "error"),
        (language("SKIPPED"), "yellow", "skip"),
        (language("waived"), "", "waived"),
        (language("warning"), "", "warn"),
    )
    for word, style, kind in kinds:
        found = verdict.of_kind(kind)
        unrun += filter(summary.is_not_run, found)
        yield word, style, [one for one in found if not summary.is_not_run(one)]
    yield language("not run"), "", unrun


@dataclass
class _Check:
    """The journal's records of a running check so far."""

    values: dict[str, list[Measured]] = field(default_factory=dict)
    skips: list[str] = field(default_factory=list)

    def figures(self, language: Language) -> str:
        """Its first measurements; a range over several components. The page has them all."""
        return language.listed(
            _figure(name, found) for name, found in list(self.values.items())[:4]
        )


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
        self,
        plan: Plan,
        addresses: Mapping[Component, Component],
        language: Language,
        lines: LineWriter,
        now_s: Callable[[], float],
        frames: float,
    ) -> None:
        self.remaining = RunProgress(plan, now_s)
        self.gauges = Gauges(plan.gpus, addresses)
        self.margins = Margins(plan)
        self.live: View | None = None
        self.calm: Heartbeat | None = None
        if lines.watched:
            from acceptance.reports import dashboard  # only for a terminal

            board = dashboard.Dashboard(
                self.remaining, self.gauges, self.margins, language, lines.signs
            )
            self.live = dashboard.View(lines.console, board, lines.drawing, frames)
            self.live.start()
        else:
            self.calm = Heartbeat(self.remaining, self.gauges, language, lines.signs, now_s)


class Terminal(LineWriter):
    """Show one run, in one language."""

    def __init__(self, console: Console, language: Language = ENGLISH) -> None:
        super().__init__(console)
        self._language = language
        self._shown: _Shown | None = None
        self._checks: dict[str, _Check] = {}  # those that are running
        self._told: set[tuple[str, object, Component | None]] = set()

    @classmethod
    def on_stdout(cls, language: Language = ENGLISH) -> Terminal:
        """A terminal on standard output, for as long as that can be written."""
        plain = language.code == "en" and plain_locale(os.environ)
        return cls(
            Console(file=cast("IO[str]", SafeOutput(sys.stdout, plain=plain)), highlight=False),
            language,
        )

    def say_messages(
        self, messages: Iterable[Message | str | None], style: str = "", indent: int = 0
    ) -> None:
        """Print each message on a line, in the language of this terminal; None says nothing."""
        for one in messages:
            if one:
                self.say(words.text(one, self._language), style, indent)

    def limits(self, limits: LimitSet) -> None:
        """Print the version and the digest of the limits."""
        self.say(
            self._language(
                "limits: version {version}, sha256 {digest}",
                version=limits.version,
                digest=limits.digest,
            )
        )

    def plan(
        self,
        plan: Plan,
        summary_text: str,
        *,
        details: bool,
        undeclared: Sequence[Message] = (),
    ) -> None:
        """Print the plan with its duration and what it cannot detect.

        With `details`, every measurement with its limit too. `undeclared` is what the plan leaves
        out because no file declares it.
        """
        language = self._language
        measurements = sum(len(check.due) for check in plan.checks)
        self.say(
            language("profile {name}: {text}", name=plan.profile, text=language.text(summary_text))
        )
        checks = language.ngettext("{n} check", "{n} checks", len(plan.checks))
        figures = language.ngettext("{n} measurement", "{n} measurements", measurements)
        time = duration(eta_s(plan))
        basis = time_basis(plan, language)
        if undeclared:
            basis = language("{basis} without what is not declared", basis=basis)
        head = language(
            "plan: {checks}, {figures}, about {time}, {basis}",
            checks=checks,
            figures=figures,
            time=time,
            basis=basis,
        )
        self.say(head if plan.is_whole else language("{plan} (partial)", plan=head))
        if plan.shortened:
            self.say(summary.no_acceptance(plan, language), "yellow")
        beside = [check.id for check in plan.share(HOST_LOAD) if plan.share(GPU_LOAD)]
        if beside:
            self.say(
                language(
                    "side by side with the loads of GPUs: {checks}", checks=language.listed(beside)
                )
            )
        for session in SESSIONS:
            for check in plan.share(session):
                self.columns(
                    (check.id, 26),
                    (f"{check.expected_s:.0f} s", -6),
                    (language.text(check.title), 0),
                )
                self.say_all(self._limits(check.due if details else ()), indent=6)
        for text in plan.gaps:
            self.say(language("gap: {text}", text=words.text(text, language)), "yellow")
        for one in undeclared:
            told = words.message(one, language)
            self.say(language("not declared, not planned: {text}", text=told), "yellow")
        for text in plan.not_tested:
            self.say(language("not tested here: {text}", text=words.text(text, language)))
        for text in plan.cannot_detect:
            told = languages.said(text, language)
            self.say(language("cannot detect: {text}", text=told))

    def _limits(self, due: Sequence[Due]) -> Iterator[str]:
        """The limit of each measurement; components that share it are one line."""
        same = grouped(
            ((one.measurement, self._limit_text(one)), str(one.component)) for one in due
        )
        for (what, told), parts in same.items():
            where = closing.names(parts, self._language)
            yield self._language("{what} on {where} {told}", what=what, where=where, told=told)

    def _limit_text(self, due: Due) -> str:
        """The limit of one measurement of one component."""
        language = self._language
        if due.limit:
            basis = languages.said(due.limit.basis, language)
            origin = languages.said(due.origin, language)
            text = language(
                "{limit}: {basis} ({origin})",
                limit=limit_text(due.limit),
                basis=basis,
                origin=origin,
            )
        else:
            text = language(
                "recorded, not judged: {why}", why=summary.unlimited_text(due, language)
            )
        return summary.with_ceiling(text, due, language)

    def start(
        self,
        plan: Plan,
        addresses: Mapping[Component, Component] | None = None,
        now_s: Callable[[], float] = time.monotonic,
        frames: float = FRAMES,
    ) -> None:
        """Start the live view or the heartbeat.

        `addresses` are the names of GPUs by the PCI addresses in events, `now_s` the clock of the
        run, `frames` how often a second the view is drawn.
        """
        self._shown = _Shown(plan, addresses or {}, self._language, self, now_s, frames)

    def stop(self) -> None:
        """End the live view; it leaves nothing behind."""
        if self._shown and self._shown.live:
            self._shown.live.stop()

    def entry(self, entry: Entry) -> None:
        """Show one record of the run as it appears."""
        body, shown = entry.body, self._shown
        if shown:
            shown.gauges.entry(entry)
            shown.margins.entry(entry)
        if isinstance(body, CheckStarted):
            self._checks[body.check] = _Check()
            if shown:
                shown.remaining.started(body.check)
        elif isinstance(body, Measured):
            if body.value is not None and body.unit != "count":
                values = self._checks.setdefault(body.check, _Check()).values
                values.setdefault(body.measurement, []).append(body)
        elif isinstance(body, Skipped):
            skips = self._checks.setdefault(body.check, _Check()).skips
            skips.append(words.text(body.reason, self._language))
        elif isinstance(body, CheckEnded):
            self._ended(body)
        elif isinstance(body, Event):
            self._event(body)
        elif isinstance(body, ForeignProcess) and body.until_s is None:
            self.say(
                self._language(
                    "{gpu} is also used by {who}",
                    gpu=str(body.component),
                    who=words.text(body.who, self._language),
                ),
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
        severity: str = body.severity
        if where and where != body.component:  # a name is told for an address alone
            severity = self._language("{severity} on {name}", severity=severity, name=str(where))
        meaning = languages.said(body.meaning, self._language).rstrip(".。")
        text = body.text
        for label in (meaning, severity, source):
            text = self._language("{label}: {text}", label=label, text=text)
        self.say(text, "yellow")
        if len(self._told) == _MOST_EVENTS:
            self.say(
                self._language("more events are not shown here; the reports have them all"),
                "yellow",
            )

    def _ended(self, body: CheckEnded) -> None:
        outcome, seen = body.outcome, self._checks.pop(body.check, _Check())
        message = words.text(body.message, self._language)
        # What an exception says is one sentence, with what a program printed in it.
        about = message if isinstance(body.message, Message) else first_line(message)
        about = about or seen.figures(self._language)
        if outcome == "pass" and seen.skips:
            # The session accepts a waived skip, but it is no measurement.
            outcome = "pass" if seen.values else "skip"
            about = self._language("; ").join([*filter(None, [about]), *dict.fromkeys(seen.skips)])
        if self._shown:
            self._shown.remaining.ended(body.check, outcome)
            if self._shown.calm:
                self._shown.calm.reset()
        self._outcome(
            outcome,
            f"{one_line(body.check):<26}  {body.seconds:6.1f} s  {self._fitted(about)}".rstrip(),
        )

    def _fitted(self, about: str) -> str:
        """What came of a check, on its line; of too long a text the end is kept before the rest."""
        shown = sentence(about, self.signs)
        room = max(_LEAST_ABOUT, self.console.width - _BEFORE) if self.watched else _ABOUT
        wide = sum(cell_len(letter) > 1 for letter in shown)
        return plain_text.shortened(shown, max(_LEAST_ABOUT, room - min(wide, room // 2)))

    def _outcome(self, outcome: Outcome, text: str) -> None:
        self.cut(Text(f"{outcome:<5}", style=_STYLE[outcome]).append(f"  {text}", style="default"))

    def verdict(self, run: Run, files: list[str]) -> None:
        """Print the closing block: findings with explanations, files, and the verdict last."""
        language, taught, shown = self._language, False, self._shown is not None
        verdict, where = run.verdict, find_locations(run)
        for word, style, findings in _block(verdict, language):
            for said in closing.entries(findings, where, language):
                if taught or (shown and (said.below or said.waiver)):
                    self.put(Text(""))  # an entry with its causes is set apart from its neighbours
                taught, shown = bool(said.below or said.waiver), True
                for checks, text in said.lines:
                    label = f"{word} {language.listed(checks)}"
                    self.say(language("{label}: {text}", label=label, text=text), style)
                for detail in said.below:  # a command is not wrapped, so that it can be copied
                    show = self.path if isinstance(detail, explanation.Command) else self.say
                    show(detail, indent=HANG)
                if said.waiver:
                    self.say(
                        language("{heading}:", heading=summary.to_waive(language)), indent=HANG
                    )
                for line in said.waiver:
                    self.path(line, indent=HANG)
        if taught:
            self.put(Text(""))
        if wrong := pair_table.lines(run, language):
            self.say(language("paths between GPUs where something is wrong:"))
            self.say_all(wrong, indent=HANG)
        for waiver in summary.stale_waivers(verdict):
            told = words.message(waiver, language)
            self.say(language("stale waiver, not needed in this run: {text}", text=told))
        unjudged = [
            judged
            for check in verdict.checks
            for judged in check.judged
            if judged.due.limit is None and judged.value is not None
        ]
        if unjudged:
            names = language.listed(dict.fromkeys(one.due.measurement for one in unjudged))
            self.say(
                language(
                    "recorded without a limit: {names} (`rigproof plan` says why)", names=names
                )
            )
        for path in files:
            self.path(path)
        if run.seal.digest is not None:
            self.say(
                language(
                    "evidence: {digest}, read out as {spoken}",
                    digest=run.seal.digest,
                    spoken=run.seal.spoken or "",
                )
            )
        self.say(summary.closing_line(run, language), f"bold {VERDICT_STYLE[verdict.verdict]}")
