"""The findings of a run as cards.

A card has what was expected, what was measured and how far outside, where, why, and what to do.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from acceptance.core.finding import Finding
from acceptance.core.grouping import grouped
from acceptance.core.language import Language
from acceptance.core.limit import Limit
from acceptance.core.message import Message, Quantity, english
from acceptance.core.parts import Component
from acceptance.core.verdict import Judgement, Verdict
from acceptance.machine import waiver_lines
from acceptance.reports import explanation, summary
from acceptance.reports.explanation import Explanation, explain, notes_of
from acceptance.reports.locations import Location, Locations
from acceptance.reports.text import one_line
from acceptance.wording import words
from acceptance.wording.words import limit_text, quantity, span

# Findings about a value outside its limit, or outside what is usual.
_OUTSIDE = frozenset({"outside_limit", "outside_usual", "worse_than_waived"})
MeasurementKey = tuple[str, str, Component]  # check, measurement, component


@dataclass(frozen=True, slots=True)
class LimitBreach:
    """One measurement of a check outside its limit.

    `more` is the rest of the finding: a waiver, a remark.
    """

    check: str
    measurement: str
    measured: str
    limit: str
    margin: str
    more: str | None


@dataclass(frozen=True, slots=True)
class FindingCard:
    """Findings about one component that share an explanation, or are of one check.

    `faults` are values outside a limit, `texts` all other findings. `where` is the component's
    location in pairs of label and value; `bases` are the bases of the limits in pairs of
    measurements and basis. `waiver` are the lines to paste into a machine file, where a message
    recommends that. `same_cause` has the titles of the cards with the same confirmed cause.
    """

    kind: str
    checks: tuple[str, ...]
    component: Component | None
    where: tuple[tuple[str, str], ...]
    faults: tuple[LimitBreach, ...]
    bases: tuple[tuple[str, str], ...]
    texts: tuple[str, ...]
    notes: tuple[str, ...]
    quotes: tuple[str, ...]
    teaching: Explanation | None
    waiver: tuple[str, ...] = ()
    same_cause: tuple[str, ...] = ()

    def title(self, language: Language) -> str:
        """The part, and the checks that found it."""
        checks = language.listed(self.checks)
        return checks if self.component is None else f"{self.component} · {checks}"


def margin(limit: Limit, value: float, language: Language) -> str | None:
    """How far a value is outside a limit, in the unit and as a share; None if it is within.

    A value within its limit is compared with the warning bounds. A temperature has no share:
    0 degC is not the absence of heat.
    """
    within = limit.grade(value) == "warn"
    low, high = (limit.warn_low, limit.warn_high) if within else (limit.low, limit.high)

    def with_share(text: str, bound: float) -> str:
        shown = bound > 0 and limit.unit != "degC"
        return language.noted(text, f"{100 * (value / bound - 1):+.1f} %") if shown else text

    if low is not None and value < low:
        amount = quantity(low - value, limit.unit)
        return with_share(language("{amount} too low", amount=amount), low)
    if high is not None and value > high:
        amount = quantity(value - high, limit.unit)
        return with_share(language("{amount} too high", amount=amount), high)
    return None


def expected(limit: Limit, value: float, language: Language) -> str:
    """What a value is compared with: the limit, and before it what is usual if only that failed."""
    if limit.grade(value) != "warn":
        return limit_text(limit)
    usual = span(limit.warn_low, limit.warn_high, limit.unit)
    return language("usual {usual}, limit {limit}", usual=usual, limit=limit_text(limit))


def by_key(verdict: Verdict) -> dict[MeasurementKey, Judgement]:
    """Everything judged, by check, measurement and component."""
    return {
        (check.id, one.due.measurement, one.due.component): one
        for check in verdict.checks
        for one in check.judged
    }


def cards(
    findings: Iterable[Finding],
    judged: Mapping[MeasurementKey, Judgement],
    places: Locations,
    language: Language,
) -> Iterator[FindingCard]:
    """Findings grouped into cards, in the order of each card's first finding.

    A card is about one component. Its findings share an explanation; without one they are of one
    check, or of several with the same text. Each names the others of the same confirmed cause.
    """
    groups = list(_groups(findings, places))
    found = [_card(group, judged, places, language) for group in groups]
    kin = {
        number: tuple(found[other].title(language) for other in numbers if other != number)
        for numbers in explanation.of_one_cause(groups, places)
        for number in numbers
    }
    for number, card in enumerate(found):
        yield replace(card, same_cause=kin[number])


def _groups(findings: Iterable[Finding], places: Locations) -> Iterator[list[Finding]]:
    """The findings of each card."""
    lessons = ((one, explain(one, places)) for one in findings)
    alike = grouped(
        ((one.kind, one.check if lesson is None else "", one.component, lesson), one)
        for one, lesson in lessons
    )
    same: dict[object, list[Finding]] = {}
    for key, found in alike.items():
        said = (key[0], key[2], tuple((words.of(one), _note(one), one.quote) for one in found))
        same.setdefault(key if key[3] else said, []).extend(found)
    yield from same.values()


def _card(
    found: Sequence[Finding],
    judged: Mapping[MeasurementKey, Judgement],
    places: Locations,
    language: Language,
) -> FindingCard:
    lesson = explain(found[0], places, language)
    faults = [_fault(finding, judged, language) for finding in found]
    texts = dict.fromkeys(
        words.of(one, language) for one, fault in zip(found, faults, strict=True) if fault is None
    )
    return FindingCard(
        found[0].kind,
        tuple(dict.fromkeys(name for one in found for name in (one.check, *one.also_in))),
        found[0].component,
        tuple(_where(places.of(found[0].component), _serial(found[0], judged), language)),
        tuple(fault for fault in faults if fault),
        tuple(
            _bases(
                [one for one, fault in zip(found, faults, strict=True) if fault],
                judged,
                language,
            )
        ),
        tuple(map(one_line, texts)),
        tuple(notes_of(found, language)),
        tuple(map(one_line, dict.fromkeys(finding.quote for finding in found if finding.quote))),
        lesson,
        tuple(map(one_line, waiver_lines.recommended(found))),
    )


def _note(finding: Finding) -> str:
    return words.text(words.note_beside(finding) or "")


def _judged(finding: Finding, judged: Mapping[MeasurementKey, Judgement]) -> Judgement | None:
    if finding.measurement is None or finding.component is None:
        return None
    return judged.get((finding.check, finding.measurement, finding.component))


def _serial(finding: Finding, judged: Mapping[MeasurementKey, Judgement]) -> str | None:
    found = _judged(finding, judged)
    return found.serial if found else None


def _fault(
    finding: Finding, judged: Mapping[MeasurementKey, Judgement], language: Language
) -> LimitBreach | None:
    """The parts of a finding; None if it is not about a value and its limit."""
    found = _judged(finding, judged)
    measured = finding.values.get("measured")
    if (
        found is None
        or found.due.limit is None
        or finding.code not in _OUTSIDE
        or not isinstance(measured, Quantity)
    ):
        return None
    limit = found.due.limit
    outside = margin(limit, measured.value, language)
    if outside is None:
        return None
    note = found.note if found.note and words.note_beside(finding) is None else None
    more = [
        words.text(note or "", language),
        *(words.message(one, language) for one in _besides(finding)),
    ]
    return LimitBreach(
        finding.check,
        found.due.measurement,
        words.measured(measured),
        expected(limit, measured.value, language),
        outside,
        one_line(language("; ").join(filter(None, more))) or None,
    )


def _besides(finding: Finding) -> Iterator[Message]:
    """What a finding says of a value beside its limit."""
    if finding.code == "outside_usual":
        yield Message(english("only_unusual", "(within the limit, outside what is usual)"))
    if finding.code == "worse_than_waived":
        yield Message(
            english("waiver_bound", "worse than the waiver accepts ({bound})"), finding.values
        )
    yield from words.other_checks(finding)


def _bases(
    findings: Iterable[Finding],
    judged: Mapping[MeasurementKey, Judgement],
    language: Language,
) -> Iterator[tuple[str, str]]:
    """Each basis once, with the measurements whose limits have it; "" if all do."""
    named = grouped(
        (summary.basis_text(found, language), found.due.measurement)
        for finding in findings
        if (found := _judged(finding, judged)) is not None
    )
    for basis, names in named.items():
        yield "" if len(named) == 1 else language.listed(dict.fromkeys(names)), basis


def _where(place: Location, serial: str | None, language: Language) -> Iterator[tuple[str, str]]:
    known = (
        (language("slot"), place.slot),
        (language("PCI address"), place.address),
        (language("serial number"), place.serial),
        (language("identity"), serial if serial not in (place.serial, None) else place.uuid),
    )
    yield from ((label, one_line(value)) for label, value in known if value)
