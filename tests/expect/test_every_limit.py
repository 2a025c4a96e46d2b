"""Every limit there is can fail: each is held against a value just past each of its bounds, in an otherwise passing run."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from journals import bodies, entries
from msgspec.structs import replace

from acceptance import resources
from acceptance.core.collection import Collected
from acceptance.core.fold import fold
from acceptance.core.plan import Due, Plan
from acceptance.expect import declaration, limit_book, plan_builder
from acceptance.expect.limit_book import LimitBook, Override
from acceptance.machine import machine_file
from acceptance.run import planning

EVERYTHING = Path(__file__).resolve().parents[1] / "machine/everything.toml"
DEFAULTS = limit_book.read_defaults(resources.locate("models") / "host.toml")
FILES = {file.name: file for file in [*sorted(resources.locate("machines").glob("*.toml")), EVERYTHING]}


def overrides(file: Path) -> list[Override]:
    """Every limit that a machine file brings, with the DIMMs' rates as its tables declare them."""
    declared = machine_file.read(file)
    rates = tuple(dimm.rated_mts for dimm in declared.memory.dimm if dimm.rated_mts is not None)
    return [
        *declaration.own_limits(declared, file.name),
        *declaration.declared_limits(declared, file.name),
        *declaration.bandwidth_limits(declared, rates, file.name),
    ]


SOURCES: dict[str, Sequence[Override]] = {"host.toml": (), **{name: overrides(file) for name, file in FILES.items()}}


@functools.cache
def collected() -> tuple[Collected, ...]:
    """The real checks, as pytest collects them."""
    return planning.collect(Path("/")).checks


@functools.cache
def planned(source: str) -> Plan:
    """A plan of every check there is, with one component of each class and all that the limits name."""
    book = LimitBook(DEFAULTS.entries).after(SOURCES[source])
    classes: dict[str, list[str]] = {"gpu": []}
    for check in collected():
        for measures in check.measures:
            named = [
                entry.component for entry in book.entries if entry.measurement == measures.name and entry.component
            ]
            members = classes.setdefault(measures.per, [])
            members += [name for name in named if name not in members]
    components = {name: members or [f"{name}0"] for name, members in classes.items()}
    made = plan_builder.build(
        collected(),
        profile="all",
        loads_s={check.load: 1.0 for check in collected() if check.load},
        memory_gib=1.0,
        cannot_detect=(),
        components=components,
        not_offered=(),
        book=book,
        waivers=machine_file.read(FILES[source]).waiver if source in FILES else (),
        declared_in=source,
        only=(),
        digest="d",
    )
    return replace(made, gaps=(), waivers=())  # its components are made up; and no waiver may stand in the way here


def subject(source: str, entry: Override) -> Due | None:
    """The due measurement that this very limit judges."""
    return next(
        (
            due
            for check in planned(source).checks
            for due in check.due
            if due.measurement == entry.measurement
            and due.limit is entry.limit
            and entry.component in (None, due.component)
        ),
        None,
    )


CASES = [
    pytest.param(source, entry, bound, id=f"{source}-{entry.measurement}-{entry.component or 'any'}-{bound}")
    for source, entries_ in [(name, found or DEFAULTS.entries) for name, found in SOURCES.items()]
    for entry in entries_
    for bound in ("low", "high", "warn_low", "warn_high")
    if entry.limit is not None and getattr(entry.limit, bound) is not None
]


@pytest.mark.parametrize(("source", "entry", "bound"), CASES)
def test_past_its_bound_a_limit_fails(source: str, entry: Override, bound: str) -> None:
    due = subject(source, entry)
    assert due is not None, "no check is ever held against this limit"
    key, edge = (due.measurement, due.component), float(getattr(entry.limit, bound))
    beyond = math.nextafter(edge, -math.inf if bound in ("low", "warn_low") else math.inf)
    at_edge = fold(entries(bodies(planned(source), {key: edge})))
    past = fold(entries(bodies(planned(source), {key: beyond})))
    assert at_edge.verdict == "PASS"
    if bound in ("low", "high"):
        assert past.verdict == "FAIL"
        assert {(one.measurement, one.component) for one in past.of_kind("fail")} == {key}
    else:
        assert past.verdict == "PASS"
        assert {(one.measurement, one.component) for one in past.of_kind("warn")} == {key}


@pytest.mark.parametrize("source", SOURCES)
def test_without_a_shortfall_the_same_run_passes(source: str) -> None:
    assert fold(entries(bodies(planned(source)))).verdict == "PASS"


def test_every_shipped_and_derivable_limit_is_among_the_cases() -> None:
    sheets = [entry.measurement for entry in DEFAULTS.entries if entry.limit is not None]
    tried = {case.values[1].measurement for case in CASES if case.values[0] == "host.toml"}  # type: ignore[union-attr]
    assert tried == set(sheets)
    facts = {measures.name for check in collected() for measures in check.measures if measures.fact}
    assert facts <= {entry.measurement for entry in SOURCES["everything.toml"]}
