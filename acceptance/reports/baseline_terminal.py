"""The baseline on the terminal: machine, parts and measurements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import number
from acceptance.core.parts import ITSELF, Component
from acceptance.history.baseline import BaselineValue, Certificate
from acceptance.reports import grid
from acceptance.reports.terminal import Terminal
from acceptance.wording.quantities import quantity


def show_accepted(
    certificate: Certificate,
    screen: Terminal,
    *,
    already: bool,
    former: str | None,
    language: Language = ENGLISH,
) -> None:
    """Report that a run is the baseline now, what it accepted, and where the former one is kept."""
    if already:
        screen.say(
            language("this run has been the baseline since {utc}", utc=certificate.accepted_utc)
        )
        return
    text = language(
        "run {run} is the baseline of this machine (parts: {parts}, measurements: {figures})",
        run=certificate.birth.run_id,
        parts=len(certificate.birth.parts),
        figures=len(certificate.figures),
    )
    screen.say(text, "bold green")
    _remarks(certificate, screen, language)
    if former is not None:
        screen.say(language("the one before it is kept:"))
        screen.path(former)


def _remarks(certificate: Certificate, screen: Terminal, language: Language) -> None:
    if not certificate.inventory_declared:
        screen.say(
            language("no machine file said what should be in it: the baseline holds what was found")
        )
    for text in (*certificate.waived, *certificate.set_aside):
        screen.say(language("accepted with it: {text}", text=text))


def show(
    certificate: Certificate,
    sha256: str,
    former: Sequence[Certificate],
    screen: Terminal,
    language: Language = ENGLISH,
) -> None:
    """Print a certificate; `former` are the earlier ones, oldest first."""
    rows = [
        (language("machine"), certificate.machine_id),
        (language("run"), language.noted(certificate.birth.run_id, certificate.birth.utc)),
        (language("accepted"), certificate.accepted_utc),
        (language("profile"), certificate.profile),
        (language("rigproof"), certificate.rigproof),
        (language("seal"), sha256),
    ]
    _grid(screen, rows)
    for one in former:
        words = language(
            "before it: run {run}, accepted {utc}", run=one.birth.run_id, utc=one.accepted_utc
        )
        screen.say(words)
    _remarks(certificate, screen, language)
    for text in certificate.warnings:
        screen.say(language("warning: {text}", text=text))
    _heading(screen, language("What the machine is made of"))
    _grid(screen, list(_facts(certificate, language)))
    _heading(screen, language("What was measured"))
    names = [language("measurement"), language("component"), language("value"), language("noise")]
    _grid(screen, [_figure(one) for one in certificate.figures], head=names, right=2)


def _heading(screen: Terminal, text: str) -> None:
    screen.say("")
    screen.say(text, "bold")


def _grid(
    screen: Terminal, rows: Sequence[Sequence[str]], *, head: Sequence[str] = (), right: int = 99
) -> None:
    cells = [("", row) for row in rows]
    grid.show(screen.console, cells, head=head, right=right, watched=screen.watched)


def _facts(certificate: Certificate, language: Language) -> Iterator[tuple[str, str, str]]:
    """The facts of each part, its identity first; those of the machine as a whole come last."""
    facts: dict[Component, list[tuple[str, str]]] = {part: [] for part in certificate.birth.parts}
    for component, name, text in certificate.birth.facts:
        facts.setdefault(component, []).append((name, text))
    for component, rows in sorted(facts.items(), key=lambda one: one[0] != ITSELF):
        identity = certificate.birth.identities.get(component)
        first = [(language("identity"), identity)] if identity else []
        for place, (name, text) in enumerate([*first, *rows]):
            yield "" if place else str(component) or language("machine"), name, text


def _figure(value: BaselineValue) -> tuple[str, str, str, str]:
    noise = number(value.spread) if value.spread is not None else "-"
    return value.measurement, str(value.component), quantity(value.value, value.unit), noise
