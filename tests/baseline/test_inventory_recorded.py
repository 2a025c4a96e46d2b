"""Recorded machines held against themselves and against each other, and machines whose inventory
holds anything.
"""

from __future__ import annotations

import functools
from typing import Any

import machine_facts
import msgspec
import sample_machines
import sample_runs
from hypothesis import given
from hypothesis import strategies as st
from machine_facts import BOOK, DAY, born, brief, machine, ruled
from runs import RECORDED
from runs import recorded as recorded_run

from acceptance.baseline import facts
from acceptance.baseline.changes import machine_changes
from acceptance.baseline.facts import kind_of
from acceptance.core.machine_facts import MachineFacts
from acceptance.core.parts import Gpu
from acceptance.core.record import Entry
from acceptance.wording import words
from selftest import drawn_runs

Plain = dict[str, Any]


@functools.cache
def recorded() -> dict[str, list[Entry]]:
    """Recorded runs, and runs of the machines that the sample runs are made of."""
    runs = {name: list(recorded_run(name).entries) for name in RECORDED}
    for name, made in sample_runs.MADE.items():
        seen = sample_machines.inventory(drawn_runs.named(made.machine), made.dead_links)
        runs[name] = machine_facts.run(msgspec.to_builtins(seen))
    return runs


def told_by(name: str) -> MachineFacts:
    told = facts.facts_of(recorded()[name])
    assert told is not None
    return told


def test_every_recorded_machine_against_itself() -> None:
    assert len(recorded()) > 6
    for name in recorded():
        assert told_by(name).parts, name
        assert machine_changes(ruled(told_by(name)), told_by(name)) == (), name


def test_two_recorded_runs_of_one_machine() -> None:
    one, two = "1xh200-host-accept", "1xh200-container-accept"
    assert machine_changes(ruled(told_by(one)), told_by(two)) == ()
    assert machine_changes(ruled(told_by(two)), told_by(one)) == ()


def test_recorded_runs_of_two_machines_differ_in_their_cards_alone() -> None:
    told = machine_changes(ruled(told_by("1xh200-host-accept")), told_by("1xh200-host-smoke-whole"))
    assert brief(told) == [("fail", "inventory.replaced", Gpu(0))]


def test_every_fact_that_is_told_has_a_rule_or_says_what_belongs_to_the_machine() -> None:
    for name in recorded():
        for part, fact, _ in told_by(name).facts:
            assert BOOK.of_fact(kind_of(part), fact, "differs", "lower") is not None, (
                name,
                part,
                fact,
            )


# --- whatever an inventory holds ---


_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 10**13)
    | st.floats()
    | st.sampled_from(["", "on", "nan", "F2", "16"])
)


@st.composite
def scrambled(draw: st.DrawFn) -> Plain:
    """A machine in which some values are others."""
    plain = machine()
    tables = [
        plain["cpu"],
        plain["memory"],
        plain["board"],
        *plain["disks"],
        *plain["links"],
        *plain["pci"],
    ]
    tables += [
        *plain["nvml"]["devices"],
        *(device["traits"] for device in plain["nvml"]["devices"]),
    ]
    tables += plain["memory"]["dimms"]
    for table in draw(st.lists(st.sampled_from(tables), max_size=4)):
        table[draw(st.sampled_from(sorted(table)))] = draw(_scalars)
    return plain


@given(scrambled())
def test_a_machine_against_itself_is_never_a_finding(plain: Plain) -> None:
    told = born(plain)
    assert machine_changes(ruled(told), told) == ()


@given(scrambled(), scrambled())
def test_every_finding_says_what_was_and_why_it_matters(one: Plain, two: Plain) -> None:
    for change in machine_changes(ruled(born(one)), born(two)):
        assert change.event.startswith("inventory.")
        assert DAY in words.message(change.message)
        assert change.kind == "note" or "; basis: " in words.message(change.message)
