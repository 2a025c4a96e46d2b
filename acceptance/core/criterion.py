"""What a value is held against, as a tagged union that the plan carries.

Each criterion judges a value, and gives the basis with what it finds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import NamedTuple

import msgspec

from acceptance.core.finding import Finding, FindingKind
from acceptance.core.limit import Limit, number
from acceptance.core.message import Message, Quantity, Range, Text, Values, known, translatable
from acceptance.core.parts import Component
from acceptance.core.past import Past
from acceptance.core.waiver import Waiver


class About(NamedTuple):
    """What a value is of.

    `note` came with it; `excuses` are the waivers that name a worst value of it.
    """

    check: str
    measurement: str
    component: Component
    unit: str
    note: Text | None = None
    excuses: tuple[Waiver, ...] = ()

    def finding(
        self, kind: FindingKind, code: str, values: Values, note: Text | None = None
    ) -> Finding:
        """A finding about it."""
        return Finding(kind, self.check, code, values, self.measurement, self.component, note=note)


class _Criterion(msgspec.Struct, frozen=True, tag_field="criterion"):
    pass


class Within(_Criterion, frozen=True, tag="limit"):
    """An absolute limit; a waiver with a worst value may excuse a value outside."""

    limit: Limit

    def judge(self, about: About, value: float) -> Finding | None:
        """A finding where the value is outside the limit, or outside what is usual."""
        limit = self.limit
        grade = limit.grade(value)
        if grade == "pass":
            return None
        note = about.note or None
        values = known(
            measured=_quantity(value, limit),
            limit=Range(limit.unit, limit.low, limit.high),
            basis=translatable(limit.basis),
        )
        if grade == "warn":
            values["usual"] = Range(limit.unit, limit.warn_low, limit.warn_high)
            return about.finding("warn", "outside_usual", values, note)
        code = "outside_limit"
        for waiver in about.excuses:
            assert waiver.worst is not None  # as `excuses` promises
            bound = Quantity(waiver.worst, about.unit)
            below = limit.low is not None and value < limit.low
            if value >= waiver.worst if below else value <= waiver.worst:
                values |= {"reason": waiver.reason, "bound": bound}
                return about.finding("waived", "outside_limit_waived", values, note)
            code = "worse_than_waived"
            values["bound"] = bound
        return about.finding("fail", code, values, note)


class Plausible(_Criterion, frozen=True, tag="plausible"):
    """The most, or the least, that is physically possible: the bounds of `limit`.

    A value beyond one proves nothing, and no waiver excuses it.
    """

    limit: Limit

    def judge(self, about: About, value: float) -> Finding | None:
        """An error where the value is beyond what is possible."""
        limit = self.limit
        if limit.grade(value) != "fail":
            return None
        below = limit.low is not None and value < limit.low
        bound = (limit.low if below else limit.high) or 0.0
        values: Values = {
            "measured": _quantity(value, limit),
            "least" if below else "possible": Quantity(bound, about.unit),
            "basis": translatable(limit.basis),
        }
        return about.finding("error", "implausible", values)


# The values that a ratio is made of; None is one that cannot be.
Peers = Mapping[Component, float | None]


class Siblings(_Criterion, frozen=True, tag="siblings"):
    """The value is a ratio: the component's value of measurement `of` over its siblings' median.

    `among` names the equal components, itself included.
    """

    of: str
    among: tuple[Component, ...]

    def ratio(self, component: Component, values: Peers) -> float | None:
        """A component's value of `of` divided by the median of its siblings'.

        None where it has no value, no sibling has one, or their median is not above 0.
        """
        found = {name: value for name in self.among if (value := values.get(name)) is not None}
        own = found.pop(component, None)
        if own is None or not found or not (middle := median(found.values())) > 0:
            return None
        return own / middle

    def judge(self, about: About, value: float, values: Peers) -> Finding | None:
        """An error where the value is not the ratio that the `values` of `of` give."""
        found = self.ratio(about.component, values)
        # Another order of the same arithmetic may differ in the last digit.
        if found is not None and math.isclose(found, value, rel_tol=1e-9):
            return None
        if any(values.get(name, value) is None for name in self.among):
            return about.finding("error", "ratio_of_impossible", {"of": self.of})
        gives = Message("no_ratio") if found is None else Quantity(found, about.unit, exact=True)
        recorded = Quantity(value, about.unit, exact=True)
        told: Values = {"recorded": recorded, "of": self.of, "gives": gives}
        return about.finding("error", "not_the_ratio", told)


Criterion = Within | Plausible | Siblings | Past


def _quantity(value: float, limit: Limit) -> Quantity:
    """A value with its unit; in full where rounding would move it within the limit."""
    exact = limit.grade(float(number(value))) != limit.grade(value)
    return Quantity(value, limit.unit, exact)
