"""Explain a finding: what it means, its likely causes, how to tell them apart, and the next
command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from acceptance.core.finding import Finding
from acceptance.core.language import ENGLISH, Language
from acceptance.reports import languages
from acceptance.reports.advice import Advice
from acceptance.reports.locations import NO_LOCATIONS, Location, Locations
from acceptance.reports.text import one_line

MOST_NOTES = 50  # lines of a finding's note: more than any machine needs, and no flood
_CATALOG = " NVIDIA's catalog: "  # what an Xid's action ends with, in NVIDIA's own words


@dataclass(frozen=True, slots=True)
class Explanation:
    """`causes` are pairs of a cause and how to tell it apart ("" where nothing does), the most
    likely first.

    `next` is the next command to type, or a sentence; `shows` is what to look at in what it prints.
    `action` is what an event asks for by itself, `vendor` what to send the vendor. What is not
    known is None.
    """

    symptom: str | None
    causes: tuple[tuple[str, str], ...]
    next: str | None
    vendor: str | None
    shows: str | None = None
    action: str | None = None


def explain(
    finding: Finding, places: Locations, language: Language = ENGLISH
) -> Explanation | None:
    """What is known about a failure, a warning or an event; None for what names its cure in its
    own text, as errors and skips do.
    """
    if finding.kind not in ("fail", "warn") and finding.event is None:
        return None
    known = _advice(finding, language)
    action = one_line(_action(finding.action, language)) if finding.action else None
    if known is None:
        return Explanation(None, (), action, None) if action else None
    return Explanation(
        known.symptom,
        tuple((cause.what, cause.tell) for cause in known.causes),
        known.command(places.of(finding.component).values()),
        known.vendor,
        known.shows,
        action,
    )


def _advice(finding: Finding, language: Language) -> Advice | None:
    found = languages.catalogue(language.code)
    own = found.measurements.get(finding.measurement or "")
    if finding.event is None:
        return own
    advice = found.of_event(finding.event)
    # Drift of a measurement has causes of its own kind first, then those of the measurement, and
    # its command, which is about the part.
    return (
        replace(own, symptom=advice.symptom, causes=(*advice.causes, *own.causes))
        if advice and own
        else advice
    )


def _action(text: str, language: Language) -> str:
    said, mark, buckets = text.partition(_CATALOG)
    return f"{language(said)}{mark}{buckets}"


def note_lines(finding: Finding, language: Language = ENGLISH) -> tuple[str, ...]:
    """What was looked at, a line each, where it takes more than the finding's own line.

    How many lines were left out is said.
    """
    lines = (finding.note or "").splitlines()
    rest = len(lines) - MOST_NOTES
    shown = tuple(one_line(part) for part in lines[:MOST_NOTES])
    if rest < 1:
        return shown
    return (
        *shown,
        language("... (1 more line)")
        if rest == 1
        else language("... ({number} more lines)", number=rest),
    )


def labelled_lines(
    finding: Finding, places: Locations, language: Language = ENGLISH
) -> tuple[tuple[str, str], ...]:
    """A teaching line by line, each with its label, as people read it; first where the component
    is, as far as its name does not say.
    """
    found = explain(finding, places, language)
    if found is None:
        return ()
    where = tuple(_where(finding.component or "", places.of(finding.component), language))
    return (*([(language("where"), ", ".join(where))] if where else []), *_lines(found, language))


def _where(component: str, place: Location, language: Language) -> Iterator[str]:
    """What helps to find a part in the machine, and what is printed on it."""
    if place.address and place.address != component:
        yield language("PCI address {address}", address=one_line(place.address))
    if place.slot and not component.endswith(place.slot):
        yield language("slot {slot}", slot=one_line(place.slot))
    if place.serial:
        yield language("serial number {serial}", serial=one_line(place.serial))
    if place.uuid:
        yield one_line(place.uuid)


def _lines(explanation: Explanation, language: Language) -> Iterator[tuple[str, str]]:
    if explanation.symptom:
        yield language("what it means"), explanation.symptom
    if explanation.action:
        yield language("what to do"), explanation.action
    for number, (what, tell) in enumerate(explanation.causes, start=1):
        label = language("likely cause {number}", number=number)
        yield (
            label,
            language("{cause}. How to tell: {tell}", cause=what, tell=tell) if tell else what,
        )
    if explanation.next and explanation.next != explanation.action:
        yield language("next"), explanation.next
    if explanation.shows:
        yield language("what it shows"), explanation.shows
    if explanation.vendor:
        yield language("for the vendor"), explanation.vendor


def details(finding: Finding, places: Locations, language: Language = ENGLISH) -> tuple[str, ...]:
    """All that is told below a finding's own line, a line each."""
    lines = labelled_lines(finding, places, language)
    return (*note_lines(finding, language), *(f"{label}: {text}" for label, text in lines))


def group_findings(
    findings: Iterable[Finding], places: Locations, language: Language = ENGLISH
) -> Iterator[tuple[tuple[Finding, ...], tuple[str, ...]]]:
    """Findings with the same teaching, at the place of the first, and its details once: about the
    place of a single component, in general
    for several.
    """
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        alike.setdefault(details(finding, NO_LOCATIONS, language), []).append(finding)
    for shared, group in alike.items():
        found = tuple(group)
        alone = len({finding.component for finding in found}) == 1
        yield found, details(found[0], places, language) if alone else shared
