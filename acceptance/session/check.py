"""The `check` fixture: readings in, journal and judgement out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from acceptance.core.judgement import judge_due
from acceptance.core.plan import Due, PlannedCheck
from acceptance.core.record import Body, Measured, Skipped
from acceptance.core.waiver import Waiver


class Violation(Exception):
    """A measurement outside its limit.

    Nothing but `Check.conclude` raises it, and it is the only exception that is a *fail*.
    """


class Incomplete(Exception):
    """A measurement that is due was not taken, or one was taken that is not due: the check
    proves nothing of that component.
    """


def same_text(text: str, found: str | None) -> bool:
    """Whether a found text is the declared one, blanks and case aside; what was not found is
    never the same.
    """
    return (
        found is not None
        and " ".join(found.split()).casefold() == " ".join(text.split()).casefold()
    )


class Check:
    """Takes the readings of *all* components of one check, holds them against the plan, and fails
    once, naming every fault.

    The set of components is the plan's, never what a tool says it found.
    """

    def __init__(
        self, planned: PlannedCheck, waivers: Sequence[Waiver], write: Callable[[Body], None]
    ) -> None:
        self._planned = planned
        self._waivers = waivers
        self._write = write
        self._measured: list[Measured] = []
        self._skips: list[Skipped] = []
        self._strays: list[str] = []

    def due(self, measurement: str) -> tuple[Due, ...]:
        """What is due of one measurement; empty for a fact that the machine
        file does not declare.
        """
        return tuple(due for due in self._planned.due if due.measurement == measurement)

    def plausible(self, measurement: str, readings: Mapping[str, float]) -> dict[str, float]:
        """Those of a measurement's readings that do not lie above what is possible: no other
        part is held against one that does.
        """
        most = {
            one.component: one.ceiling.high
            for one in self.due(measurement)
            if one.ceiling is not None
        }
        return {
            name: value
            for name, value in readings.items()
            if not value > (most.get(name) or math.inf)
        }

    def __call__(
        self,
        measurement: str,
        readings: Mapping[str, float],
        *,
        skipped: Mapping[str, str] | None = None,
        serials: Mapping[str, str | None] | None = None,
        notes: Mapping[str, str | None] | None = None,
    ) -> None:
        """Journal one measurement of every component: `readings` by component, in the unit that the
        `measures` mark names.

        `skipped` holds, by component, why it could not be measured and the cure. A fact that
        nothing declared is passed over.
        """
        due = {one.component: one for one in self.due(measurement)}
        if not due:
            return
        for component, value in readings.items():
            if component not in due:
                self._strays.append(f"{measurement} came for {component}, which is not due")
                continue
            finite = math.isfinite(value)
            parts = [(notes or {}).get(component), None if finite else f"the value was {value}"]
            note = "; ".join(part for part in parts if part) or None
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
        for component, reason in (skipped or {}).items():
            if component in due and component not in readings:
                self._skips.append(Skipped(self._planned.id, reason, measurement, component))
                self._write(self._skips[-1])

    def conclude(self) -> None:
        """Judge everything that was journalled.

        Raises Violation for values outside their limits and not waived, else Incomplete for what is
        due and was not taken.
        """
        judged = [
            judge_due(due, self._planned.id, self._measured, self._skips, self._waivers)
            for due in self._planned.due
        ]
        findings = [finding for one in judged for finding in one.findings]
        faults = [finding.text for finding in findings if finding.kind == "fail"]
        if faults:
            raise Violation("\n".join(faults))
        gaps = [finding.text for finding in findings if finding.kind == "error"] + self._strays
        if gaps:
            raise Incomplete("\n".join(gaps))
