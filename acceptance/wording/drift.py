"""The numbers of a finding of drift, as the values of its wording."""

from __future__ import annotations

import datetime
import math
from typing import assert_never

from acceptance.core.message import (
    Message,
    Quantity,
    Range,
    Term,
    Value,
    Values,
    english,
    known,
    plural,
)
from acceptance.core.past import Bounds, DriftFinding, FirstNights, Past, Reference

_EPOCH = datetime.date(1970, 1, 1).toordinal()


def values(found: DriftFinding) -> Values:
    """The values of a finding's wording."""
    past, unit = found.past, found.unit
    if found.grown is not None and past.counter is not None:
        counter = past.counter
        return known(
            measured=Quantity(found.value, unit),
            grown=Quantity(found.grown, unit),
            days=Message(plural("days", "{n} day", "{n} days"), {"n": round(counter.days, 1)}),
            stood=Quantity(counter.stood, unit),
            allowed=Quantity(counter.allowed, unit),
            most=Quantity(counter.most, unit) if counter.most is not None else None,
            why=_reason(found),
            basis=basis(past, unit),
        )
    if found.what == "noise" and past.grown is not None:
        return {
            "nights": nights(past.grown.nights),
            "now": Quantity(past.grown.now, unit),
            "before": Quantity(past.grown.before, unit),
            "basis": basis(past, unit),
        }
    if not found.beyond:
        return {}
    return known(
        measured=Quantity(found.value, unit),
        again=None if found.again is None else Quantity(found.again, unit),
        how=tuple(_crossing(found, one) for one in found.beyond),
        why=_reason(found),
        basis=basis(past, unit),
    )


def basis(past: Past, unit: str) -> Value:
    """The reference, for its reader."""
    if past.counter is not None:
        return Term(past.counter.basis)
    parts = []
    if past.level is not None:
        one = past.level
        usual = known(
            nights=nights(one.nights),
            value=Quantity(one.middle, unit),
            deviation=Quantity(one.deviation, unit) if one.deviation else None,
            factor=one.factor,
        )
        parts.append(
            Message(
                english(
                    "median_of",
                    "median of {nights} {value}[, one deviation {deviation}, {factor} of it "
                    "allowed]",
                ),
                usual,
            )
        )
    first = past.first or past.few
    if first is not None:
        born: Values = {"which": first_nights(first), "value": Quantity(first.middle, unit)}
        parts.append(Message(english("value_of", "{which} {value}"), born))
    if past.rebased:
        parts.append(
            Message(
                english(
                    "rebased",
                    "re-based: the baseline was taken with another image, station or driver",
                )
            )
        )
    return tuple(parts)


def date(day: float) -> str:
    """The date of a day counted from 1970-01-01."""
    return datetime.date.fromordinal(_EPOCH + math.floor(day)).isoformat()


def first_nights(first: FirstNights) -> Message:
    """The first nights, for their reader."""
    day = date(first.day)
    if not first.baseline:
        return Message(
            english("first_nights", "first {nights} from {date} on"),
            {"nights": nights(first.nights), "date": day},
        )
    if first.nights > 1:
        return Message(
            english("baseline_and_nights", "baseline of {date} and {nights} after it"),
            {"date": day, "nights": nights(first.nights - 1)},
        )
    return Message(english("baseline_of", "baseline of {date}"), {"date": day})


def nights(count: int) -> Message:
    """A number of nights."""
    return Message("nights", {"n": count})


def _reason(found: DriftFinding) -> Message | None:
    if found.why in ("strayed", "strayed_again"):
        past = found.past
        return Message(found.why, {"nights": nights(past.off + 1), "of": past.off_of})
    return None if found.why is None else Message(found.why)


def _crossing(found: DriftFinding, part: Reference) -> Message:
    """How a value exceeds the bounds of a part of its past."""
    past, unit = found.past, found.unit
    match part:
        case "level":
            assert past.level is not None
            level = past.level
            middle = Quantity(level.middle, unit)
            before = Message(
                english("median_before", "the median of {nights} before, {value}"),
                {"nights": nights(level.nights), "value": middle},
            )
            return _deviation(found, level.middle, before, level.bounds)
        case "slope":
            assert past.slope is not None
            slope = past.slope
            moved: Values = {
                "before": Quantity(slope.first, unit),
                "now": Quantity(slope.last, unit),
                "days": round(slope.days),
                "nights": nights(slope.nights),
                "bound": Range(unit, slope.bounds.low, slope.bounds.high),
            }
            return Message(
                english(
                    "level_moved",
                    "its level went from {before} to {now} within {days} days ({nights}), bound "
                    "{bound}",
                ),
                moved,
            )
        case "first" | "few":
            first = past.first if part == "first" else past.few
            assert first is not None
            middle = Quantity(first.middle, unit)
            before = Message(
                english("first_value", "the {which}, {value}"),
                {"which": first_nights(first), "value": middle},
            )
            return _deviation(found, first.middle, before, first.bounds)
        case _:
            assert_never(part)


def _deviation(found: DriftFinding, middle: float, before: Message, bounds: Bounds) -> Message:
    """The distance of a value from its former level."""
    unit, far = found.unit, abs(found.value - middle)
    share = middle and unit not in ("count", "degC", "s")
    much = Quantity(round(100 * far / abs(middle), 1), "%") if share else Quantity(far, unit)
    return Message(
        english("below", "{much} below {before}, bound {bound}")
        if found.value < middle
        else english("above", "{much} above {before}, bound {bound}"),
        {"much": much, "before": before, "bound": Range(unit, bounds.low, bounds.high)},
    )
