"""Measurement families: `fixtures/measurements/*.toml`, read strictly.

All that rigproof knows of a measurement stands in one entry: what it is, in which unit and of which
components, its class limit, how far sound hardware may differ, how its nights are judged, and what
to do if it is wrong.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from acceptance import resources
from acceptance.core.advice import Advice
from acceptance.core.limit import UNITS, Limit, Worse
from acceptance.core.message import SetupError
from acceptance.core.strict import Strict, Text
from acceptance.expect import loosest
from acceptance.expect.collected import Measures
from acceptance.expect.loosest import Bounds, Loosest, Possible, possible

_Spread = Annotated[float, msgspec.Meta(ge=0)]
_Rate = Annotated[float, msgspec.Meta(ge=0)]
_Names = Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
# Tables that an entry may take from that of another measurement, by its name.
_SHARED = ("noise", "noise_in_vm", "advice")
_OWN = ("per_in", "ratio_of", "events")  # keys that `like` does not take from another entry
# Nor these, where the entry has another one of its own.
_REPLACED = {
    "limit": ("no_limit",),
    "no_limit": ("limit", "faults", "loosest"),
    "faults": ("loosest",),
}


class EntryError(SetupError):
    """What is wrong with an entry of a family, from 0 by its `number` in its file."""

    def __init__(self, file: str, number: int, name: str, what: str) -> None:
        super().__init__(f"{file}: {name}: {what}")
        self.file, self.number, self.what = file, number, what


class _ClassLimit(Strict, frozen=True):
    basis: Text
    low: float | None = None
    high: float | None = None
    warn_low: float | None = None
    warn_high: float | None = None


class Noise(Strict, frozen=True, kw_only=True):
    """How far two values of sound hardware may lie apart.

    `share` is of the larger value, `absolute` in the measurement's unit: for one part measured
    twice. `other` is the same for two parts of one model.
    """

    basis: Text
    other: _Spread
    share: _Spread | None = None
    absolute: _Spread | None = None

    def __post_init__(self) -> None:
        if (self.share is None) == (self.absolute is None):
            raise ValueError("needs either share or absolute")
        if self.other < self.own:
            raise ValueError("two parts cannot be nearer to each other than one to itself")
        if self.share is not None and self.other >= 1:
            raise ValueError("a share of 1 or more allows every value")

    @property
    def own(self) -> float:
        """The spread of one part, as a share or in the measurement's unit."""
        found = self.absolute if self.absolute is not None else self.share
        assert found is not None
        return found


class Sense(Strict, frozen=True):
    """The worse side, if neither limit nor unit decides."""

    worse: Worse
    basis: Text


class Season(Strict, frozen=True):
    """How far the level may move with the seasons, in the measurement's unit."""

    change: Annotated[float, msgspec.Meta(gt=0)]
    basis: Text


class Rate(Strict, frozen=True, kw_only=True):
    """The allowed growth of a counter.

    It may grow by `per_day`, and by one `step` in all. Above `most_per_day` it fails at once.
    Growth is measured over `over_days`.

    `repeats`: two consecutive nights above it fail, and so do as many of the last nights as fail
    for any other measurement.
    """

    basis: Text
    per_day: _Rate
    most_per_day: _Rate | None = None
    over_days: _Rate = 0.0
    step: _Rate = 0.0
    repeats: bool = False

    def __post_init__(self) -> None:
        if self.most_per_day is not None and self.most_per_day < self.per_day:
            raise ValueError("most_per_day is less than per_day")


class Entry(Strict, frozen=True, kw_only=True):
    """One `[[measurement]]` with all that it takes from others."""

    names: _Names
    unit: Text
    per: Text | _Names
    what: Text
    advice: Advice
    per_in: dict[Text, Text] = msgspec.field(default_factory=dict)
    ratio_of: _Names | None = None
    fact: bool = False
    waivable: bool = True
    events: tuple[Text, ...] = ()
    limit: _ClassLimit | None = None
    no_limit: Text | None = None
    noise: Noise | None = None
    noise_in_vm: Noise | None = None
    incomparable: Text | None = None
    exempt: Text | None = None
    sense: Sense | None = None
    season: Season | None = None
    counter: Rate | None = None
    faults: Annotated[float, msgspec.Meta(ge=0)] | None = None
    possible: Possible | None = None
    possible_basis: Text | None = None
    loosest: Loosest | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"unit {self.unit!r} is no unit of ours")
        if not isinstance(self.per, str) and len(self.per) != len(self.names):
            raise ValueError("per is one class of components, or one for each of the names")
        if self.ratio_of is not None and (
            self.unit != "ratio" or len(self.ratio_of) != len(self.names)
        ):
            raise ValueError("ratio_of needs the unit ratio, and one name for each of the names")
        told = (self.limit is not None) + (self.no_limit is not None)
        if told != (0 if self.fact else 1):
            raise ValueError(
                "needs either limit or no_limit; a fact has neither, the machine file declares it"
            )
        if self.counter is not None and self.exempt is not None:
            raise ValueError("a counter is judged by its nights: it cannot be exempt")
        if self.possible is not None and not self.possible[0] < self.possible[1]:
            raise ValueError("possible is the least that can occur, and the most")
        if self.possible_basis is not None and self.possible is None:
            raise ValueError("possible_basis is of possible")
        if self.faults is not None and (self.loosest is not None or not self.waivable):
            raise ValueError("faults needs neither loosest nor waivable = false beside it")


class Sheet(Strict, frozen=True):
    """A file of families as it is written; `measurement` are its entries."""

    title: Text
    is_not: Text
    measurement: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(min_length=1)]

    def __hash__(self) -> int:
        return hash((self.title, len(self.measurement)))


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement, and all that rigproof knows of it.

    `per` is its class of components, in the checks of `per_in` another one. Where it is a ratio of
    a component's value to that of its equals, `ratio_of` is that value's measurement. `limit` is
    its class limit; without one `no_limit` says why (a *fact* has neither). `noise` is None where
    the unit's spread applies, `noise_in_vm` where a VM has none of its own. `incomparable` says why
    two runs cannot be compared, `exempt` why its nights cannot. `advice_of` is the measurement,
    perhaps of another family, at whose entry the advice stands. `own` is how far a machine file may
    go with it, `plausible` what a value can be at best, where nothing says more. `events` are the
    kernel's events of the same component that say the same as a count made after the run.
    """

    name: str
    family: str
    unit: str
    per: str
    per_in: Mapping[str, str]
    ratio_of: str | None
    fact: bool
    waivable: bool
    what: str
    limit: Limit | None
    no_limit: str | None
    noise: Noise | None
    noise_in_vm: Noise | None
    incomparable: str | None
    exempt: str | None
    sense: Sense | None
    season: Season | None
    counter: Rate | None
    advice: Advice
    advice_of: str
    own: Bounds
    plausible: Limit | None = None
    events: tuple[str, ...] = ()

    def measured_by(self, check: str) -> Measures:
        """What a check (its id without a parameter) declares if it measures this."""
        per = self.per_in.get(check, self.per)
        return Measures(
            self.name, self.unit, per, self.fact, self.waivable, self.ratio_of, self.own
        )


@dataclass(frozen=True, slots=True)
class Family:
    """A file: its title, and what its measurements are not."""

    name: str
    title: str
    is_not: str


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Every measurement by its name, in the order of the files, and the families.

    Equal only to itself, so that what is made of it can be kept (a dictionary has no hash).
    """

    by_name: Mapping[str, Measurement]
    families: tuple[Family, ...]

    def get(self, name: str) -> Measurement | None:
        """The measurement of this name; None if no family has it."""
        return self.by_name.get(name)


@dataclass(frozen=True, slots=True)
class _Row:
    """An entry as it is written, before it takes anything from another one."""

    file: str
    number: int
    names: tuple[str, ...]
    keys: Mapping[str, Any]


def _row(file: str, number: int, keys: Mapping[str, Any]) -> _Row:
    try:
        names = msgspec.convert(keys.get("names"), _Names)
    except msgspec.ValidationError as error:
        raise EntryError(file, number, f"names of entry {number + 1}", str(error)) from error
    return _Row(file, number, names, keys)


def _complete(row: _Row, rows: Mapping[str, _Row]) -> tuple[dict[str, Any], str]:
    """The keys of an entry with those that it takes from others; and whose advice it has.

    Raises ValueError for a name without an entry of its own.
    """
    keys, advice_of = dict(row.keys), row.names[0]
    if "like" in keys:
        like = keys.pop("like")
        other = rows.get(like) if isinstance(like, str) else None
        if other is None or "like" in other.keys:
            raise ValueError(f"like is {like!r}, which has no whole entry of its own")
        taken = {key: value for key, value in other.keys.items() if key not in _OWN}
        replaced = {one for key in keys.keys() & _REPLACED.keys() for one in _REPLACED[key]}
        taken = {key: value for key, value in taken.items() if key not in replaced}
        advice_of = advice_of if "advice" in keys else other.names[0]
        keys = {**taken, **keys}
    for key in _SHARED:
        name = keys.get(key)
        if isinstance(name, str):
            owner = rows.get(name)
            table = owner.keys.get(key) if owner is not None else None
            if owner is None or not isinstance(table, dict):
                raise ValueError(f"{key} is that of {name!r}, which has none of its own")
            keys[key] = table
            advice_of = owner.names[0] if key == "advice" else advice_of
    return keys, advice_of


def _measurements(row: _Row, rows: Mapping[str, _Row]) -> Iterator[Measurement]:
    """The measurements of an entry. Raises ValueError for what is wrong with it."""
    keys, advice_of = _complete(row, rows)
    entry = msgspec.convert(keys, Entry)
    given = entry.limit
    limit = (
        Limit(entry.unit, given.basis, given.low, given.high, given.warn_low, given.warn_high)
        if given is not None
        else None
    )
    own = Bounds(
        possible=entry.possible or possible()[entry.unit],
        faults=entry.faults,
        loosest=entry.loosest,
    )
    plausible = (
        None if entry.fact else loosest.plausible(entry.unit, entry.possible, entry.possible_basis)
    )
    classes = [entry.per] * len(entry.names) if isinstance(entry.per, str) else entry.per
    bases = entry.ratio_of or [None] * len(entry.names)
    for name, per, ratio_of in zip(entry.names, classes, bases, strict=True):
        if ratio_of is not None and ratio_of not in rows:
            raise ValueError(f"ratio_of names {ratio_of}, which no family has")
        yield Measurement(
            name=name,
            family=row.file.removesuffix(".toml"),
            unit=entry.unit,
            per=per,
            per_in=entry.per_in,
            ratio_of=ratio_of,
            fact=entry.fact,
            waivable=entry.waivable,
            what=entry.what,
            limit=limit,
            no_limit=entry.no_limit,
            noise=entry.noise,
            noise_in_vm=entry.noise_in_vm,
            incomparable=entry.incomparable,
            exempt=entry.exempt,
            sense=entry.sense,
            season=entry.season,
            counter=entry.counter,
            advice=entry.advice,
            advice_of=advice_of,
            own=own,
            plausible=plausible,
            events=entry.events,
        )


def read(folder: Path) -> Measurements:
    """The families of a folder.

    Raises SetupError, naming the file and the measurement, and for a name that stands
    twice.
    """
    found = assemble(
        (path.name, resources.read(path, Sheet)) for path in sorted(folder.glob("*.toml"))
    )
    if not found.families:
        raise SetupError(f"{folder.name}: holds no family: install rigproof again")
    return found


def assemble(sheets: Iterable[tuple[str, Sheet]], known: Collection[str] = ()) -> Measurements:
    """The measurements of files, each with its name; `known` are those of other files.

    Raises EntryError, and for a name that stands twice, or that a cause's condition names and that
    no file has.
    """
    families: list[Family] = []
    rows: dict[str, _Row] = {}
    entries: list[_Row] = []
    for file, sheet in sheets:
        families.append(Family(file.removesuffix(".toml"), sheet.title, sheet.is_not))
        for number, keys in enumerate(sheet.measurement):
            row = _row(file, number, keys)
            entries.append(row)
            for name in row.names:
                if name in rows:
                    raise EntryError(
                        file, number, name, f"stands twice, first in {rows[name].file}"
                    )
                rows[name] = row
    found: dict[str, Measurement] = {}
    for row in entries:
        try:
            made = {one.name: one for one in _measurements(row, rows)}
            for one in made.values():
                _conditions(one.advice, rows, known)
            found |= made
        except ValueError as error:  # msgspec's too
            raise EntryError(row.file, row.number, row.names[0], str(error)) from error
    return Measurements(found, tuple(families))


def _conditions(advice: Advice, *known: Collection[str]) -> None:
    """Raise ValueError for a condition on a measurement, or a pattern of them, that no file has."""
    every = [cause for one in (advice, *advice.instead) for cause in one.causes]
    for condition in (one for cause in every for one in cause.conditions):
        for name in condition.measurements:
            if not any(name in names or fnmatch.filter(names, name) for names in known):
                raise ValueError(f"a cause's condition names {name}, which no family has")


@functools.cache
def shipped() -> Measurements:
    """The families that rigproof ships. Raises SetupError."""
    return read(resources.locate("measurements"))


def unit(name: str) -> str:
    """The unit of a measurement of rigproof's own."""
    return shipped().by_name[name].unit
