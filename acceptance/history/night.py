"""One recorded run as the history stores it: its properties, and each measurement with its series.

A pure function of the run.

An era: nights measured with the same versions and settings. Pure.

Only nights of one era are compared: another image, driver, profile or load time may give another
value on a sound machine. Properties of the machine itself are not part of an era: a replaced part,
another VBIOS or BIOS is a change of the machine, and must be reported.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec

from acceptance.baseline import facts
from acceptance.baseline.facts import unique_identities
from acceptance.core import foreign_process
from acceptance.core.limit import number
from acceptance.core.machine_facts import KnownChange
from acceptance.core.message import Message, english
from acceptance.core.parts import GPUS, WAY, Component
from acceptance.core.plan import Due, Plan, Scope
from acceptance.core.record import RunClosed, RunEnded
from acceptance.core.verdict import Judgement, VerdictWord, is_possible
from acceptance.journal.run import Run, UnreadableRun
from acceptance.machine.inventory import Inventory

_LOAD = "load "  # prefix of a fact that is a load's seconds
# The other facts of `era_of_run`; an era of another version may have more.
_FACTS = {
    "driver": Message(english("the_driver", "the driver")),
    "image": Message(english("the_image", "the image")),
    "image_versions": Message(english("the_image_versions", "the image versions")),
    "profile": Message(english("the_profile", "the profile")),
    "station": Message(english("the_station", "the station")),
}


class Era(msgspec.Struct, frozen=True):
    """The facts that nights of one era share, sorted by name; an unknown fact is absent."""

    facts: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """32 hexadecimal digits, equal for two eras if and only if their facts are."""
        return hashlib.sha256(msgspec.json.encode(self.facts)).hexdigest()[:32]

    @property
    def ground(self) -> tuple[tuple[str, str], ...]:
        """Image, driver and station: a baseline is comparable as long as these are the same.

        Profile and load time may differ. A night is shorter than an acceptance, but does the same
        work in the same way; heat, the effect of a longer load, makes the acceptance the worse of
        the two. Nights are compared with each other more strictly, and only within an era.
        """
        return tuple(
            (name, text)
            for name, text in self.facts
            if name != "profile" and not name.startswith(_LOAD)
        )


def era_of_run(plan: Plan, provenance: Mapping[str, str], inventory: Inventory) -> Era:
    """The era of a run, from facts known before it begins.

    Of the provenance only the station's part is needed. An image of ours is identified by its
    inputs, so that a rebuilt one is the same; any other image by its id.
    """
    facts: dict[str, str | None] = {
        "driver": inventory.board.nvidia_driver,
        "image": provenance.get("image_inputs") or provenance.get("image_id"),
        "image_versions": provenance.get("image_versions"),
        "profile": plan.profile,
        "station": provenance.get("station"),
        **{f"{_LOAD}{name}": f"{number(seconds)} s" for name, seconds in plan.loads_s.items()},
    }
    return Era(tuple(sorted((name, text) for name, text in facts.items() if text)))


def changes(before: Era, after: Era) -> tuple[tuple[str, str | None, str | None], ...]:
    """The facts in which two eras differ: name, text before, text after.

    A text is None if the era lacks the fact.
    """
    was, now = dict(before.facts), dict(after.facts)
    names = sorted({*was, *now})
    return tuple(
        (name, was.get(name), now.get(name)) for name in names if was.get(name) != now.get(name)
    )


def describe_changes(before: Era, after: Era) -> tuple[Message, ...]:
    """The differences between two eras."""
    return tuple(_describe_change(*change) for change in changes(before, after))


def _describe_change(name: str, before: str | None, after: str | None) -> Message:
    fact = _fact(name)
    if before is None:
        return Message(
            english("fact_is_new", "{fact} is {after} (not reported before)"),
            {"fact": fact, "after": str(after)},
        )
    if after is None:
        return Message(
            english("fact_is_gone", "{fact} is no longer reported (was {before})"),
            {"fact": fact, "before": before},
        )
    return Message(
        english("fact_is_other", "{fact} changed from {before} to {after}"),
        {"fact": fact, "before": before, "after": after},
    )


def _fact(name: str) -> Message:
    if name.startswith(_LOAD):
        return Message(
            english("time_of_load", "the time of {load}"), {"load": name.removeprefix(_LOAD)}
        )
    return _FACTS.get(name) or Message(
        english("the_fact", "the {name}"), {"name": name.replace("_", " ")}
    )


# Why later nights are not compared with this one: its evidence is not whole, it tested a part of
# the machine, it was cut off, somebody else used its GPUs, or its loads ran in an image that the
# user named and that may hold anything. Salvaged: an older rigproof read it from a damaged history.
ExclusionReason = Literal["not-whole", "partial", "interrupted", "in-use", "own-image", "salvaged"]
_DAY_S = 86400.0


class PartMeasurement(NamedTuple):
    """A measurement of one part, wherever the part is.

    `name` is the part's identity, or its component if it has none.
    """

    check: str
    measurement: str
    unit: str
    name: str


class SeriesKey(NamedTuple):
    """The key of one series of values.

    `serial` is the part's own identity, for a path those of both ends; None if it has none.
    """

    check: str
    measurement: str
    component: Component
    unit: str
    serial: str | None

    @property
    def part(self) -> PartMeasurement:
        """The part: one that was moved to another slot keeps its nights."""
        return PartMeasurement(
            self.check, self.measurement, self.unit, self.serial or str(self.component)
        )


class NightMeasurement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One due measurement of one night.

    `value` and `again` (the repeat) are in the series' unit, None if there is none. `outside` and
    `unsteady` are that night's judgement of drift; `failed` says that the value broke its absolute
    limit without a waiver.
    """

    value: float | None
    again: float | None = None
    outside: bool = False
    unsteady: bool = False
    failed: bool = False


class ReportedChanges(msgspec.Struct, frozen=True):
    """The changes since the baseline that a night has reported.

    `birth` is the id of the baseline's run.
    """

    birth: str
    known: tuple[KnownChange, ...]


class Night(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One recorded run.

    `day` is when it began, in days since 1970-01-01 in UTC; `seconds` is its duration, if known.
    `virtual` says that the machine is a VM.

    `apart` says why later nights are not compared with its values; None if they are. A `postponed`
    run found the machine in use and measured nothing. `reported` is None if the run was not
    compared with a baseline.

    `series` and `figures` are its measurements, one by one: what was measured, and the values.
    `pruned` says that they were removed. `number` grows in the order in which nights are recorded.
    `folder` is the name of the run's folder, if that is known; it may have been removed.
    """

    run_id: str
    machine_id: str
    utc: str
    day: float
    seconds: float | None
    profile: str
    scope: Scope
    verdict: VerdictWord
    virtual: bool
    postponed: bool
    apart: ExclusionReason | None
    era: Era
    series: tuple[SeriesKey, ...]
    figures: tuple[NightMeasurement, ...]
    reported: ReportedChanges | None = None
    number: int = 0
    folder: str | None = None
    pruned: bool = False

    @property
    def comparable(self) -> bool:
        """Whether later nights may be compared with its values."""
        return self.apart is None and not self.postponed


def night_of(run: Run) -> Night:
    """A run as a night. Raises UnreadableRun if its time is unknown."""
    start, verdict, inventory = run.start, run.verdict, run.inventory
    identities = facts.identities(inventory)
    figures = {
        series_key(check.id, one.due, identities, run.plan.gpus): _figure(one)
        for check in verdict.checks
        for one in check.judged
    }
    return Night(
        run_id=start.run_id,
        machine_id=start.machine_id,
        utc=run.first.utc,
        day=day_of(run.first.utc),
        seconds=run.seconds,
        profile=verdict.profile,
        scope=verdict.scope,
        verdict=verdict.verdict,
        virtual=bool(inventory.cpu.virtualised),
        postponed=verdict.postponed is not None,
        apart=_exclusion_reason(run) if verdict.postponed is None else None,
        era=era_of_run(run.plan, start.provenance, inventory),
        series=tuple(figures),
        figures=tuple(figures.values()),
        reported=_reported_changes(run) if verdict.postponed is None else None,
    )


def _reported_changes(run: Run) -> ReportedChanges | None:
    baseline, known = run.plan.baseline, run.changes.known
    return ReportedChanges(baseline.run_id, known) if baseline and known is not None else None


def day_of(utc: str) -> float:
    """A journal's time in days since 1970-01-01 in UTC.

    Raises UnreadableRun if the text is not a time.
    """
    try:
        moment = datetime.fromisoformat(utc)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.timestamp() / _DAY_S
    except (ValueError, OverflowError) as error:
        raise UnreadableRun(
            english(
                "of_no_moment",
                "its first record is of no moment ({why}): restore the journal from a copy",
            ),
            why=str(error),
        ) from error


def _exclusion_reason(run: Run) -> ExclusionReason | None:
    if run.troubles:
        return "not-whole"
    ends = [entry.body for entry in run.entries if isinstance(entry.body, RunEnded)]
    if (
        any(isinstance(entry.body, RunClosed) for entry in run.entries)
        or not ends
        or not all(end.complete for end in ends)
    ):
        return "interrupted"
    if run.verdict.scope == "partial":
        return "partial"
    if foreign_process.uses(run.entries):
        return "in-use"
    # An image built here records its inputs; one named with --image has only an id.
    provenance = run.start.provenance
    named = "image_id" in provenance and "image_inputs" not in provenance
    return "own-image" if named else None


def _figure(judged: Judgement) -> NightMeasurement:
    due, drift = judged.due, judged.drift
    value, again = _proven(due, judged.value), _proven(due, judged.again)
    broke = due.limit is not None and any(
        due.limit.grade(one) == "fail" for one in (value, again) if one is not None
    )
    return NightMeasurement(
        value,
        again,
        outside=drift is not None and drift.outside,
        unsteady=drift is not None and drift.unsteady,
        failed=broke and not judged.waived,
    )


def _proven(due: Due, value: float | None) -> float | None:
    """A value that later nights may be held against: none that is no number or cannot be."""
    sound = value is not None and math.isfinite(value) and is_possible(due, value)
    return value if sound else None


def series_key(
    check: str, due: Due, identities: Mapping[Component, str], gpus: Sequence[Component]
) -> SeriesKey:
    """The series of a due measurement.

    `identities` are the inventory's (`matching.identities`), known before anything is
    measured.
    """
    return SeriesKey(
        check,
        due.measurement,
        due.component,
        due.unit,
        part_identity(due.component, identities, gpus),
    )


def part_identity(
    component: Component, identities: Mapping[Component, str], gpus: Sequence[Component]
) -> str | None:
    """The identity of a component: for a path both ends, for all GPUs together each of them.

    None if one of them is unknown. An identity that several parts share counts as unknown: DIMMs
    with one serial number, 00000000, would get each other's nights.
    """
    # in the order of the texts: the nights before were recorded under it
    ends = sorted(gpus, key=str) if component == GPUS else component.ends
    identity = unique_identities(identities)
    known = [identity[end] for end in ends if end in identity]
    join = "+" if component == GPUS else WAY
    return join.join(known) if known and len(known) == len(ends) else None
