"""Pairs of machines for collectives between them: which to test next, and what is bad. Pure.

A test of a pair is bad if one of its two nodes or the link between them is. One round tests
neighbours, in the order that the caller gives (by rack and switch). Every node of a pair that
passes is good, and so is their link. Each node of a bad pair is then tested with a good partner:

- it passes: the node is good;
- it has failed with two good partners, of whom the other node of its first pair may be one: it is
  bad. A third test is needed only where both nodes of a pair fail again;
- two good nodes whose own test was bad have a bad link between them.

So n nodes need n / 2 tests and two for each bad node or link (and one where n is odd). What it
assumes: a bad node fails with every partner, a sound pair passes. It tests links between
neighbours, and those of the retests; no others. Of three nodes all three pairs are tested: two
tests would have a node in common, whose rates would be compared with its own.

Of two nodes, neither can be blamed. If no pair passes, further pairs are tried, for at most
BLIND_ROUNDS rounds: nothing is known to be good, so that nobody can be blamed until one passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

BLIND_ROUNDS = 7


class NodePair(NamedTuple):
    """Two nodes, the first of them first in the order."""

    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Blame:
    """What the tests so far prove.

    `unattributed` are bad pairs of which it is not known what is bad; `untested` are nodes without
    any result.
    """

    nodes: tuple[str, ...]
    links: tuple[NodePair, ...]
    unattributed: tuple[NodePair, ...]
    untested: tuple[str, ...]


def next_tests(nodes: Sequence[str], passed: Mapping[NodePair, bool]) -> tuple[NodePair, ...]:
    """The pairs to test now, all at once: no node is in two of them. Empty: it is done.

    `nodes` are in the order of rack and switch; `passed` has the result of each test so far. A test
    that could not run is left out and asked for again; one that a node or the network kept from
    running is bad. Raises ValueError where a node is there twice, and for a result of anything but
    two of the nodes in their order.
    """
    known = _Results(nodes, passed)
    neighbours = (NodePair(*pair) for pair in zip(nodes[::2], nodes[1::2], strict=False))
    first_round = tuple(pair for pair in neighbours if pair not in passed)
    later = tuple(known.retests() if known.good else known.blind_round())
    return first_round or later or _left_of_three(nodes, passed)


def _left_of_three(nodes: Sequence[str], passed: Mapping[NodePair, bool]) -> tuple[NodePair, ...]:
    """The pair of three nodes that is not tested yet; none of more nodes."""
    pairs = (NodePair(*pair) for pair in combinations(nodes, 2))
    return tuple(pair for pair in pairs if pair not in passed) if len(nodes) == 3 else ()


def blame(nodes: Sequence[str], passed: Mapping[NodePair, bool]) -> Blame:
    """What these results prove. Raises ValueError as `next_tests`."""
    known = _Results(nodes, passed)
    failed = sorted((pair for pair, well in passed.items() if not well), key=known.order)
    links = tuple(pair for pair in failed if known.good.issuperset(pair))
    return Blame(
        tuple(node for node in nodes if node in known.bad),
        links,
        tuple(pair for pair in failed if known.bad.isdisjoint(pair) and pair not in links),
        tuple(node for node in nodes if node not in known.good and not known.failed[node]),
    )


class _Results:
    """The results of the tests so far: good nodes, and with whom each node failed."""

    def __init__(self, nodes: Sequence[str], passed: Mapping[NodePair, bool]) -> None:
        if len(set(nodes)) != len(nodes):
            raise ValueError("a node is in the order twice")
        self.nodes = nodes
        self.place = {node: number for number, node in enumerate(nodes)}
        self.good: set[str] = set()
        self.failed: dict[str, set[str]] = {node: set() for node in nodes}
        for pair, well in passed.items():
            if not self.place.keys() >= {*pair}:
                raise ValueError(f"a result of a node that is not in the order: {pair}")
            if self.place[pair.first] >= self.place[pair.second]:
                raise ValueError(f"a result of nodes that are not in their order: {pair}")
            if well:
                self.good.update(pair)
            else:
                self.failed[pair.first].add(pair.second)
                self.failed[pair.second].add(pair.first)
        self.bad = {
            node
            for node in nodes
            if node not in self.good and len(self.failed[node] & self.good) > 1
        }

    def order(self, pair: NodePair) -> tuple[int, int]:
        """By the place of the first node, then of the second."""
        return self.place[pair.first], self.place[pair.second]

    def pair(self, one: str, other: str) -> NodePair:
        """These two nodes in their order."""
        return NodePair(*sorted((one, other), key=self.place.__getitem__))

    def retests(self) -> list[NodePair]:
        """Each node that is neither good nor bad, with the nearest good one not tried with it."""
        free = set(self.good)
        found: list[NodePair] = []
        for node in self.nodes:
            if node in self.good or node in self.bad:
                continue
            partner = self._nearest(node, free)
            if partner is not None:
                free.remove(partner)
                found.append(self.pair(node, partner))
        return found

    def _nearest(self, node: str, free: set[str]) -> str | None:
        here = self.place[node]
        for far in range(1, len(self.nodes)):
            for there in (here - far, here + far):
                if 0 <= there < len(self.nodes):
                    other = self.nodes[there]
                    if other in free and other not in self.failed[node]:
                        return other
        return None

    def blind_round(self) -> list[NodePair]:
        """Pairs not tested yet, while no node is known to be good."""
        if max(map(len, self.failed.values()), default=0) >= BLIND_ROUNDS:
            return []
        left = list(self.nodes)
        found: list[NodePair] = []
        while left:
            node = left.pop(0)
            partner = next((one for one in left if one not in self.failed[node]), None)
            if partner is not None:
                left.remove(partner)
                found.append(NodePair(node, partner))
        return found
