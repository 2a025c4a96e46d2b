"""What is refused before anything is heated."""

from __future__ import annotations

import pytest
from cases import each
from test_plan_builder import BOOK, BOTH, COUNT, FAULTS, WATT, build, collected

from acceptance.core.limit import Limit
from acceptance.core.parts import Gpu
from acceptance.core.waiver import Waiver
from acceptance.expect.collected import Measures, PlanError
from acceptance.expect.limit_book import LimitBook, Override
from acceptance.expect.plan_builder import lint


@each(
    "book, told",
    [
        (
            BOOK.after([Override("heat", "class default", WATT)]),
            r"class default: a limit for heat, which no check measures: correct it \(docs/",
        ),
        (
            BOOK.after([Override("powr", "class default", unlimited="x")]),
            r"a limit for powr, which no check measures: did you mean power\?$",
        ),
        (
            BOOK.after([Override("power", "override in box.toml", COUNT)]),
            "the limit for power is in count, but power is measured in W",
        ),
        (
            BOOK.after([Override("power", "override in box.toml", COUNT, "cpu7")]),
            "the limit for power is in count",
        ),
        (
            BOOK.after([Override("faults", "override in box.toml", COUNT, own=True)]),
            "box.toml: faults takes no limit of the machine's",
        ),
    ],
)
def test_a_limit_must_be_of_what_is_measured_and_in_its_unit(book: LimitBook, told: str) -> None:
    """Also of checks that this run does not select."""
    for only in ((), ("a",), ("b",)):
        with pytest.raises(PlanError, match=told):
            build(book=book, only=only)


def test_a_limit_of_the_machines_own_that_may_be_waived_is_welcome() -> None:
    made = build(book=BOOK.after([Override("power", "override in box.toml", WATT, own=True)]))
    assert made.checks[0].due[0].origin == "override in box.toml"


HEAT = Limit("W", "class default", high=300)


@each(
    "own, told",
    [
        (Limit("W", "b", high=900), None),
        (Limit("W", "b", low=1, high=900), None),
        (Limit("W", "b", low=1), "box.toml: the limit for power has low alone, and the one that"),
    ],
)
def test_a_limit_of_the_machines_own_keeps_a_bound_that_the_replaced_one_has(
    own: Limit, told: str | None
) -> None:
    shipped = BOOK.after([Override("power", "class default", HEAT)])
    book = shipped.after([Override("power", "override in box.toml", own, own=True)])
    if told is None:
        assert build(book=book)
        return
    with pytest.raises(PlanError, match=told) as refused:
        build(book=book)
    assert refused.value.place == ("limit", 0)


def test_a_limit_of_one_component_replaces_none_of_another() -> None:
    checks = [collected("a")]
    shipped = LimitBook((Override("power", "class default", HEAT, Gpu(0)),))
    floor = Limit("W", "b", low=1)
    lint(checks, shipped.after([Override("power", "override", floor, Gpu(1), own=True)]))
    with pytest.raises(PlanError, match="has low alone"):
        lint(checks, shipped.after([Override("power", "override", floor, Gpu(0), own=True)]))


def test_a_waiver_of_a_floor_has_a_bound_that_something_can_fail() -> None:
    floor = BOOK.after([Override("power", "class default", Limit("W", "b", low=100))])
    waiver = Waiver("r", measurement="power", component="cpu", worst=0.0)
    with pytest.raises(PlanError, match="worst is 0, and no power is ever below 0") as refused:
        build(book=floor, waivers=(waiver,))
    assert refused.value.place == ("waiver", 0, "worst")
    ceiling = BOOK.after([Override("power", "class default", HEAT)])
    assert build(book=ceiling, waivers=(waiver,))


@each(
    "waiver, told",
    [
        (
            Waiver("r", measurement="heat", component="cpu", worst=1.0),
            "box.toml: a waiver names heat, which no check measures: correct it",
        ),
        (
            Waiver("r", measurement="Power", component="cpu", worst=1.0),
            "which no check measures: did you mean power?",
        ),
        (
            Waiver("r", measurement="faults", component="cpu", worst=1.0),
            "box.toml: faults cannot be waived, because it proves a fault",
        ),
        (Waiver("r", skip="c"), "box.toml: a waiver names the check c, which does not exist"),
        (Waiver("r", skip="a.o"), r"the check a.o, which does not exist: did you mean a.one\?"),
    ],
)
def test_a_waiver_must_name_what_exists_and_may_be_waived(waiver: Waiver, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        build(waivers=[waiver])


@each(
    "waiver",
    [
        Waiver("r", measurement="power", component="cpu", worst=1.0),
        Waiver("r", skip="a.one"),
        Waiver("r", skip="b"),
    ],
)
def test_a_waiver_that_is_welcome(waiver: Waiver) -> None:
    assert build(waivers=[waiver]).waivers == (waiver,)


def test_a_measurement_that_one_check_calls_unwaivable_is_unwaivable() -> None:
    lax = collected("c.three", Measures("faults", "count", "cpu"))
    for checks in ([*BOTH, lax], [lax, *BOTH]):
        assert FAULTS in BOTH[1].measures
        with pytest.raises(PlanError, match="faults cannot be waived"):
            build(checks, waivers=[Waiver("r", measurement="faults", component="cpu", worst=1.0)])


KEPT = Override("power", "override in box.toml", WATT, own=True)


@each(
    "wrong, place",
    [
        (Override("heat", "override in box.toml", WATT, own=True), ("limit", 1, "measurement")),
        (Override("power", "override in box.toml", COUNT, own=True), ("limit", 1, "unit")),
        (Override("faults", "override in box.toml", COUNT, own=True), ("limit", 1, "measurement")),
        (Override("heat", "class default", WATT), ()),
        (Override("power", "class default", COUNT), ()),
    ],
)
def test_a_limit_of_the_machine_file_is_told_by_its_row_and_no_other_has_one(
    wrong: Override, place: tuple[str | int, ...]
) -> None:
    derived = Override("power", "declared in box.toml", WATT)
    with pytest.raises(PlanError) as caught:
        build(book=BOOK.after([derived, KEPT, wrong]))
    assert caught.value.place == place


@each(
    "wrong, place",
    [
        (Waiver("r", measurement="heat", component="cpu", worst=1.0), ("waiver", 1, "measurement")),
        (
            Waiver("r", measurement="faults", component="cpu", worst=1.0),
            ("waiver", 1, "measurement"),
        ),
        (Waiver("r", skip="c"), ("waiver", 1, "skip")),
    ],
)
def test_a_waiver_is_told_by_its_row(wrong: Waiver, place: tuple[str | int, ...]) -> None:
    with pytest.raises(PlanError) as caught:
        build(waivers=[Waiver("r", measurement="power", component="cpu", worst=110.0), wrong])
    assert caught.value.place == place
