"""The terminal: the plan before, progress during, violations and one closing line after. Calm lines where it is no terminal."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from acceptance.judge.judgement import Kind
from acceptance.judge.measurement import quantity
from acceptance.judge.plan import SESSIONS, Plan
from acceptance.judge.record import CheckEnded, CheckStarted, Entry, Event, Measured, Outcome
from acceptance.judge.verdict import Verdict
from acceptance.reports import summary
from acceptance.reports.text import duration, one_line

_STYLE: dict[str, str] = {"pass": "green", "fail": "bold red", "error": "yellow", "skip": "yellow"}
_VERDICT = {"PASS": "bold green", "FAIL": "bold red", "UNJUDGED": "bold yellow"}


_BLOCK: tuple[tuple[str, str, tuple[Kind, ...]], ...] = (
    ("FAIL", "red", ("fail",)),
    ("UNJUDGED", "yellow", ("error",)),
    ("SKIPPED", "yellow", ("skip",)),
    ("waived", "", ("waived",)),
    ("warning", "", ("warn",)),
)


class Terminal:
    """Writes one run to a console; untrusted text goes through as plain text, never as markup."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._plan: Plan | None = None
        self._began: dict[str, float] = {}
        self._values: dict[str, list[str]] = {}
        self._done_s = 0.0

    def say(self, text: str, style: str = "", indent: int = 0) -> None:
        """One plain line."""
        self._console.print(Text(" " * indent + one_line(text), style=style), soft_wrap=True)

    def columns(self, *cells: tuple[str, int], style: str = "") -> None:
        """One indented line of texts with their widths; a negative width sets the text to the right."""
        padded = (one_line(text).rjust(-width) if width < 0 else one_line(text).ljust(width) for text, width in cells)
        self._console.print(Text("  " + "  ".join(padded), style=style), soft_wrap=True)

    def plan(self, plan: Plan, summary_text: str, *, details: bool) -> None:
        """The plan with its ETA and what it cannot detect. With `details`, every measurement with its limit."""
        what = f"{len(plan.checks)} checks, {sum(len(check.due) for check in plan.checks)} measurements"
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
        self._plan = plan
        if self._console.is_terminal:
            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
            )
            self._progress = Progress(*columns, console=self._console, transient=True)
            self._progress.add_task("starting", total=plan.eta_s(), left="")
            self._progress.start()

    def stop(self) -> None:
        """End the progress display."""
        if self._progress:
            self._progress.stop()

    def entry(self, entry: Entry) -> None:
        """Show one record of a session as it appears."""
        body = entry.body
        if isinstance(body, CheckStarted):
            self._began[body.check] = time.monotonic()
            self._values[body.check] = []
            self._advance(body.check)
        elif isinstance(body, Measured) and body.value is not None and body.unit != "count":
            values = self._values.setdefault(body.check, [])
            if len(values) < 4:  # the page has them all
                values.append(f"{body.measurement} {quantity(body.value, body.unit)}")
        elif isinstance(body, CheckEnded):
            self._ended(body.check, body.outcome, body.message, body.seconds)
        elif isinstance(body, Event):
            self.say(f"kernel: {body.severity}: {body.meaning}: {body.text}", "yellow")

    def _advance(self, check: str) -> None:
        if self._progress and self._plan:
            left = max(0.0, self._plan.eta_s() - self._done_s)
            self._progress.update(
                self._progress.task_ids[0],
                description=check,
                completed=self._done_s,
                left=f"about {duration(left)} left",
            )

    def _ended(self, check: str, outcome: Outcome, message: str, seconds: float) -> None:
        assert self._plan is not None
        self._done_s += next((planned.seconds for planned in self._plan.checks if planned.id == check), 0.0)
        about = message.split("\n")[0] if message else ", ".join(self._values.get(check, []))
        line = Text(f"{outcome:<5}", style=_STYLE[outcome])
        line.append(f"  {one_line(check):<26}  {seconds:6.1f} s  {one_line(about, 300)}", style="default")
        self._console.print(line, soft_wrap=True)

    def verdict(self, verdict: Verdict, files: list[str]) -> None:
        """The closing block: one line per violation, where the files are, and the verdict last."""
        for word, style, kinds in _BLOCK:
            # What is true of several checks for one reason is said once.
            checks: dict[str, list[str]] = {}
            for finding in verdict.of_kind(*kinds):
                checks.setdefault(summary.line(finding), []).append(finding.check)
            for text, names in checks.items():
                self.say(f"{word} {', '.join(dict.fromkeys(names))}: {text}", style)
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
            self.say(path)
        self.say(summary.closing_line(verdict), _VERDICT[verdict.verdict])
