"""Connects a run with the machine's history: references before it, and the result after it.

The references are in the plan, so that a run can be judged again from its journal alone. An
unreadable history or baseline does not end a run. Where the machine has a baseline, the run then
cannot pass, because the changes since are unknown.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from acceptance import resources
from acceptance.baseline import changes as baseline_changes
from acceptance.baseline import facts
from acceptance.core.machine_facts import KnownChange, MachineFacts
from acceptance.core.message import Message, Text, english
from acceptance.core.parts import Gpu
from acceptance.core.plan import Due, LimitSet, Plan
from acceptance.core.record import Note, Postponed
from acceptance.core.verdict import covers
from acceptance.history import baseline_file, durations, night, nights, noise, queries
from acceptance.history.baseline import (
    Certificate,
)
from acceptance.history.durations import RunTimes
from acceptance.history.errors import HistoryError
from acceptance.history.night import Era, Night, PartMeasurement
from acceptance.history.noise import DriftBook
from acceptance.history.reference_builder import NightValue, build_reference
from acceptance.journal import clock
from acceptance.journal.run import Run
from acceptance.run.planning import PreparedRun
from acceptance.station.base import Station

SECONDS_PER_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class RecalledPlan:
    """A plan with its references from history, notes about them, and the skipped runs in a row.

    `put_off` is the number of skipped runs, or the error where the history cannot be read.
    """

    plan: Plan
    notes: tuple[Note, ...]
    put_off: int | HistoryError

    def postponement(self, users: tuple[Text, ...], most: int) -> Postponed:
        """The record that this run is skipped too.

        Raises HistoryError where the number of skipped runs in a row is unknown: it may exceed the
        maximum.
        """
        if isinstance(self.put_off, HistoryError):
            why = self.put_off.message
            raise HistoryError(
                english(
                    "skipped_nights_unknown",
                    "{why} (the machine is in use, so nothing was run, and nights skipped in a "
                    "row cannot be counted)",
                ),
                why=why,
            ) from self.put_off
        return Postponed(users, self.put_off + 1, most)

    def postpone_later(self, most: int) -> Callable[[tuple[Text, ...]], Postponed] | None:
        """A function that makes the record of a run skipped midway because of other users.

        None where the skipped nights cannot be counted. The run then goes on, and its checks report
        the users.
        """
        return (
            None
            if isinstance(self.put_off, HistoryError)
            else partial(self.postponement, most=most)
        )


class HistoryRecall:
    """The history of one machine in one output folder.

    A run sees only errors in rigproof's own files; other trouble becomes a note or a gap.
    """

    def __init__(self, out: Path, root: Path = Path("/")) -> None:
        self._out = out
        self._machine_id = clock.machine_id(root)
        self._reported: tuple[Message, ...] = ()  # notices from before the run

    def recall(self, prepared: PreparedRun, station: Station, today: float) -> RecalledPlan:
        """The plan of a run with its past; `today` is in days since 1970-01-01 in UTC.

        Raises NoiseFileError, DriftFileError or ChangeFileError where one of rigproof's own files
        is invalid.
        """
        plan, notes, gaps = prepared.plan, [], []
        accepted: Certificate | None = None
        try:
            baseline = baseline_file.read(self._out, self._machine_id)
            accepted = baseline.certificate if baseline else None
        except HistoryError as error:
            gaps.append(
                Message(
                    english(
                        "changes_unknown",
                        "changes since the machine was accepted are not known: {why}",
                    ),
                    {"why": error.message},
                )
            )
        looks: Mapping[PartMeasurement, tuple[NightValue, ...]] = {}
        known: tuple[KnownChange, ...] = ()
        times: tuple[RunTimes, ...] = ()
        now = _era(prepared, station)
        book = noise.read_rules(
            resources.locate("drift.toml"),
            noise.read(resources.locate("noise.toml")).with_site(plan.site),
        )
        rules = book.sheet.nights
        put_off: int | HistoryError
        try:
            opened = nights.open_history(self._out, self._machine_id)
            recorded, self._reported = opened.nights, opened.notices
            notes += [Note(nights.in_one(self._reported))] if self._reported else []
            after = 0
            if accepted is not None:
                after, by_clock = _accepted_at(recorded, accepted.machine)
                # no night would count until then
                if by_clock and night.day_of(accepted.machine.utc) > today:
                    why = Message(
                        english(
                            "yet_to_come",
                            "{run}, which is yet to come: set the clock right, or accept a run "
                            "that passed with `rigproof baseline accept RUN --replace`",
                        ),
                        {"run": by_clock},
                    )
                    gaps.append(
                        Message(
                            english(
                                "nightly_changes_unknown",
                                "changes from night to night are not known: {why}",
                            ),
                            {"why": why},
                        )
                    )
                elif by_clock and recorded:
                    notes.append(
                        Note(
                            Message(
                                english(
                                    "nights_by_clock",
                                    "{run}: which nights came after it is known only by their "
                                    "clock",
                                ),
                                {"run": by_clock},
                            )
                        )
                    )
                known = queries.known_changes(recorded, accepted.machine.run_id)
            values = partial(
                queries.night_values, recorded, after=after, first=rules.recent, last=rules.known
            )
            own, put_off = values(now), queries.skipped_in_a_row(recorded)
            if not opened.complete:  # a night that cannot be read may have been skipped too
                put_off = HistoryError("note", text=self._reported)
            looks = {**own, **values(None, only=_counters(plan, book))}
            times = durations.recent(recorded, self._out, plan.profile)
            # Fewer nights, and no baseline, are nothing that anything is held against.
            least = 1 if accepted is not None else rules.least
            notes += _another_era(recorded, now, bool(own), least)
        except HistoryError as error:
            put_off = error
            if accepted is not None:
                gaps.append(Message("nightly_changes_unknown", {"why": error.message}))
            else:
                notes.append(
                    Note(
                        Message(
                            english("not_remembered", "this run is not remembered: {why}"),
                            {"why": error.message},
                        )
                    )
                )
        notes += _other_limits(prepared.limits, accepted, times)
        made = _with_past(plan, prepared, looks, accepted, now, book, today)
        made = durations.with_usual_times(made, times, station.name)
        if accepted is not None:
            changes = baseline_changes.read(resources.locate("changes.toml"))
            made = replace(made, baseline=replace(accepted.machine, book=changes, known=known))
        if plan.is_whole:  # a run on a part of the machine is no acceptance anyway
            made = replace(made, gaps=(*made.gaps, *gaps))
        return RecalledPlan(made, (*notes, *([] if plan.is_whole else map(Note, gaps))), put_off)

    def with_usual_times(self, plan: Plan, station: str) -> tuple[Plan, tuple[Message, ...]]:
        """A plan with the usual times of its checks at a station, by its name, and notices.

        Nothing is written. The times stay as calculated where the history cannot be read.
        """
        try:
            recorded, unread = nights.read(self._out, self._machine_id)
        except HistoryError as error:
            return plan, (error.message,)
        times = durations.recent(recorded, self._out, plan.profile)
        return durations.with_usual_times(plan, times, station), nights.unread_notices(unread)

    def keep(self, run: Run) -> Message | None:
        """Add this run, and every other closed run that the history lacks.

        Returns what `recall` has not reported yet, if there is anything.
        """
        try:
            notices = nights.open_history(self._out, self._machine_id, run).notices
        except HistoryError as error:
            return Message(
                english(
                    "not_in_history_yet",
                    "the run is not in the history yet: {why}: the next run adds it",
                ),
                {"why": error.message},
            )
        new = tuple(one for one in notices if one not in self._reported)
        return nights.in_one(new) if new else None


def _era(prepared: PreparedRun, station: Station) -> Era:
    provenance = {"station": station.name, **station.provenance}
    return night.era_of_run(prepared.plan, provenance, prepared.inventory)


def _accepted_at(recorded: Sequence[Night], birth: MachineFacts) -> tuple[int, Message | None]:
    """The number of nights up to the one on which the machine was accepted.

    Where the history lacks that run, up to the last one until its day by the clock, and a message
    that says so.
    """
    known = queries.count_until(recorded, birth.run_id)
    if known is not None:
        return known, None
    lacking = Message(
        english(
            "baseline_run_lacking",
            "the history does not hold the run of the baseline ({run}), which is of {utc}",
        ),
        {"run": birth.run_id, "utc": birth.utc},
    )
    return queries.last_until(recorded, night.day_of(birth.utc)), lacking


def _another_era(recorded: Sequence[Night], now: Era, known: bool, least: int) -> list[Note]:
    """A note on what has changed since the last night, where this era has no nights yet.

    Nothing is said where the era before has fewer than `least` nights.
    """
    eras = [one.era for one in recorded if one.comparable]
    if known or not eras or eras[-1] == now or eras.count(eras[-1]) < least:
        return []
    return [
        Note(
            Message(
                english(
                    "era_begins",
                    "values are not compared with earlier nights, because {changes}: all but "
                    "counters start again with this run",
                ),
                {"changes": night.describe_changes(eras[-1], now)},
            )
        )
    ]


def _other_limits(
    now: LimitSet | None, accepted: Certificate | None, runs: Sequence[RunTimes]
) -> Iterator[Note]:
    """Notes that the baseline, and the newest of the earlier runs, were held to other limits.

    Their values are compared all the same: limits change no measurement. A run of an older rigproof
    says nothing of its limits.
    """
    if now is None:
        return
    after = f"{now.version} ({now.digest[:12]})"
    known = accepted.provenance if accepted is not None else {}
    if accepted is not None and known.get("limits_digest", now.digest) != now.digest:
        before = f"{known.get('limits', '')} ({known['limits_digest'][:12]})"
        values = {"run": accepted.machine.run_id, "before": before, "after": after}
        yield Note(
            Message(
                english(
                    "limits_since_baseline",
                    "the limits are {after}; the baseline ({run}) was held to {before}: its "
                    "values are compared all the same, because limits change no measurement",
                ),
                values,
            )
        )
    last = runs[0].limits if runs else None
    if last is not None and last.digest != now.digest:
        before = f"{last.version} ({last.digest[:12]})"
        yield Note(
            Message(
                english(
                    "limits_since_last_run",
                    "the limits are {after}; the last run was held to {before}: its values are "
                    "compared all the same, because limits change no measurement",
                ),
                {"before": before, "after": after},
            )
        )


def _counters(plan: Plan, book: DriftBook) -> frozenset[str]:
    """The counters that a plan reads.

    A counter is kept by its part, so a new image or driver does not end its past.
    """
    return frozenset(
        due.measurement
        for check in plan.checks
        for due in check.due
        if book.counts(due.measurement)
    )


class _Born:
    """The measurements of the baseline, by the part that they belong to.

    A part that moved to another slot keeps its own.
    """

    def __init__(self, accepted: Certificate | None) -> None:
        self.day = night.day_of(accepted.machine.utc) if accepted else None
        self.era = Era(accepted.era) if accepted else None
        self._values: dict[PartMeasurement, float] = {}
        if accepted is not None:
            birth = accepted.machine
            gpus = [part for part in birth.parts if isinstance(part, Gpu)]
            for figure in accepted.figures:
                part = night.part_identity(figure.component, birth.identities, gpus) or str(
                    figure.component
                )
                self._values[
                    PartMeasurement(figure.check, figure.measurement, figure.unit, part)
                ] = figure.value

    def value(self, part: PartMeasurement) -> float | None:
        """The baseline's value of a part; None where it was not there, or not measured."""
        return self._values.get(part)


def _with_past(
    plan: Plan,
    prepared: PreparedRun,
    looks: Mapping[PartMeasurement, tuple[NightValue, ...]],
    accepted: Certificate | None,
    now: Era,
    book: DriftBook,
    today: float,
) -> Plan:
    identities = facts.identities(prepared.inventory)
    virtual, born = bool(prepared.inventory.cpu.virtualised), _Born(accepted)

    def past(check: str, due: Due) -> Due:
        rule = book.rule(due.measurement, due.unit, due.limit, virtual=virtual)
        if rule is None:
            return due
        if any(one.measurement is not None and covers(one, check, due) for one in plan.waivers):
            # A waived limit fails nothing, so it cannot replace the bounds from the
            # nights.
            rule = dataclasses.replace(rule, limit=None)
        part = night.series_key(check, due, identities, plan.gpus).part
        found = build_reference(
            looks.get(part, ()),
            born.value(part),
            rule=rule,
            today=today,
            baseline_day=born.day,
            rebased=born.era is not None and born.era.ground != now.ground,
        )
        return replace(
            due.against(found) if found else due,
            worse=rule.worse if due.limit is None else None,
        )

    return replace(
        plan,
        checks=tuple(
            replace(check, due=tuple(past(check.id, due) for due in check.due))
            for check in plan.checks
        ),
    )
