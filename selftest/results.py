"""What a self-test leaves: a table in the terminal, a page, a JUnit of its own, and the record
that later runs tell of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import msgspec
from junitparser import Failure, JUnitXml, Skipped, TestSuite
from junitparser.xunit2 import TestCase
from markupsafe import Markup
from rich.console import Console
from rich.text import Text

from acceptance.reports.lines import HANG
from acceptance.reports.text import one_line
from acceptance.run.header import SelftestRecord
from selftest.row import FAMILIES, FalseAlarms, NotOffered, Row, Sensitivity


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that a self-test found.

    `troubles` are reasons why it proves less than it should, each a sentence. What is `not_offered`
    here counts neither way.
    """

    utc: str
    build: str
    kind: str
    seconds: float
    rows: tuple[Row, ...]
    alarms: tuple[FalseAlarms, ...] = ()
    sensitivity: tuple[Sensitivity, ...] = ()
    troubles: tuple[str, ...] = ()
    not_offered: tuple[NotOffered, ...] = ()

    @property
    def caught(self) -> int:
        """Faults that were caught."""
        return sum(row.caught for row in self.rows)

    @property
    def clean_runs(self) -> int:
        """Clean runs in all."""
        return sum(one.runs for one in self.alarms)

    @property
    def false_alarms(self) -> int:
        """Those of them that raised an alarm."""
        return sum(one.alarms for one in self.alarms)

    @property
    def good(self) -> bool:
        """Whether nothing was missed, no clean run raised an alarm, and all was
        tried that should be.
        """
        return (
            bool(self.rows)
            and self.caught == len(self.rows)
            and not self.false_alarms
            and not self.troubles
        )

    def families(self) -> list[tuple[str, int, int, float]]:
        """Family, caught, faults, and the seconds of the slowest row that was caught."""
        found = []
        for family in FAMILIES:
            own = [row for row in self.rows if row.family == family]
            if own:
                slowest = max((row.seconds for row in own if row.caught), default=0.0)
                found.append((family, sum(row.caught for row in own), len(own), slowest))
        return found

    def closing_line(self) -> str:
        """The last line of the terminal, and the title of the page."""
        word = "CAUGHT ALL" if self.good else "NOT PROVED"
        told = f"{self.caught} of {len(self.rows)} faults caught"
        if self.not_offered:
            told += f", {len(self.not_offered)} not offered here"
        alarms = (
            f"{self.false_alarms} false alarms in {self.clean_runs} clean runs"
            if self.alarms
            else "no clean runs tried"
        )
        return f"{word}: {told}, {alarms}, in {self.seconds / 60:.1f} minutes"

    def record(self, package_digest: str, machine_id: str) -> SelftestRecord:
        """For the runs to come."""
        return SelftestRecord(
            self.utc,
            package_digest,
            machine_id,
            self.caught,
            len(self.rows),
            self.false_alarms,
            self.clean_runs,
            self.kind,
        )


def show(outcome: Outcome, console: Console) -> None:
    """The table: by family each fault, how soon and what caught it, and below it what that said;
    then sensitivity and false alarms.

    Nothing is wider than the console: 80 columns in a file.
    """
    for family, caught, faults, slowest in outcome.families():
        _say(console, f"{family}: {caught} of {faults} caught, the slowest after {slowest:.0f} s")
        for row in (one for one in outcome.rows if one.family == family):
            by = one_line(row.by) if row.caught else "MISSED"
            style = "" if row.caught else "bold red"
            _say(console, f"{one_line(row.fault):<36} {row.seconds:6.1f} s  {by}", 2, style)
            _say(console, one_line(row.message if row.caught else row.wrong)[:160], 6)
    for one in outcome.sensitivity:
        _say(
            console,
            one_line(f"{one.what}: smallest caught {one.smallest}; largest missed {one.missed}"),
        )
        _say(console, one_line(one.how)[:120], 6)
    for alarms in outcome.alarms:
        told = f": {one_line(alarms.told)[:200]}" if alarms.told else ""
        remarked = f", {alarms.remarked} with a warning" if alarms.remarked else ""
        _say(
            console,
            f"clean runs, {alarms.what}: {alarms.alarms} alarms in {alarms.runs}{remarked}{told}",
        )
    for lacking in outcome.not_offered:
        _say(console, one_line(f"not offered here: {lacking.fault}: {lacking.why}"))
    for trouble in outcome.troubles:
        _say(console, one_line(trouble), 0, "red")
    # Once more at the end, where a log that was cut still has it.
    for row in outcome.rows:
        if not row.caught:
            told = one_line(f"missed: {row.family}: {row.fault}: {row.wrong}")[:400]
            _say(console, told, 0, "red")


def _say(console: Console, text: str, indent: int = 0, style: str = "") -> None:
    """A text of one line, wrapped between words at the console's edge, indented further there."""
    for index, part in enumerate(Text(text).wrap(console, console.width - indent - HANG)):
        part.rstrip()
        margin = Text(" " * (indent + (HANG if index else 0)))
        console.print(margin.append_text(Text(part.plain, style=style)), soft_wrap=True)


def junit(outcome: Outcome) -> bytes:
    """One testcase a fault, one a family of clean runs; what was missed is a failure."""
    suite = TestSuite("rigproof self-test")
    suite.timestamp = outcome.utc.rstrip("Z")
    for key, value in (
        ("build", outcome.build),
        ("kind", outcome.kind),
        ("closing_line", outcome.closing_line()),
    ):
        suite.add_property(key, one_line(value))
    for row in outcome.rows:
        case = TestCase(
            one_line(f"{row.family}: {row.fault}"),
            classname=f"selftest.{row.family.replace(' ', '_')}",
        )
        case.time = row.seconds
        for key in ("seam", "by", "run_id", "container", "journal"):
            if value := getattr(row, key):
                case.add_property(key, one_line(value))
        if row.caught:
            case.system_out = one_line(row.message)
        else:
            case.result = [_failure(row.wrong)]
        suite.add_testcase(case)
    for alarms in outcome.alarms:
        case = TestCase(
            one_line(f"clean runs: {alarms.what}"), classname="selftest.clean_runs", time=0.0
        )
        case.system_out = f"{alarms.alarms} alarms in {alarms.runs} runs"
        if alarms.alarms or not alarms.runs:
            case.result = [_failure(alarms.told or "no clean run was made")]
        suite.add_testcase(case)
    for number, trouble in enumerate(outcome.troubles, start=1):
        case = TestCase(f"the self-test itself {number}", classname="selftest.itself", time=0.0)
        case.result = [_failure(trouble)]
        suite.add_testcase(case)
    for one in outcome.not_offered:
        case = TestCase(one_line(one.fault), classname="selftest.not_offered", time=0.0)
        case.result = [Skipped(message=one_line(one.why)[:300])]
        suite.add_testcase(case)
    suite.update_statistics()
    report = JUnitXml("rigproof self-test")
    report.add_testsuite(suite)
    report.update_statistics()
    del report._elem.attrib[
        "skipped"
    ]  # not in Jenkins' schema, which counts skipped tests at the suite alone
    written: bytes = report.tostring()
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + written + b"\n"


def _failure(text: str) -> Failure:
    result = Failure(message=one_line(text)[:300], type_="missed")
    result.text = one_line(text)
    return result


def page(outcome: Outcome) -> str:
    """One page, offline, without scripts."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: (
            one_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(outcome=outcome)


def markdown(outcome: Outcome) -> str:
    """The table by family for docs/sensitivity.md."""
    lines = ["| family | caught | of | slowest |", "|---|---|---|---|"]
    lines += [
        f"| {family} | {caught} | {faults} | {slowest:.0f} s |"
        for family, caught, faults, slowest in outcome.families()
    ]
    lines += ["", *(f"- {one_line(f'{one.fault}: {one.why}')}" for one in outcome.not_offered)]
    return "\n".join([*lines, outcome.closing_line()]) + "\n"


def write(
    outcome: Outcome, folder: Path, *, package_digest: str, machine_id: str
) -> Sequence[Path]:
    """Write everything into a folder; returns the files."""
    files = {
        "selftest.html": page(outcome).encode(),
        "selftest.xml": junit(outcome),
        "selftest.md": markdown(outcome).encode(),
        "selftest.json": msgspec.json.format(
            msgspec.json.encode(outcome.record(package_digest, machine_id))
        )
        + b"\n",
        "rows.json": msgspec.json.format(msgspec.json.encode(outcome.rows)) + b"\n",
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in files]
