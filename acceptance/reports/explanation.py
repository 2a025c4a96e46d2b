"""Explain a finding: its meaning, its likely causes, how to tell them apart, the next command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from acceptance.core.advice import Advice
from acceptance.core.finding import Finding
from acceptance.core.language import ENGLISH, Language
from acceptance.diagnosis import causes, symptom
from acceptance.reports import advice
from acceptance.reports.locations import Location, Locations
from acceptance.reports.text import one_line
from acceptance.wording import words

MOST_NOTES = 50  # lines of a finding's note: more than any machine needs, and a bound on a flood


@dataclass(frozen=True, slots=True)
class ShownCause:
    """A cause, and how to `tell` it apart; of one that was `measured`, what shows it."""

    what: str
    tell: str
    measured: bool = False

    def line(self, language: Language) -> str:
        """It as one line."""
        if self.measured:
            return language("{cause}. Measured: {tell}", cause=self.what, tell=self.tell)
        return language("{cause}. How to tell: {tell}", cause=self.what, tell=self.tell)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a finding; what is unknown is None.

    `causes` are those that the run's own measurements leave, what they confirm first, then the most
    likely; `excluded` is how many they exclude, and `none_left` says so where that is each of them.

    `next` is the next command to type, or a sentence; `shows` says what to look for in its output.
    `action` is what an event by itself asks for, `vendor` what to send the vendor.
    """

    symptom: str | None
    causes: tuple[ShownCause, ...]
    next: str | None
    vendor: str | None
    shows: str | None = None
    action: str | None = None
    excluded: int = 0
    none_left: str | None = None


def explain(
    finding: Finding, places: Locations, language: Language = ENGLISH
) -> Explanation | None:
    """The explanation of a failure, a warning, an event, or a value that proves nothing.

    None for other errors and for skips, whose own text names the cure.
    """
    told_of = finding.kind in ("fail", "warn") or finding.event is not None
    if not told_of and not (finding.kind == "error" and symptom.unproven_value(finding)):
        return None
    known = _advice(finding, places)
    told = words.action(finding, language)
    action = one_line(told) if told else None
    if known is None:
        return Explanation(None, (), action, None) if action else None
    left = tuple(causes.ordered(known.causes, finding, places.measured))
    return Explanation(
        language.text(known.symptom),
        tuple(
            ShownCause(
                language.text(cause.what),
                language.text(cause.seen if measured and cause.seen else cause.tell),
                measured,
            )
            for cause, measured in left
        ),
        known.command(places.of(finding.component).values()),
        language.text(known.vendor),
        language.text(known.shows),
        action,
        len(known.causes) - len(left),
        None
        if left
        else language("none that rigproof knows: this run's own measurements exclude each of them"),
    )


def _advice(finding: Finding, places: Locations) -> Advice | None:
    found = advice.shipped()
    name = finding.measurement or ""
    own = found.measurements.get(name) or places.advice.get(name)
    kind = symptom.symptom(finding)
    if finding.event is None:
        return found.of_value(own, kind)
    of_event = found.of_event(finding.event)
    if own is None or of_event is None:
        return of_event
    # Drift of a measurement has the causes of its kind first, then those of the measurement if they
    # explain this side, and the measurement's command, which is about the part.
    more = own.causes if own.fits(kind) else ()
    return replace(own, symptom=of_event.symptom, causes=(*of_event.causes, *more))


def note_lines(finding: Finding, language: Language = ENGLISH) -> tuple[str, ...]:
    """The lines of a finding's note, if it has one.

    At most MOST_NOTES lines; a last line says how many were left out.
    """
    lines = words.lines(words.note_beside(finding) or "", language)
    rest = len(lines) - MOST_NOTES
    shown = tuple(one_line(part) for part in lines[:MOST_NOTES])
    if rest < 1:
        return shown
    return (
        *shown,
        language.ngettext("... ({n} more line)", "... ({n} more lines)", rest),
    )


def labelled_lines(
    finding: Finding, places: Locations, language: Language = ENGLISH
) -> tuple[tuple[str, str], ...]:
    """An explanation line by line, each with its label.

    The first line says where the component is, as far as its name does not.
    """
    found = explain(finding, places, language)
    if found is None:
        return ()
    name = "" if finding.component is None else str(finding.component)
    where = tuple(_where(name, places.of(finding.component), language))
    first = [(language("where"), language(", ").join(where))] if where else []
    return (*first, *_lines(found, language))


def _where(component: str, place: Location, language: Language) -> Iterator[str]:
    """What helps to find a part in the machine: its location, and what is printed on it."""
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
    for number, cause in enumerate(explanation.causes, start=1):
        yield language("likely cause {number}", number=number), cause.line(language)
    if explanation.none_left:
        yield language("likely cause {number}", number=1), explanation.none_left
    if explanation.next and explanation.next != explanation.action:
        yield language("next"), explanation.next
    if explanation.shows:
        yield language("what it shows"), explanation.shows
    if explanation.vendor:
        yield language("for the vendor"), explanation.vendor


class Command(str):
    """A line with a command, which must not be wrapped, so that it can be copied."""

    __slots__ = ()


def details(finding: Finding, places: Locations, language: Language = ENGLISH) -> tuple[str, ...]:
    """All lines below a finding's own line."""
    lines = labelled_lines(finding, places, language)
    command = language("next")
    return (
        *note_lines(finding, language),
        *(
            (Command if label == command else str)(
                language("{label}: {text}", label=label, text=text)
            )
            for label, text in lines
        ),
    )


def group_findings(
    findings: Iterable[Finding], places: Locations, language: Language = ENGLISH
) -> Iterator[tuple[tuple[Finding, ...], tuple[str, ...]]]:
    """Findings grouped by explanation, in the order of each group's first, with their details.

    The details name the location if the group is of one component; for several they are general.
    """
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        alike.setdefault(details(finding, places.nowhere(), language), []).append(finding)
    for shared, group in alike.items():
        found = tuple(group)
        alone = len({finding.component for finding in found}) == 1
        yield found, details(found[0], places, language) if alone else shared
