"""The `check` fixture: takes readings, journals and judges them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from acceptance.core.judgement import judge_due
from acceptance.core.plan import Due, PlannedCheck
from acceptance.core.record import Body, Measured, Skipped
from acceptance.core.waiver import Waiver


class Violation(Exception):
    """A measurement outside its limit.

    Only `Check.conclude` raises it, and only this exception is a *fail*.
    """


class Incomplete(Exception):
    """A due measurement was not taken, or one was taken that is not due.

    The check proves nothing of that component.
    """


def same_text(text: str, found: str | None) -> bool:
    """Whether an observed text equals the declared one, ignoring blanks and case.

    A missing text never equals it.
    """
    return (
        found is not None
        and " ".join(found.split()).casefold() == " ".join(text.split()).casefold()
    )


class Check:
    """Journals the readings of *all* components of one check and judges them against the plan.

    It fails once, naming every fault. The set of components is the plan's, never the tool's.
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
        """The due components of one measurement; empty for an undeclared fact."""
        return tuple(due for due in self._planned.due if due.measurement == measurement)

    def components(self, measurement: str) -> frozenset[str]:
        """The names of the due components of one measurement."""
        return frozenset(due.component for due in self.due(measurement))

    def plausible(self, measurement: str, readings: Mapping[str, float]) -> dict[str, float]:
        """The readings of a measurement that are not above its ceiling.

        A value above the ceiling is excluded from comparisons with siblings.
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
        """Journal one measurement of all components.

        `readings` are by component, in the measurement's unit. `skipped` gives, by
        component, why it could not be measured, and the cure. A fact that is not declared is
        ignored.
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

        Raises Violation for values outside their limits and not waived, else Incomplete for due
        measurements that were not taken.
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
