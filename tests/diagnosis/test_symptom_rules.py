"""What else a run recorded of a value that proves nothing, by which its causes are told apart."""

from __future__ import annotations

from cases import each

from acceptance.core.finding import Finding, Plausible, Within
from acceptance.core.limit import Limit
from acceptance.core.parts import Component, Function, Gpu, Pair
from acceptance.core.plan import Due
from acceptance.core.record import Event, Measured
from acceptance.core.verdict import Judgement, judge_due
from acceptance.diagnosis.causes import NO_EVIDENCE, RULES, Evidence

CHECK = "link.copy"
MOST, NONE = Limit("GB/s", "b", high=1000.0), Limit("count", "b", high=0.0)
FINDING = Finding("error", CHECK, "implausible", {"of": "copy"}, "copy", Gpu(0))


def rate(part: Component, value: float | None) -> Judgement:
    due = Due("copy", part, "GB/s", (Plausible(MOST),), "o", "recorded")
    told = [Measured(CHECK, "copy", part, "GB/s", value)]
    return judge_due(due, CHECK, told if value is not None else (), (), ())


def wrong(part: Component, count: float, check: str = CHECK) -> Judgement:
    due = Due("copy_miscompares", part, "count", (Within(NONE),), "o", waivable=False)
    told = [Measured(check, "copy_miscompares", part, "count", count)]
    return judge_due(due, check, told, (), ())


def answer(
    rule: str, *judged: Judgement, finding: Finding = FINDING, events: tuple[Event, ...] = ()
) -> bool | None:
    values: dict[str, list[Judgement]] = {}
    for one in judged:
        values.setdefault(one.due.measurement, []).append(one)
    functions = {Function("0000:01:00.0"): Gpu(0)}
    return RULES[rule](finding, Evidence(values, events, functions))


@each(
    "judged, found",
    [
        ((wrong(Gpu(0), 2.0),), True),
        ((wrong(Pair(Gpu(0), Gpu(1)), 2.0),), True),
        ((wrong(Gpu(0), 0.0),), None),
        ((wrong(Gpu(1), 2.0),), None),
        ((wrong(Gpu(0), 2.0, "another.check"),), None),
        ((rate(Gpu(0), 5000.0),), None),
        ((), None),
    ],
)
def test_wrong_results_show_that_the_work_was_not_done(
    judged: tuple[Judgement, ...], found: bool | None
) -> None:
    assert answer("wrong_results_beside", *judged) is found


@each(
    "others, found",
    [
        ((5000.0, 6000.0), True),
        ((5000.0, 6.0), False),
        ((6.0,), False),
        ((None,), None),
        ((), None),
    ],
)
def test_what_one_part_alone_shows_is_no_unit_of_the_program(
    others: tuple[float | None, ...], found: bool | None
) -> None:
    judged = [rate(Gpu(number), one) for number, one in enumerate(others, start=1)]
    assert answer("impossible_on_others", rate(Gpu(0), 5000.0), *judged) is found


@each(
    "judged, of, found",
    [
        ((rate(Gpu(0), 5000.0), rate(Gpu(1), 5.0)), "copy", True),
        ((rate(Gpu(0), 5.0), rate(Gpu(1), None)), "copy", True),
        ((rate(Gpu(0), 5.0),), "copy", False),
        ((rate(Gpu(0), 5.0),), "another", None),
        ((rate(Gpu(0), 5000.0),), None, False),
    ],
)
def test_a_ratio_contradicts_itself_where_what_it_is_made_of_cannot_be(
    judged: tuple[Judgement, ...], of: str | None, found: bool | None
) -> None:
    told = Finding("error", CHECK, "c", {} if of is None else {"of": of}, "copy_ratio", Gpu(0))
    assert answer("unproven_beside", *judged, finding=told) is found


@each(
    "kind, code, part, found",
    [
        ("xid", 79, Gpu(0), True),
        ("gpu-lost", None, Function("0000:01:00.0"), True),
        ("pcie", "link-down", Function("0000:01:00.0"), True),
        ("xid", 79, Gpu(1), None),
        # A program's wrong access, a corrected error, heat, and memory that ran out.
        ("xid", 31, Gpu(0), None),
        ("aer", "corrected", Function("0000:01:00.0"), None),
        ("thermal", "throttled", Gpu(0), None),
        ("oom", "123", None, None),
    ],
)
def test_only_an_event_of_its_loss_shows_that_a_part_stopped_answering(
    kind: str, code: int | str | None, part: Component | None, found: bool | None
) -> None:
    event = Event(kind, "error", "text", "m", "a", code, part)
    assert answer("part_was_lost", events=(event,)) is found


def test_of_no_part_nobody_can_tell() -> None:
    whole = Finding("error", CHECK, "no_answer", {}, "copy")
    lost = Event("xid", "fatal", "fell off the bus", "m", "a", 79, Gpu(0))
    assert answer("part_was_lost", finding=whole, events=(lost,)) is None
    assert RULES["wrong_results_beside"](whole, NO_EVIDENCE) is None
