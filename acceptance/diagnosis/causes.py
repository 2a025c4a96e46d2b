"""Which likely causes of a finding this run's own measurements confirm or exclude. Pure.

A condition has three answers: met, not met, or that nobody can tell, because a value was not
measured. What nobody can tell neither confirms nor excludes a cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from acceptance.core.advice import Condition, LikelyCause, Side
from acceptance.core.component import Component
from acceptance.core.finding import Finding
from acceptance.core.judgement import Judgement
from acceptance.core.parts import CPU, MACHINE, MEMORY, SYSTEM, Core, Named, Part, Socket
from acceptance.core.record import Event
from acceptance.core.verdict import Verdict

Standing = Literal["confirmed", "open", "excluded"]
# Whether the kernel's messages of the run were read: without them a missing event proves nothing.
_LOG_READ = "kernel_faults_during"
# Of these one value decides; of the other sides every value must be so.
_ONE_SUFFICES: frozenset[Side] = frozenset({"not zero", "failed", "low", "high", "below", "above"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run measured, by measurement, and the events that it recorded, in their order.

    `functions` gives the GPU, or another part, by the PCI function that the kernel names.
    """

    values: Mapping[str, Sequence[Judgement]] = field(default_factory=lambda: MappingProxyType({}))
    events: Sequence[Event] = ()
    functions: Mapping[Component, Component] = field(default_factory=lambda: MappingProxyType({}))

    def __hash__(self) -> int:
        return hash((len(self.values), len(self.events)))


NO_EVIDENCE = Evidence()


def evidence(verdict: Verdict, functions: Mapping[Component, Component]) -> Evidence:
    """The evidence of a run."""
    values: dict[str, list[Judgement]] = {}
    events: list[Event] = []
    for check in verdict.checks:
        for one in check.judged:
            values.setdefault(one.due.measurement, []).append(one)
        events += check.events
    events.sort(key=lambda one: (one.boot_s is None, one.boot_s or 0.0))
    return Evidence(values, tuple(dict.fromkeys(events)), functions)


def standing(cause: LikelyCause, finding: Finding, found: Evidence) -> Standing:
    """Whether the run confirms a cause of a finding, excludes it, or leaves it open."""
    if not cause.conditions:
        return "open"
    answers = [(one, _answer(one, finding, found)) for one in cause.conditions]
    if any(met is False and one.settles != "confirms" for one, met in answers):
        return "excluded"
    if all(met is True and one.settles != "excludes" for one, met in answers):
        return "confirmed"
    return "open"


def _answer(condition: Condition, finding: Finding, found: Evidence) -> bool | None:
    if condition.rule is not None:
        rule = RULES.get(condition.rule)  # a site's file may name one of another version
        return None if rule is None else rule(finding, found)
    if condition.events:
        return _event(condition, finding, found)
    return _value(condition, finding, found)


def _value(condition: Condition, finding: Finding, found: Evidence) -> bool | None:
    """Whether the values are on the side that the condition names; None where one is missing."""
    side = condition.is_
    answers: list[bool | None] = []
    for name in condition.measurements:
        of_name = [
            _on_side(one, condition)
            for one in found.values.get(name, ())
            if belongs(one.due.component, condition, finding, found)
        ]
        answers += of_name or [None]
    if side in _ONE_SUFFICES:
        return True if True in answers else None if None in answers else False
    return False if False in answers else None if None in answers else True


def _on_side(one: Judgement, condition: Condition) -> bool | None:
    """Whether one value is on the side; None for one that was not measured or is no number.

    A failure that a waiver covers was not judged: nobody can tell whether it failed.
    """
    value = one.value
    if value is None or one.skipped:
        return None
    failed = any(finding.kind == "fail" for finding in one.findings)
    limit = one.due.limit
    match condition.is_:
        case "zero":
            return value == 0
        case "not zero":
            return value != 0
        case "failed" | "sound":
            if one.waived or (limit is None and not failed):
                return None
            return failed == (condition.is_ == "failed")
        case "low" if limit is not None and limit.low is not None:
            return value < limit.low
        case "high" if limit is not None and limit.high is not None:
            return value > limit.high
        case "below" if condition.value is not None:
            return value < condition.value
        case "above" if condition.value is not None:
            return value > condition.value
        case _:
            return None


def _event(condition: Condition, finding: Finding, found: Evidence) -> bool | None:
    """Whether such an event was recorded of these components.

    An event that is not there proves nothing where the kernel's log was not read to its end.
    """
    there = [
        one
        for one in found.events
        if _named(one) & set(condition.events)
        and one.component is not None
        and belongs(one.component, condition, finding, found)
    ]
    if condition.is_ == "before":
        own = [one for one in found.events if _is_own(one, finding)]
        if not own or own[0].boot_s is None:
            return None
        there = [one for one in there if one.boot_s is not None and one.boot_s < own[0].boot_s]
    absent = not there
    if absent and not _log_was_read(found):
        return None
    return absent if condition.is_ == "not there" else not absent


def _named(event: Event) -> set[str]:
    return {event.kind, f"{event.kind}.{event.code}"}


def _is_own(event: Event, finding: Finding) -> bool:
    return finding.event in _named(event) and event.component == finding.component


def _log_was_read(found: Evidence) -> bool:
    return any(one.value is not None for one in found.values.get(_LOG_READ, ()))


def belongs(part: Component, condition: Condition, finding: Finding, found: Evidence) -> bool:
    """Whether a part's value is one of those that the condition is about."""
    own = finding.component
    if condition.of == "any" or own is None:
        return condition.of != "others"
    related = are_related(_by_name(own, found), _by_name(part, found))
    return related if condition.of == "its" else not related and type(part) is type(own)


def _by_name(component: Component, found: Evidence) -> Component:
    return found.functions.get(component, component)


def are_related(one: Component, other: Component) -> bool:
    """Whether one is the other, ends at it, has it among its own, or the other way around."""
    return _has(one, other) or _has(other, one)


def _has(whole: Component, part: Component) -> bool:
    if whole in (MACHINE, SYSTEM) or all(whole.holds(end) for end in part.ends):
        return True
    if whole == CPU:
        return isinstance(part, Socket | Core) or (isinstance(part, Named) and part.matches("cpu*"))
    if whole == MEMORY:
        dimm = isinstance(part, Part) and part.kind == "dimm"
        return dimm or isinstance(part, Socket) or (isinstance(part, Named) and part.matches("mc*"))
    return False


def ordered(
    causes: Iterable[LikelyCause], finding: Finding, found: Evidence
) -> Iterator[tuple[LikelyCause, bool]]:
    """The causes that are left, those that the run confirms first; and whether it does."""
    standings = [(one, standing(one, finding, found)) for one in causes]
    for wanted in ("confirmed", "open"):
        yield from ((one, wanted == "confirmed") for one, stands in standings if stands == wanted)


def _wrong_results_beside(finding: Finding, found: Evidence) -> bool | None:
    """Whether a count of wrong results of the same check and part failed."""
    failed = any(
        one.kind == "fail" and one.code == "outside_limit"
        for judged in _beside(finding, found)
        if not judged.due.waivable and judged.due.limit and judged.due.limit.high == 0
        for one in judged.findings
    )
    return True if failed else None


def _impossible_on_others(finding: Finding, found: Evidence) -> bool | None:
    """Whether this value was impossible on each other part; None where it has no other."""
    others = [
        any(told.code == finding.code for told in one.findings)
        for one in found.values.get(finding.measurement or "", ())
        if one.due.component != finding.component and one.value is not None
    ]
    return all(others) if others else None


def _event_of_the_part(finding: Finding, found: Evidence) -> bool | None:
    """Whether an event of the finding's part was recorded."""
    part = finding.component
    if part is None:
        return None
    own = _by_name(part, found)
    events = (one.component for one in found.events if one.component is not None)
    return True if any(are_related(own, _by_name(one, found)) for one in events) else None


def _unproven_beside(finding: Finding, found: Evidence) -> bool | None:
    """Whether a value that a ratio is made of cannot be or is missing, of any of its parts."""
    of = finding.values.get("of")
    if not isinstance(of, str):
        return False
    made_of = found.values.get(of, ())
    unproven = (
        one.value is None or any(told.kind == "error" for told in one.findings) for one in made_of
    )
    return any(unproven) if made_of else None


def _beside(finding: Finding, found: Evidence) -> Iterator[Judgement]:
    """What failed in the same check, of the finding's part and those related to it."""
    part = finding.component
    for judged in (one for ones in found.values.values() for one in ones):
        same = any(told.check == finding.check for told in judged.findings)
        if same and part is not None and are_related(part, judged.due.component):
            yield judged


# The conditions that a value and its side cannot express, by name: a pure function of the finding
# and the evidence, which answers None where it cannot tell.
RULES: Mapping[str, Callable[[Finding, Evidence], bool | None]] = MappingProxyType(
    {
        "event_of_the_part": _event_of_the_part,
        "impossible_on_others": _impossible_on_others,
        "unproven_beside": _unproven_beside,
        "wrong_results_beside": _wrong_results_beside,
    }
)
