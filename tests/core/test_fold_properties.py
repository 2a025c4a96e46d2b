"""The fold against an oracle: PASS if and only if the journal is a full set of passing, in-limit
measurements, and nothing besides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from journals import UNIT, bodies, entries, plans, records
from msgspec.structs import replace
from thoroughness import examples

from acceptance.core.finding import Waiver
from acceptance.core.fold import fold
from acceptance.core.message import Unmeasured
from acceptance.core.parts import CPU, Gpu
from acceptance.core.plan import SESSIONS, Due, Plan, PlannedCheck
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Event,
    Measured,
    Note,
    RunClosed,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Skipped,
)
from acceptance.wording import words

COMPONENTS = {
    "gpu*": {Gpu(0), Gpu(1)},
    "gpu0": {Gpu(0)},
    "cpu": {"cpu"},
    None: {Gpu(0), Gpu(1), CPU},
}
CHECKS = {"s.one": {"s.one"}, "s": {"s.one", "s.two"}, "t.*": {"t.one", "t.two[x]"}}


def accepted(due: Due, value: float | None, waivers: Sequence[Waiver]) -> bool:
    """Whether a value is finite and within its limit, or within the bound of a waiver on the
    side on which it fails.
    """
    if value is None or not math.isfinite(value):
        return False
    low = -math.inf if due.limit is None or due.limit.low is None else due.limit.low
    high = math.inf if due.limit is None or due.limit.high is None else due.limit.high
    bounds = [
        waiver.worst
        for waiver in waivers
        if due.waivable
        and waiver.measurement == due.measurement
        and due.component in COMPONENTS[waiver.component]
    ]
    if value < low:
        return any(bound is not None and value >= bound for bound in bounds)
    return value <= high or any(bound is not None and value <= bound for bound in bounds)


def excused(due: Due, check: str, skips: Sequence[Skipped], waivers: Sequence[Waiver]) -> bool:
    """Whether it was skipped, none of its skips failed to answer, and a waiver names that skip."""
    own = [
        body.why
        for body in skips
        if body.measurement in (None, due.measurement) and body.component in (None, due.component)
    ]
    return (
        bool(own)
        and "no_answer" not in own
        and any(
            waiver.skip is not None
            and check in CHECKS[waiver.skip]
            and due.component in COMPONENTS[waiver.component]
            for waiver in waivers
        )
    )


def check_is_good(check: PlannedCheck, found: Sequence[Body], waivers: Sequence[Waiver]) -> bool:
    began = [body for body in found if isinstance(body, CheckStarted) and body.check == check.id]
    ended = [body for body in found if isinstance(body, CheckEnded) and body.check == check.id]
    measured = [body for body in found if isinstance(body, Measured) and body.check == check.id]
    skips = [body for body in found if isinstance(body, Skipped) and body.check == check.id]
    some_excused = False
    for due in check.due:
        own = [
            body
            for body in measured
            if (body.measurement, body.component) == (due.measurement, due.component)
        ]
        if own and not all(
            body.unit == due.unit and accepted(due, body.value, waivers) for body in own
        ):
            return False
        if len(own) > 1 or (not own and not excused(due, check.id, skips, waivers)):
            return False
        some_excused = some_excused or not own
    strays = {(body.measurement, body.component) for body in measured} - {
        (due.measurement, due.component) for due in check.due
    }
    words = ("pass", "skip") if some_excused else ("pass",)
    return not strays and len(began) == 1 and len(ended) == 1 and ended[0].outcome in words


def is_pass(plan: Plan, found: Sequence[Body]) -> bool:
    """What a PASS must hold, said without any of the words in which the fold is written."""
    ids = {check.id for check in plan.checks}
    for session in SESSIONS:
        share = {check.id for check in plan.checks if check.session == session}
        begun = [
            body for body in found if isinstance(body, SessionStarted) and body.session == session
        ]
        done = [
            body for body in found if isinstance(body, SessionEnded) and body.session == session
        ]
        if not share and (begun or done):
            return False
        if share and (len(begun), len(done)) != (1, 1):
            return False
        if share and not (
            begun[0].digest == plan.digest
            and share <= set(begun[0].collection)
            and done[0].complete
        ):
            return False
    return (
        not plan.gaps
        and [body.complete for body in found if isinstance(body, RunEnded)] == [True]
        and not any(
            isinstance(body, RunClosed) or (isinstance(body, Note) and body.trouble)
            for body in found
        )
        and not any(
            isinstance(body, Event) and body.severity in ("fatal", "error") for body in found
        )
        and all(getattr(body, "check", None) in {None, *ids} for body in found)
        and all(check_is_good(check, found, plan.waivers) for check in plan.checks)
    )


@st.composite
def journals(draw: st.DrawFn, made: Plan) -> list[Body]:
    """A complete passing journal, and a few accidents."""
    found = bodies(made)[1:]
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(found) - 1))
        body = found[place]
        accident = draw(st.sampled_from(["remove", "twice", "move", "add", "value", "skip"]))
        if accident == "remove" and len(found) > 1:
            del found[place]
        elif accident == "twice":
            found.insert(draw(st.integers(0, len(found))), body)
        elif accident == "move":
            found.insert(draw(st.integers(0, len(found) - 1)), found.pop(place))
        elif accident == "add":
            found.insert(place, draw(records))
        elif accident == "value" and isinstance(body, Measured):
            value = draw(st.none() | st.integers(-6, 6).map(float) | st.just(math.nan))
            found[place] = replace(
                body, value=value, unit=draw(st.sampled_from([UNIT, UNIT, UNIT, "W"]))
            )
        elif accident == "skip" and isinstance(body, Measured):
            found[place] = Skipped(
                body.check,
                "no tool",
                draw(st.sampled_from([None, body.measurement])),
                body.component,
                why=draw(st.sampled_from([None, *Unmeasured])),
            )
        elif accident == "skip" and isinstance(body, CheckEnded):
            found[place] = replace(body, outcome="skip")
    return found


def begun(made: Plan) -> Body:
    return RunStarted("run-1", made, {}, "machine-1")


runs = plans().flatmap(lambda made: st.tuples(st.just(made), journals(made)))
garbage = st.tuples(plans(), st.lists(records, max_size=12))


@settings(max_examples=examples(250))
@given(runs)
def test_a_run_passes_exactly_when_nothing_is_missing_or_wrong(
    run: tuple[Plan, list[Body]],
) -> None:
    made, found = run
    verdict = fold(entries([begun(made), *found]))
    assert (verdict.verdict == "PASS") == is_pass(made, found)
    assert (verdict.verdict == "FAIL") == bool(verdict.of_kind("fail"))
    assert (verdict.verdict == "PASS") == (not verdict.of_kind("fail", "error", "skip"))
    assert all(words.of(finding).strip() for finding in verdict.of_kind("fail"))
    assert [check.id for check in verdict.checks] == [check.id for check in made.checks]


@settings(max_examples=examples(75))
@given(plans())
def test_the_untouched_journal_passes_unless_the_plan_has_gaps(made: Plan) -> None:
    assert fold(entries(bodies(made))).verdict == ("UNJUDGED" if made.gaps else "PASS")


@settings(max_examples=examples(75))
@given(garbage)
def test_garbage_never_passes_and_never_raises(run: tuple[Plan, list[Body]]) -> None:
    made, found = run
    assert not is_pass(made, found)
    assert fold(entries([begun(made), *found])).verdict != "PASS"


@settings(max_examples=examples(75))
@given(st.one_of(runs, garbage), st.data())
def test_nothing_that_is_added_turns_a_failure_into_anything_else(
    run: tuple[Plan, list[Body]], data: st.DataObject
) -> None:
    made, found = run
    if fold(entries([begun(made), *found])).verdict == "FAIL":
        for record in data.draw(st.lists(records, min_size=1, max_size=3)):
            found.insert(data.draw(st.integers(0, len(found))), record)
        assert fold(entries([begun(made), *found])).verdict == "FAIL"


@settings(max_examples=examples(75))
@given(plans(), st.data())
def test_one_value_outside_its_limit_fails_a_run_that_passes(
    made: Plan, data: st.DataObject
) -> None:
    made = replace(made, gaps=(), waivers=())
    limited = [(check, due) for check in made.checks for due in check.due if due.limit is not None]
    if limited:
        check, due = data.draw(st.sampled_from(limited))
        assert due.limit is not None
        beyond = [
            due.limit.low - 1 if due.limit.low is not None else None,
            due.limit.high + 1 if due.limit.high is not None else None,
        ]
        value = data.draw(st.sampled_from([bound for bound in beyond if bound is not None]))
        found = bodies(made)
        found.insert(
            data.draw(st.integers(0, len(found))),
            Measured(check.id, due.measurement, due.component, due.unit, value),
        )
        assert fold(entries(found)).verdict == "FAIL"


@settings(max_examples=examples(50))
@given(st.one_of(runs, garbage))
def test_the_same_journal_has_the_same_verdict(run: tuple[Plan, list[Body]]) -> None:
    made, found = run
    lines = entries([begun(made), *found])
    assert repr(fold(lines)) == repr(fold(list(lines)))


@settings(max_examples=examples(75))
@given(st.lists(records, max_size=5), st.integers(0, 3), plans())
def test_a_journal_has_one_beginning_or_no_verdict(
    found: list[Body], starts: int, made: Plan
) -> None:
    lines = entries([*[begun(made)] * starts, *found])
    try:
        verdict = fold(lines)
    except ValueError:
        assert starts != 1
    else:
        assert starts == 1
        assert verdict.verdict != "PASS"
