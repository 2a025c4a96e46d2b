"""The machines of a fleet against each other, over its last nights: a view beside their verdicts.

Compared are rates and times whose family says their noise, in groups of machines of which equal
values are to be expected: ALIKE. What the outliers have in common, and versions that differ in a
batch, are those of the last night.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from acceptance.core.grouping import grouped
from acceptance.core.message import Listed, Message, Quantity, Value, english
from acceptance.core.parts import Gpu
from acceptance.fleet import outliers
from acceptance.fleet.common_cause import (
    SLOT,
    Card,
    Cause,
    Causes,
    FlaggedPart,
    SingleMachine,
    Versions,
    differing_versions,
    find_causes,
)
from acceptance.fleet.night import NightTable, Row
from acceptance.fleet.outliers import Apart, Columns, Flag, Group, Outliers, Suspicion
from acceptance.fleet.verdicts import Series
from acceptance.history.noise import NoiseBook

NIGHTS = 3  # two that flag, and one that a machine may have missed
# Machines that have all of these alike should measure the same: the model with its sheet, the
# image, the driver, and what was done where.
ALIKE = ("gpu_model", "gpus", "nvidia_driver", "station", "rigproof", "virtual")
# An image of ours is the same where its inputs are, whoever built it; any other by its id.
IMAGE = ("image_inputs", "image_id")
BATCH = "gpu_model"  # machines that were bought together
FIRMWARE = ("bios_version", "gpu_vbios")
# What a cause may be, beside what the site tells of its machines.
SHARED = (*FIRMWARE, "nvidia_driver", "kernel", *IMAGE, "rigproof")
_VIRTUAL = "virtual"  # of a VM, whose noise is its own
_CAPACITY = "GiB"  # has a worse side, but is no rate
# A family's noise is the widest difference of two sound values, about four deviations.
_DEVIATIONS = 4.0


class BatchVersions(NamedTuple):
    """A version that differs between the machines of one batch."""

    batch: str
    versions: Versions


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a fleet's last nights say of its machines beside each other.

    `nights` are the evenings that were compared, the last one last. Of the last one, `measured`
    counts the machines with values, `compared` those that others could be held against, and `twice`
    those of these that were compared on an earlier night too: only they can be flagged. `apart` are
    pairs of machines of which neither is blamed.
    """

    nights: tuple[str, ...]
    measured: int
    compared: int
    twice: int
    flags: tuple[Flag, ...]
    apart: tuple[Apart, ...]
    uncompared: tuple[str, ...]
    causes: Causes
    versions: tuple[BatchVersions, ...]


def compare(
    nights: Mapping[str, NightTable],
    book: NoiseBook,
    locations: Mapping[str, Mapping[str, str]] | None = None,
) -> Comparison:
    """Compare the machines of these nights, by the evening's date; one without values is none.

    `locations` is what the site tells of its machines, such as their racks.
    """
    dates = sorted(date for date, table in nights.items() if _any(table.values))[-NIGHTS:]
    suspicions: frozenset[Suspicion] = frozenset()
    found = Outliers((), (), (), suspicions)
    last = NightTable((), (), np.empty((0, 0)))
    compared: set[str] = set()
    earlier: set[str] = set()
    for date in dates:
        last, earlier = nights[date], earlier | compared
        found = _night(last, book, suspicions)
        suspicions = found.suspicions
        compared = {row.machine for row in _measured(last)} - set(found.uncompared)
    measured = _measured(last)
    flagged = [
        FlaggedPart(one.machine, one.series.component, one.series.measurement)
        for one in found.flags
    ]
    causes = (
        find_causes(flagged, _attributes(measured, locations or {}), _slots(last))
        if flagged
        else Causes((), ())
    )
    return Comparison(
        tuple(dates),
        len(measured),
        len(compared),
        len(compared & earlier),
        found.flags,
        found.apart,
        found.uncompared,
        causes,
        tuple(_versions(last.rows)),
    )


def _measured(table: NightTable) -> list[Row]:
    return [row for row, values in zip(table.rows, table.values, strict=True) if _any(values)]


def _any(values: outliers.Floats) -> bool:
    return not bool(np.isnan(values).all())


def _night(table: NightTable, book: NoiseBook, before: frozenset[Suspicion]) -> Outliers:
    """The outliers of one night; machines on bare metal and VMs have noises of their own."""
    rows: dict[bool, dict[tuple[str | None, ...], list[int]]] = {False: {}, True: {}}
    for number, row in enumerate(table.rows):
        if _any(table.values[number]):
            facts = dict(row.groups)
            image = next((facts[key] for key in IMAGE if key in facts), None)
            alike = (row.profile, image, *(facts.get(key) for key in ALIKE))
            rows[_VIRTUAL in facts].setdefault(alike, []).append(number)
    found = []
    here: set[str] = set()
    for virtual, groups in rows.items():
        columns, chosen = _columns(table.series, book, virtual=virtual)
        compared = [
            Group(
                tuple(table.rows[number].machine for number in numbers),
                table.values[np.ix_(numbers, chosen)],
            )
            for numbers in groups.values()
        ]
        names = {name for group in compared for name in group.machines}
        here |= names
        earlier = (one for one in before if one.machine in names)
        found.append(outliers.find_outliers(compared, columns, earlier))
    away = {one for one in before if one.machine not in here}
    return Outliers(
        tuple(sorted(flag for one in found for flag in one.flags)),
        tuple(sorted(pair for one in found for pair in one.apart)),
        tuple(sorted(name for one in found for name in one.uncompared)),
        frozenset(away.union(*(one.suspicions for one in found))),
    )


def _columns(
    series: Sequence[Series], book: NoiseBook, *, virtual: bool
) -> tuple[Columns, list[int]]:
    """What is known of the series that can be compared, and their columns in the table."""
    chosen, higher, noise = [], [], []
    for place, one in enumerate(series):
        worse = book.worse(one.unit)
        if worse is None or one.unit == _CAPACITY or book.incomparable(one.measurement) is not None:
            continue
        spread = book.spread(one.measurement, one.unit, same_part=True, virtual=virtual)
        if spread.absolute or not spread.size:
            continue
        chosen.append(place)
        higher.append(worse == "lower")
        noise.append(spread.size / _DEVIATIONS)
    columns = Columns(
        tuple(series[place] for place in chosen),
        np.array(higher, bool),
        np.array(noise, np.float64),
        np.full(len(chosen), np.nan),  # no fleet of a model is recorded yet
    )
    return columns, chosen


def _attributes(
    rows: Iterable[Row], locations: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    return {
        row.machine: {
            **{key: fact for key, fact in row.groups if key in SHARED},
            **locations.get(row.machine, {}),
        }
        for row in rows
    }


def _slots(table: NightTable) -> dict[Card, str]:
    """The position of every card that was measured: GPUs are numbered by their address."""
    cards = grouped(
        (one.component, place)
        for place, one in enumerate(table.series)
        if isinstance(one.component, Gpu)
    )
    return {
        Card(table.rows[number].machine, card): str(card)
        for card, columns in cards.items()
        for number in np.flatnonzero(~np.isnan(table.values[:, columns]).all(axis=1)).tolist()
    }


def _versions(rows: Iterable[Row]) -> Iterable[BatchVersions]:
    batches: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for row in rows:
        facts = dict(row.groups)
        if BATCH in facts:
            batches[facts[BATCH]][row.machine] = facts
    for batch, machines in sorted(batches.items()):
        for versions in differing_versions(machines, FIRMWARE):
            yield BatchVersions(batch, versions)


_SHOWN = 8  # names in a sentence; a view with room lists all


def sentences(found: Comparison) -> tuple[Message, ...]:
    """What there is to tell, the gravest first: common causes, single machines, pairs, versions."""
    return (
        *map(_cause, found.causes.common),
        *(_slow(one, found.flags) for one in found.causes.single),
        *map(_apart, found.apart),
        *map(_differs, found.versions),
        *(
            [
                Message(
                    english("fleet_uncompared", "no equal machine to compare with: {machines}"),
                    {"machines": Listed.first(found.uncompared, _SHOWN)},
                )
            ]
            * bool(found.uncompared)
        ),
        *([_counted(found)] * bool(found.compared)),
    )


def _counted(found: Comparison) -> Message:
    values: dict[str, Value] = {"compared": found.compared, "measured": found.measured}
    if not found.twice:
        return Message(
            english(
                "fleet_compared_once",
                "compared with their equals: {compared} of {measured} machines, none on an "
                "earlier night: slow ones are named from the second night",
            ),
            values,
        )
    slow = len({flag.machine for flag in found.flags})
    return Message(
        english(
            "fleet_compared",
            "compared with their equals: {compared} of {measured} machines, {twice} of them on an "
            "earlier night too; slower: {slow} (no verdict changes)",
        ),
        {**values, "twice": found.twice, "slow": slow},
    )


def _share(value: float) -> Quantity:
    return Quantity(round(100 * value, 1), "%")


def _cause(one: Cause) -> Message:
    machines = sorted({card.machine for card in one.parts})
    values: dict[str, Value] = {
        "attributes": Listed(tuple(f"{name} {value}" for name, value in one.attributes)),
        "hits": one.flagged_having,
        "having": one.having,
        "flagged": one.flagged,
        "all": one.all_units,
        "measurements": Listed.first(one.measurements, _SHOWN),
        "machines": Listed.first(machines, _SHOWN),
    }
    slot = any(attribute.name == SLOT for attribute in one.attributes)
    return Message(
        english(
            "fleet_cause_of_cards",
            "{attributes}: {hits} of the {having} cards there are slower than their equals, of "
            "{flagged} among all {all}: in {machines}, in {measurements}",
        )
        if slot
        else english(
            "fleet_cause",
            "{attributes}: {hits} of the {having} machines with it are slower than their equals, "
            "of {flagged} among all {all}: {machines}, in {measurements}",
        ),
        values,
    )


def _slow(one: SingleMachine, flags: Iterable[Flag]) -> Message:
    own = [
        flag
        for flag in flags
        if flag.machine == one.machine and flag.series.component in one.components
    ]
    worst = max(own, key=lambda flag: flag.drop / flag.threshold)
    unit, more = worst.series.unit, len(own) - 1
    return Message(
        english(
            "fleet_slow",
            "{machine} is slower than its equals on two nights: {component} {measurement} "
            "{value}, {drop} worse than {usual}, the median of {others} others (beyond "
            "{threshold} it counts)[; other values beyond theirs: {more}]",
        ),
        {
            "machine": one.machine,
            "component": str(worst.series.component),
            "measurement": worst.series.measurement,
            "value": Quantity(worst.value, unit),
            "usual": Quantity(worst.usual, unit),
            "drop": _share(worst.drop),
            "threshold": _share(worst.threshold),
            "others": worst.compared - 1,
            **({"more": more} if more else {}),
        },
    )


def _apart(one: Apart) -> Message:
    values: dict[str, Value] = {
        "better": one.better,
        "worse": one.worse,
        "component": str(one.series.component),
        "measurement": one.series.measurement,
        "drop": _share(one.drop),
    }
    return Message(
        english(
            "fleet_apart",
            "{worse} is {drop} behind {better} in {component} {measurement} on two nights: of two "
            "machines none can be blamed, so hold both against the model's sheet",
        ),
        values,
    )


def _differs(one: BatchVersions) -> Message:
    name, usual, others, unread = (
        one.versions.name,
        one.versions.usual,
        one.versions.others,
        one.versions.unread,
    )
    texts = [
        Message(
            english("fleet_version_on", "{version} on {machines}"),
            {"version": version, "machines": Listed.first(machines, _SHOWN)},
        )
        for version, machines in others
    ]
    if unread:
        texts.append(
            Message(
                english("fleet_version_unread", "not read on {machines}"),
                {"machines": Listed.first(unread, _SHOWN)},
            )
        )
    values: dict[str, Value] = {"batch": one.batch, "name": name, "others": Listed(tuple(texts))}
    if usual:
        values["usual"] = usual
    return Message(
        english("fleet_versions", "{batch}: {name} differs: [{usual} on most, ]{others}"), values
    )
