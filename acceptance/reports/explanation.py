"""Explain a finding: its meaning, its likely causes, how to tell them apart, the next command.

The headline of a run: what failed, on which part, and what to do. Every view takes it from here.

Which finding it is about, `diagnosis.gravity` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from acceptance.core import plain_text
from acceptance.core.advice import Advice, LikelyCause
from acceptance.core.finding import RUN, Finding, FindingKind
from acceptance.core.grouping import grouped
from acceptance.core.language import ENGLISH, Language
from acceptance.core.message import Message, Quantity, Range, Value, english, known
from acceptance.core.parts import MACHINE, SYSTEM
from acceptance.diagnosis import causes, symptom
from acceptance.diagnosis.gravity import by_gravity
from acceptance.expect import measurements
from acceptance.journal.run import Run
from acceptance.reports import advice
from acceptance.reports.locations import Location, Locations, find_locations
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
    """The lines of a finding's note, if it has one, and the first of the wrong results it counts.

    At most MOST_NOTES lines; a last line says how many were left out.
    """
    lines = words.lines(words.note_beside(finding) or "", language)
    first = finding.values.get("first")
    lines += [words.message(first, language)] if isinstance(first, Message) else []
    rest = len(lines) - MOST_NOTES
    shown = tuple(one_line(part) for part in lines[:MOST_NOTES])
    if rest < 1:
        return shown
    return (
        *shown,
        language.ngettext("... ({n} more line)", "... ({n} more lines)", rest),
    )


def notes_of(findings: Iterable[Finding], language: Language) -> Iterator[str]:
    """The lines of the notes of several findings; what an earlier one has said is told once."""
    told: set[str] = set()
    for finding in findings:
        lines = note_lines(finding, language)
        yield from (line for line in lines if line not in told)
        told.update(lines)


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
    """All lines below a finding's own line: its note, then its explanation."""
    return (*note_lines(finding, language), *explanation_lines(finding, places, language))


def explanation_lines(
    finding: Finding, places: Locations, language: Language = ENGLISH
) -> tuple[str, ...]:
    """The lines of a finding's explanation, each below the other."""
    command = language("next")
    return tuple(
        (Command if label == command else str)(language("{label}: {text}", label=label, text=text))
        for label, text in labelled_lines(finding, places, language)
    )


def of_one_cause(groups: Sequence[Sequence[Finding]], places: Locations) -> list[tuple[int, ...]]:
    """The numbers of the groups that have one cause: the first one of each, which the run confirms.

    Groups of unrelated components do not belong together, nor do any without such a cause.
    """
    causes_found = [_confirmed_cause(group[0], places) for group in groups]
    confirmed = [cause and (cause.fault or cause.what) for cause in causes_found]
    found: list[list[int]] = []
    for number, group in enumerate(groups):
        own, apart = [number], []
        for numbers in found:
            kin = confirmed[number] is not None and confirmed[numbers[0]] == confirmed[number]
            others = [one for other in numbers for one in groups[other]]
            if kin and any(_are_related(one, other, places) for one in group for other in others):
                own += numbers
            else:
                apart.append(numbers)
        found = [*apart, sorted(own)]
    return sorted(map(tuple, found))


def _confirmed_cause(finding: Finding, places: Locations) -> LikelyCause | None:
    known = _advice(finding, places) if finding.kind in ("fail", "warn") else None
    found = () if known is None else causes.ordered(known.causes, finding, places.measured)
    return next((cause for cause, measured in found if measured), None)


def _are_related(one: Finding, other: Finding, places: Locations) -> bool:
    if one.component is None or other.component is None:
        return False
    return causes.share_a_part(one.component, other.component, places.measured)


def group_findings(
    findings: Iterable[Finding], places: Locations, language: Language = ENGLISH
) -> Iterator[tuple[tuple[Finding, ...], tuple[str, ...]]]:
    """Findings grouped by cause and explanation, in the order of each group's first, with details.

    The details are the notes of all, then the explanation, which names the location if the group is
    of one component; for several it is general. Findings with other notes are a group only where
    they have an explanation and are of one component. Of several explanations with one confirmed
    cause they are the first, below a line that says so.
    """
    alike = grouped((details(one, places.nowhere(), language), one) for one in findings)
    joined: dict[object, list[Finding]] = {}
    for group in alike.values():
        shared = explanation_lines(group[0], places.nowhere(), language)
        components = {finding.component for finding in group}
        alone = shared and len(components) == 1
        joined.setdefault((shared, *components) if alone else id(group), []).extend(group)
    groups = list(joined.values())
    for numbers in of_one_cause(groups, places):
        found = tuple(finding for number in numbers for finding in groups[number])
        alone = len({finding.component for finding in found}) == 1
        where = places if alone else places.nowhere()
        told = (*notes_of(found, language), *explanation_lines(found[0], where, language))
        if len(numbers) == 1:
            yield found, told
            continue
        cause = _confirmed_cause(found[0], places)
        assert cause is not None  # as it is of one cause
        what = language.text(cause.what)
        one_cause = language("one cause of all of these, as measured: {cause}", cause=what)
        yield found, (one_cause, *told)


MOST = 240  # letters of what happened
_READ = 5_000  # letters of a text of any length
_NAME, _SERIAL, _CAUSE = 100, 60, 200
_DURING = "during_checks"  # the note of a value that the watch took during other checks
# A symptom is one sentence: what is seen, and after this what it means.
_CLAUSE_END = re.compile("[:;.] |[\uff1a\uff1b\u3002]")  # also full-width
# Who is said to have done something, where that is the part itself: it has a name.
_SUBJECT = re.compile(r"(the|this) (GPU|card|disk|core|processor|module|network port) (?!in )")
_LONG = re.compile(r", | (than|that) ")  # a clause after which the check stands apart
_CAPITAL = re.compile(r"[A-Z](?=[a-z']* [A-Za-z])")  # no name of several capital letters
# Of a site's own check, too; anything else is no name to type.
_CHECK = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+(\[[A-Za-z0-9_.-]+\])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Headline:
    """The gravest finding of a run, in a sentence without the verdict's word.

    `check` and `part` are what it is about, the part by the name that the run gives it. `cause` is
    the likeliest cause of a failure, `measured` where the run's own measurements confirm it; `next`
    is the command to type next, `action` what an event asks for where there is no command; `more`
    is how many other findings of its kind there are.
    """

    kind: FindingKind
    check: str
    part: str | None
    text: str
    cause: str | None
    next: str | None
    action: str | None
    more: int
    measured: bool = False

    def why(self, language: Language = ENGLISH) -> str | None:
        """The cause in words."""
        if self.cause is None:
            return None
        code = (
            english("headline_measured", "cause, by this run's own measurements: {cause}")
            if self.measured
            else english("headline_cause", "likely cause: {cause}")
        )
        return words.message(Message(code, {"cause": self.cause}), language)

    def line(self, language: Language = ENGLISH) -> str:
        """What stands beside the verdict's word: of what could not be judged also what to do."""
        return self.text if self.kind == "fail" else self.to_do(language)

    def to_do(self, language: Language = ENGLISH) -> str:
        """The sentence, and what to do: for a reader who sees nothing else of the run."""
        values = known(text=self.text, why=self.why(language), next=self.next, action=self.action)
        return one_line(
            words.message(
                Message(
                    english(
                        "headline_to_do",
                        "{text}[; {why}][; what to do: {action}][; next: `{next}`]",
                    ),
                    values,
                ),
                language,
            )
        )


def of_run(run: Run, language: Language = ENGLISH) -> Headline | None:
    """The headline of a run; None of a PASS."""
    found = run.verdict.of_kind("fail") or run.verdict.of_kind("error", "skip")
    return of_findings(found, find_locations(run), language) if found else None


def of_findings(
    findings: Iterable[Finding], places: Locations, language: Language = ENGLISH
) -> Headline | None:
    """The headline of some findings; None where there are none."""
    ordered = by_gravity(findings, measurements.shipped().by_name)
    if not ordered:
        return None
    first = ordered[0]
    lesson = explain(first, places, language)
    text = words.of(_in_brief(first), language)
    return headline(first, lesson, text, places, len(ordered) - 1, language)


def _in_brief(finding: Finding) -> Finding:
    """A finding without its basis, where that says at length why no such value is possible."""
    if finding.code != "implausible":
        return finding
    rest = {name: value for name, value in finding.values.items() if name != "basis"}
    return replace(finding, values=rest)


def headline(
    first: Finding,
    lesson: Explanation | None,
    text: str,
    places: Locations,
    more: int,
    language: Language = ENGLISH,
) -> Headline:
    """The headline of a finding, with its explanation and its own line."""
    cause, command, action, measured = None, _again(first), None, False
    if lesson is not None:
        likeliest = lesson.causes[0] if lesson.causes else None
        measured = likeliest is not None and likeliest.measured
        # What could not be judged is tested again, unless the run's own measurements say why.
        if first.kind != "error" or first.event is not None or measured:
            cause = _shortened(likeliest.what, _CAUSE) if likeliest else lesson.none_left
            # Without advice, what an event asks for stands in the place of the command.
            command, action = (lesson.next, None) if lesson.symptom else (None, lesson.next)
    about = _part_and_check(first, places)
    what, figure = _what(first, lesson, text, language)
    did = _SUBJECT.match(what) if "part" in about else None
    if did is not None:
        code = english(
            "headline_part_did",
            "{part}[ (serial number {serial})][ ({uuid})] {what}[ in {check}][, in {apart}][ "
            "({figure})]",
        )
        what = what[did.end() :]
        if _LONG.search(what) and "check" in about:
            about["apart"] = about.pop("check")
    elif "part" in about:
        code = english(
            "headline_of_part",
            "{part}[ (serial number {serial})][ ({uuid})][ in {check}]: {what}[ ({figure})]",
        )
    else:
        code = (
            english("headline_of_check", "{check}: {what}[ ({figure})]")
            if "check" in about
            else english("headline_of_run", "{what}[ ({figure})]")
        )
    values = {**about, **known(what=what, figure=figure)}
    sentence = one_line(words.message(Message(code, values), language))
    part = values.get("part")
    name = part if isinstance(part, str) else None
    return Headline(first.kind, first.check, name, sentence, cause, command, action, more, measured)


def _what(
    finding: Finding, lesson: Explanation | None, text: str, language: Language
) -> tuple[str, Message | None]:
    """What happened, and the value that shows it: the symptom's first clause, which says what is
    seen, without what it means; else the finding's own text.
    """
    figure = _figure(finding)
    # A symptom is of a failure: an error's own text says why nothing is known, and names the cure.
    if lesson is not None and lesson.symptom and finding.kind != "error":
        clause = _shortened(_CLAUSE_END.split(lesson.symptom, maxsplit=1)[0], MOST)
        first = _CAPITAL.match(clause)
        return (clause[0].lower() + clause[1:] if first else clause), figure
    if figure is not None and finding.kind == "fail":
        return words.message(figure, language), None
    # A journal may give no reason, or one of blanks.
    return _shortened(text, MOST) or words.message(Message("no_reason"), language), None


def _figure(finding: Finding) -> Message | None:
    """The value and its limit, or the event, as far as the symptom does not say it."""
    values = finding.values
    measured, limit, event = (values.get(name) for name in ("measured", "limit", "event"))
    if isinstance(measured, Quantity) and isinstance(limit, Range):
        about: dict[str, Value] = {
            "measurement": finding.measurement or "",
            "measured": measured,
            "limit": limit,
        }
        return Message(english("headline_figure", "{measurement} {measured}, limit {limit}"), about)
    return Message("trouble", {"text": event}) if isinstance(event, str) else None


def _part_and_check(finding: Finding, places: Locations) -> dict[str, Value]:
    """The part, by its name and what is printed on it, and the check or the checks."""
    check: Value | None = one_line(finding.check, _NAME) if finding.check != RUN else None
    note, part = finding.note, finding.component
    if isinstance(note, Message) and note.code == _DURING:
        check = note.values.get("checks", check)
    if part is None or part in (MACHINE, SYSTEM):
        return known(check=check)
    own = places.measured.functions.get(part, part)  # the kernel names a GPU by its address
    name, place = str(own), places.of(own)
    serial, uuid = (one and one_line(one, _SERIAL) for one in (place.serial, place.uuid))
    return known(
        check=check, part=one_line(name, _NAME), serial=serial, uuid=None if serial else uuid
    )


def _again(finding: Finding) -> str | None:
    """How to test again what could not be judged; a failure without advice has no command."""
    if finding.kind == "fail":
        return None
    if finding.check == RUN or not _CHECK.fullmatch(finding.check):
        return "rigproof accept"
    return f"rigproof accept --only {finding.check}"


def _shortened(text: str, most: int) -> str:
    """A text that stands within a sentence: its cause and its cure, which stand at its ends."""
    short = one_line(plain_text.shortened(text, _READ), 2 * _READ)
    return plain_text.shortened(short, most).rstrip(".。")
