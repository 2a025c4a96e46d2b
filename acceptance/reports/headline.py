"""The headline of a run: what failed, on which part, and what to do. Every view takes it from here.

Which finding it is about, `diagnosis.gravity` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from acceptance.core import plain_text
from acceptance.core.finding import RUN, Finding, FindingKind
from acceptance.core.language import ENGLISH, Language
from acceptance.core.message import Message, Quantity, Range, Value, known
from acceptance.core.parts import MACHINE, SYSTEM
from acceptance.diagnosis.gravity import by_gravity
from acceptance.expect import measurements
from acceptance.journal.run import Run
from acceptance.reports.explanation import Explanation, explain
from acceptance.reports.locations import Locations, find_locations
from acceptance.reports.text import one_line
from acceptance.wording import words

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
        code = "headline_measured" if self.measured else "headline_cause"
        return words.message(Message(code, {"cause": self.cause}), language)

    def line(self, language: Language = ENGLISH) -> str:
        """What stands beside the verdict's word: of what could not be judged also what to do."""
        return self.text if self.kind == "fail" else self.to_do(language)

    def to_do(self, language: Language = ENGLISH) -> str:
        """The sentence, and what to do: for a reader who sees nothing else of the run."""
        values = known(text=self.text, why=self.why(language), next=self.next, action=self.action)
        return one_line(words.message(Message("headline_to_do", values), language))


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
    about = _where(first, places)
    what, figure = _what(first, lesson, text, language)
    did = _SUBJECT.match(what) if "part" in about else None
    if did is not None:
        code = "headline_part_did"
        what = what[did.end() :]
        if _LONG.search(what) and "check" in about:
            about["apart"] = about.pop("check")
    elif "part" in about:
        code = "headline_of_part"
    else:
        code = "headline_of_check" if "check" in about else "headline_of_run"
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
        return Message("headline_figure", about)
    return Message("trouble", {"text": event}) if isinstance(event, str) else None


def _where(finding: Finding, places: Locations) -> dict[str, Value]:
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
