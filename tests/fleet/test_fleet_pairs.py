"""Pairs of nodes: which is bad, node or link, and in how many tests."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.fleet.pair_tests import BLIND_ROUNDS, Blame, NodePair, next_tests
from acceptance.fleet.pair_tests import blame_nodes as blame


def nodes(count: int) -> tuple[str, ...]:
    return tuple(f"n{number:05d}" for number in range(count))


def run(
    order: Sequence[str], bad: Iterable[str] = (), links: Iterable[NodePair] = ()
) -> tuple[Blame, int, int]:
    """What is blamed, the tests that it took, and the rounds."""
    sick, cut = set(bad), set(links)
    passed: dict[NodePair, bool] = {}
    rounds = 0
    while now := next_tests(order, passed):
        rounds += 1
        tested = [node for pair in now for node in pair]
        assert len(set(tested)) == len(tested)
        assert passed.keys().isdisjoint(now)
        passed |= {pair: sick.isdisjoint(pair) and pair not in cut for pair in now}
    return blame(order, passed), len(passed), rounds


SOUND = Blame((), (), (), ())
CABLE, NEXT = NodePair("n00004", "n00005"), NodePair("n00003", "n00004")


@each(
    "count, bad, links, due, tests, rounds",
    [
        (64, (), (), SOUND, 32, 1),
        (65, (), (), SOUND, 33, 2),
        (65, ("n00064",), (), Blame(("n00064",), (), (), ()), 34, 3),
        (64, ("n00017",), (), Blame(("n00017",), (), (), ()), 34, 2),
        (64, (), (CABLE,), Blame((), (CABLE,), (), ()), 34, 2),
        (64, tuple(CABLE), (), Blame(tuple(CABLE), (), (), ()), 36, 3),
        # Node 5 is bad; the cable from 4 to its first partner is too.
        (64, ("n00005",), (NEXT,), Blame(("n00005",), (NEXT,), (), ()), 36, 3),
        # Two tests of three nodes would have a node in common.
        (3, (), (), SOUND, 3, 3),
        (1, (), (), Blame((), (), (), nodes(1)), 0, 0),
        (0, (), (), SOUND, 0, 0),
    ],
    told=[
        *("sound nodes take one round", "an odd node is tested with a good one"),
        *("a bad odd node", "one bad node takes two more tests"),
        *("a bad cable is told from bad nodes", "both nodes of a pair bad"),
        "a bad cable to the partner of a retest is no bad node",
        *("of three sound nodes all pairs are tested", "one node is never tested", "no node"),
    ],
)
def test_what_is_bad_in_so_many_tests(
    count: int,
    bad: Sequence[str],
    links: Sequence[NodePair],
    due: Blame,
    tests: int,
    rounds: int,
) -> None:
    assert run(nodes(count), bad, links) == (due, tests, rounds)


def test_a_partner_is_near() -> None:
    order = nodes(64)
    first = {NodePair(*pair): True for pair in zip(order[::2], order[1::2], strict=True)}
    first[NodePair("n00040", "n00041")] = False
    assert next_tests(order, first) == (
        NodePair("n00039", "n00040"),
        NodePair("n00041", "n00042"),
    )


def test_bad_nodes_and_cables_of_two_thousand() -> None:
    draw = random.Random(1)
    order = nodes(2_000)
    sick = sorted(draw.sample(order[::2], 10))
    cables = sorted(
        {
            NodePair(order[n], order[n + 1])
            for n in draw.sample(range(0, 2_000, 2), 12)
            if order[n] not in sick
        }
    )[:10]
    found, tests, _ = run(order, sick, cables)
    assert found == Blame(tuple(sick), tuple(cables), (), ())
    assert tests <= 1000 + 2 * 20


def test_two_nodes_cannot_be_told_apart() -> None:
    found, tests, _ = run(nodes(2), ["n00001"])
    assert found == Blame((), (), (NodePair("n00000", "n00001"),), ())
    assert tests == 1
    assert run(nodes(2))[0] == Blame((), (), (), ())


def test_three_nodes_as_far_as_they_can() -> None:
    for sick in nodes(3):
        found, tests, _ = run(nodes(3), [sick])
        assert found == Blame((sick,), (), (), ())
        assert tests <= 3
    cable = NodePair("n00000", "n00001")
    assert run(nodes(3), links=[cable])[0] == Blame((), (cable,), (), ())
    found, tests, _ = run(nodes(3), nodes(3)[:2])
    assert not found.nodes
    assert not found.links
    assert len(found.unattributed) == tests == 3


def test_a_network_that_is_down_everywhere_blames_nobody() -> None:
    found, tests, rounds = run(nodes(100), nodes(100))
    assert not found.nodes
    assert not found.links
    assert rounds == BLIND_ROUNDS
    assert tests == len(found.unattributed) <= BLIND_ROUNDS * 50


def test_every_pair_of_the_first_round_bad() -> None:
    """One node of each pair: some other pair passes, and then all are found."""
    sick = nodes(16)[::2]
    assert run(nodes(16), sick)[0].nodes == sick


def test_a_test_that_could_not_run_is_asked_for_again() -> None:
    order = nodes(4)
    pair = NodePair("n00000", "n00001")
    assert next_tests(order, {pair: True}) == (NodePair("n00002", "n00003"),)
    assert blame(order, {pair: True}).untested == ("n00002", "n00003")


@given(st.integers(4, 40), st.randoms(use_true_random=False))
def test_never_a_sound_node(count: int, draw: random.Random) -> None:
    """With half the nodes bad at most, each is found as soon as two sound ones have met."""
    sick = sorted(draw.sample(nodes(count), draw.randint(0, count // 2)))
    found, _, _ = run(nodes(count), sick)
    assert set(found.nodes) <= set(sick)
    assert not found.links
    if any(not {*pair} & {*sick} for pair in zip(nodes(count)[::2], nodes(count)[1::2],
                                                  strict=False)):  # fmt: skip
        assert found.nodes == tuple(sick)
        assert not found.unattributed


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        next_tests(("a", "a"), {})
    with pytest.raises(ValueError, match="not in the order"):
        blame(("a", "b"), {NodePair("a", "c"): True})
    with pytest.raises(ValueError, match="not in their order"):
        blame(("a", "b"), {NodePair("b", "a"): True})
