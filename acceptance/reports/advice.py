"""Causes and cures as data: what a finding means, its usual causes, and the next command.

Those of a measurement stand in its family (`fixtures/measurements`). Those of a kind of event, and
of a kind of symptom that all families share, stand in `fixtures/causes.toml`, read strictly. Both
are English; a reader's language has each text in its catalogue (`Language.text`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from acceptance import resources
from acceptance.core.advice import SIDES, Advice, Symptom
from acceptance.core.bounds import worse_side
from acceptance.core.limit import Worse
from acceptance.core.message import SetupError
from acceptance.core.strict import Strict
from acceptance.expect import measurements
from acceptance.expect.measurements import Measurement, Measurements
from acceptance.history import noise
from acceptance.history.noise import NoiseBook

Key = TypeVar("Key", str, Symptom)
_SIDE_OF: Mapping[Worse, Literal["low", "high"]] = MappingProxyType(
    {"lower": "low", "higher": "high"}
)


@dataclass(frozen=True, slots=True)
class AdviceBook:
    """Advice by measurement, by event (`xid`, or `xid.79` for one code), by kind of symptom."""

    measurements: Mapping[str, Advice]
    by_event: Mapping[str, Advice]
    by_kind: Mapping[Symptom, Advice] = field(default_factory=lambda: MappingProxyType({}))

    def entries(self) -> Iterator[Advice]:
        """Every entry once, and those in place of it for another kind of symptom."""
        told = (*self.measurements.values(), *self.by_event.values(), *self.by_kind.values())
        yield from dict.fromkeys(other for one in told for other in (one, *one.instead))

    def of_event(self, event: str) -> Advice | None:
        """The entry of an event: that of its code if there is one, else that of its kind."""
        return self.by_event.get(event) or self.by_event.get(event.partition(".")[0])

    def of_value(self, own: Advice | None, kind: Symptom | None) -> Advice | None:
        """The advice for a value with this symptom; `own` is that of its measurement.

        The other side of a limit than its usual one is the better one; of a measurement that this
        version does not know nobody can tell which that is.
        """
        if own is not None:
            if own.fits(kind):
                return own
            for one in own.instead:
                if kind in one.kinds:
                    return one
        if kind in SIDES:
            return None if own is None else self.by_kind.get("better")
        return None if kind is None else self.by_kind.get(kind)


class _Sheet(Strict, frozen=True):
    cause: tuple[dict[str, Any], ...]

    def __hash__(self) -> int:
        return hash(len(self.cause))


@functools.cache
def shipped() -> AdviceBook:
    """rigproof's own. Raises SetupError."""
    return read(resources.locate("causes.toml"), measurements.shipped())


def read(path: Path, families: Measurements) -> AdviceBook:
    """The advice of one file for events, and that of the families.

    Raises SetupError if anything is wrong, and for an event that is listed twice.
    """
    sheet = resources.read(path, _Sheet)
    of = {name: sided(one) for name, one in families.by_name.items()}
    events: dict[str, Advice] = {}
    kinds: dict[Symptom, Advice] = {}
    for entry in dict.fromkeys(of.values()):
        _put(events, entry.events, entry)
    for number, row in enumerate(sheet.cause, start=1):
        try:
            entry = msgspec.convert(row, Advice)
            if not entry.events and not entry.kinds:
                raise ValueError("names no events")
            _put(events, entry.events, entry)
            _put(kinds, entry.kinds, entry)
        except ValueError as error:
            raise SetupError(f"{path.name}, {_name(row, number)}: {error}") from error
    return AdviceBook(of, events, kinds)


def sided(one: Measurement) -> Advice:
    """The advice of a measurement, with the side of its limit that it explains."""
    if one.advice.side is not None:
        return one.advice
    worse = usual_side(one)
    return replace(one.advice, side=None if worse is None else _SIDE_OF[worse])


def usual_side(one: Measurement) -> Worse | None:
    """Which values of a measurement are worse; None where nothing tells."""
    counts = one.own.faults is not None or one.counter is not None or not one.waivable
    declared = one.sense.worse if one.sense is not None else None
    return worse_side(declared, one.limit, "higher" if counts else _noise().worse(one.unit))


@functools.cache
def _noise() -> NoiseBook:
    return noise.read(resources.locate("noise.toml"))


def _put(found: dict[Key, Advice], keys: Sequence[Key], entry: Advice) -> None:
    for key in keys:
        if key in found:
            raise ValueError(f"{key} stands twice")
        found[key] = entry


def _name(row: Mapping[str, Any], number: int) -> str:
    """The name of an entry: its first event or kind of symptom, else its number."""
    events = row.get("events") or row.get("kinds")
    if isinstance(events, list) and events and isinstance(events[0], str):
        return f"the entry of {events[0]}"
    return f"entry {number}"
