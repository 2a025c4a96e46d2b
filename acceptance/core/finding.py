"""A finding, one thing that the reader of a run must know, and the criteria that make one.

A criterion is what a value is held against; the plan carries a tagged union of them. Each judges a
value, and gives the basis with what it finds. A waiver is a known shortfall that the machine file
accepts, with its bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import Literal, NamedTuple

import msgspec

from acceptance.core.limit import Limit, number
from acceptance.core.message import (
    Message,
    Quantity,
    Range,
    Text,
    Values,
    english,
    known,
    translatable,
)
from acceptance.core.parts import Component
from acceptance.core.past import DriftFinding, Past
from acceptance.core.strict import Strict
from acceptance.core.strict import Text as FilledText

FindingKind = Literal["fail", "error", "skip", "warn", "waived"]
# Findings of drift have this event kind, such as `drift.step`.
DRIFT = "drift"
RUN = "run"  # the check of what concerns the whole run


class Finding(msgspec.Struct, frozen=True):
    """One thing that the reader must know: a code with values, as a `Message` has them.

    `kind` decides the effect on the outcome; warn and waived have none. The wording of `code` may
    name `measurement` and `component` too; the value `measured` is what was measured. `note` is
    what was observed, where that is too long for the line. For an event, `event` is its kind and
    code (`xid.79`, `oom`), which selects its causes, `action` is what to do about it, and `quote`
    the kernel's own line. A finding of drift has `drift` in place of values.

    Of several findings of one fault the first counts, and names the checks of the others in
    `also_in`; each of these has its check (or "run") as `duplicate_of`.
    """

    kind: FindingKind
    check: str
    code: str
    values: Values = {}
    measurement: str | None = None
    component: Component | None = None
    action: tuple[str, ...] = ()
    quote: str | None = None
    note: Text | None = None
    event: str | None = None
    drift: DriftFinding | None = None
    also_in: tuple[str, ...] = ()
    duplicate_of: str | None = None
    # an error only because the value is missing: a better reason replaces it
    unmeasured: bool = False

    def __hash__(self) -> int:
        return hash((self.kind, self.check, self.code, self.measurement, self.component))


class Waiver(Strict, frozen=True):
    """`[[waiver]]`: a known shortfall with its bound.

    It names a measurement and the worst value accepted, or a check that may be skipped. `component`
    may be a shell pattern (`disk:*`). `worst` is in the unit of the measurement's limit.
    """

    reason: FilledText
    measurement: FilledText | None = None
    skip: FilledText | None = None
    component: FilledText | None = None
    worst: float | None = None

    def __str__(self) -> str:
        what = self.measurement or self.skip or ""
        return f"{what} on {self.component}" if self.component else what


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
            return about.finding(
                "warn",
                english(
                    "outside_usual",
                    "{measurement} on {component}: measured {measured}[ ({note})], limit {limit}; "
                    "basis: {basis} (within the limit, outside what is usual)",
                ),
                values,
                note,
            )
        code = english(
            "outside_limit",
            "{measurement} on {component}: measured {measured}[ ({note})], limit {limit}; basis: "
            "{basis}",
        )
        for waiver in about.excuses:
            assert waiver.worst is not None  # as `excuses` promises
            bound = Quantity(waiver.worst, about.unit)
            below = limit.low is not None and value < limit.low
            if value >= waiver.worst if below else value <= waiver.worst:
                values |= {"reason": waiver.reason, "bound": bound}
                return about.finding(
                    "waived",
                    english(
                        "outside_limit_waived",
                        "{measurement} on {component}: measured {measured}[ ({note})], limit "
                        "{limit}; basis: {basis}; waived: {reason} (worst accepted {bound})",
                    ),
                    values,
                    note,
                )
            code = english(
                "worse_than_waived",
                "{measurement} on {component}: measured {measured}[ ({note})], limit {limit}; "
                "basis: {basis}; worse than the waiver accepts ({bound})",
            )
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
        return about.finding(
            "error",
            english(
                "implausible",
                "{measurement} on {component}: measured {measured}[, and no more than {possible} "
                "is possible][, and no less than {least} is possible]: it proves nothing, measure "
                "it again with another tool[; basis: {basis}]",
            ),
            values,
        )


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
            return about.finding(
                "error",
                english(
                    "ratio_of_impossible",
                    "{measurement} on {component} is not judged: a value of {of} that it is made "
                    "of cannot be, which its own finding says",
                ),
                {"of": self.of},
            )
        gives = (
            Message(english("no_ratio", "no ratio"))
            if found is None
            else Quantity(found, about.unit, exact=True)
        )
        recorded = Quantity(value, about.unit, exact=True)
        told: Values = {"recorded": recorded, "of": self.of, "gives": gives}
        return about.finding(
            "error",
            english(
                "not_the_ratio",
                "{measurement} on {component}: {recorded} was recorded, and the values of {of} "
                "give {gives}: it proves nothing, run the test again",
            ),
            told,
        )


Criterion = Within | Plausible | Siblings | Past


def _quantity(value: float, limit: Limit) -> Quantity:
    """A value with its unit; in full where rounding would move it within the limit."""
    exact = limit.grade(float(number(value))) != limit.grade(value)
    return Quantity(value, limit.unit, exact)
