"""The report of a baseline: machine, parts and measurements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import number
from acceptance.core.parts import ITSELF, Component
from acceptance.history.baseline import Certificate
from acceptance.reports.report import NONE, Line, Report, Row, Section, Table
from acceptance.wording.words import quantity


def accepted(certificate: Certificate, former: str | None, language: Language = ENGLISH) -> Report:
    """That a run is the baseline now, what it accepted, and where the former one is kept."""
    born = certificate.machine
    text = language(
        "run {run} is the baseline of this machine (parts: {parts}, measurements: {figures})",
        run=born.run_id,
        parts=len(born.parts),
        figures=len(certificate.figures),
    )
    kept = (
        ()
        if former is None
        else (Line(language("the one before it is kept:")), Line(former, exact=True))
    )
    parts = (Line(text, "good"), *_remarks(certificate, language), *kept)
    return Report(language("baseline"), (Section("", parts),))


def report(
    certificate: Certificate,
    sha256: str,
    former: Sequence[Certificate],
    language: Language = ENGLISH,
) -> Report:
    """The report of a certificate; `former` are the earlier ones, oldest first."""
    _, born = language, certificate.machine
    about = (
        (_("machine"), certificate.machine_id),
        (_("run"), _.noted(born.run_id, born.utc)),
        (_("accepted"), certificate.accepted_utc),
        (_("profile"), certificate.profile),
        (_("rigproof"), certificate.rigproof),
        (_("seal"), sha256),
    )
    before = (
        _("before it: run {run}, accepted {utc}", run=one.machine.run_id, utc=one.accepted_utc)
        for one in former
    )
    warnings = (_("warning: {text}", text=text) for text in certificate.warnings)
    figures = (
        (
            one.measurement,
            str(one.component),
            quantity(one.value, one.unit),
            NONE if one.spread is None else number(one.spread),
        )
        for one in certificate.figures
    )
    names = (_("measurement"), _("component"), _("value"), _("noise"))
    lines = (*map(Line, before), *_remarks(certificate, _), *map(Line, warnings))
    return Report(
        _("baseline"),
        (
            Section("", (_table(about), *lines)),
            Section(_("What the machine is made of"), (_table(_facts(certificate, _)),)),
            Section(_("What was measured"), (_table(figures, names, (2, 3)),)),
        ),
    )


def _table(
    rows: Iterable[Sequence[str]], head: Sequence[str] = (), numbers: Sequence[int] = ()
) -> Table:
    return Table([*map(Row, rows)], head, numbers, -1)


def _remarks(certificate: Certificate, language: Language) -> Iterator[Line]:
    if not certificate.inventory_declared:
        yield Line(
            language("no machine file said what should be in it: the baseline holds what was found")
        )
    yield from (
        Line(language("accepted with it: {text}", text=text))
        for text in (*certificate.waived, *certificate.set_aside)
    )


def _facts(certificate: Certificate, language: Language) -> Iterator[tuple[str, str, str]]:
    """The facts of each part, its identity first; those of the machine as a whole come last."""
    facts: dict[Component, list[tuple[str, str]]] = {part: [] for part in certificate.machine.parts}
    for component, name, text in certificate.machine.facts:
        facts.setdefault(component, []).append((name, text))
    for component, rows in sorted(facts.items(), key=lambda one: one[0] != ITSELF):
        identity = certificate.machine.identities.get(component)
        first = [(language("identity"), identity)] if identity else []
        for place, (name, text) in enumerate([*first, *rows]):
            yield "" if place else str(component) or language("machine"), name, text
