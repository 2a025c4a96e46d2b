"""The report of a fleet: what is not PASS first, each list cut, so that 10,000 machines fit.

CSV and JUnit have all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import get_args

from acceptance.core.grouping import grouped
from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import number
from acceptance.core.verdict import VerdictWord
from acceptance.fleet import comparison
from acceptance.fleet import report as fleet_report
from acceptance.fleet.comparison import Comparison
from acceptance.fleet.night import Judged, Row
from acceptance.fleet.report import BINS, Change, Changes, Distribution, FleetReport, Matrix
from acceptance.reports import report_terminal, templating
from acceptance.reports import text as reports_text
from acceptance.reports.report import Items, Line, Part, Picture, Report, Section, Table, Tone
from acceptance.reports.report import Row as Cells
from acceptance.wording import words

NAMES, NAMED = 8, 20  # machines named in a sentence on a terminal, and on a page
OLD = 10  # of the oldest verdicts
ROWS, CHECKS = 60, 30  # machines and columns of the matrix
HEIGHT = 20  # of a distribution, in its own units
_LEAST = 2  # height of a bin that holds one value of ten thousand
_AGES = (12, 24, 30, 48, 168)  # hours
TONES: dict[VerdictWord, Tone] = {"PASS": "good", "FAIL": "bad", "UNJUDGED": "other"}


def report(found: FleetReport, language: Language = ENGLISH, *, page: bool = False) -> Report:
    """The report; a `page` has room for more names, and for pictures."""
    return Report(
        f"{found.verdict} · {title(found, language)}",
        [*_sections(found, language, page=page)],
        Line(closing_line(found, language), TONES[found.verdict]),
    )


def _sections(found: FleetReport, language: Language, *, page: bool) -> Iterator[Section]:
    _, most, due = language, NAMED if page else NAMES, found.due
    cut = templating.MOST if page else report_terminal.MOST
    yield Section("", (Line(title(found, _), "strong"),))
    for heading, rows in groups(found, _):
        every = (Line(_("--csv and --junit write all machines"), "soft"),)
        yield Section(
            _.noted(heading, str(len(rows))),
            (
                Items([machine_line(row, found, _) for row in rows]),
                *every[: len(rows) > cut],
            ),
            TONES[rows[0].verdict],
        )
    if troubles := [words.text(one, _) for one in found.other_troubles]:
        yield Section(_("What could not be read"), (Items(troubles),))
    changes = fleet_report.changes(found)
    if changes is not None and found.before is not None:
        heading = _("Changed since the night of {night}", night=found.before[0])
        yield Section(heading, (Items([*changed(changes, _)] or [_("nothing")]),))
    matrix = fleet_report.matrix(found)
    if matrix.checks:
        lines = checks(found, _)
        part: Part = Picture("matrix.html.j2", _matrix(matrix, lines[CHECKS:]), lines)
    else:
        part = Line(_("In the verdicts that count, no check prevents a PASS."))
    yield Section(_("Machines by check"), (part,))
    if lines := beside(found, _):
        view = Line(_("A view of the fleet: it changes no verdict."), "soft")
        yield Section(_("Comparison of machines"), (view, Items(lines)))
    spread, steady = fleet_report.distributions(found) if page else ([], [])
    if spread:
        values = {"all": spread, "steady": steady, "BINS": BINS, "HEIGHT": HEIGHT}
        values |= {"NAMED": NAMED, "number": number, "bars": bars, "share": share}
        yield Section(_("Distributions"), (Picture("distributions.html.j2", values),))
    oldest = [
        _("{label}: {text}", label=row.machine, text=age(since, _))
        for row, since in fleet_report.oldest(found)[:OLD]
    ]
    if oldest:
        named = [*ages(found, _)]
        counts = Cells([str(count) for _name, count in named])
        table = Table((counts,), [name for name, _count in named], range(len(named)))
        yield Section(_("Oldest verdicts"), (table, Items(oldest)))
    if lines := passes(due, _, most):
        passed = [row.machine for row in due if row.verdict == "PASS"]
        names_ = {"machines": passed, "lines": lines, "open": len(passed) <= NAMED}
        heading = _.noted("PASS", str(len(passed)))
        yield Section(heading, (Picture("passed.html.j2", names_, lines),))
    if lines := accepted(due, _):
        yield Section(_("Accepted FAILs"), (Items(lines),))
    if rest := [*filter(None, (not_due(found, _, most), unsigned(found, _, most)))]:
        yield Section("", [Line(text, "soft") for text in rest])


def _matrix(found: Matrix, further: Sequence[str]) -> dict[str, object]:
    """The matrix of machines by checks, and the lines of checks that it has no column for."""
    columns = found.checks[:CHECKS]
    rows = [
        (row.machine, cells)
        for row in found.rows
        if any(cells := [dict(row.not_passed).get(check, "") for check in columns])
    ]
    counts = [found.outcomes[check].total() for check in columns]
    more = max(0, len(rows) - ROWS)
    return {"checks": columns, "rows": rows[:ROWS], "more": more, "all": counts, "further": further}


def closing_line(found: FleetReport | Judged, language: Language = ENGLISH) -> str:
    """The word on the fleet, how many due machines are PASS, FAIL and UNJUDGED, and how many of
    these have no fresh verdict.
    """
    due = language.ngettext("{n} machine due", "{n} machines due", len(found.due))
    text = language(", ").join(f"{found.count(word)} {word}" for word in get_args(VerdictWord))
    if missing := sum(one.missing for one in found.due):
        text += language(" ({number} without a fresh verdict)", number=missing)
    about = language("{label}: {text}", label=due, text=text)
    return language("{label}: {text}", label=found.verdict, text=about)


def collected(judged: Judged, compared: Comparison | None, language: Language = ENGLISH) -> Report:
    """What was collected: each machine that did not pass, and what could not be read.

    How the machines compare changes no verdict.
    """
    closing = Line(closing_line(judged, language), TONES[judged.verdict])
    return Report(closing.text, (Section("", [*_collected(judged, compared, language)]),), closing)


def _collected(judged: Judged, compared: Comparison | None, _: Language) -> Iterator[Line]:
    for one in judged.due:
        if one.verdict != "PASS":
            reason = words.text(one.reason or "", _)
            text = _.noted(reason, one.newest.run_id) if one.newest else reason
            about = _("{label}: {text}", label=f"{one.verdict} {one.machine}", text=text)
            yield Line(about, TONES[one.verdict])
    # The first trouble of a machine is its reason, and stands above.
    reasons = {one.machine: one.reason for one in judged.due}
    for trouble in judged.troubles:
        if trouble.machine is None or reasons.get(trouble.machine) != trouble.message:
            yield Line(words.message(trouble.message, _), "other")
    rows = [one.row for one in judged.due]
    unsigned = sorted(one.machine for one in judged.due if one.newest and not one.newest.signer)
    texts = (
        *(words.message(remark, _) for remark in judged.remarks),
        *(
            _(
                "not due: {machine}: {verdict}, which does not count",
                machine=one.machine,
                verdict=one.verdict,
            )
            for one in judged.others
        ),
        *(f"PASS {text}" for text in passes(rows, _)),
        *accepted(rows, _),
        *([_("unsigned: {machines}", machines=_.listed(unsigned))] if unsigned else ()),
        *(words.message(one, _) for one in (comparison.sentences(compared) if compared else ())),
    )
    yield from map(Line, texts)


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
    found = grouped(
        (words.message(row.proof, language), row.machine) for row in rows if row.verdict == "PASS"
    )
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
    yield from (
        _counted(f"{turn.was} -> {turn.now}", turn.machines, language) for turn in found.verdicts
    )
    if found.gone:
        yield language("no longer there: {machines}", machines=names(found.gone, language))
    if found.new:
        yield language("new: {machines}", machines=names(found.new, language))
    yield from (_counted(fact(turn, language), turn.machines, language) for turn in found.facts)


def _counted(text: str, machines: Sequence[str], language: Language) -> str:
    label = language.noted(text, str(len(machines)))
    return language("{label}: {text}", label=label, text=names(machines, language))


def fact(turn: Change, language: Language) -> str:
    """A fact that changed: what it was, and what it is."""
    unknown = language("unknown")
    return f"{turn.what} {turn.was or unknown} -> {turn.now or unknown}"


def bars(one: Distribution, *, flagged: bool) -> str:
    """The bins of a distribution as a path: those that hold outliers, or the others."""
    most = max(one.bins)
    heights = {
        place: max(_LEAST, round(HEIGHT * count / most, 1))
        for place, count in enumerate(one.bins)
        if count and (place in one.flagged) == flagged
    }
    return "".join(f"M{place} {HEIGHT}v-{height}h.9v{height}Z" for place, height in heights.items())


def share(value: float) -> str:
    """A share as people read it."""
    return f"{100 * value:.1f} %"


def ages(report: FleetReport, language: Language) -> Iterator[tuple[str, int]]:
    """How many due machines have a newest run of each age."""
    known = [
        report.now - report.last[row.machine] for row in report.due if row.machine in report.last
    ]
    before = timedelta.min
    for hours in _AGES:
        until = timedelta(hours=hours)
        count = sum(before < age <= until for age in known)
        before = until
        yield language("up to {hours} h", hours=hours), count
    yield language("older"), sum(age > before for age in known)
    yield language("none"), len(report.due) - len(known)
