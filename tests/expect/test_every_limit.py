"""Every limit there is can fail: each is held against a value just past each of its bounds, in
an otherwise passing run.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path

import pytest
from cases import each
from journals import bodies, entries, without_siblings
from msgspec.structs import replace
from real_checks import collected

from acceptance import resources
from acceptance.core.fold import fold
from acceptance.core.parts import Component, parse
from acceptance.core.plan import Due, Plan, PlannedCheck
from acceptance.expect import declaration, limit_book, measurements, plan_builder
from acceptance.expect.limit_book import LimitBook, Override
from acceptance.expect.plan_builder import MachineUnderTest, Request
from acceptance.machine import machine_file

EVERYTHING = Path(__file__).resolve().parents[1] / "machine/everything.toml"
FILES = {
    file.name: file for file in [*sorted(resources.locate("machines").glob("*.toml")), EVERYTHING]
}


def overrides(file: Path) -> list[Override]:
    """Every limit that a machine file brings, with the DIMMs' rates as its tables declare them."""
    declared = machine_file.read(file)
    rates = tuple(dimm.rated_mts for dimm in declared.memory.dimm if dimm.rated_mts is not None)
    return [
        *declaration.own_limits(declared, file.name),
        *declaration.declared_limits(declared, file.name),
        *declaration.channel_limits(declared, file.name),
        *declaration.bandwidth_limits(declared, rates, file.name),
    ]


NAMES = ("families", *FILES)


@functools.cache
def defaults() -> LimitBook:
    """What a source that brings no limits of its own is held to."""
    return limit_book.class_defaults(measurements.shipped())


@functools.cache
def brought(source: str) -> tuple[Override, ...]:
    """The limits that a source brings beside the defaults."""
    return tuple(overrides(FILES[source])) if source in FILES else ()


@functools.cache
def planned(source: str) -> Plan:
    """A plan of every check there is, with one component of each class and all
    that the limits name.
    """
    book = LimitBook(defaults().entries).after(brought(source))
    classes: dict[str, list[Component]] = {"gpu": []}
    for check in collected():
        for measures in check.measures:
            named = [
                entry.component
                for entry in book.entries
                if entry.measurement == measures.name and entry.component
            ]
            members = classes.setdefault(measures.per, [])
            members += [name for name in named if name not in members]
    components = {name: members or [parse(f"{name}0")] for name, members in classes.items()}
    made = plan_builder.build(
        collected(),
        "d",
        MachineUnderTest(
            components=components,
            book=book,
            siblings={name: [tuple(members)] for name, members in components.items()},
            waivers=machine_file.read(FILES[source]).waiver if source in FILES else (),
            file=source,
        ),
        Request(
            profile="all",
            loads_s={check.load: 1.0 for check in collected() if check.load},
            memory_gib=1.0,
        ),
    )
    # Its components are made up; no waiver may stand in the way here.
    return without_siblings(replace(made, gaps=(), waivers=()))


def subject(source: str, entry: Override) -> tuple[PlannedCheck, Due]:
    """The due measurement that this very limit judges, and its check."""
    found = next(
        (
            (check, due)
            for check in planned(source).checks
            for due in check.due
            if due.measurement == entry.measurement
            and due.limit is entry.limit
            and entry.component in (None, due.component)
        ),
        None,
    )
    assert found is not None, "no check is ever held against this limit"
    return found


def cases() -> list[tuple[str, Override, str]]:
    """Every source, each of its limits, and each bound of that."""
    return [
        (source, entry, bound)
        for source in NAMES
        for entry in brought(source) or defaults().entries
        for bound in ("low", "high", "warn_low", "warn_high")
        if entry.limit is not None and getattr(entry.limit, bound) is not None
    ]


def told(case: tuple[str, Override, str]) -> str:
    source, entry, bound = case
    return f"{source}, {entry.measurement} of {entry.component or 'any'}: {bound}"


def past_its_bound(made: Plan, due: Due, bound: str) -> None:
    """At its bound the run passes; just past it nothing but this very measurement is wrong."""
    key, edge = (due.measurement, due.component), float(getattr(due.limit, bound))
    beyond = math.nextafter(edge, -math.inf if bound in ("low", "warn_low") else math.inf)
    at_edge = fold(entries(bodies(made, {key: edge})))
    past = fold(entries(bodies(made, {key: beyond})))
    assert at_edge.verdict == "PASS"
    if bound in ("low", "high"):
        assert past.verdict == "FAIL"
        assert {(one.measurement, one.component) for one in past.of_kind("fail")} == {key}
    else:
        assert past.verdict == "PASS"
        assert {(one.measurement, one.component) for one in past.of_kind("warn")} == {key}


@each("source, entry, bound", cases, told=told)
def test_past_its_bound_a_limit_fails(source: str, entry: Override, bound: str) -> None:
    """In a run of the check that is held against it; `make test-all` has every check in the run."""
    check, due = subject(source, entry)
    past_its_bound(replace(planned(source), checks=(check,)), due, bound)


@pytest.mark.sweep
@each("source, entry, bound", cases, told=told)
def test_past_its_bound_a_limit_fails_a_run_of_every_check(
    source: str, entry: Override, bound: str
) -> None:
    past_its_bound(planned(source), subject(source, entry)[1], bound)


@each("source", NAMES)
def test_without_a_shortfall_the_same_run_passes(source: str) -> None:
    assert fold(entries(bodies(planned(source)))).verdict == "PASS"


def test_every_shipped_and_derivable_limit_is_among_the_cases() -> None:
    sheets = [entry.measurement for entry in defaults().entries if entry.limit is not None]
    tried = {entry.measurement for source, entry, _ in cases() if source == "families"}
    assert tried == set(sheets)
    facts = {measures.name for check in collected() for measures in check.measures if measures.fact}
    assert facts <= {entry.measurement for entry in brought("everything.toml")}
