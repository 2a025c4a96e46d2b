"""A fleet on the terminal: what is not PASS first, each list cut, so that 10,000 machines fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from acceptance.core.language import ENGLISH, Language
from acceptance.core.verdict import VerdictWord
from acceptance.fleet import comparison
from acceptance.fleet import report as fleet_report
from acceptance.fleet.night import Row
from acceptance.fleet.report import Changes, FleetReport, Turn
from acceptance.reports import text as reports_text
from acceptance.reports.terminal import VERDICT_STYLE, Terminal
from acceptance.wording import words

MOST = 20  # lines of a list; the page has more, CSV and JUnit have all
NAMES = 8  # machines named in a sentence
OLD = 5  # of the oldest verdicts


def closing_line(
    verdict: VerdictWord,
    counts: tuple[int, int, int],
    missing: int,
    language: Language = ENGLISH,
) -> str:
    """The word on the fleet, how many machines are PASS, FAIL and UNJUDGED, and how many of these
    have no fresh verdict.
    """
    due = language.ngettext("{n} machine due", "{n} machines due", sum(counts))
    named = zip(counts, ("PASS", "FAIL", "UNJUDGED"), strict=True)
    text = language(", ").join(f"{count} {word}" for count, word in named)
    if missing:
        text += language(" ({number} without a fresh verdict)", number=missing)
    about = language("{label}: {text}", label=due, text=text)
    return language("{label}: {text}", label=verdict, text=about)


def closing_of(report: FleetReport, language: Language = ENGLISH) -> str:
    """The closing line of a report."""
    counts = report.count("PASS"), report.count("FAIL"), report.count("UNJUDGED")
    return closing_line(report.verdict, counts, report.missing, language)


def show(report: FleetReport, screen: Terminal, language: Language = ENGLISH) -> None:
    """Print the report; the closing line comes last."""
    screen.say(title(report, language), "bold")
    for heading, rows in groups(report, language):
        counted = language("{heading} ({number}):", heading=heading, number=len(rows))
        screen.say(counted, VERDICT_STYLE[rows[0].verdict])
        for row in rows[:MOST]:
            screen.say(machine_line(row, report, language), indent=2)
        _rest(screen, len(rows) - MOST, language)
    _block(screen, "PASS", passes(report.due, language), language)
    _block(screen, language("Accepted FAILs"), accepted(report.due, language), language)
    troubles = [words.text(one, language) for one in report.other_troubles]
    _block(screen, language("What could not be read"), troubles, language)
    for text in (not_due(report, language), unsigned(report, language)):
        if text:
            screen.say(text)
    _block(screen, language("Checks that did not pass"), checks(report, language), language)
    _block(screen, language("Comparison of machines"), beside(report, language), language)
    aged = fleet_report.oldest(report)[:OLD]
    _block(
        screen,
        language("Oldest verdicts"),
        [
            language("{label}: {text}", label=row.machine, text=age(since, language))
            for row, since in aged
        ],
        language,
    )
    found = fleet_report.changes(report)
    if found is not None and report.before is not None:
        heading = language("Changed since the night of {night}", night=report.before[0])
        lines = list(changed(found, language)) or [language("nothing")]
        _block(screen, heading, lines, language)
    screen.say(closing_of(report, language), f"bold {VERDICT_STYLE[report.verdict]}")


def title(report: FleetReport, language: Language) -> str:
    """What the report is of."""
    now = f"{report.now.astimezone():%Y-%m-%d %H:%M}"
    if report.night is None:
        return language("Fleet at {now}, from the verdicts in folders", now=now)
    return language("Fleet at {now}, from the stored night of {night}", now=now, night=report.night)


def groups(report: FleetReport, language: Language) -> Iterator[tuple[str, list[Row]]]:
    """The due machines that are no PASS: those without a fresh verdict, FAIL, UNJUDGED."""
    unjudged = [row for row in report.due if row.verdict == "UNJUDGED"]
    if missing := [row for row in unjudged if row.missing]:
        yield language("without a fresh verdict"), missing
    if failed := [row for row in report.due if row.verdict == "FAIL"]:
        yield "FAIL", failed
    if rows := [row for row in unjudged if not row.missing]:
        yield "UNJUDGED", rows


def passes(rows: Iterable[Row], language: Language, most: int = NAMES) -> list[str]:
    """The machines that passed, by profile, machine file, and what the verdicts do not cover."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.verdict == "PASS":
            found.setdefault(words.message(row.proof, language), []).append(row.machine)
    return [
        language(
            "{label}: {text}",
            label=language.noted(text, str(len(machines))),
            text=names(machines, language, most),
        )
        for text, machines in sorted(found.items(), key=lambda one: (-len(one[1]), one[0]))
    ]


def accepted(rows: Iterable[Row], language: Language) -> list[str]:
    """The FAILs that somebody accepted, with who, when and why."""
    return [
        language("{label}: {text}", label=row.machine, text=words.message(one.message, language))
        for row in rows
        for one in row.accepted
    ]


def machine_line(row: Row, report: FleetReport, language: Language) -> str:
    """A machine with its reason and its run."""
    reason = words.text(report.reasons.get(row.machine, ""), language)
    text = language.noted(reason, row.run_id) if row.run_id else reason
    return language("{label}: {text}", label=row.machine, text=text)


def not_due(report: FleetReport, language: Language, most: int = NAMES) -> str:
    """The machines that are not due and have verdicts, which do not count; empty without any."""
    if not report.others:
        return ""
    machines = [row.machine for row in report.others]
    return language("not due: {machines}", machines=names(machines, language, most))


def unsigned(report: FleetReport, language: Language, most: int = NAMES) -> str:
    """The due machines whose verdict is not signed; empty without any."""
    machines = [row.machine for row in report.due if row.run_id and row.signer is None]
    if not machines:
        return ""
    return language("unsigned: {machines}", machines=names(machines, language, most))


def names(machines: Sequence[str], language: Language, most: int = NAMES) -> str:
    """Some machines by name, and how many there are beside them."""
    text = language.listed(machines[:most])
    if (rest := len(machines) - most) > 0:
        text += language.ngettext(" and {n} more", " and {n} more", rest)
    return text


def checks(report: FleetReport, language: Language) -> list[str]:
    """The checks that did not pass everywhere, with their machines."""
    found = fleet_report.matrix(report)
    machines: dict[str, list[str]] = {check: [] for check in found.checks}
    for row in found.rows:
        for check, _ in row.not_passed:
            machines[check].append(row.machine)
    return [
        language(
            "{label}: {text}",
            label=language(
                "{label}: {text}", label=check, text=outcomes(found.outcomes[check], language)
            ),
            text=names(some, language),
        )
        for check, some in machines.items()
    ]


def outcomes(count: dict[str, int], language: Language) -> str:
    """How many machines have each outcome of a check."""
    counts = ((count["fail"], language("fail")), (count["error"], language("error")))
    return language(", ").join(f"{number} {word}" for number, word in counts if number)


def beside(report: FleetReport, language: Language) -> list[str]:
    """Copied ids, replaced GPUs, outliers, common causes, differing versions, in sentences."""
    compared = comparison.sentences(report.compared) if report.compared is not None else ()
    return [words.message(one, language) for one in (*report.remarks, *compared)]


def age(since: timedelta | None, language: Language) -> str:
    """The age of a verdict."""
    if since is None:
        return language("none")
    hours = max(since, timedelta()) / timedelta(hours=1)
    if hours < 48:
        return reports_text.duration(hours * 3600)
    return language.ngettext("{n} day", "{n} days", round(hours / 24))


def changed(found: Changes, language: Language) -> Iterator[str]:
    """What changed, in sentences; the worst turn of verdicts first."""
    for turn in found.verdicts:
        yield _counted(f"{turn.was} -> {turn.now}", turn.machines, language)
    if found.gone:
        yield language("no longer there: {machines}", machines=names(found.gone, language))
    if found.new:
        yield language("new: {machines}", machines=names(found.new, language))
    for turn in found.facts:
        yield _counted(fact(turn, language), turn.machines, language)


def _counted(text: str, machines: Sequence[str], language: Language) -> str:
    label = language.noted(text, str(len(machines)))
    return language("{label}: {text}", label=label, text=names(machines, language))


def fact(turn: Turn, language: Language) -> str:
    """A fact that changed: what it was, and what it is."""
    unknown = language("unknown")
    return f"{turn.what} {turn.was or unknown} -> {turn.now or unknown}"


def _block(screen: Terminal, heading: str, lines: Sequence[str], language: Language) -> None:
    if lines:
        screen.say(language("{heading}:", heading=heading))
    for line in lines[:MOST]:
        screen.say(line, indent=2)
    _rest(screen, len(lines) - MOST, language)


def _rest(screen: Terminal, rest: int, language: Language) -> None:
    if rest > 0:
        screen.say(language.ngettext("and {n} more", "and {n} more", rest), indent=2)
