"""What flagged machines and cards have in common: a rack, a slot, a driver, a firmware. Pure.

Each value of each attribute is tried: of so many machines, so many are flagged, and so many of the
flagged have this value. The chance of as many or more among machines drawn at random
(hypergeometric, exact), times the number of values tried (Bonferroni), must be below CHANCE, and
two machines at least must be among them. The least likely value is named first, and its machines
are set aside before the rest is tried again, so that several causes are found side by side. Values
that the same machines have look alike and are named together. Slots are tried on cards,
everything else on machines, since the cards of one machine share its rack, driver and firmware.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from acceptance.core.grouping import grouped
from acceptance.core.parts import Component

CHANCE = 0.01
SLOT = "slot"  # the attribute of cards


class FlaggedPart(NamedTuple):
    """A component that was flagged in a measurement."""

    machine: str
    component: Component
    measurement: str


class Card(NamedTuple):
    """A component of one machine."""

    machine: str
    component: Component


Unit = str | Card  # a machine, or a card


class Attribute(NamedTuple):
    """A value that machines or cards share: `rack`, `r07`."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Cause:
    """A common cause: attributes that the same machines (slots: cards) have, in order.

    Of `all_units` machines, or cards, `flagged` were flagged; of the `having` ones with the
    attribute, `flagged_having`. `chance` is the corrected probability. `parts` are the flagged
    components behind it, and `measurements` those they were flagged in.
    """

    attributes: tuple[Attribute, ...]
    flagged_having: int
    having: int
    flagged: int
    all_units: int
    chance: float
    parts: tuple[Card, ...]
    measurements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SingleMachine:
    """A flagged machine that no common cause explains: one card of it, or several components."""

    machine: str
    components: tuple[Component, ...]
    measurements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Causes:
    """Common causes, the least likely by chance first, and the machines that none explains."""

    common: tuple[Cause, ...]
    single: tuple[SingleMachine, ...]


@dataclass(frozen=True, slots=True)
class Versions:
    """An attribute that differs within a batch.

    `usual` is the value of most machines, None where no value has the most. `others` are the
    machines of each other value, `unread` those whose value is not known.
    """

    name: str
    usual: str | None
    others: tuple[tuple[str, tuple[str, ...]], ...]
    unread: tuple[str, ...]


def find_causes(
    flagged: Iterable[FlaggedPart],
    machines: Mapping[str, Mapping[str, str]],
    slots: Mapping[Card, str],
) -> Causes:
    """The causes of these flags.

    `machines` has the attributes of every machine that was compared; one without a value of an
    attribute takes no part in the trial of it. `slots` has the position in the chassis of every
    card that was compared. Raises ValueError for a flag of a machine that is not there, and for an
    attribute that is called `slot`.
    """
    parts: dict[Card, set[str]] = defaultdict(set)
    for one in flagged:
        parts[Card(one.machine, one.component)].add(one.measurement)
    if unknown := sorted({card.machine for card in parts} - machines.keys()):
        raise ValueError(f"a flagged machine has no attributes: {unknown[0]}")
    if any(SLOT in one for one in machines.values()):
        raise ValueError(f"'{SLOT}' is the attribute of cards, not of machines")
    having: dict[Attribute, set[Unit]] = defaultdict(set)
    for machine, attributes in machines.items():
        for name, value in attributes.items():
            having[Attribute(name, value)].add(machine)
    for card, slot in slots.items():
        having[Attribute(SLOT, slot)].add(card)
    tried = len(having)
    common: list[Cause] = []
    while trials := _trials(having, parts, tried):
        best = min(trials, key=lambda one: (one.chance, one.attributes))
        if best.chance >= CHANCE:
            break
        common.append(best)
        for card in best.parts:
            del parts[card]
        gone = {unit for one in best.attributes for unit in having.pop(one)}
        for attribute, units in having.items():
            having[attribute] = {one for one in units if gone.isdisjoint((one, _machine(one)))}
    left = grouped((card.machine, card) for card in sorted(parts))
    single = (
        SingleMachine(name, tuple(card.component for card in cards), _measurements(cards, parts))
        for name, cards in left.items()
    )
    return Causes(tuple(common), tuple(single))


def _measurements(cards: Iterable[Card], parts: Mapping[Card, set[str]]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*(parts[card] for card in cards))))


def _machine(unit: Unit) -> str:
    return unit.machine if isinstance(unit, Card) else unit


def _trials(
    having: Mapping[Attribute, set[Unit]], parts: Mapping[Card, set[str]], tried: int
) -> list[Cause]:
    """Every attribute with flagged units; those that the same units have are one trial."""
    everything: dict[str, set[Unit]] = defaultdict(set)
    same: dict[frozenset[Unit], list[Attribute]] = defaultdict(list)
    for attribute, some in having.items():
        everything[attribute.name] |= some
        same[frozenset(some)].append(attribute)
    flagged: set[Unit] = {*parts, *(one.machine for one in parts)}
    found = []
    for units, attributes in same.items():
        hits = flagged & units
        if len({_machine(unit) for unit in hits}) < 2:
            continue
        behind = tuple(sorted(card for card in parts if card in hits or card.machine in hits))
        # Attributes of the same units may be unread on others: the weakest evidence counts.
        trials = []
        for name in {one.name for one in attributes}:
            drawn, total = len(flagged & everything[name]), len(everything[name])
            trials.append((tail(len(hits), len(units), drawn, total), drawn, total))
        chance, drawn, total = max(trials)
        found.append(
            Cause(
                tuple(sorted(attributes)),
                len(hits),
                len(units),
                drawn,
                total,
                min(chance * tried, 1.0),
                behind,
                _measurements(behind, parts),
            )
        )
    return found


def tail(hits: int, having: int, drawn: int, total: int) -> float:
    """The chance that `drawn` of `total` units hold `hits` or more of the `having` ones."""
    all_ways = _log_ways(total, drawn)
    return math.fsum(
        math.exp(_log_ways(having, some) + _log_ways(total - having, drawn - some) - all_ways)
        for some in range(max(hits, drawn + having - total), min(having, drawn) + 1)
    )


def _log_ways(of: int, some: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)


def differing_versions(
    machines: Mapping[str, Mapping[str, str]], names: Iterable[str]
) -> tuple[Versions, ...]:
    """Those of the attributes (firmware, BIOS) that differ between these machines of one batch."""
    found = []
    for name in sorted(set(names)):
        by_value = grouped(
            (attributes[name], machine)
            for machine, attributes in machines.items()
            if name in attributes
        )
        unread = tuple(sorted(one for one in machines if name not in machines[one]))
        if len(by_value) < 2 and not (by_value and unread):
            continue
        most = Counter({value: len(some) for value, some in by_value.items()}).most_common(2)
        usual = most[0][0] if len(most) == 1 or most[0][1] > most[1][1] else None
        others = tuple(
            (value, tuple(sorted(by_value[value]))) for value in sorted(by_value) if value != usual
        )
        found.append(Versions(name, usual, others, unread))
    return tuple(found)
