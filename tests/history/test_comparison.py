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
from acceptance.baseline.matching import MovedPart, ReplacedPart
from acceptance.core.fold import fold
from acceptance.core.limit import Limit
from acceptance.core.message import Message
from acceptance.core.parts import CPU, ITSELF, Component, Gpu, Pair, Renamed
from acceptance.core.plan import Due, Plan
from acceptance.core.record import CheckEnded, Measured, Outcome, Skipped
from acceptance.history import drift_rules, noise
from acceptance.history.comparison import (
    BAD,
    REPORTED_KINDS,
    ComparedRun,
    Comparison,
    DifferenceKind,
    compare,
)

BOOK = drift_rules.read(resources.locate("drift.toml"), noise.read(resources.locate("noise.toml")))
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


def test_runs_whose_evidence_is_not_whole_are_named_by_their_place() -> None:
    assert two({}, troubles=(Message("not_sealed"),)).not_whole == (1,)
    assert two({}).not_whole == ()


def test_within_the_noise_nothing_is_told() -> None:
    found = two({("copy_h2d", Gpu(0)): 195.0})
    (row,) = found.rows
    (change,) = row.changes
    assert (row.kind, row.values, row.unit, row.check) == (
        "same",
        (200.0, 195.0),
        "GB/s",
        "link.copy",
    )
    assert (change.difference, change.share) == (-5.0, -0.025)
    assert 0 < change.times < 1
    assert not found.worse


def test_outside_the_noise_a_lower_rate_is_worse_and_a_higher_better() -> None:
    found = two(
        {("copy_h2d", Gpu(0)): 180.0, ("copy_h2d", Gpu(1)): 220.0}, rate(), rate(component=Gpu(1))
    )
    assert kinds(found) == {("copy_h2d", Gpu(0)): "worse", ("copy_h2d", Gpu(1)): "better"}
    assert found.worse
    assert not two({("copy_h2d", Gpu(0)): 220.0}).worse


@each("first, later", [(True, False), (False, True), (True, True), (False, False)])
def test_a_limit_of_either_run_says_which_side_is_worse(first: bool, later: bool) -> None:
    """Of a count without a family either side may be the worse one."""
    made: list[ComparedRun] = []
    for limited, value in ((first, 200.0), (later, 100.0)):
        floor = Limit("count", low=1.0, basis="b") if limited else None
        made += each_with(journals.due("things", Gpu(0), "count", floor), value)
    (row,) = compare(made, BOOK).rows
    assert row.kind == ("worse" if first or later else "changed")


def test_any_difference_in_a_count_of_faults_counts() -> None:
    due = journals.due("vram_miscompares", Gpu(0), "count", journals.NONE_ALLOWED)
    found = compared(due, 0.0, 1.0)
    (row,) = found.rows
    assert (row.kind, row.changes[0].share, row.changes[0].times) == ("worse", None, float("inf"))
    assert outcomes(found) == [
        (None, ("PASS", "FAIL"), "worse"),
        ("link.copy", ("pass", "fail"), "worse"),
    ]


def test_a_difference_that_is_allowed_nothing_is_infinitely_far_out_and_none_is_not() -> None:
    due = journals.due("vram_miscompares", Gpu(0), "count", None)
    (row,) = compared(due, 1.0, 1.0, 2.0).rows
    assert [change.times for change in row.changes] == [0.0, float("inf")]


def without(plan: Plan, *components: str, values: Values | None = None) -> ComparedRun:
    """A run in which these components were not measured."""
    bodies = [
        Skipped(body.check, "no rights", body.measurement, body.component)
        if isinstance(body, Measured) and body.component in components
        else body
        for body in journals.bodies(plan, values)
    ]
    return ComparedRun("run", fold(journals.entries(bodies)), "machine-1")


def test_a_measurement_that_is_lost_is_bad_also_where_all_outcomes_stay() -> None:
    plan = journals.plan(journals.check("link.copy", rate(), rate(component=Gpu(1))))
    found = compare([without(plan, Gpu(0)), without(plan, Gpu(1))], BOOK)
    assert found.outcomes == ()
    assert set(kinds(found).values()) == {"lost", "gained"}
    assert found.worse


def test_what_is_told_of_and_what_is_bad() -> None:
    assert sorted(REPORTED_KINDS) == ["better", "changed", "gained", "lost", "worse"]
    assert sorted(BAD) == ["lost", "worse"]


def test_nothing_tells_which_of_two_temperatures_is_worse() -> None:
    found = compared(journals.due("cpu_temperature", CPU, "degC", None), 50.0, 70.0)
    assert (found.rows[0].kind, found.worse) == ("changed", False)


def test_how_much_a_run_did_is_not_compared() -> None:
    due = journals.due("burn_copied", Gpu(0), "GiB", Limit("GiB", "basis", low=1.0))
    found = compared(due, 900.0, 30.0)
    (row,) = found.rows
    assert (row.kind, "how much" in str(row.why), found.worse) == ("incomparable", True, False)


def test_another_unit_is_not_compared() -> None:
    first, second = (each_with(journals.due("x", Gpu(0), unit, None), 1.0) for unit in ("W", "s"))
    assert kinds(compare([*first, *second], BOOK)) == {("x", Gpu(0)): "incomparable"}


def test_what_is_not_measured_any_more_is_as_bad_as_worse() -> None:
    plan = journals.plan(journals.check("link.copy", rate()))
    skipped = without(plan, Gpu(0))
    lost = compare([run(plan), skipped], BOOK)
    assert (kinds(lost), lost.worse) == ({("copy_h2d", Gpu(0)): "lost"}, True)
    gained = compare([skipped, run(plan)], BOOK)
    assert (kinds(gained), gained.worse) == ({("copy_h2d", Gpu(0)): "gained"}, False)
    assert kinds(compare([skipped, skipped], BOOK)) == {("copy_h2d", Gpu(0)): "same"}


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


# --- several runs ---


def test_the_worst_stands_first_and_the_furthest_out_before_that() -> None:
    dues = [rate(component=Gpu(n)) for n in range(4)]
    values = {("copy_h2d", Gpu(n)): value for n, value in enumerate((200.0, 230.0, 180.0, 120.0))}
    assert [row.component for row in two(values, *dues).rows] == [Gpu(3), Gpu(2), Gpu(1), Gpu(0)]


def test_three_runs_are_each_held_against_the_first() -> None:
    (row,) = compared(rate(), 200.0, 220.0, 150.0).rows
    assert (row.values, row.kind) == ((200.0, 220.0, 150.0), "worse")
    assert [change.kind for change in row.changes] == ["better", "worse"]


def test_what_two_later_runs_owe_and_the_first_does_not() -> None:
    copies, cpu = (
        journals.check("link.copy", rate()),
        journals.check("cpu.gemm", journals.due("x", CPU)),
    )
    found = compare(
        [run(journals.plan(copies)), run(journals.plan(copies, cpu)), run(journals.plan(copies))],
        BOOK,
    )
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


def test_of_same_rows_the_nearest_to_the_noise_stands_first_and_the_unmeasured_last() -> None:
    plan = journals.plan(journals.check("link.copy", *(rate(component=Gpu(n)) for n in range(3))))
    usual = {("copy_h2d", Gpu(n)): 200.0 for n in range(3)}
    later = usual | {("copy_h2d", Gpu(1)): 199.0, ("copy_h2d", Gpu(2)): 197.0}
    found = compare(
        [without(plan, Gpu(0), values=usual), without(plan, Gpu(0), values=later)], BOOK
    )
    assert [row.component for row in found.rows] == [Gpu(2), Gpu(1), Gpu(0)]


def test_a_row_stands_where_the_furthest_out_of_its_later_runs_puts_it() -> None:
    plan = journals.plan(journals.check("link.copy", rate(), rate(component=Gpu(1))))
    later = [(200.0, 200.0), (150.0, 185.0), (150.0, 110.0)]
    runs = [run(plan, {("copy_h2d", Gpu(0)): a, ("copy_h2d", Gpu(1)): b}) for a, b in later]
    assert [row.component for row in compare(runs, BOOK).rows] == [Gpu(1), Gpu(0)]


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


def test_a_verdict_that_got_better_is_not_worse() -> None:
    found = compared(rate(), 50.0, 200.0)
    assert ([one.kind for one in found.outcomes], found.worse) == (["better", "better"], False)


@pytest.mark.parametrize("count", [0, 1])
def test_one_run_is_no_comparison(count: int) -> None:
    with pytest.raises(ValueError, match="needs two runs"):
        compare([run(journals.plan())] * count, BOOK)


# --- parts and machines ---


def test_a_card_that_moved_is_compared_with_itself() -> None:
    plan = journals.plan(journals.check("link.copy", rate(), rate(component=Gpu(1))))
    first = run(
        plan,
        {("copy_h2d", Gpu(0)): 200.0, ("copy_h2d", Gpu(1)): 150.0},
        identities={Gpu(0): "X", Gpu(1): "Y"},
    )
    later = run(
        plan,
        {("copy_h2d", Gpu(0)): 150.0, ("copy_h2d", Gpu(1)): 200.0},
        identities={Gpu(0): "Y", Gpu(1): "X"},
    )
    found = compare([first, later], BOOK)
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


def test_parts_that_share_a_serial_number_are_not_the_same_in_another_machine() -> None:
    first, later = each_with(GEMM, 200.0, 190.0, identities={Gpu(0): "X", Gpu(1): "X"})
    later = replace(later, identities={Gpu(0): "X"}, machine_id="machine-2")
    assert compare([first, later], BOOK).rows[0].kind == "same"
    alone = replace(first, identities={Gpu(0): "X", Gpu(1): "Y"})
    assert compare([alone, later], BOOK).rows[0].kind == "worse"


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


def test_a_way_between_two_cards_is_the_same_where_both_are() -> None:
    due = journals.due("copy_h2d", Pair(Gpu(0), Gpu(1)), limit=Limit("GB/s", "basis", low=1.0))
    first, later = each_with(due, 200.0, 190.0, identities={Gpu(0): "X", Gpu(1): "Y"})
    later = replace(later, machine_id="machine-2")
    assert compare([first, later], BOOK).rows[0].kind == "worse"
    one_new = replace(later, identities={Gpu(0): "X", Gpu(1): "Z"})
    assert compare([first, one_new], BOOK).rows[0].kind == "same"


def test_runs_of_one_machine_are_of_no_other() -> None:
    assert two({}).other_machines == ()


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
