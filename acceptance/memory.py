"""What is remembered of this machine: brought into a plan before a run, and the run brought into it afterwards.

The plan carries all of it, so that a run can be judged again from its journal alone. A history or a baseline that cannot be read does not
end a run: where the machine has a baseline it keeps the run from passing, because nobody could say what has changed since.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from acceptance import clock, fixtures
from acceptance.history import certificate, era, night, reading, rebuild
from acceptance.history.baseline_errors import BaselineUnsound
from acceptance.history.era import Era
from acceptance.history.night import Line
from acceptance.history.store import Store
from acceptance.history.trouble import HistoryError
from acceptance.judge import change_rules, drift_rules, noise, shown
from acceptance.judge.birth import CHANGED_UNTOLD, NIGHTS_UNTOLD, Known
from acceptance.judge.certificate import Certificate
from acceptance.judge.drift_rules import DriftBook
from acceptance.judge.judgement import covers
from acceptance.judge.nights import Look
from acceptance.judge.plan import Due, Plan
from acceptance.judge.record import Note, Postponed
from acceptance.judge.remember import remember
from acceptance.place import Station
from acceptance.preparation import Prepared

SECONDS_PER_DAY = 86400.0
_CLOCK = "set the clock right, or accept a run that passed with `rigproof baseline accept RUN --replace`"


@dataclass(frozen=True, slots=True)
class Recalled:
    """A plan with what is remembered in it, what the reader must know of that, and how many runs in a row were put off.

    `put_off` says why it is not known, where the history cannot be read.
    """

    plan: Plan
    notes: tuple[Note, ...]
    put_off: int | HistoryError

    def postponed(self, users: tuple[str, ...], most: int) -> Postponed:
        """That this run is put off, too. Raises HistoryError where nobody can tell how many in a row that makes: it may be one too many."""
        if isinstance(self.put_off, HistoryError):
            told = f"{self.put_off} (the machine is in use, so nothing was run, and nights skipped in a row cannot be counted)"
            raise HistoryError(told) from self.put_off
        return Postponed(users, self.put_off + 1, most)


class Memory:
    """What is remembered in one output folder of one machine. Nothing here raises into a run but what names a fault of rigproof's own."""

    def __init__(self, out: Path, root: Path = Path("/")) -> None:
        self._out = out
        self._machine_id = clock.machine_id(root)
        self._said: tuple[str, ...] = ()  # before the run; once is enough

    def recall(self, prepared: Prepared, station: Station, today: float) -> Recalled:
        """The plan of a run with its past; `today` is in days since 1970-01-01 in UTC.

        Raises NoiseFileError, DriftFileError or ChangeFileError where a file of rigproof's own is wrong.
        """
        plan, notes, gaps = prepared.plan, [], []
        accepted: Certificate | None = None
        try:
            baseline = certificate.read(self._out, self._machine_id)
            accepted = baseline.certificate if baseline else None
        except BaselineUnsound as error:
            gaps.append(f"{CHANGED_UNTOLD}: {error}")
        if accepted is not None and night.day_of(accepted.birth.utc) > today:  # no night would count until then
            gaps.append(f"{NIGHTS_UNTOLD}: the baseline is of {accepted.birth.utc}, which is yet to come: {_CLOCK}")
        book = drift_rules.read(fixtures.locate("drift.toml"), noise.read(fixtures.locate("noise.toml")))
        looks: Mapping[Line, tuple[Look, ...]] = {}
        known: tuple[Known, ...] = ()
        now = _era(prepared, station)
        put_off: int | HistoryError
        try:
            store, said = rebuild.opened(self._out, self._machine_id)
            with store:
                self._said = said
                notes += [Note(sentence) for sentence in said]
                since = night.day_of(accepted.birth.utc) if accepted else None
                own, put_off = reading.looks(store, now.key, since), reading.skipped_in_a_row(store)
                looks = {**own, **reading.looks(store, None, since, only=_counters(plan, book))}
                known = reading.known(store, accepted.birth.run_id) if accepted else ()
                notes += _another_era(store, now, bool(own))
        except HistoryError as error:
            put_off = error
            if accepted is not None:
                gaps.append(f"{NIGHTS_UNTOLD}: {error}")
            else:
                notes.append(Note(f"this run is not remembered: {error}"))
        made = _with_past(plan, prepared, looks, accepted, now, book, today)
        if accepted is not None:
            rules = change_rules.read(fixtures.locate("changes.toml"))
            made = replace(made, birth=replace(accepted.birth, book=rules, known=known))
        if plan.scope == "full":  # a part of the machine is no acceptance of it anyway
            made = replace(made, gaps=(*made.gaps, *gaps))
        return Recalled(made, (*notes, *([] if plan.scope == "full" else map(Note, gaps))), put_off)

    def keep(self) -> tuple[str, ...]:
        """Add every closed run that is not remembered yet, this one among them; returns what `recall` has not told yet."""
        try:
            store, said = rebuild.opened(self._out, self._machine_id)
            store.close()
        except HistoryError as error:
            return (f"the run is not in the history yet: {error}: the next run adds it",)
        return tuple(sentence for sentence in said if sentence not in self._said)


def _era(prepared: Prepared, station: Station) -> Era:
    provenance = {"station": station.name, **station.provenance}
    return era.of(prepared.plan, provenance, msgspec.to_builtins(prepared.inventory))


def _another_era(store: Store, now: Era, known: bool) -> list[Note]:
    """What has changed since the last night that others are held against, where nights of this era are not there yet."""
    before = next((one for one in reversed(store.nights()) if one.apart is None and not one.postponed), None)
    if known or before is None or before.era == now.key:
        return []
    told = era.told(store.eras()[before.era], now)
    return [
        Note(
            f"figures are not held against the nights before, because {told}: all but counters begin anew with this run"
        )
    ]


def _counters(plan: Plan, book: DriftBook) -> frozenset[str]:
    """The counters that a plan reads: the part keeps them, so that no image or driver ends their past."""
    return frozenset(due.measurement for check in plan.checks for due in check.due if book.counts(due.measurement))


def _part(line: Line) -> tuple[str, str, str, str]:
    """What a line is of, wherever the part is: one that moved to another slot takes its nights along."""
    return line.check, line.measurement, line.unit, line.serial or line.component


def _by_part(looks: Mapping[Line, tuple[Look, ...]]) -> dict[tuple[str, str, str, str], tuple[Look, ...]]:
    """The looks of each part in the order of their nights, whatever its component was called on each."""
    found: dict[tuple[str, str, str, str], tuple[Look, ...]] = {}
    for line, told in looks.items():
        known = found.get(_part(line))
        found[_part(line)] = told if known is None else tuple(sorted((*known, *told), key=lambda look: look.day))
    return found


class _Born:
    """The values of the run that accepted the machine, by the part that they are of: one that moved to another slot keeps its own."""

    def __init__(self, accepted: Certificate | None) -> None:
        self.day = night.day_of(accepted.birth.utc) if accepted else None
        self.era = Era(accepted.era) if accepted else None
        self._values: dict[tuple[str, str, str, str], float] = {}
        if accepted is not None:
            birth = accepted.birth
            gpus = [part for part in birth.parts if part.startswith("gpu")]
            for figure in accepted.figures:
                part = night.part(figure.component, birth.identities, gpus) or figure.component
                self._values[figure.check, figure.measurement, figure.unit, part] = figure.value

    def value(self, line: Line) -> float | None:
        """The value of a line; None where the part was not there, or not measured."""
        return self._values.get(_part(line))


def _with_past(
    plan: Plan,
    prepared: Prepared,
    looks: Mapping[Line, tuple[Look, ...]],
    accepted: Certificate | None,
    now: Era,
    book: DriftBook,
    today: float,
) -> Plan:
    identities = shown.identities(msgspec.to_builtins(prepared.inventory))
    nights = _by_part(looks)
    virtual, born = bool(prepared.inventory.cpu.virtualised), _Born(accepted)

    def past(check: str, due: Due) -> Due:
        rule = book.rule(due.measurement, due.unit, due.limit, virtual=virtual)
        if rule is None:
            return due
        if any(one.measurement is not None and covers(one, check, due) for one in plan.waivers):
            rule = dataclasses.replace(rule, limit=None)  # a waived limit fails nothing that the nights would not allow
        line = night.line(check, due, identities, plan.gpus)
        found = remember(
            nights.get(_part(line), ()),
            born.value(line),
            rule=rule,
            today=today,
            born_day=born.day,
            rebased=born.era is not None and born.era.ground != now.ground,
        )
        return replace(due, past=found)

    return replace(
        plan,
        checks=tuple(replace(check, due=tuple(past(check.id, due) for due in check.due)) for check in plan.checks),
    )
