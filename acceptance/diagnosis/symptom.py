"""The kind of symptom of a finding: what is wrong with its value, and on which side. Pure.

A value above its ceiling has other causes than one below its floor, and one that vanished others
again: the kind selects the advice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from acceptance.core.advice import Symptom
from acceptance.core.finding import Finding
from acceptance.core.message import Message, Quantity, Range, Value
from acceptance.core.past import Bounds, DriftFinding

# Findings of a value that proves nothing, by code.
_PROVES_NOTHING: Mapping[str, Symptom] = MappingProxyType({
    "implausible": "impossible",
    "no_answer": "vanished",
    "not_measured": "vanished",
    "not_finite": "not finite",
    "not_finite_for_past": "not finite",
    "wrong_unit": "contradiction",
    "measured_again": "contradiction",
    "not_the_ratio": "contradiction",
})  # fmt: skip
# What a check says at its end where what it read before the run is not there after it.
_LOST = "reading_lost"
_OUTSIDE = frozenset({"outside_limit", "outside_usual", "worse_than_waived"})


def symptom(finding: Finding) -> Symptom | None:
    """The kind of symptom of a finding; None where it is of no value, or no side is known.

    A value below its limit, or below what is usual, is `low`, and one above it `high`.
    """
    if (unproven := unproven_value(finding)) is not None:
        return unproven
    if finding.drift is not None:
        return _of_drift(finding.drift)
    measured = finding.values.get("measured")
    if finding.code not in _OUTSIDE or not isinstance(measured, Quantity):
        return None
    for name in ("usual", "limit"):
        bounds = finding.values.get(name)
        if isinstance(bounds, Range) and (side := _side(measured.value, bounds)):
            return side
    # An older rigproof did not say what is usual: of a limit with one bound it is on that side.
    limit = finding.values.get("limit")
    if not isinstance(limit, Range) or (limit.low is None) == (limit.high is None):
        return None
    return "high" if limit.low is None else "low"


def unproven_value(finding: Finding) -> Symptom | None:
    """The kind of symptom of a value that proves nothing of the hardware; None for any other."""
    return (
        "vanished"
        if _LOST in set(_codes(finding.values.get("text")))
        else _PROVES_NOTHING.get(finding.code)
    )


def _codes(*told: Value | None) -> Iterator[str]:
    """The codes of messages, and of those within them."""
    for one in told:
        if isinstance(one, Message):
            yield one.code
            yield from _codes(*one.values.values())
        elif isinstance(one, tuple):
            yield from _codes(*one)


def _of_drift(found: DriftFinding) -> Symptom | None:
    """A counter only grows; noise that has grown has no side."""
    if found.grown is not None:
        return "high"
    past = found.past
    parts = {"level": past.level, "slope": past.slope, "first": past.first, "few": past.few}
    for name in found.beyond:
        part = parts[name]
        if part is not None and (side := _side(found.value, part.bounds)):
            return side
    return None


def _side(value: float, bounds: Bounds | Range) -> Symptom | None:
    if bounds.low is not None and value < bounds.low:
        return "low"
    return "high" if bounds.high is not None and value > bounds.high else None
