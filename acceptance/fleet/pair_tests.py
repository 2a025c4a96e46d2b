"""Tests of pairs of nodes: what the two programs of a test prove, and which pairs are slow. Pure.

A test passes if both programs ran whole, each measured all rates, every element is right, and no
rate is slow. It is *broken* where a program gave no proof.

A rate is compared with the median of the other pairs of the first round, in which all are tested
side by side; of an even number of others, the worse of the middle two. It is slow if its drop below
that is beyond the threshold: from `limits.few.below` pairs on the practical share, or what the
pairs of the round make by chance, as for outliers (`outliers`), but at most the ceiling; of fewer,
the share for few. Where chance makes more than the ceiling, the rates differ too much to judge
those above it.

With one other pair, a pair that is too far below it is *apart* from it, and none is to blame. Where
the first round gave the rates of one pair or none, all tests are compared with the fastest of them,
and each that is too far below it is apart. What is slow in half of the pairs is not found.

Pairs of machines for collectives between them: which to test next, and what is bad. Pure.

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

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import msgspec

from acceptance import resources
from acceptance.core.bounds import NORMAL
from acceptance.core.message import Message, Text, english, known
from acceptance.core.parts import GPUS, Component, Gpu, Pair
from acceptance.core.strict import Strict
from acceptance.core.verdict import VerdictWord
from acceptance.fleet.outliers import FACTOR, FACTOR_OF_FEW
from acceptance.loads import contract, protocol
from acceptance.loads.collective.contract import PAIR_OPERATIONS, PairAsk, rate_of
from acceptance.loads.contract import Unproved
from acceptance.loads.protocol import Hello, ProtocolError
from acceptance.process.command import ProgramResult

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


def blame_nodes(nodes: Sequence[str], passed: Mapping[NodePair, bool]) -> Blame:
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


_WAYS = {"first->second": Pair(Gpu(0), Gpu(1)), "second->first": Pair(Gpu(1), Gpu(0))}
# The rates of a pair: their readings. Those of the two ways bear the name of the path.
RATES: Mapping[str, tuple[str, Component]] = {
    **{name: (rate_of(name), GPUS) for name in PAIR_OPERATIONS},
    **{name: (rate_of("send_receive"), path) for name, path in _WAYS.items()},
}
_Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class _Limit(Strict, frozen=True):
    share: _Share
    basis: str


class _Few(Strict, frozen=True):
    below: Annotated[int, msgspec.Meta(ge=3)]
    share: _Share
    basis: str


class PairLimits(Strict, frozen=True):
    """The shares by which a rate may lie below the others, each with its basis."""

    practical: _Limit
    ceiling: _Limit
    few: _Few


def read_limits(path: Path) -> PairLimits:
    """The limits of a file. Raises SetupError."""
    return resources.read(path, PairLimits)


@dataclass(frozen=True, slots=True)
class Half:
    """What the program of one node proves.

    `began` is whether it met the other one; `reason` why it gives no proof. `wrong` counts elements
    that are wrong at this node, or of a program that died the wrong results it had printed.
    `machine` has what no other machine has, as the program says it: its host's id, and the UUID of
    its GPU.
    """

    rates: Mapping[str, float]
    wrong: int
    began: bool
    reason: Text | None = None
    machine: frozenset[str] = frozenset()


def read_half(ask: PairAsk, done: ProgramResult) -> Half:
    """What a program that has ended proves, which was asked this."""
    first = done.stdout.partition("\n")[0]
    try:
        hello = protocol.decode(first)
    except ProtocolError:
        hello = None
    began = isinstance(hello, Hello)
    machine = _machine(hello.parameters) if isinstance(hello, Hello) else frozenset()
    wrong = len(protocol.salvage(done.stdout))
    if done.returncode != 0 or done.timed_out or done.truncated:
        last = done.last_lines(1) if done.stderr.strip() else None
        how = known(how=done.describe(), last=last)
        return Half(
            {},
            wrong,
            began,
            Message(english("pair_program", "its program {how}[: {last}]"), how),
            machine,
        )
    try:
        output = protocol.parse(done.stdout)
    except ProtocolError as error:
        return Half({}, wrong, began, error.message, machine)
    wrong = max(wrong, sum(int(one.value) for one in output.readings if one.unit == "count"))
    try:
        contract.prove(ask, output, {}, done.seconds)
    except Unproved as error:
        reason = Message("pair_program", {"how": error.message})
        return Half({}, wrong, began, reason, machine)
    values = {(one.name, one.component): one.value for one in output.readings}
    rates = {name: values[reading] for name, reading in RATES.items()}
    return Half(rates, wrong, began, None, machine)


def _machine(parameters: Mapping[str, object]) -> frozenset[str]:
    """What the program says of the machine that it runs on."""
    gpus = parameters.get("uuids")
    said = [parameters.get("host"), *(gpus if isinstance(gpus, list) else ())]
    return frozenset(one for one in said if isinstance(one, str) and one)


@dataclass(frozen=True, slots=True)
class PairTest:
    """The test of a pair in a round, which counts from 1."""

    pair: NodePair
    round: int
    halves: tuple[Half, Half]

    @property
    def began(self) -> bool:
        """Whether the two programs met."""
        return all(half.began for half in self.halves)

    @property
    def proven(self) -> bool:
        """Whether all was measured and no element is wrong: then the rates are judged."""
        return all(half.reason is None and not half.wrong for half in self.halves)

    @property
    def rates(self) -> dict[str, float]:
        """The rates in GB/s, of the slower node; none where a program gave no proof."""
        first, second = (half.rates for half in self.halves)
        return {name: min(first[name], second[name]) for name in first.keys() & second.keys()}


class OneMachine(NamedTuple):
    """Two names of one machine, and what both say of it."""

    first: str
    second: str
    said: str


def one_machine(tests: Sequence[PairTest]) -> OneMachine | None:
    """Two names of one machine, by what the programs that were started there say."""
    names: dict[str, str] = {}
    for one in tests:
        for node, half in zip(one.pair, one.halves, strict=True):
            for said in sorted(half.machine):
                if names.setdefault(said, node) != node:
                    return OneMachine(names[said], node, said)
    return None


class Slow(NamedTuple):
    """A rate that is beyond the threshold; `drop` and `threshold` are shares of `usual`."""

    rate: str
    value: float
    usual: float
    drop: float
    threshold: float


@dataclass(frozen=True, slots=True)
class Judged:
    """The tests of pairs, the rates that are slow, and what that proves of nodes and links."""

    nodes: tuple[str, ...]
    tests: tuple[PairTest, ...]
    slow: Mapping[NodePair, tuple[Slow, ...]]
    apart: Mapping[NodePair, tuple[Slow, ...]]
    too_wide: Mapping[str, float]  # rates with a threshold beyond the ceiling, and that threshold
    compared: bool  # whether rates were compared with those of another pair

    @property
    def passed(self) -> dict[NodePair, bool]:
        """The result of each test."""
        return {one.pair: one.proven and one.pair not in self.slow for one in self.tests}

    @property
    def blame(self) -> Blame:
        """What is bad."""
        return blame_nodes(self.nodes, self.passed)

    @property
    def unreached(self) -> tuple[str, ...]:
        """The nodes to blame whose program never met another one: nothing of them was measured."""
        met = {
            node
            for one in self.tests
            if one.began or any(half.wrong for half in one.halves)
            for node in one.pair
        }
        return tuple(node for node in self.blame.nodes if node not in met)

    @property
    def bad(self) -> tuple[str, ...]:
        """The other nodes to blame."""
        return tuple(node for node in self.blame.nodes if node not in self.unreached)

    @property
    def verdict(self) -> VerdictWord:
        """The word on all nodes and links."""
        blame = self.blame
        if self.bad or blame.links:
            return "FAIL"
        due = next_tests(self.nodes, self.passed)
        open_ = (blame.nodes, blame.unattributed, blame.untested, self.apart, self.too_wide, due)
        return "UNJUDGED" if any(open_) else "PASS"


def judge(nodes: Sequence[str], tests: Sequence[PairTest], limits: PairLimits) -> Judged:
    """Judge the tests so far. Raises ValueError as `pairs.blame`."""
    proven = [one for one in tests if one.proven]
    first = [one for one in proven if one.round == 1]
    within = {one.pair for one in first}
    found: dict[NodePair, list[Slow]] = {}
    apart: dict[NodePair, list[Slow]] = {}
    too_wide: dict[str, float] = {}
    for rate in RATES:
        ordered = sorted(one.rates[rate] for one in first)
        by_chance = _threshold(ordered, limits)
        threshold = min(by_chance, limits.ceiling.share)
        if by_chance > threshold:
            too_wide[rate] = by_chance
        fastest = max((one.rates[rate] for one in proven), default=math.nan)
        for one in proven:
            value = one.rates[rate]
            own = value if one.pair in within else None
            usual = _usual(ordered, own) if len(first) > 1 else fastest
            drop = 1 - value / usual
            if drop > threshold:
                into = found if len(ordered) - (one.pair in within) > 1 else apart
                into.setdefault(one.pair, []).append(Slow(rate, value, usual, drop, threshold))
    return Judged(
        tuple(nodes),
        tuple(tests),
        {pair: tuple(slow) for pair, slow in found.items()},
        {pair: tuple(slow) for pair, slow in apart.items()},
        too_wide,
        len(proven) > 1,
    )


def _usual(ordered: Sequence[float], own: float | None) -> float:
    """The median of rates in rising order without the own one; the lower of the middle two."""
    if own is None:
        return ordered[(len(ordered) - 1) // 2]
    middle = (len(ordered) - 2) // 2
    return ordered[middle if bisect_left(ordered, own) > middle else middle + 1]


def _threshold(ordered: Sequence[float], limits: PairLimits) -> float:
    """The largest drop that means nothing, without the ceiling."""
    count = len(ordered)
    if count < limits.few.below:
        return limits.few.share
    deviation = NORMAL * median(abs(1 - value / _usual(ordered, value)) for value in ordered)
    return max(limits.practical.share, (FACTOR + FACTOR_OF_FEW / count) * deviation)
