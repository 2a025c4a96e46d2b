"""What a run's measurements say of a likely cause: tables of each side, then properties."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cases import each
from hypothesis import given
from hypothesis import strategies as st
from journals import bodies, check, due, entries, plan
from msgspec.structs import replace

from acceptance.core import fold
from acceptance.core.advice import Condition, LikelyCause
from acceptance.core.finding import Finding
from acceptance.core.limit import Limit
from acceptance.core.message import Listed, Message
from acceptance.core.parts import (
    CPU,
    GPUS,
    MACHINE,
    MEMORY,
    SYSTEM,
    Component,
    Gpu,
    Pair,
    Part,
    parse,
)
from acceptance.core.record import CheckEnded, Event
from acceptance.core.verdict import Judgement
from acceptance.diagnosis.causes import (
    NO_EVIDENCE,
    RULES,
    Evidence,
    are_related,
    evidence,
    ordered,
    share_a_part,
    standing,
)

FLOOR = Limit("GB/s", "a basis", low=100.0)
ROOM = Limit("GB/s", "a basis", low=100.0, high=200.0)
BUS = parse("0000:01:00.0")
NONE: Mapping[Component, Component] = MappingProxyType({})
LOG = "kernel_faults_during"
SIDES = ("zero", "not zero", "failed", "sound", "low", "high", "below", "above")


def finding(component: Component | None = Gpu(0), **more: Any) -> Finding:
    return Finding("fail", "link.copy", "outside_limit", component=component, **more)


def judged(
    value: float | None,
    kind: str = "",
    component: Component = Gpu(0),
    name: str = "copy",
    limit: Limit | None = ROOM,
) -> Judgement:
    """A value and the one finding that it has, if any; a waived one says so."""
    found = (Finding(kind, "link.copy", "x"),) if kind else ()
    waived = kind == "waived"
    return Judgement(due(name, component, "GB/s", limit), value, None, None, found, waived=waived)


def gathered(
    *values: Judgement,
    events: Sequence[Event] = (),
    functions: Mapping[Component, Component] = NONE,
) -> Evidence:
    by_name: dict[str, list[Judgement]] = {}
    for one in values:
        by_name.setdefault(one.due.measurement, []).append(one)
    return Evidence(by_name, events, functions)


def when(side: str | None, **more: Any) -> Condition:
    """A condition on `copy`, unless it is given another."""
    given = more if more.keys() & {"event", "rule"} else {"measurement": "copy", **more}
    number = 150.0 if side in ("below", "above") else None
    return Condition(is_=side, value=number, **given)


def cause(*conditions: Condition) -> LikelyCause:
    return LikelyCause("a cause", "how to tell", conditions)


def stands(condition: Condition, found: Evidence, about: Finding | None = None) -> str:
    return standing(cause(condition), about or finding(), found)


# --- one value ---


@each(
    "side, value, kind, stand",
    [
        ("zero", 0.0, "", "confirmed"),
        ("zero", 2.0, "", "excluded"),
        ("not zero", 2.0, "fail", "confirmed"),
        ("not zero", 0.0, "", "excluded"),
        ("failed", 50.0, "fail", "confirmed"),
        ("failed", 150.0, "", "excluded"),
        ("failed", 150.0, "warn", "excluded"),
        ("sound", 150.0, "warn", "confirmed"),
        ("sound", 50.0, "fail", "excluded"),
        ("low", 50.0, "fail", "confirmed"),
        ("low", 250.0, "fail", "excluded"),
        ("high", 250.0, "fail", "confirmed"),
        ("high", 50.0, "fail", "excluded"),
        ("below", 149.0, "", "confirmed"),
        ("below", 150.0, "", "excluded"),
        ("above", 151.0, "", "confirmed"),
        ("above", 150.0, "", "excluded"),
    ],
)
def test_a_value_is_on_the_side_or_is_not(side: str, value: float, kind: str, stand: str) -> None:
    assert stands(when(side), gathered(judged(value, kind))) == stand


@each("side", SIDES)
def test_a_value_that_proves_nothing_leaves_every_side_open(side: str) -> None:
    for one in (
        judged(None, "error"),
        judged(None, "skip"),
        replace(judged(None, "waived"), skipped=True),
        judged(math.nan),
        judged(math.inf),
        judged(0.0, "error"),  # measured twice, or of no sound unit
        judged(178_481.0, "error"),  # more than is possible
    ):
        assert stands(when(side), gathered(one)) == "open", one
    assert stands(when(side), NO_EVIDENCE) == "open"
    assert stands(when(side), gathered(judged(50.0, "fail", name="another"))) == "open"


def test_a_value_without_a_limit_neither_failed_nor_is_sound() -> None:
    for side in ("failed", "sound", "low", "high"):
        assert stands(when(side), gathered(judged(50.0, limit=None))) == "open", side
    assert stands(when("failed"), gathered(judged(50.0, "fail", limit=None))) == "confirmed"
    assert stands(when("high"), gathered(judged(50.0, limit=FLOOR))) == "open"
    ceiling = Limit("GB/s", "a basis", high=200.0)
    assert stands(when("low"), gathered(judged(50.0, limit=ceiling))) == "open"


# --- several values ---


def test_all_conditions_must_be_met_and_one_that_is_not_excludes() -> None:
    both = cause(when("failed"), when("zero", measurement="errors"))
    slow, clean = judged(50.0, "fail"), judged(0.0, name="errors")
    assert standing(both, finding(), gathered(slow, clean)) == "confirmed"
    assert standing(both, finding(), gathered(slow)) == "open"
    assert standing(both, finding(), gathered(slow, judged(2.0, name="errors"))) == "excluded"
    assert standing(LikelyCause("a cause", "look"), finding(), gathered(slow)) == "open"


@each(
    "settles, met, not_met",
    [
        ("both", "confirmed", "excluded"),
        ("confirms", "confirmed", "open"),
        ("excludes", "open", "excluded"),
    ],
)
def test_a_condition_settles_what_it_says(settles: str, met: str, not_met: str) -> None:
    condition = when("failed", settles=settles)
    assert stands(condition, gathered(judged(50.0, "fail"))) == met
    assert stands(condition, gathered(judged(150.0))) == not_met
    assert stands(condition, gathered(judged(None))) == "open"


# --- whose value ---


@each(
    "one, other, related",
    [
        (Gpu(0), Gpu(0), True),
        (Gpu(0), Gpu(1), False),
        (Gpu(0), Pair(Gpu(0), Gpu(1)), True),
        (Gpu(2), Pair(Gpu(0), Gpu(1)), False),
        (Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0)), True),
        (Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(2)), False),
        (GPUS, Gpu(3), True),
        (GPUS, Pair(Gpu(0), Gpu(1)), True),
        (GPUS, CPU, False),
        (MACHINE, Part("disk", "sda"), True),
        (SYSTEM, MEMORY, True),
        (CPU, parse("core:3"), True),
        (CPU, parse("socket1"), True),
        (CPU, parse("cpu15"), True),
        (CPU, parse("mc0"), False),
        (CPU, Gpu(0), False),
        (MEMORY, Part("dimm", "A1"), True),
        (MEMORY, parse("socket1"), True),
        (MEMORY, parse("mc0"), True),
        (MEMORY, Part("disk", "sda"), False),
    ],
)
def test_which_parts_belong_together(one: Component, other: Component, related: bool) -> None:
    assert are_related(one, other) == are_related(other, one) == related


# --- events ---


def event(
    kind: str = "xid",
    code: int | str | None = 79,
    at: float | None = 10.0,
    component: Component | None = Gpu(0),
) -> Event:
    return Event(kind, "error", f"{kind} {code}", "it happened", "", code, component, at)


READ = judged(0.0, component=SYSTEM, name=LOG)


@each(
    "side, there, stand",
    [
        (None, [event()], "confirmed"),
        ("there", [event()], "confirmed"),
        ("there", [event(component=Gpu(1))], "excluded"),
        ("there", [event("aer")], "excluded"),
        ("there", [], "excluded"),
        ("there", [event(component=None)], "open"),
        ("there", [event(component=None), event()], "confirmed"),
        ("not there", [], "confirmed"),
        ("not there", [event()], "excluded"),
        ("not there", [event(component=None)], "open"),
    ],
)
def test_an_event_is_there_or_is_not(side: str | None, there: list[Event], stand: str) -> None:
    found = gathered(READ, events=there)
    assert stands(when(side, event="xid"), found) == stand
    assert stands(when(side, event=("sxid", "xid.79")), found) == stand


@each("log", [None, judged(None, "error", SYSTEM, LOG)])
def test_without_the_kernel_log_an_absent_event_proves_nothing(log: Judgement | None) -> None:
    unread = [] if log is None else [log]
    for side in ("there", "not there"):
        assert stands(when(side, event="xid"), gathered(*unread)) == "open"
    there = gathered(*unread, events=[event()])
    assert stands(when("there", event="xid"), there) == "confirmed"
    assert stands(when("not there", event="xid"), there) == "excluded"


@each(
    "events, stand",
    [
        ([event("aer", 0, 5.0), event()], "confirmed"),
        ([event("aer", 0, 10.0), event()], "excluded"),
        ([event("aer", 0, 15.0), event()], "excluded"),
        ([event("aer", 0, 5.0, Gpu(1)), event()], "excluded"),
        ([event("aer", 0, None), event()], "open"),
        ([event("aer", 0, 5.0), event("aer", 0, None), event()], "confirmed"),
        ([event("aer", 0, 5.0), event(at=None)], "open"),
        ([event("aer", 0, 5.0)], "open"),
        ([event("aer", 0, 5.0), event(component=Gpu(1))], "open"),
    ],
)
def test_an_event_comes_before_the_findings_own(events: list[Event], stand: str) -> None:
    about = finding(event="xid.79")
    assert stands(when("before", event="aer"), gathered(READ, events=events), about) == stand


# --- the evidence of a run ---


def test_the_evidence_has_each_value_and_each_event_once_in_order_of_time() -> None:
    planned = plan(check("link.copy", due()), check("link.more", due("width"), due("copy", Gpu(1))))
    late, early, timeless = event(at=105.5), event("aer", 0, 102.5), event("aer", 1, None)
    records = bodies(planned, {("copy", Gpu(0)): 50.0})
    first = next(at for at, one in enumerate(records) if isinstance(one, CheckEnded))
    records[first:first] = [timeless, late, late, early]
    judged_run = fold.fold(entries(records))
    found = evidence(judged_run, {BUS: Gpu(0)})
    assert found.values["copy"][0].value == 50.0
    assert {name: len(values) for name, values in found.values.items()} == {"copy": 2, "width": 1}
    assert list(found.events) == [early, late, timeless]
    assert found.functions == {BUS: Gpu(0)}
    assert hash(found) == hash(evidence(judged_run, {}))


# --- rules ---


SLOW, SOUND, UNMEASURED = judged(50.0, "fail"), judged(150.0), judged(None)
OTHER_SLOW, OTHER_SOUND = judged(50.0, "fail", Gpu(1)), judged(150.0, component=Gpu(1))
EITHER = when("failed", measurement=("copy", "width"))
OF_OTHERS, OF_ANY = when("failed", of="others"), when("failed", of="any")
OF_BUS = {BUS: Gpu(1)}
XID_31 = gathered(READ, events=[event(code=31)])
AER_FIRST = gathered(READ, events=[event("aer", 0, 5.0), event()])


@each(
    "condition, found, about, stand",
    [
        # what a waiver covers was not judged
        *(
            (when(side), gathered(judged(50.0, "waived")), finding(), "open")
            for side in ("failed", "sound", "low", "high")
        ),
        # of faults one value suffices, and of soundness each must be so
        (when("failed"), gathered(SLOW, SOUND), finding(), "confirmed"),
        (when("sound"), gathered(SLOW, SOUND), finding(), "excluded"),
        (when("failed"), gathered(SOUND, UNMEASURED), finding(), "open"),
        (when("sound"), gathered(SOUND, UNMEASURED), finding(), "open"),
        (when("failed"), gathered(SLOW, UNMEASURED), finding(), "confirmed"),
        (when("sound"), gathered(SLOW, UNMEASURED), finding(), "excluded"),
        # of several measurements each is needed to exclude a fault
        (EITHER, gathered(SOUND), finding(), "open"),
        (EITHER, gathered(SOUND, judged(150.0, name="width")), finding(), "excluded"),
        (EITHER, gathered(judged(50.0, "fail", name="width")), finding(), "confirmed"),
        # its own values are those of the parts that belong together
        (when("failed"), gathered(SLOW, OTHER_SOUND), finding(), "confirmed"),
        (OF_OTHERS, gathered(SLOW, OTHER_SOUND), finding(), "excluded"),
        (when("failed"), gathered(OTHER_SOUND), finding(), "open"),
        (OF_ANY, gathered(OTHER_SOUND), finding(), "excluded"),
        (OF_OTHERS, gathered(SLOW), finding(), "open"),
        (OF_OTHERS, gathered(judged(50.0, "fail", MACHINE)), finding(), "open"),  # another kind
        # a finding of no component has every value and no others
        (when("failed"), gathered(OTHER_SLOW), finding(None), "confirmed"),
        (OF_ANY, gathered(OTHER_SLOW), finding(None), "confirmed"),
        (OF_OTHERS, gathered(OTHER_SLOW), finding(None), "open"),
        # a PCI function is its GPU
        (when("failed"), gathered(OTHER_SLOW, functions=OF_BUS), finding(BUS), "confirmed"),
        (when("failed"), gathered(OTHER_SLOW, functions=OF_BUS), finding(), "open"),
        (OF_OTHERS, gathered(OTHER_SLOW, functions=OF_BUS), finding(BUS), "open"),
        (OF_OTHERS, gathered(SLOW, functions=OF_BUS), finding(BUS), "confirmed"),
        # a code is that code alone
        (when("there", event="xid.79"), XID_31, finding(), "excluded"),
        (when("there", event="xid.31"), XID_31, finding(), "confirmed"),
        # a finding without an event has none before it
        (when("before", event="aer"), AER_FIRST, finding(), "open"),
        # a rule that this version does not have cannot tell
        (Condition(rule="of_another_version"), gathered(judged(0.0)), finding(), "open"),
    ],
)
def test_how_one_condition_stands(
    condition: Condition, found: Evidence, about: Finding, stand: str
) -> None:
    assert stands(condition, found, about) == stand


def test_a_pci_function_shares_what_its_gpu_is() -> None:
    assert share_a_part(BUS, Gpu(1), gathered(functions=OF_BUS))
    assert not share_a_part(BUS, Gpu(0), gathered(functions=OF_BUS))


def test_no_rule_can_tell_anything_without_evidence() -> None:
    bare = Finding("fail", "link.copy", "outside_limit")
    told = {name: rule(bare, NO_EVIDENCE) for name, rule in RULES.items()}
    assert told == dict.fromkeys(RULES)


# --- properties ---

PARTS = st.sampled_from([Gpu(0), Gpu(1), Pair(Gpu(0), Gpu(1)), GPUS, CPU, MACHINE, BUS])
NAMES = st.sampled_from(["copy", "width", LOG])
VALUES = st.sampled_from([None, 0.0, 50.0, 150.0, 250.0, math.nan, math.inf])
KINDS = st.sampled_from(["", "fail", "warn", "error", "waived"])
LIMITS = st.sampled_from([None, FLOOR, ROOM])
JUDGED = st.builds(judged, VALUES, KINDS, PARTS, NAMES, LIMITS)
EVENTS = st.builds(
    event,
    st.sampled_from(["xid", "aer"]),
    st.sampled_from([None, 31, 79]),
    st.sampled_from([None, 5.0, 10.0]),
    st.none() | PARTS,
)
WHOSE = st.sampled_from(["its", "any", "others"])
ON_VALUES = st.builds(
    lambda side, name, of: when(side, measurement=name, of=of),
    st.sampled_from(SIDES),
    st.sampled_from(["copy", ("copy", "width")]),
    WHOSE,
)
ON_EVENTS = st.builds(
    lambda side, name, of: when(side, event=name, of=of),
    st.sampled_from([None, "there", "not there", "before"]),
    st.sampled_from(["xid", "aer.31", ("xid", "aer")]),
    WHOSE,
)
ON_RULES = st.builds(Condition, rule=st.sampled_from([*RULES, "of_another_version"]))
CONDITIONS = ON_VALUES | ON_EVENTS | ON_RULES
SETTLED = st.builds(
    lambda one, settles: replace(one, settles=settles),
    CONDITIONS,
    st.sampled_from(["both", "confirms", "excludes"]),
)
FINDINGS = st.builds(finding, st.none() | PARTS, event=st.sampled_from([None, "xid.79"]))
RUNS = st.lists(JUDGED, max_size=5), st.lists(EVENTS, max_size=4)


def run(values: Sequence[Judgement], events: Sequence[Event]) -> Evidence:
    return gathered(*values, events=events, functions={BUS: Gpu(1)})


@given(CONDITIONS, FINDINGS, *RUNS)
def test_one_run_never_confirms_what_it_also_excludes(
    condition: Condition, about: Finding, values: list[Judgement], events: list[Event]
) -> None:
    found = run(values, events)
    confirms = stands(replace(condition, settles="confirms"), found, about)
    excludes = stands(replace(condition, settles="excludes"), found, about)
    assert (confirms, excludes) in {
        ("confirmed", "open"),
        ("open", "excluded"),
        ("open", "open"),
    }
    whole = {confirms, excludes} - {"open"} or {"open"}
    assert {stands(condition, found, about)} == whole


@given(ON_VALUES, FINDINGS, st.lists(JUDGED, min_size=1, max_size=5), st.data())
def test_a_value_that_is_lost_never_decides_anything(
    condition: Condition, about: Finding, values: list[Judgement], data: st.DataObject
) -> None:
    lost = data.draw(st.integers(0, len(values) - 1))
    missing = [*values]
    worthless = data.draw(st.sampled_from([(None, ""), (math.nan, ""), (0.0, "error")]))
    before = values[lost].due
    missing[lost] = judged(*worthless, before.component, before.measurement, before.limit)
    whole, less = (stands(condition, run(one, ()), about) for one in (values, missing))
    assert less in (whole, "open")


@given(SETTLED, FINDINGS, st.lists(EVENTS, max_size=4))
def test_without_any_value_no_condition_on_values_and_no_absent_event_decides(
    condition: Condition, about: Finding, events: list[Event]
) -> None:
    found = run((), events)
    stand = stands(condition, found, about)
    if condition.measurements:
        assert stand == "open"
    elif condition.events and condition.is_ in (None, "there", "before"):
        assert stand != "excluded"
    elif condition.events:
        assert stand != "confirmed"


@given(SETTLED, FINDINGS, *RUNS)
def test_opposite_sides_of_one_value_have_opposite_answers(
    condition: Condition, about: Finding, values: list[Judgement], events: list[Event]
) -> None:
    opposite = {"zero": "not zero", "failed": "sound", "there": "not there"}.get(
        str(condition.is_ or "there")
    )
    if condition.rule is not None or opposite is None:
        return
    first = replace(condition, is_=condition.is_ or "there", settles="both")
    answers = [
        stands(one, run(values, events), about) for one in (first, replace(first, is_=opposite))
    ]
    assert sorted(answers) in (["confirmed", "excluded"], ["open", "open"])


CAUSES = st.lists(
    st.lists(SETTLED, max_size=2).map(lambda conditions: cause(*conditions)), max_size=5
)


@given(CAUSES, FINDINGS, *RUNS)
def test_confirmed_causes_come_first_then_open_ones_in_their_order(
    causes: list[LikelyCause], about: Finding, values: list[Judgement], events: list[Event]
) -> None:
    found = run(values, events)
    causes = [replace(one, what=f"cause {number}") for number, one in enumerate(causes)]
    shown = list(ordered(causes, about, found))
    of = {one.what: standing(one, about, found) for one in causes}
    assert [measured for _, measured in shown] == sorted(
        (measured for _, measured in shown), reverse=True
    )
    for measured, stand in ((True, "confirmed"), (False, "open")):
        part = [one.what for one, is_measured in shown if is_measured == measured]
        assert part == [what for what, stands_ in of.items() if stands_ == stand]
    assert all(one in [cause for cause, _ in shown] for one in causes if not one.conditions)


@given(st.lists(SETTLED, min_size=1, max_size=3), FINDINGS, *RUNS)
def test_a_cause_of_several_conditions_is_what_each_of_them_allows(
    conditions: list[Condition], about: Finding, values: list[Judgement], events: list[Event]
) -> None:
    found = run(values, events)
    each_stands = [stands(one, found, about) for one in conditions]
    whole = standing(cause(*conditions), about, found)
    assert (whole == "excluded") == ("excluded" in each_stands)
    if whole == "confirmed":
        confirming = [one for one in conditions if one.settles != "excludes"]
        assert confirming
        assert all(stands(one, found, about) == "confirmed" for one in confirming)


# --- the fields of an NVLink fabric's health ---


@each(
    "fields, fewer, route, set_up",
    [
        (["Bandwidth: Degraded"], True, False, False),
        (["Route Recovery in progress: True"], False, True, False),
        (["Access Timeout Recovery: True", "Summary: Unhealthy"], False, True, False),
        (["Incorrect Configuration: Insufficient Nvlinks"], True, False, False),
        (["Incorrect Configuration: Invalid Location"], False, False, True),
        (["Bandwidth: Degraded", "Route Unhealthy: True"], True, True, False),
        (["Summary: Limited Capacity"], None, None, None),
    ],
)
def test_the_fields_of_a_fabric_that_is_not_sound(
    fields: list[str], fewer: bool | None, route: bool | None, set_up: bool | None
) -> None:
    about = finding(note=Message("driver_says", {"what": Listed(tuple(fields))}))
    names = ("fabric_has_fewer_links", "fabric_route_failed", "fabric_is_set_up_wrong")
    assert [RULES[name](about, NO_EVIDENCE) for name in names] == [fewer, route, set_up]


def test_a_note_of_something_else_says_nothing_of_a_fabric() -> None:
    for note in (None, Message("links_found", {}), Message("driver_says", {"what": "a text"})):
        assert RULES["fabric_route_failed"](finding(note=note), NO_EVIDENCE) is None
