"""Runs side by side: what is worse, what is better, and that looking from the
other side says the opposite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import journals
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import examples

from acceptance import resources
from acceptance.baseline.facts import MovedPart, ReplacedPart
from acceptance.core.fold import fold
from acceptance.core.limit import Limit
from acceptance.core.message import Message
from acceptance.core.parts import CPU, ITSELF, Component, Gpu, Pair, Renamed
from acceptance.core.plan import Due, Plan
from acceptance.core.record import CheckEnded, Measured, Outcome, Skipped
from acceptance.history import noise
from acceptance.history.comparison import (
    BAD,
    REPORTED_KINDS,
    ComparedRun,
    Comparison,
    DifferenceKind,
    compare,
)

BOOK = noise.read_rules(resources.locate("drift.toml"), noise.read(resources.locate("noise.toml")))
Values = Mapping[tuple[str, str], float]
OTHER: dict[DifferenceKind, DifferenceKind] = {
    "worse": "better",
    "better": "worse",
    "lost": "gained",
    "gained": "lost",
    "gone": "new",
    "new": "gone",
    "changed": "changed",
    "incomparable": "incomparable",
    "same": "same",
}


def rate(name: str = "copy_h2d", component: Component = Gpu(0)) -> Due:
    return journals.due(name, component)


def run(plan: Plan, values: Values | None = None, **more: object) -> ComparedRun:
    verdict = fold(journals.entries(journals.bodies(plan, values)))
    return replace(ComparedRun("run", verdict, "machine-1"), **more)  # type: ignore[arg-type]


def two(values: Values, *dues: Due, **more: object) -> Comparison:
    """A run in which everything is 200, and one with these values."""
    plan = journals.plan(journals.check("link.copy", *(dues or (rate(),))))
    usual = {(due.measurement, due.component): 200.0 for due in plan.checks[0].due}
    return compare([run(plan, usual), run(plan, {**usual, **values}, **more)], BOOK)


def each_with(due: Due, *values: float, **more: object) -> list[ComparedRun]:
    """Runs that owe this alone, each with its value."""
    plan = journals.plan(journals.check("link.copy", due))
    return [run(plan, {(due.measurement, due.component): value}, **more) for value in values]


def compared(due: Due, *values: float) -> Comparison:
    return compare(each_with(due, *values), BOOK)


def kinds(found: Comparison) -> dict[tuple[str, str], DifferenceKind]:
    return {(row.measurement, row.component): row.kind for row in found.rows}


def outcomes(found: Comparison) -> list[tuple[str | None, tuple[Outcome | None, ...], str]]:
    return [(one.check, one.outcomes, one.kind) for one in found.outcomes]


# --- one measurement ---


def test_within_the_noise_nothing_is_told() -> None:
    found = two({("copy_h2d", Gpu(0)): 195.0})
    ((row,), (change,)) = found.rows, found.rows[0].changes
    assert (row.kind, row.values, row.unit, row.check) == (
        "same",
        (200.0, 195.0),
        "GB/s",
        "link.copy",
    )
    assert (change.difference, change.share, found.worse) == (-5.0, -0.025, False)
    assert 0 < change.times < 1
    assert (found.not_whole, found.other_machines) == ((), ())
    assert two({}, troubles=(Message("not_sealed"),)).not_whole == (1,)
    assert (sorted(REPORTED_KINDS), sorted(BAD)) == (
        ["better", "changed", "gained", "lost", "worse"],
        ["lost", "worse"],
    )


def test_outside_the_noise_a_lower_rate_is_worse_and_a_higher_better() -> None:
    found = two(
        {("copy_h2d", Gpu(0)): 180.0, ("copy_h2d", Gpu(1)): 220.0}, rate(), rate(component=Gpu(1))
    )
    assert kinds(found) == {("copy_h2d", Gpu(0)): "worse", ("copy_h2d", Gpu(1)): "better"}
    assert found.worse
    assert not two({("copy_h2d", Gpu(0)): 220.0}).worse


FAULTS = journals.due("vram_miscompares", Gpu(0), "count", journals.NONE_ALLOWED)
UNLIMITED = journals.due("vram_miscompares", Gpu(0), "count", None)
HEAT = journals.due("cpu_temperature", CPU, "degC", None)
COPIED = journals.due("burn_copied", Gpu(0), "GiB", Limit("GiB", "basis", low=1.0))


@each(
    "due, values, kind, changes, worse",
    [
        (FAULTS, (0.0, 1.0), "worse", ["worse"], True),
        (UNLIMITED, (1.0, 1.0, 2.0), "changed", ["same", "changed"], False),
        (HEAT, (50.0, 70.0), "changed", ["changed"], False),
        (COPIED, (900.0, 30.0), "incomparable", ["incomparable"], False),
        (rate(), (200.0, 220.0, 150.0), "worse", ["better", "worse"], True),
        (rate(), (50.0, 200.0), "better", ["better"], False),
    ],
    told=[
        *("any difference in a count of faults", "of three runs", "nothing tells the worse side"),
        *("how much a run did", "each against the first", "a verdict that got better"),
    ],
)
def test_one_measurement(
    due: Due, values: tuple[float, ...], kind: str, changes: list[str], worse: bool
) -> None:
    found = compared(due, *values)
    (row,) = found.rows
    assert (row.kind, row.values, found.worse) == (kind, values, worse)
    assert [one.kind for one in row.changes] == changes
    assert (row.why is None) == (kind != "incomparable")


def test_any_difference_in_a_count_of_faults_counts() -> None:
    found = compared(FAULTS, 0.0, 1.0)
    (row,) = found.rows
    assert (row.changes[0].share, row.changes[0].times) == (None, float("inf"))
    assert outcomes(found) == [
        (None, ("PASS", "FAIL"), "worse"),
        ("link.copy", ("pass", "fail"), "worse"),
    ]
    (row,) = compared(UNLIMITED, 1.0, 1.0, 2.0).rows
    assert [change.times for change in row.changes] == [0.0, float("inf")]


FLOOR = Limit("count", low=1.0, basis="b")


@each(
    "first, later, kind",
    [
        *(
            (
                journals.due("things", Gpu(0), "count", before),
                journals.due("things", Gpu(0), "count", after),
                "worse" if before or after else "changed",
            )
            for before in (FLOOR, None)
            for after in (FLOOR, None)
        ),
        (
            journals.due("things", Gpu(0), "W", None),
            journals.due("things", Gpu(0), "s", None),
            "incomparable",
        ),
    ],
)
def test_a_limit_of_either_run_says_which_side_is_worse_and_another_unit_is_not_compared(
    first: Due, later: Due, kind: str
) -> None:
    """Of a count without a family either side may be the worse one."""
    (row,) = compare([*each_with(first, 200.0), *each_with(later, 100.0)], BOOK).rows
    assert row.kind == kind


def without(plan: Plan, *components: str, values: Values | None = None) -> ComparedRun:
    """A run in which these components were not measured."""
    bodies = [
        Skipped(body.check, "no rights", body.measurement, body.component)
        if isinstance(body, Measured) and body.component in components
        else body
        for body in journals.bodies(plan, values)
    ]
    return ComparedRun("run", fold(journals.entries(bodies)), "machine-1")


@each(
    "first, later, kinds_, worse",
    [
        ((), (Gpu(0),), ["lost", "same"], True),
        ((Gpu(0),), (), ["gained", "same"], False),
        ((Gpu(0),), (Gpu(0),), ["same", "same"], False),
        # also where all outcomes stay
        ((Gpu(0),), (Gpu(1),), ["gained", "lost"], True),
    ],
)
def test_what_is_not_measured_any_more_is_as_bad_as_worse(
    first: tuple[Component, ...], later: tuple[Component, ...], kinds_: list[str], worse: bool
) -> None:
    plan = journals.plan(journals.check("link.copy", rate(), rate(component=Gpu(1))))
    found = compare([without(plan, *first), without(plan, *later)], BOOK)
    assert ([kind for _, kind in sorted(kinds(found).items())], found.worse) == (kinds_, worse)


def test_what_only_one_run_owed_is_told_and_not_worse() -> None:
    copies = journals.check("link.copy", rate())
    both = journals.plan(
        copies, journals.check("cpu.gemm", journals.due("cpu_gemm_f64", CPU, "GFLOP/s", None))
    )
    fewer = compare([run(both), run(journals.plan(copies))], BOOK)
    assert kinds(fewer)["cpu_gemm_f64", CPU] == "gone"
    assert outcomes(fewer) == [("cpu.gemm", ("pass", None), "gone")]
    assert not fewer.worse
    more = compare([run(journals.plan(copies)), run(both)], BOOK)
    assert kinds(more)["cpu_gemm_f64", CPU] == "new"
    assert more.outcomes[0].kind == "new"


def test_runs_that_measured_nothing_in_common_are_named_by_their_place() -> None:
    first, last = each_with(rate(), 200.0, 200.0)
    other = each_with(journals.due("cpu_gemm_f64", CPU, "GFLOP/s", None), 1.0)
    found = compare([first, *other, last], BOOK)
    assert (found.unrelated, found.proves_nothing) == ((1,), True)
    assert (two({}).unrelated, two({}).proves_nothing) == ((), False)
    nothing = without(journals.plan(journals.check("link.copy", rate())), Gpu(0))
    assert compare([nothing, first], BOOK).unrelated == (1,)


def test_what_failed_and_was_not_made_again_is_not_proved_to_be_better() -> None:
    copies = journals.check("link.copy", rate())
    due = journals.due("cpu_gemm_f64", CPU, "GFLOP/s", Limit("GFLOP/s", "made up", low=5.0))
    slow = {("copy_h2d", Gpu(0)): 200.0, ("cpu_gemm_f64", CPU): 1.0}
    failed = run(journals.plan(copies, journals.check("cpu.gemm", due)), slow)
    assert failed.verdict.verdict == "FAIL"
    found = compare([failed, run(journals.plan(copies), slow)], BOOK)
    assert (found.not_repeated, found.worse, found.proves_nothing) == (("cpu.gemm",), False, True)
    again = compare([failed, failed], BOOK)
    assert (again.not_repeated, again.proves_nothing) == ((), False)
    once = compare([failed, failed, run(journals.plan(copies), slow)], BOOK)
    assert once.not_repeated == ("cpu.gemm",)
    bare = journals.plan(journals.check("cpu.gemm", due))
    assert compare([failed, run(bare, slow)], BOOK).not_repeated == ()


# --- several runs ---


@each(
    "values, order",
    [
        ([(200.0, 200.0), (200.0, 230.0), (200.0, 180.0), (200.0, 120.0)], [3, 2, 1, 0]),
        ([(200.0, 150.0, 150.0), (200.0, 185.0, 110.0)], [1, 0]),
        ([(None, None), (200.0, 199.0), (200.0, 197.0)], [2, 1, 0]),
    ],
    told=[
        "the worst first, and the furthest out before that",
        "where the furthest out of its later runs puts it",
        "of the same the nearest to the noise, the unmeasured last",
    ],
)
def test_the_order_of_rows(values: list[tuple[float | None, ...]], order: list[int]) -> None:
    plan = journals.plan(
        journals.check("link.copy", *(rate(component=Gpu(n)) for n in range(len(values))))
    )
    missing = [Gpu(n) for n, row in enumerate(values) if row[0] is None]
    runs = [
        without(
            plan, *missing, values={("copy_h2d", Gpu(n)): one for n, one in enumerate(run) if one}
        )
        for run in zip(*values, strict=True)
    ]
    assert [row.component for row in compare(runs, BOOK).rows] == [Gpu(n) for n in order]


def test_what_two_later_runs_owe_and_the_first_does_not() -> None:
    copies, cpu = (
        journals.check("link.copy", rate()),
        journals.check("cpu.gemm", journals.due("x", CPU)),
    )
    runs = [run(journals.plan(*checks)) for checks in ((copies,), (copies, cpu), (copies,))]
    found = compare(runs, BOOK)
    (row,) = found.of_kind("new")
    assert [change.kind for change in row.changes] == ["new", "same"]
    assert found.outcomes[0].outcomes == (None, "pass", None)


def test_the_noise_of_one_machine_is_told_by_its_own_runs_alone() -> None:
    def of(*values: tuple[str, float]) -> list[DifferenceKind]:
        runs = each_with(rate(), *(value for _, value in values))
        named = [replace(one, machine_id=name) for one, (name, _) in zip(runs, values, strict=True)]
        return [change.kind for change in compare(named, BOOK).rows[0].changes]

    still = [("machine-1", value) for value in (200.0, 200.1, 199.9, 200.0, 200.1)]
    slower = ("machine-1", 196.0)  # 2 %: within the general noise
    assert of(*still, slower) == ["same"] * 4 + ["worse"]
    assert of(still[0], slower) == ["same"]
    assert of(*still, ("machine-2", 190.0), slower) == ["same"] * 5 + ["worse"]
    others = [("machine-2", value) for _, value in still]
    assert of(still[0], slower, *others) == ["same"] * 6
    assert of(*((f"machine-{n}", value) for n, (_, value) in enumerate([*still, slower])))[0] == (
        "same"
    )


@each(
    "values, kind",
    [
        ((200.0, 50.0, 200.0), "worse"),
        ((50.0, 200.0, 50.0), "better"),
        ((50.0, 200.0, 200.0), "better"),
    ],
    told=["once worse", "once better", "better"],
)
def test_of_several_later_runs_the_worst_outcome_is_told(
    values: tuple[float, ...], kind: DifferenceKind
) -> None:
    found = compared(rate(), *values).outcomes
    assert [(one.check, one.kind) for one in found] == [(None, kind), ("link.copy", kind)]


@each("first, later", [(True, False), (False, True), (True, True), (False, False)])
def test_one_run_in_a_vm_is_enough_for_the_spread_of_vms(first: bool, later: bool) -> None:
    due = journals.due("copy_own_h2d", limit=Limit("GB/s", "basis", low=1.0))
    pair = [*each_with(due, 200.0, virtual=first), *each_with(due, 190.0, virtual=later)]
    assert compare(pair, BOOK).rows[0].kind == ("same" if first or later else "worse")


@pytest.mark.parametrize("count", [0, 1])
def test_one_run_is_no_comparison(count: int) -> None:
    with pytest.raises(ValueError, match="needs two runs"):
        compare([run(journals.plan())] * count, BOOK)


# --- parts and machines ---


def test_a_card_that_moved_is_compared_with_itself() -> None:
    plan = journals.plan(journals.check("link.copy", rate(), rate(component=Gpu(1))))
    values: list[Values] = [
        {("copy_h2d", Gpu(0)): one, ("copy_h2d", Gpu(1)): other}
        for one, other in ((200.0, 150.0), (150.0, 200.0))
    ]
    first = run(plan, values[0], identities={Gpu(0): "X", Gpu(1): "Y"})
    found = compare([first, run(plan, values[1], identities={Gpu(0): "Y", Gpu(1): "X"})], BOOK)
    assert set(kinds(found).values()) == {"same"}
    assert found.moved == ((MovedPart("X", Gpu(0), Gpu(1)), MovedPart("Y", Gpu(1), Gpu(0))),)


GEMM = journals.due("gemm_bf16", Gpu(0), "TFLOP/s", Limit("TFLOP/s", "basis", low=1.0))


def test_another_card_may_differ_by_more_than_the_same_one() -> None:
    assert compared(GEMM, 200.0, 190.0).rows[0].kind == "worse"
    first, later = each_with(GEMM, 200.0, 190.0, identities={Gpu(0): "X"})
    found = compare([first, replace(later, identities={Gpu(0): "Y"})], BOOK)
    assert (found.rows[0].kind, found.replaced) == ("same", ((ReplacedPart(Gpu(0), "X", "Y"),),))
    elsewhere = replace(later, machine_id="machine-2")
    found = compare([replace(first, identities={}), replace(elsewhere, identities={})], BOOK)
    assert (found.rows[0].kind, found.other_machines) == ("same", (1,))
    found = compare([first, elsewhere], BOOK)
    assert found.rows[0].kind == "worse", "it is the same card, in another machine"


WAY = journals.due("copy_h2d", Pair(Gpu(0), Gpu(1)), limit=Limit("GB/s", "basis", low=1.0))


@each(
    "due, first, later, kind",
    [
        (GEMM, "XX", "X", "same"),
        (GEMM, "XY", "X", "worse"),
        (WAY, "XY", "XY", "worse"),
        (WAY, "XY", "XZ", "same"),
    ],
    told=[
        *("a serial number that two share", "the same card"),
        *("a path between the same two", "between one of them and another"),
    ],
)
def test_what_is_the_same_part_in_another_machine(
    due: Due, first: str, later: str, kind: DifferenceKind
) -> None:
    one, other = each_with(due, 200.0, 190.0)
    named = [{Gpu(n): letter for n, letter in enumerate(letters)} for letters in (first, later)]
    runs = [
        replace(one, identities=named[0]),
        replace(other, identities=named[1], machine_id="machine-2"),
    ]
    assert compare(runs, BOOK).rows[0].kind == kind


def test_what_the_runs_do_not_have_in_common() -> None:
    plan = journals.plan()
    first = run(
        plan,
        facts={(ITSELF, "kernel"): "6.1", (ITSELF, "os"): "Debian", (Gpu(0), "vbios"): "1"},
        identities={Gpu(0): "X"},
    )
    later = run(
        plan,
        facts={(ITSELF, "kernel"): "6.2", (ITSELF, "os"): "Debian", (Gpu(1), "vbios"): "1"},
        identities={Gpu(1): "X"},
    )
    found = compare([first, later], BOOK)
    assert [(one.component, one.name, one.values) for one in found.differences] == [
        (ITSELF, "kernel", ("6.1", "6.2"))
    ]


def test_a_card_that_only_the_facts_know_takes_no_name_of_another() -> None:
    plan = journals.plan(
        journals.check("cpu.gemm", journals.due("cpu_gemm_f64", CPU, "GFLOP/s", None))
    )
    first = run(plan, facts={(Gpu(0), "vbios"): "1"}, identities={Gpu(0): "X"})
    later = run(
        plan, facts={(Gpu(1), "vbios"): "1", (Gpu(0), "vbios"): "2"}, identities={Gpu(1): "X"}
    )
    found = compare([first, later], BOOK).differences
    assert [(one.component, one.values) for one in found] == [(Renamed(Gpu(0)), (None, "2"))]


# --- properties ---


@settings(max_examples=examples(80))
@given(
    journals.plans(),
    st.lists(journals.records, max_size=10),
    st.lists(journals.records, max_size=10),
)
def test_seen_from_the_other_side_worse_is_better(
    made: Plan, one: list[journals.Body], other: list[journals.Body]
) -> None:
    base = journals.bodies(made)[:-1]
    try:
        a, b = (
            ComparedRun("run", fold(journals.entries([*base, *more])), "machine-1")
            for more in (one, other)
        )
    except ValueError:
        return
    there, back = compare([a, b], BOOK), compare([b, a], BOOK)
    assert {key: OTHER[kind] for key, kind in kinds(there).items()} == kinds(back)
    seen = {row.check: row.kind for row in back.outcomes}
    assert {row.check for row in there.outcomes} == set(seen)
    for row in there.outcomes:
        # From a failure to no outcome is no better, and the way back is worse.
        allowed = {"changed": {"worse"}, "worse": {"better", "changed"}}
        assert seen[row.check] in allowed.get(row.kind, {OTHER[row.kind]}), row


@each(
    "first, later, kind",
    [("fail", "error", "changed"), ("error", "fail", "worse"), ("error", "pass", "better")],
)
def test_not_to_know_is_no_better_than_a_failure(
    first: Outcome, later: Outcome, kind: DifferenceKind
) -> None:
    made = journals.plan()
    check = made.checks[0].id
    bodies = journals.bodies(made)
    *base, end = [one for one in bodies if not isinstance(one, CheckEnded) or one.check != check]
    runs = [
        fold(journals.entries([*base, CheckEnded(check, outcome, "", 1.0), end]))
        for outcome in (first, later)
    ]
    found = compare([ComparedRun("run", one, "machine-1") for one in runs], BOOK).outcomes
    assert {row.check: row.kind for row in found} == {None: kind, check: kind}


@settings(max_examples=examples(80))
@given(journals.plans(), st.lists(journals.records, max_size=10))
def test_a_run_beside_its_copy_shows_no_difference(made: Plan, more: list[journals.Body]) -> None:
    try:
        found = ComparedRun(
            "run", fold(journals.entries([*journals.bodies(made)[:-1], *more])), "machine-1"
        )
    except ValueError:
        return
    same = compare([found, found, found], BOOK)
    assert set(kinds(same).values()) <= {"same", "incomparable"}
    assert (same.outcomes, same.differences, same.worse) == ((), (), False)
