"""Recorded machines held against themselves and against each other, and machines whose inventory
holds anything.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec
import sample_machines
import sample_runs
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from known import known
from machine_facts import BOOK, DAY, born, brief, machine, ruled
from runs import RECORDED, recorded
from thoroughness import ALL

from acceptance.baseline import facts
from acceptance.baseline.changes import machine_changes
from acceptance.baseline.facts import kind_of
from acceptance.core.machine_facts import MachineFacts
from acceptance.core.parts import Gpu
from acceptance.wording import words
from selftest import drawn_runs

Plain = dict[str, Any]


ACCEPTED, CONTAINER, OTHER = (
    "1xh200-host-accept",
    "1xh200-container-accept",
    "1xh200-host-smoke-whole",
)
NAMES = [*RECORDED, *sample_runs.MADE] if ALL else [ACCEPTED, CONTAINER, OTHER, "2x3090ti"]


@functools.cache
def told_by(name: str) -> MachineFacts:
    """What a recorded run tells, or a run of a machine that a sample run is made of."""
    if name in RECORDED:
        return known(facts.facts_of(recorded(name).entries))
    made = sample_runs.MADE[name]
    seen = sample_machines.inventory(drawn_runs.named(made.machine), made.dead_links)
    return born(msgspec.to_builtins(seen))


@each("name", NAMES)
def test_a_recorded_machine_against_itself_and_a_rule_for_every_fact(name: str) -> None:
    told = told_by(name)
    assert told.parts
    assert machine_changes(ruled(told), told) == ()
    for part, fact, _ in told.facts:
        assert BOOK.of_fact(kind_of(part), fact, "differs", "lower") is not None, (part, fact)


@each(
    "one, two, changes",
    [
        (ACCEPTED, CONTAINER, []),
        (CONTAINER, ACCEPTED, []),
        (ACCEPTED, OTHER, [("fail", "inventory.replaced", Gpu(0))]),
    ],
    told=["of one machine", "the other way round", "of two, whose cards alone differ"],
)
def test_two_recorded_runs(one: str, two: str, changes: list[tuple[str, str, object]]) -> None:
    assert brief(machine_changes(ruled(told_by(one)), told_by(two))) == changes


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


@given(scrambled(), scrambled())
def test_a_machine_against_itself_is_no_finding_and_another_says_what_was_and_why_it_matters(
    one: Plain, two: Plain
) -> None:
    first, second = born(one), born(two)
    assert machine_changes(ruled(first), first) == ()
    for change in machine_changes(ruled(first), second):
        assert change.event.startswith("inventory.")
        assert DAY in words.message(change.message)
        assert change.kind == "note" or "basis" in change.message.values
