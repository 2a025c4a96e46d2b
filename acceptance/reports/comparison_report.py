"""The report of a comparison: what is worse first, and a closing line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acceptance.core.grouping import grouped
from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import number
from acceptance.history.comparison import (
    BAD,
    REPORTED_KINDS,
    Comparison,
    ComparisonRow,
    DifferenceKind,
    OutcomeChange,
    ValueChange,
)
from acceptance.history.noise import Spread
from acceptance.reports import explanation, summary
from acceptance.reports.locations import Location, Locations
from acceptance.reports.report import NONE, Line, Report, Row, Section, Table, Tone
from acceptance.reports.text import duration
from acceptance.wording import words
from acceptance.wording.words import quantity

_TONES: dict[DifferenceKind, Tone] = {
    "worse": "bad",
    "lost": "bad",
    "better": "good",
    "gained": "good",
    "same": "soft",
    "incomparable": "soft",
}


def report(
    comparison: Comparison, language: Language = ENGLISH, *, everything: bool = True
) -> Report:
    """The report; `everything` has the measurements within the noise too."""
    rest = _rest(comparison, language)
    if not everything:
        rest = language("{rest} (--all shows them)", rest=rest)
    tone: Tone = "bad" if comparison.worse else "good"
    return Report(
        language("Comparison"),
        (*_sections(comparison, everything, language), Section("", (Line(rest),))),
        Line(_closing(comparison, language), "other" if comparison.proves_nothing else tone),
    )


def _sections(comparison: Comparison, everything: bool, _: Language) -> Iterator[Section]:
    letters = [letter(place) for place in range(len(comparison.runs))]
    values = range(4, 5 + len(letters))
    head = (_("run"), _("host"), _("verdict"), _("profile"), _("duration"))
    yield Section(
        _("The runs"),
        (
            Table([Row(cells) for cells in _runs(comparison, _)], ("", *head), (5,), -1),
            *(Line(text) for text in _headlines(comparison, _)),
            *(Line(text, "other") for text in _opening(comparison, _)),
        ),
    )
    if comparison.outcomes:
        outcomes = [_outcome(one, _) for one in comparison.outcomes]
        table = Table(outcomes, (_("against A"), _("check"), *letters))
        yield Section(_("Outcomes that are not the same"), (table,))
    columns = (_("against A"), _("measurement"), _("component"), _("unit"), *letters, _("noise"))
    listed = [_row(row, _) for row in comparison.of_kind(*REPORTED_KINDS)]
    if listed:
        lines = (Line(_("noise of {line}", line=line), "soft") for line in _bases(comparison, _))
        yield Section(_("Measurements outside the noise"), (Table(listed, columns, values), *lines))
    if comparison.differences:
        texts = [
            Row((str(part.component) or _("machine"), part.name, *_shown(part.values)))
            for part in comparison.differences
        ]
        table = Table(texts, (_("component"), _("fact"), *letters))
        yield Section(_("What the runs do not have in common"), (table,))
    others = [_row(row, _) for row in comparison.rows if row.kind not in REPORTED_KINDS]
    if everything and others:
        yield Section(_("All other measurements"), (Table(others, columns, values),))


def _shown(texts: Iterable[str | None]) -> Iterator[str]:
    return (text or NONE for text in texts)


def _outcome(change: OutcomeChange, language: Language) -> Row:
    name = change.check or language("the whole run")
    cells = (kind_word(change.kind, language), name, *_shown(change.outcomes))
    return Row(cells, _TONES.get(change.kind, "other"))


def _row(row: ComparisonRow, language: Language) -> Row:
    cells = (
        kind_word(row.kind, language),
        row.measurement,
        str(row.component),
        row.unit,
        *_values(row, language),
        _allowed(row, language),
    )
    below = {1: row.check}
    if row.why:
        below[len(cells) - 1] = language.text(row.why)
    return Row(cells, _TONES.get(row.kind, "other"), below)


def letter(place: int) -> str:
    """A run's short name: A, B, C ..."""
    return chr(ord("A") + place)


def kind_word(kind: DifferenceKind, language: Language = ENGLISH) -> str:
    """The mark of a row; a mark is never made by colour alone."""
    marks: dict[DifferenceKind, str] = {
        "worse": language("worse"),
        "lost": language("not measured any more"),
        "changed": language("changed"),
        "better": language("better"),
        "gained": language("measured now"),
        "gone": language("not due any more"),
        "new": language("due now"),
        "incomparable": language("not compared"),
        "same": language("within the noise"),
    }
    return marks[kind]


def _values(row: ComparisonRow, language: Language) -> tuple[str, ...]:
    """One cell per run: its value, and the difference from the first run's."""
    shown = [language("not measured") if value is None else number(value) for value in row.values]
    due = [True, *(change.kind != "gone" for change in row.changes)]
    due[0] = any(change.kind != "new" for change in row.changes)
    texts = [text if is_due else NONE for text, is_due in zip(shown, due, strict=True)]
    return (
        texts[0],
        *(
            _beside(text, change, language)
            for text, change in zip(texts[1:], row.changes, strict=True)
        ),
    )


def _beside(text: str, change: ValueChange, language: Language) -> str:
    if not change.difference:
        return text
    if change.share is None:
        return language.noted(text, f"{change.difference:+.4g}")
    share = 100 * change.share
    return language.noted(text, f"{share:+.0f} %" if abs(share) >= 100 else f"{share:+.1f} %")


def _allowed(row: ComparisonRow, language: Language) -> str:
    """The allowed noise, the largest among the later runs; NONE if nothing was compared."""
    spreads = [change.spread for change in row.changes if change.spread is not None]
    if not spreads:
        return NONE
    return _size(max(spreads, key=lambda spread: spread.size), row.unit, language)


def _size(spread: Spread, unit: str, language: Language) -> str:
    if not spread.size:
        return language("none")
    return (
        f"± {quantity(spread.size, unit)}"
        if spread.absolute
        else f"± {number(100 * spread.size)} %"
    )


def _bases(comparison: Comparison, language: Language) -> tuple[str, ...]:
    """The basis of the noise of every listed row, once each with its measurements."""
    found = grouped(
        (language.text(change.spread.basis), row.measurement)
        for row in comparison.of_kind(*REPORTED_KINDS)
        for change in row.changes
        if change.spread is not None and change.kind in REPORTED_KINDS
    )
    return tuple(
        language(
            "{measurements}: {basis}",
            measurements=language.listed(dict.fromkeys(names)),
            basis=basis,
        )
        for basis, names in found.items()
    )


def _opening(comparison: Comparison, language: Language) -> Iterator[str]:
    """What the reader must know first: evidence that is not whole, other machines, moved parts,
    replaced parts.
    """
    for place, run in enumerate(comparison.runs):
        for trouble in run.troubles:
            text = words.message(trouble, language)
            yield language("{label}: {text}", label=letter(place), text=text)
    others = [letter(place) for place in comparison.other_machines]
    if others:
        names = language.listed(others)
        yield language(
            "{runs}: another machine than A: parts are compared by name where they have no "
            "serial number in common",
            runs=names,
        )
    for place, moves in enumerate(comparison.moved, start=1):
        for one in moves:
            yield language(
                "{run}: {after} is {before} of A in another slot ({identity}), and compared "
                "with that",
                run=letter(place),
                after=str(one.after),
                before=str(one.before),
                identity=one.identity,
            )
    for place, replaced in enumerate(comparison.replaced, start=1):
        for other in replaced:
            yield language(
                "{run}: {component} is another part than in A ({before} there, {after} here)",
                run=letter(place),
                component=str(other.component),
                before=other.before,
                after=other.after,
            )


def _runs(comparison: Comparison, language: Language) -> Iterator[tuple[str, ...]]:
    """One row per run: letter, name, host, verdict, profile, and duration."""
    for place, run in enumerate(comparison.runs):
        verdict = run.verdict
        unsealed = language.noted(verdict.verdict, language("not sealed"))
        yield (
            letter(place),
            run.name,
            verdict.provenance.get("host", NONE),
            verdict.verdict if run.sealed else unsealed,
            verdict.profile
            if verdict.scope == "full"
            else language(
                "{profile} ({scope})",
                profile=verdict.profile,
                scope=summary.scope(verdict, language),
            ),
            NONE if run.seconds is None else duration(run.seconds),
        )


def _headlines(comparison: Comparison, language: Language) -> Iterator[str]:
    """What each run that did not pass found, by the run's letter."""
    for place, run in enumerate(comparison.runs):
        verdict = run.verdict
        found = verdict.of_kind("fail") or verdict.of_kind("error", "skip")
        places = Locations({part: Location(serial=one) for part, one in run.identities.items()})
        if (first := explanation.of_findings(found, places, language)) is not None:
            text = first.line(language)
            about = language("{label}: {text}", label=verdict.verdict, text=text)
            yield language("{label}: {text}", label=letter(place), text=about)


def _rest(comparison: Comparison, language: Language) -> str:
    """The counts of the rows that are not listed."""
    within, gone = len(comparison.of_kind("same")), len(comparison.of_kind("gone", "new"))
    parts = [language("{number} within the noise", number=within)]
    if gone:
        parts.append(language("{number} not due in all runs", number=gone))
    if skipped := len(comparison.of_kind("incomparable")):
        parts.append(language("{number} not compared", number=skipped))
    return language("other measurements: {told}", told=language(", ").join(parts))


def _closing(comparison: Comparison, language: Language) -> str:
    """The closing line: whether anything is worse, and how much; or that nothing is proved."""
    bad = len(comparison.of_kind(*BAD))
    checks = sum(one.kind in BAD for one in comparison.outcomes)
    better = len(comparison.of_kind("better", "gained"))
    changed = len(comparison.of_kind("changed"))
    counts = language(
        "measurements: {worse} worse, {better} better, {changed} changed; outcomes: "
        "{outcomes} worse",
        worse=bad,
        better=better,
        changed=changed,
        outcomes=checks,
    )
    if comparison.not_whole:
        names = language.listed(map(letter, comparison.not_whole))
        return language(
            "NOTHING PROVED: the evidence of {runs} is incomplete; {counts}",
            runs=names,
            counts=counts,
        )
    if comparison.worse:
        return language("WORSE than A: {counts}", counts=counts)
    if comparison.unrelated:
        names = language.listed(map(letter, comparison.unrelated))
        return language(
            "NOTHING PROVED: {runs} measured nothing that A measured too; {counts}",
            runs=names,
            counts=counts,
        )
    if comparison.not_repeated:
        return language(
            "NOTHING PROVED: {checks} failed in A, and a later run did not make it; {counts}",
            checks=language.listed(comparison.not_repeated),
            counts=counts,
        )
    return language("NOTHING WORSE than A: {counts}", counts=counts)
