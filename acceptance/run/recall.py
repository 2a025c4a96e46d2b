"""Connect a run with the machine's history: add the reference to its plan, and add the run
afterwards.

The plan carries all of it, so that a run can be judged again from its journal alone. A history or a
baseline that cannot be read does not end a run: where the machine has a baseline it keeps the run
from passing, because nobody could say what has changed since.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from acceptance import resources
from acceptance.core.judgement import covers
from acceptance.core.plan import Due, Plan
from acceptance.core.record import Note, Postponed
from acceptance.history import (
    baseline_file,
    change_rules,
    drift_rules,
    era,
    night,
    noise,
    queries,
    rebuild,
)
from acceptance.history.baseline import Certificate
from acceptance.history.baseline_facts import (
    CHANGES_UNKNOWN,
    NIGHTLY_CHANGES_UNKNOWN,
    KnownChange,
    MachineFacts,
)
from acceptance.history.drift_rules import DriftBook
from acceptance.history.era import Era
from acceptance.history.errors import BaselineUnsound, HistoryError
from acceptance.history.night import PartMeasurement
from acceptance.history.reference_builder import NightValue, build_reference
from acceptance.history.store import Store
from acceptance.journal import clock
from acceptance.machine import recorded_inventory
from acceptance.run.planning import PreparedRun
from acceptance.station.base import Station

SECONDS_PER_DAY = 86400.0
_CLOCK = (
    "set the clock right, or accept a run that passed with `rigproof baseline accept RUN --replace`"
)


@dataclass(frozen=True, slots=True)
class RecalledPlan:
    """A plan with what is remembered in it, what the reader must know of that, and how many runs in
    a row were put off.

    `put_off` says why it is not known, where the history cannot be read.
    """

    plan: Plan
    notes: tuple[Note, ...]
    put_off: int | HistoryError

    def postponement(self, users: tuple[str, ...], most: int) -> Postponed:
        """That this run is put off, too.

        Raises HistoryError where nobody can tell how many in a row that makes: it may be one too
        many.
        """
        if isinstance(self.put_off, HistoryError):
            text = (
                f"{self.put_off} (the machine is in use, so nothing was run, and nights "
                "skipped "
                "in a row cannot be counted)"
            )
            raise HistoryError(text) from self.put_off
        return Postponed(users, self.put_off + 1, most)

    def postpone_later(self, most: int) -> Callable[[tuple[str, ...]], Postponed] | None:
        """How this run is put off where somebody comes in its middle; None where nights skipped in
        a row cannot be counted.

        It then goes on, and its checks tell of them.
        """
        return (
            None
            if isinstance(self.put_off, HistoryError)
            else partial(self.postponement, most=most)
        )


class HistoryRecall:
    """What is remembered in one output folder of one machine.

    Nothing here raises into a run but what names a fault of rigproof's own.
    """

    def __init__(self, out: Path, root: Path = Path("/")) -> None:
        self._out = out
        self._machine_id = clock.machine_id(root)
        self._said: tuple[str, ...] = ()  # before the run; once is enough

    def recall(self, prepared: PreparedRun, station: Station, today: float) -> RecalledPlan:
        """The plan of a run with its past; `today` is in days since 1970-01-01 in UTC.

        Raises NoiseFileError, DriftFileError or ChangeFileError where a file of rigproof's own is
        wrong.
        """
        plan, notes, gaps = prepared.plan, [], []
        accepted: Certificate | None = None
        try:
            baseline = baseline_file.read(self._out, self._machine_id)
            accepted = baseline.certificate if baseline else None
        except BaselineUnsound as error:
            gaps.append(f"{CHANGES_UNKNOWN}: {error}")
        looks: Mapping[PartMeasurement, tuple[NightValue, ...]] = {}
        known: tuple[KnownChange, ...] = ()
        now = _era(prepared, station)
        book = drift_rules.read(
            resources.locate("drift.toml"), noise.read(resources.locate("noise.toml"))
        )
        nights = book.sheet.nights
        put_off: int | HistoryError
        try:
            store, said = rebuild.open_history(self._out, self._machine_id)
            with store:
                self._said = said
                notes += [Note(sentence) for sentence in said]
                after = 0
                if accepted is not None:
                    after, by_clock = _accepted_at(store, accepted.birth)
                    if (
                        by_clock and night.day_of(accepted.birth.utc) > today
                    ):  # no night would count until then
                        gaps.append(
                            f"{NIGHTLY_CHANGES_UNKNOWN}: {by_clock}, which is yet to come: {_CLOCK}"
                        )
                    elif by_clock and store.count():
                        notes.append(
                            Note(f"{by_clock}: nights are told from those before it by their clock")
                        )
                    known = queries.known_changes(store, accepted.birth.run_id)
                values = partial(
                    queries.night_values, store, after=after, first=nights.recent, last=nights.known
                )
                own, put_off = values(now.key), queries.skipped_in_a_row(store)
                looks = {**own, **values(None, only=_counters(plan, book))}
                notes += _another_era(store, now, bool(own))
        except HistoryError as error:
            put_off = error
            if accepted is not None:
                gaps.append(f"{NIGHTLY_CHANGES_UNKNOWN}: {error}")
            else:
                notes.append(Note(f"this run is not remembered: {error}"))
        made = _with_past(plan, prepared, looks, accepted, now, book, today)
        if accepted is not None:
            rules = change_rules.read(resources.locate("changes.toml"))
            made = replace(made, birth=replace(accepted.birth, book=rules, known=known))
        if plan.scope == "full":  # a part of the machine is no acceptance of it anyway
            made = replace(made, gaps=(*made.gaps, *gaps))
        return RecalledPlan(
            made, (*notes, *([] if plan.scope == "full" else map(Note, gaps))), put_off
        )

    def keep(self) -> tuple[str, ...]:
        """Add every closed run that is not remembered yet, this one among them; returns what
        `recall` has not told yet.
        """
        try:
            store, said = rebuild.open_history(self._out, self._machine_id)
            store.close()
        except HistoryError as error:
            return (f"the run is not in the history yet: {error}: the next run adds it",)
        return tuple(sentence for sentence in said if sentence not in self._said)


def _era(prepared: PreparedRun, station: Station) -> Era:
    provenance = {"station": station.name, **station.provenance}
    return era.era_of_run(prepared.plan, provenance, msgspec.to_builtins(prepared.inventory))


def _accepted_at(store: Store, birth: MachineFacts) -> tuple[int, str | None]:
    """The number of the night on which the machine was accepted; where the history does not hold
    it, that of the last one by the clock.

    Then this is said as well, as the beginning of a sentence.
    """
    known = queries.number(store, birth.run_id)
    if known is not None:
        return known, None
    untold = (
        f"the history does not hold the run of the baseline ({birth.run_id}), which is of "
        f"{birth.utc}"
    )
    return queries.last_until(store, night.day_of(birth.utc)), untold


def _another_era(store: Store, now: Era, known: bool) -> list[Note]:
    """What has changed since the last night that others are held against, where nights of this
    era are not there yet.
    """
    before = next(
        (one for one in reversed(store.nights()) if one.apart is None and not one.postponed), None
    )
    if known or before is None or before.era == now.key:
        return []
    changes = era.describe_changes(store.eras()[before.era], now)
    return [
        Note(
            f"figures are not held against the nights before, because {changes}: all but "
            "counters begin anew with this run"
        )
    ]


def _counters(plan: Plan, book: DriftBook) -> frozenset[str]:
    """The counters that a plan reads: the part keeps them, so that no image or
    driver ends their past.
    """
    return frozenset(
        due.measurement
        for check in plan.checks
        for due in check.due
        if book.counts(due.measurement)
    )


class _Born:
    """The values of the run that accepted the machine, by the part that they are of: one that
    moved to another slot keeps its own.
    """

    def __init__(self, accepted: Certificate | None) -> None:
        self.day = night.day_of(accepted.birth.utc) if accepted else None
        self.era = Era(accepted.era) if accepted else None
        self._values: dict[PartMeasurement, float] = {}
        if accepted is not None:
            birth = accepted.birth
            gpus = [part for part in birth.parts if part.startswith("gpu")]
            for figure in accepted.figures:
                part = (
                    night.part_identity(figure.component, birth.identities, gpus)
                    or figure.component
                )
                self._values[
                    PartMeasurement(figure.check, figure.measurement, figure.unit, part)
                ] = figure.value

    def value(self, part: PartMeasurement) -> float | None:
        """The value of a part; None where it was not there, or not measured."""
        return self._values.get(part)


def _with_past(
    plan: Plan,
    prepared: PreparedRun,
    nights: Mapping[PartMeasurement, tuple[NightValue, ...]],
    accepted: Certificate | None,
    now: Era,
    book: DriftBook,
    today: float,
) -> Plan:
    identities = recorded_inventory.identities(msgspec.to_builtins(prepared.inventory))
    virtual, born = bool(prepared.inventory.cpu.virtualised), _Born(accepted)

    def past(check: str, due: Due) -> Due:
        rule = book.rule(due.measurement, due.unit, due.limit, virtual=virtual)
        if rule is None:
            return due
        if any(one.measurement is not None and covers(one, check, due) for one in plan.waivers):
            rule = dataclasses.replace(
                rule, limit=None
            )  # a waived limit fails nothing that the nights would not allow
        part = night.series_key(check, due, identities, plan.gpus).part
        found = build_reference(
            nights.get(part, ()),
            born.value(part),
            rule=rule,
            today=today,
            baseline_day=born.day,
            rebased=born.era is not None and born.era.ground != now.ground,
        )
        return replace(due, past=found, worse=rule.worse if due.limit is None else None)

    return replace(
        plan,
        checks=tuple(
            replace(check, due=tuple(past(check.id, due) for due in check.due))
            for check in plan.checks
        ),
    )
