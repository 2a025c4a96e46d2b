"""How often outliers are false, and what they find: simulated fleets, judged by the product's code.

    python benchmarks/fleet_outliers.py [--full]

Without --full it takes seconds and shows the time of one night of 10,000 machines and a rough
table; --full takes some minutes and prints the tables of docs/fleet.md.

A sound machine has a persistent rate of its own, the same in all its 400 values, and noise of 1 %
(normal) in each value each night. Persistent rates are drawn

- from a normal distribution of 0.7 % (39 nodes with one H100, BERT-large: -1.0 to +3.5 %);
- or as the widest published fleets: medians joined, below it a normal of 1.58 %, of which the
  lowest of 39 is expected at -3.4 %; above it Student's t of 2 degrees times 1.6 %, whose highest
  of 39 has its median at +8.4 % (BERT-base -3.1 to +8.4 %; 22 nodes of eight H100 -3.4 to +2.8 %).
  `x 0.5` are these rates halved.

A slow machine is sound otherwise. `one value` is found where that value itself is flagged, `card`
where one of 50 is, `machine` where one of 400 is.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np

from acceptance.core.parts import Gpu
from acceptance.fleet.outliers import (
    LEAST_POOL,
    Columns,
    Floats,
    Group,
    Suspicion,
    find_outliers,
)
from acceptance.fleet.pair_tests import Blame, NodePair, next_tests
from acceptance.fleet.pair_tests import blame_nodes as blame
from acceptance.fleet.verdicts import Series

VALUES, CARD_VALUES, NIGHTS, NOISE = 400, 50, 30, 0.01
MONTHS = 10  # simulated for each figure, of 1,000 machines
BELOW, ABOVE, TAIL_DEGREES = 0.0158, 0.016, 2
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]


def normal(deviation: float) -> Draw:
    """Persistent rates of a normal distribution, relative to their median."""
    return lambda rng, shape: deviation * rng.standard_normal(shape)


def published(share: float) -> Draw:
    """Those of the widest published fleets, times a share."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        side = rng.standard_normal(shape)
        above = ABOVE * np.abs(rng.standard_t(TAIL_DEGREES, shape))
        return share * np.where(side < 0, BELOW * side, above)

    return draw


SPREADS: tuple[tuple[str, Draw], ...] = (
    ("0.7 % normal", normal(0.007)),
    ("1.2 % normal", normal(0.012)),
    ("published x 0.5", published(0.5)),
    ("published x 0.75", published(0.75)),
    ("published", published(1.0)),
)


@dataclass(frozen=True)
class Fleet:
    """Groups of one size: judged together, or each by itself; what is known of their spread."""

    label: str
    size: int
    together: bool = True
    spread: float = np.nan


FLEETS = (
    Fleet("3, 333 groups", 3),
    Fleet("8, 125 groups", 8),
    Fleet("64 alone", 64, together=False),
    Fleet("1,000 alone", 1000, together=False),
    Fleet("10,000 alone", 10_000, together=False),
    Fleet("3 alone", 3, together=False),
    Fleet("4 alone", 4, together=False),
    Fleet("8 alone", 8, together=False),
    Fleet("16 alone", 16, together=False),
)
KNOWN = (
    Fleet("3 alone, 0.7 % known", 3, together=False, spread=0.007),
    Fleet("4 alone, 0.7 % known", 4, together=False, spread=0.007),
    Fleet("8 alone, 0.7 % known", 8, together=False, spread=0.007),
    Fleet("16 alone, 0.7 % known", 16, together=False, spread=0.007),
)


def columns(spread: float, values: int = VALUES) -> Columns:
    """Rates of eight cards, of which more is better."""
    series = tuple(
        Series("gpu.load", f"rate_{n % CARD_VALUES}", Gpu(n // CARD_VALUES), "GB/s")
        for n in range(values)
    )
    return Columns(series, np.ones(values, bool), np.full(values, NOISE), np.full(values, spread))


def flagged(
    rng: np.random.Generator, fleet: Fleet, rates: Floats, nights: int
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Which values of which machines are flagged within some nights, given persistent rates."""
    known = columns(fleet.spread)
    column = {series: n for n, series in enumerate(known.series)}
    names = [f"m{n}" for n in range(len(rates))]
    place = {name: n for n, name in enumerate(names)}
    found = np.zeros((len(rates), VALUES), bool)
    starts = range(0, len(rates), fleet.size)
    state: dict[int, frozenset[Suspicion]] = {}
    for _ in range(nights):
        values = (1 + rates) * (1 + NOISE * rng.standard_normal((len(rates), VALUES)))
        groups = [
            Group(tuple(names[at : at + fleet.size]), values[at : at + fleet.size]) for at in starts
        ]
        # Groups that know nothing of each other: in bundles too small to be a pool.
        least = len(groups) if fleet.together else max(1, (LEAST_POOL - 1) // fleet.size)
        for n in range(0, len(groups), least):
            some = groups[n : n + least]
            night = find_outliers(some, known, state.get(n, frozenset()))
            state[n] = night.suspicions
            for flag in night.flags:
                found[place[flag.machine], column[flag.series]] = True
    return found


def false_flags(rng: np.random.Generator, fleet: Fleet, draw: Draw, months: int) -> float:
    """Sound machines that are flagged at least once in a month, of 1,000."""
    machines = max(1000 // fleet.size, 1) * fleet.size
    hits = [
        flagged(rng, fleet, draw(rng, (machines, 1)), NIGHTS).any(axis=1).mean()
        for _ in range(months)
    ]
    return 1000 * float(np.mean(hits))


def separate_draws(
    rng: np.random.Generator, fleet: Fleet, draw: Draw, each: int, months: int
) -> float:
    """As `false_flags`, where every `each` values of a machine have a rate of their own."""
    machines = max(1000 // fleet.size, 1) * fleet.size
    hits = []
    for _ in range(months):
        rates = np.repeat(draw(rng, (machines, VALUES // each)), each, axis=1)
        hits.append(flagged(rng, fleet, rates, NIGHTS).any(axis=1).mean())
    return 1000 * float(np.mean(hits))


def found(
    rng: np.random.Generator, fleet: Fleet, draw: Draw, slow: float, least: int
) -> tuple[float, float, float]:
    """The shares found within three nights: by one value, a card's 50, the machine's 400."""
    alone = not fleet.together
    machines = fleet.size if alone and fleet.size >= 64 else max(1000 // fleet.size, 1) * fleet.size
    every = fleet.size if alone and fleet.size < 100 else 100
    parts: list[tuple[float, float, float]] = []
    count = 0
    while count < least:
        rates = draw(rng, (machines, 1))
        sick = np.arange(0, machines, every)
        rates[sick] = (1 + rates[sick]) * (1 - slow) - 1
        hits = flagged(rng, fleet, rates, 3)[sick]
        cards = hits.reshape(len(sick), -1, CARD_VALUES).any(axis=2)
        parts.append((hits.mean(), cards.mean(), hits.any(axis=1).mean()))
        count += len(sick)
    one, card, machine = np.mean(parts, axis=0)
    return float(one), float(card), float(machine)


def head(*cells: str) -> None:
    """Print the head of a table in Markdown."""
    row(*cells)
    print("|" + "---|" * len(cells))


def row(*cells: str) -> None:
    """Print a row of a table in Markdown."""
    print("| " + " | ".join(cells) + " |", flush=True)


def false_table(fleets: Sequence[Fleet], spreads: Sequence[tuple[str, Draw]], months: int) -> None:
    """Print the false flags of fleets at each spread."""
    head("group", *(name for name, _ in spreads))
    for fleet in fleets:
        rng = np.random.default_rng(24)
        some = 1 if fleet.size >= 10_000 else months
        rates = [false_flags(rng, fleet, draw, some) for _, draw in spreads]
        row(fleet.label, *(f"{rate:.2f}" for rate in rates))
    print()


def found_table(fleets: Sequence[Fleet], name: str, draw: Draw, slow: Sequence[float]) -> None:
    """Print what is found of each slowness at one spread."""
    head(f"{name}: group", *(f"{100 * part:g} % slow" for part in slow))
    for fleet in fleets:
        rng = np.random.default_rng(24)
        cells = []
        for part in slow:
            shares = found(rng, fleet, draw, part, least=100)
            cells.append(" / ".join(f"{100 * share:.0f}" for share in shares))
        row(fleet.label, *cells)
    print()


def pairs_table(draws: int = 20) -> None:
    """Print how many tests of pairs name the bad nodes."""
    head("nodes", "bad", "tests at most", "n / 2 + 2 x bad", "rounds at most", "exact")
    for count, bad in ((3, 1), (4, 1), (8, 1), (64, 1), (64, 5), (1000, 10), (10_000, 100)):
        nodes = tuple(f"n{number:05d}" for number in range(count))
        tests, rounds, exact = [], [], 0
        for seed in range(draws):
            sick = set(random.Random(seed).sample(nodes, bad))
            passed: dict[NodePair, bool] = {}
            rounds.append(0)
            while now := next_tests(nodes, passed):
                rounds[-1] += 1
                passed |= {pair: sick.isdisjoint(pair) for pair in now}
            exact += blame(nodes, passed) == Blame(tuple(sorted(sick)), (), (), ())
            tests.append(len(passed))
        goal = count // 2 + 2 * bad
        row(*map(str, (count, bad, max(tests), goal, max(rounds), f"{exact} of {draws}")))
    print()


def time_of_a_night() -> None:
    """Print how long one night of 10,000 machines takes."""
    rng = np.random.default_rng(24)
    values = 1 + NOISE * rng.standard_normal((10_000, VALUES))
    group = Group(tuple(f"m{n}" for n in range(10_000)), values)
    began = time.perf_counter()
    find_outliers([group], columns(np.nan))
    took = time.perf_counter() - began
    print(f"one night of 10,000 machines and {VALUES} values: {took:.2f} s\n")


def main() -> None:
    """Print the time of a night and the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="the tables of docs/fleet.md, minutes")
    full = parser.parse_args().full
    time_of_a_night()
    if not full:
        print("Sound machines flagged in a month, of 1,000 (one month, rough):\n")
        false_table([FLEETS[0], FLEETS[3]], [SPREADS[0], SPREADS[4]], 1)
        return
    print("Pairs of nodes:\n")
    pairs_table()
    print("Found within three nights, in %: one value / card / machine:\n")
    found_table([*FLEETS, *KNOWN], *SPREADS[0], (0.05, 0.07, 0.10, 0.15))
    for name, draw in (SPREADS[2], SPREADS[4]):
        found_table(FLEETS, name, draw, (0.07, 0.10, 0.15))
    print("Sound machines flagged in a month, of 1,000:\n")
    false_table(FLEETS, SPREADS, MONTHS)
    false_table(KNOWN, SPREADS[:1], MONTHS)
    print("The same, where the rate is drawn for each card, and for each value:\n")
    head("group", "spread", "each card", "each value")
    for fleet in (FLEETS[2], FLEETS[3]):
        rng = np.random.default_rng(24)
        for name, draw in (SPREADS[0], SPREADS[4]):
            rates = [separate_draws(rng, fleet, draw, each, 2) for each in (CARD_VALUES, 1)]
            row(fleet.label, name, *(f"{rate:.1f}" for rate in rates))


if __name__ == "__main__":
    main()
