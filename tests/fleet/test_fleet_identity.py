"""Which runs are of one machine: copied disks, replaced GPUs, one machine under two names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from known import known

from acceptance.fleet.identity import Identities, Key, MachineRun, identify

BEGAN = datetime(2026, 11, 25, 1, 0, tzinfo=UTC)
ID = Key("machine_id", "id")
SERIAL = Key("board_serial", "S")


def run(
    gpus: str, hours: float = 0.0, name: str = "a", *, lasts: float = 1.0, **more: Any
) -> MachineRun:
    """A run of so many hours; each letter is a GPU."""
    at = BEGAN + timedelta(hours=hours)
    facts = {"machine_id": "id", "board_serial": None, "complete": True, "passed": True} | more
    ended = at + timedelta(hours=lasts)
    return MachineRun(name, f"run-{hours}", at, ended, gpus=frozenset(gpus), **facts)


def copied(*runs: MachineRun) -> set[Key]:
    return set(identify(runs).copied)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([run("AB"), run("CD", 2)], False),  # replaced
        ([run("AB"), run("BC", 2), run("CD", 4)], False),  # replaced one by one
        ([run("AB"), run("CD", 0.5)], True),  # at once
        ([run("AB"), run("CD", 1.1)], True),  # nobody replaces all in six minutes
        ([run("AB"), run("CD", 7 / 6)], False),
        ([run("A", lasts=3), run("A", 1), run("B", 2.5)], True),
        ([run("AB"), run("CD", 2), run("A", 4)], True),  # those of before are still there
        ([run("AB"), run("CD", 2), run("CD", 4), run("B", 9)], True),
        ([run("AB"), run("CD", 0.5, complete=False)], False),  # parts of one machine
        ([run("AB"), run("", 0.5)], False),  # no GPU is told
        ([run("A"), run("B", 2, "b"), run("C", 4, "c")], True),  # three machines in a day
        ([run("A"), run("B", 2, "b"), run("C", 4, "b")], False),
        ([run("A"), run("B", 20, "b"), run("C", 25, "c")], True),
        ([run("A"), run("B", 20, "b"), run("C", 25.1, "c")], False),
        ([run("Z", -48), run("A", 0, "b"), run("B", 2, "c"), run("C", 4, "d")], True),
        ([run("A", board_serial="S"), run("B", 2, "b"), run("C", 4, "c")], True),
        ([run("A"), run("B", 2, "b"), run("C", 4, "c", board_serial="S")], True),
        (
            [
                run("A", board_serial="S"),
                run("B", 2, "b", board_serial="S"),
                run("C", 4, "c"),
            ],
            False,
        ),
        ([run("A", board_serial="S"), run("B", 2, board_serial="T")], True),
        ([run("A", board_serial="S"), run("A", 2, board_serial="T")], False),  # a new board
        ([run("A", board_serial="S"), run("B", 2)], False),
        (
            [run(gpu, 2 * n, gpu, board_serial="S") for n, gpu in enumerate("ABC")],
            False,  # one chassis in which GPUs are tested
        ),
    ],
)
def test_a_machine_id_that_is_on_several_machines(runs: list[MachineRun], expected: bool) -> None:
    assert (ID in copied(*runs)) == expected
    assert (ID in copied(*reversed(runs))) == expected


def test_a_serial_that_a_maker_gives_all_boards() -> None:
    runs = [run("A", board_serial="S", machine_id="x"), run("B", 0.5, "b", board_serial="S")]
    assert copied(*runs) == {SERIAL}
    later = [run("A", board_serial="S", machine_id="x"), run("B", 5, "b", board_serial="S")]
    assert copied(*later) == set()  # it was installed anew, and has other GPUs
    many = [run(gpu, 2 * n, gpu, board_serial="S", machine_id=gpu) for n, gpu in enumerate("ABC")]
    assert copied(*many) == {SERIAL}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (run("A"), run("B", 5), True),
        (run("A", machine_id="x"), run("A", 5), True),
        (run("A", machine_id="x"), run("B", 5), False),
        (run("A", machine_id="x", board_serial="S"), run("B", 5, board_serial="S"), True),
        (run("A"), run("B", 0.5), False),
        (run("A", machine_id=None), run("B", 5, machine_id=None), False),
    ],
)
def test_runs_of_one_machine(one: MachineRun, other: MachineRun, same: bool) -> None:
    found = identify([one, other])
    assert (found.same(one, other), found.differ(one, other)) == (same, not same)


def test_runs_that_say_nothing_do_not_differ() -> None:
    one, other = run("", machine_id=None), run("A", 5, machine_id="x")
    found = identify([one, other])
    assert not found.same(one, other)
    assert not found.differ(one, other)
    assert not found.differ(other, one)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (run("B", 5), True),
        (run("A", 5), False),
        (run("AB", 5), False),
        (run("", 5), False),
        (run("B", 5, complete=False), False),
        (run("B", 5, machine_id="x"), False),  # another machine
    ],
)
def test_all_gpus_of_a_machine_were_replaced(other: MachineRun, expected: bool) -> None:
    one = run("A")
    found = identify([one, other])
    assert (found.replaced(one, other), found.replaced(other, one)) == (expected, expected)


def kind(found: Identities, one: MachineRun) -> str | None:
    later = found.later(one)
    return later and later.kind


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (run("AB", 5, "b"), "machine"),
        (run("AB", 5, "b", machine_id="x"), "machine"),  # installed anew
        (run("A", 5, "b", machine_id="x"), "gpu"),  # it may be a machine with one GPU
        (run("ABC", 5, "b", machine_id="x"), "gpu"),
        (run("BC", 5, "b"), "machine"),
        (run("BC", 5, "b", machine_id="x"), "gpu"),
        (run("CD", 5, "b"), "unknown"),
        (run("CD", 5, "b", board_serial="S"), "unknown"),  # one maker, one image
        (run("BC", 5, "b", board_serial="S", machine_id="x"), "machine"),
        (run("CD", 5, "b", machine_id="x"), None),
        (run("CD", 0.5, "b"), None),  # a copied disk
        (run("AB", -5, "b"), None),  # not later
        (run("AB", 0.0, "b"), "run"),
        (run("AB", 5, "a"), None),
    ],
)
def test_what_a_later_run_under_another_name_says(other: MachineRun, expected: str | None) -> None:
    one = run("AB", board_serial="S")
    assert kind(identify([one, other]), one) == expected


def test_a_run_of_some_gpus_does_not_say_that_the_machine_has_no_others() -> None:
    one = run("A", complete=False, machine_id="x")
    assert kind(identify([one, run("A", 5, "b")]), one) == "gpu"


def test_the_gravest_counts_and_of_these_the_newest() -> None:
    one = run("AB", machine_id="x")
    runs = [one, run("AB", 5, "b"), run("AB", 7, "c"), run("BC", 9, "d")]
    later = known(identify(runs).later(one))
    assert (later.kind, later.run.name) == ("machine", "c")
