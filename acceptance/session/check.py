"""The `check` fixture: takes readings, journals and judges them.

Readings that were there before the run and are not there after it.

Such a reading was not measured: that nothing grew, or that all is as it was, is not known. It is an
error of the check, and no skip, which a waiver might cover.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from acceptance.core.evidence import AnyBody, Table
from acceptance.core.finding import Finding, Waiver
from acceptance.core.message import Gap, Message, Text, Value, english, known
from acceptance.core.parts import GPUS, Component
from acceptance.core.plan import Due, PlannedCheck
from acceptance.core.record import Measured, Skipped
from acceptance.core.verdict import by_figure, judge, peers
from acceptance.loads.protocol import LoadTable
from acceptance.session.loads import Noting, Results, first_wrong
from acceptance.wording import words
from acceptance.wording.errors import WordedError

if TYPE_CHECKING:
    from acceptance.session.tools import Outputs
    from acceptance.tools.reading import ToolOutput


# pytest types the attribute of a function, which no class can inherit from.
class CheckSkipped(pytest.skip.Exception):  # type: ignore[name-defined,misc]
    """A check that is not possible here; the reason of its gap includes the cure.

    One of what failed to answer ends in an error.
    """

    def __init__(self, gap: Gap) -> None:
        super().__init__(words.text(gap.reason))
        self.gap = gap


class ErrorInLines(Exception):
    """An error of several causes, each on a line of its own."""

    def __init__(self, message: Sequence[Text]) -> None:
        super().__init__()
        self.message = tuple(message)

    def __str__(self) -> str:
        return words.text(self.message)


class Judged(ErrorInLines):
    """What a check's own judgement raises; `codes` are those of its findings."""

    def __init__(self, findings: Sequence[Finding], unexpected: Sequence[Message] = ()) -> None:
        super().__init__((*map(words.as_message, findings), *unexpected))
        self.codes = tuple(sorted({one.code for one in findings}))


class Violation(Judged):
    """A measurement outside its limit.

    Only `Check.conclude` raises it, and only this exception is a *fail*.
    """


class Incomplete(Judged):
    """A due measurement was not taken, or one was taken that is not due.

    The check proves nothing of that component.
    """


@dataclass(slots=True)
class Figures:
    """One measurement as a check finds it: of each component a value and a note, or a gap."""

    values: dict[Component, float] = field(default_factory=dict)
    notes: dict[Component, Text | None] = field(default_factory=dict)
    gaps: dict[Component, Gap] = field(default_factory=dict)

    def add(self, component: Component, value: float, note: Text | None = None) -> None:
        """Keep a value, and what is said beside it."""
        self.values[component], self.notes[component] = value, note

    def count(self, component: Component, messages: Sequence[Message], *remarks: Message) -> None:
        """Keep the number of these messages, and what they say.

        `remarks` are said behind them, and not counted.
        """
        clauses = (*messages, *remarks)
        note = Message("clauses", {"why": clauses}) if clauses else None
        self.add(component, float(len(messages)), note)

    def skip(self, component: Component, why: Gap) -> None:
        """Keep why there is no value."""
        self.gaps[component] = why


class Check:
    """Journals the readings of *all* components of one check and judges them against the plan.

    It fails once, naming every fault. The set of components is the plan's, never the tool's.
    """

    def __init__(
        self, planned: PlannedCheck, waivers: Sequence[Waiver], write: Callable[[AnyBody], None]
    ) -> None:
        self._planned = planned
        self._waivers = waivers
        self._write = write
        self._measured: list[Measured] = []
        self._skips: list[Skipped] = []
        self._unexpected: list[Message] = []

    def due(self, measurement: str) -> tuple[Due, ...]:
        """The due components of one measurement; empty for an undeclared fact."""
        return tuple(due for due in self._planned.due if due.measurement == measurement)

    def components(self, measurement: str) -> frozenset[Component]:
        """The names of the due components of one measurement."""
        return frozenset(due.component for due in self.due(measurement))

    def __call__(
        self,
        measurement: str,
        readings: Mapping[Component, float],
        *,
        skipped: Mapping[Component, Gap] | None = None,
        serials: Mapping[Component, str | None] | None = None,
        notes: Mapping[Component, Text | None] | None = None,
        follows: str | None = None,
    ) -> None:
        """Journal one measurement of all components.

        `readings` are by component, in the measurement's unit. `skipped` gives, by
        component, why it could not be measured, and the cure; `follows` is the check that those
        skips build on. A fact that is not declared is ignored.
        """
        due = {one.component: one for one in self.due(measurement)}
        if not due:
            return
        for component, value in readings.items():
            if component not in due:
                about = {"measurement": measurement, "component": str(component)}
                self._unexpected.append(
                    Message(
                        english(
                            "component_not_due",
                            "{measurement} came for {component}, which is not due",
                        ),
                        about,
                    )
                )
                continue
            finite = math.isfinite(value)
            note = (notes or {}).get(component) or None
            if not finite:
                note = Message(
                    english("value_was", "[{note}; ]the value was {value}"),
                    known(value=f"{value}", note=note),
                )
            serial = (serials or {}).get(component)
            unit = due[component].unit
            self._measured.append(
                Measured(
                    self._planned.id,
                    measurement,
                    component,
                    unit,
                    value if finite else None,
                    serial,
                    note,
                )
            )
            self._write(self._measured[-1])
        for component, gap in (skipped or {}).items():
            if component in due and component not in readings:
                skip = Skipped(
                    self._planned.id, gap.reason, measurement, component, follows, gap.why
                )
                self._skips.append(skip)
                self._write(skip)

    def single(
        self,
        measurement: str,
        component: Component,
        value: float | None,
        why: Gap | None = None,
        note: Text | None = None,
    ) -> None:
        """Journal the value of a single component, or where it is None, why there is none."""
        values = {} if value is None else {component: float(value)}
        gaps = {} if why is None else {component: why}
        self(measurement, values, skipped=gaps, notes={component: note})

    def take(
        self,
        measurement: str,
        figures: Figures,
        *,
        skipped: Mapping[Component, Gap] | None = None,
        serials: Mapping[Component, str | None] | None = None,
        follows: str | None = None,
    ) -> None:
        """Journal what was found of each component; the rest is `skipped`."""
        gaps = {**(skipped or {}), **figures.gaps}
        self(
            measurement,
            figures.values,
            skipped=gaps,
            serials=serials,
            notes=figures.notes,
            follows=follows,
        )

    def ratio(
        self,
        measurement: str,
        *,
        skipped: Mapping[Component, Gap] | None = None,
        serials: Mapping[Component, str | None] | None = None,
        notes: Mapping[Component, Text | None] | None = None,
    ) -> None:
        """Journal a ratio between equal components, made of what was journalled before.

        `skipped`, `serials` and `notes` are as for other measurements. Raises ValueError for a
        measurement of which the plan does not say what it is made of.
        """
        readings = {}
        for due in self.due(measurement):
            if due.siblings is None:
                raise ValueError(f"{measurement} is no ratio between equal components")
            values = peers(self._planned, due, by_figure(self._measured))
            found = due.siblings.ratio(due.component, values)
            if found is not None:
                readings[due.component] = found
        self(measurement, readings, skipped=skipped, serials=serials, notes=notes)

    def all(
        self,
        results: Results,
        *,
        but: Collection[str] = (),
        table: Callable[[Component, LoadTable], LoadTable] | None = None,
        note: Noting = first_wrong,
        serials: Mapping[Component, str | None] | None = None,
        raise_failed: bool = True,
        skipped: Mapping[Component, Gap] | None = None,
    ) -> None:
        """Journal every reading, count, ratio and table of a load that this check has due.

        `but` are measurements that the check journals itself. `table` gives a table as it is
        journalled, `note` what is said of the wrong results of a count. `skipped` are components of
        which the rest is not due, and why: that the load did not run whole there is known. Raises
        LoadFailed at the end where it did not anywhere else, unless the check itself does with
        `raise_failed=False`.
        """
        due = {one.measurement: one for one in self._planned.due if one.measurement not in but}
        for name, one in due.items():
            if one.siblings is None and one.unit == "count":
                counts, notes = results.counts(name, self.components(name), note)
                self(name, counts, notes=notes, serials=serials, skipped=skipped)
            elif one.siblings is None:
                self(name, results.values(name), serials=serials, skipped=skipped)
        for name, one in due.items():
            if one.siblings is not None:
                self.ratio(name, serials=serials, skipped=skipped)
        for component, given in results.tables():
            made = given if table is None else table(component, given)
            self._write(Table(self._planned.id, component, made.name, made.columns, made.rows))
        if raise_failed:
            results.raise_failed(known=skipped or ())

    def faults(
        self,
        measurement: str,
        outputs: Outputs,
        *,
        count: Callable[[ToolOutput], float] = lambda output: float(output.outcome == "fail"),
        quiet: bool = False,
    ) -> None:
        """Journal how many faults a tool proves of each due place, with what it says as the note.

        With `quiet` a place without a fault has no note.
        """
        due = self.components(measurement)
        found = {place: one for place, one in outputs.outputs.items() if place in due}
        counts = {place: count(one) for place, one in found.items()}
        told = {place: one.reason for place, one in found.items() if counts[place] or not quiet}
        self(measurement, counts, notes=told, skipped=outputs.skipped)

    def figures(
        self,
        measurement: str,
        outputs: Outputs,
        reading: str,
        unread: Gap,
        *,
        notes: Mapping[Component, Text | None] | None = None,
    ) -> None:
        """Journal a tool's reading as a measurement of the components that are due.

        Of a place of which the tool proved a fault it is `unread`: of all, where one program saw
        all GPUs.
        """
        due = self.components(measurement)
        values = {name: one for name, one in outputs.values(reading).items() if name in due}
        lost = due if GPUS in outputs.faulty else outputs.faulty
        skipped = {**outputs.skipped, **dict.fromkeys(lost, unread)}
        self(measurement, values, skipped=skipped, notes=notes)

    def conclude(self) -> None:
        """Judge everything that was journalled.

        Raises Violation for values outside their limits and not waived, else Incomplete for due
        measurements that were not taken.
        """
        judged = judge(self._planned, self._measured, self._skips, self._waivers)
        findings = [finding for one in judged for finding in one.findings]
        faults = [finding for finding in findings if finding.kind == "fail"]
        if faults:
            raise Violation(faults)
        gaps = [finding for finding in findings if finding.kind == "error"]
        if gaps or self._unexpected:
            raise Incomplete(gaps, self._unexpected)


def loss(component: Component, what: Value, why: Value | None = None) -> Message:
    """What is said of a reading of a component that is there no more."""
    lost = Message(
        english(
            "reading_lost",
            "no longer readable after the run: {what}[ ({why})]; nothing shows whether it is as "
            "it was: look into the kernel log (`sudo dmesg`), and run again",
        ),
        known(what=what, why=why),
    )
    return Message("component_says", {"component": str(component), "why": lost})


def refuse(losses: Iterable[Message]) -> None:
    """Raise WordedError if there are any; what was journalled before stays evidence."""
    if found := tuple(losses):
        raise WordedError("clauses", why=found)
