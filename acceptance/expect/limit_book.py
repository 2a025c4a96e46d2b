"""Limits by precedence: the machine file's own, those from declarations, class defaults.

Limits that follow from what a machine has: a number of `fixtures/derived.toml` x a quantity.

All floors and ceilings that are a share of a link, a peak, a size or another limit are evaluated
here. The callers say how much of a quantity a component has, or why that is not known.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from acceptance import resources
from acceptance.core.limit import Limit
from acceptance.core.message import (
    NO_VALUES,
    Message,
    Quantity,
    SetupError,
    Term,
    Text,
    Values,
    english,
    known,
)
from acceptance.core.parts import Component
from acceptance.core.strict import Strict
from acceptance.core.strict import Text as Sentence
from acceptance.expect import measurements
from acceptance.expect.measurements import Measurements
from acceptance.expect.sheet import Figure

# The origins of entries without a limit because the GPU's model is not known. Measurements that
# have no limit on purpose have another origin.
NO_SHEET, NO_ARCHITECTURE = (
    Message(english("model_sheets", "model sheets")),
    Message(english("architectures", "architectures")),
)
CLASS_DEFAULT = Message(english("class_default", "class default"))
SITE = Message(english("site_limit", "limit of the site's own"))
# The machine file's tables in which somebody can say what no sheet does.
LIMIT_TABLE, PAIR_TABLE = "[[limit]]", "[[gpu_pair]]"


@dataclass(frozen=True, slots=True)
class Override:
    """One limit for one measurement, on every component or on one.

    Without `limit`, `unlimited` says why there is none. `own` marks the machine file's `[[limit]]`
    tables. `place` is the key of the machine file that declares it, () where none does.
    """

    measurement: str
    origin: Text
    limit: Limit | None = None
    component: Component | None = None
    unlimited: Text | None = None
    own: bool = False
    place: tuple[str | int, ...] = field(default=(), compare=False)


# By measurement and component (None: all of them), the index of the first entry for both.
_Places = dict[str, dict[Component | None, int]]


def _places(entries: Sequence[Override]) -> _Places:
    found: _Places = {}
    for place, entry in enumerate(entries):
        found.setdefault(entry.measurement, {}).setdefault(entry.component, place)
    return found


def _first(
    entries: Sequence[Override], places: _Places, measurement: str, component: Component
) -> Override | None:
    """The first entry that applies to this measurement of this component, or None."""
    own = places.get(measurement, {})
    found = [own[name] for name in (component, None) if name in own]
    return entries[min(found)] if found else None


@dataclass(frozen=True, slots=True)
class LimitBook:
    """Limits in order of precedence.

    The first entry for the measurement, and for the component if it names one, applies. `ceilings`
    apply beside them, whichever limit takes precedence.
    """

    entries: tuple[Override, ...] = ()
    ceilings: tuple[Override, ...] = ()
    _limits: _Places = field(init=False, repr=False, compare=False)
    _most: _Places = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_limits", _places(self.entries))
        object.__setattr__(self, "_most", _places(self.ceilings))

    def find(self, measurement: str, component: Component) -> Override | None:
        """The entry that applies to this measurement of this component, or None."""
        return _first(self.entries, self._limits, measurement, component)

    def after(self, first: Iterable[Override]) -> LimitBook:
        """This book with other entries taking precedence over it."""
        return LimitBook((*first, *self.entries), self.ceilings)

    def under(self, ceilings: Iterable[Override]) -> LimitBook:
        """This book with these further ceilings."""
        return LimitBook(self.entries, (*self.ceilings, *ceilings))

    def ceiling(self, measurement: str, component: Component) -> Limit | None:
        """The ceiling of this measurement of this component, or None where it is not known."""
        found = _first(self.ceilings, self._most, measurement, component)
        return found.limit if found is not None else None


def class_defaults(families: Measurements) -> LimitBook:
    """What any healthy machine meets: the class limits of the families, and why there are none."""
    return LimitBook(
        tuple(
            Override(one.name, CLASS_DEFAULT, one.limit, unlimited=one.no_limit)
            for one in families.by_name.values()
            if one.limit is not None or one.no_limit is not None
        )
    )


def class_ceilings(families: Measurements) -> Iterator[Override]:
    """What a value can be at best, of whatever has no nearer ceiling."""
    return (
        Override(one.name, CLASS_DEFAULT, one.plausible)
        for one in families.by_name.values()
        if one.plausible is not None
    )


def exactly(value: float, unit: str, basis: Text) -> Limit:
    """A limit that only one value meets."""
    return Limit(unit=unit, basis=basis, low=value, high=value)


def at_least(value: float, unit: str, basis: Text) -> Limit:
    """A limit with a floor."""
    return Limit(unit=unit, basis=basis, low=value)


def must_be_zero(basis: Text) -> Limit:
    """A limit for counts of what must not happen."""
    return Limit(unit="count", basis=basis, high=0.0)


def unless_limited(why: Text | Term) -> Message:
    """Why there is no limit, and that the machine file can have one."""
    return Message(
        english("unless_limited", "{why}: a {table} in the machine file judges it all the same"),
        {"why": why, "table": LIMIT_TABLE},
    )


FILE = "derived.toml"
CEILING = Message(english("ceiling", "ceiling"))

Rate = tuple[float, Message]  # a maximum, and its derivation


class Amount(NamedTuple):
    """How much of a quantity a component has, and what the sentence of a limit says of it.

    A value below the same share of `warn` is a warning.
    """

    value: float = 1.0
    values: Values = NO_VALUES
    warn: float | None = None


class DerivedLimit(Strict, frozen=True, kw_only=True):
    """`[[derived]]`: a floor or a ceiling; `of` has its measurements by quantity."""

    of: dict[Sentence, tuple[Sentence, ...]]
    wording: Sentence
    basis: Sentence
    low: Figure | None = None
    high: Figure | None = None

    def __post_init__(self) -> None:
        if (self.low is None) == (self.high is None):
            raise ValueError("needs either low or high")

    @property
    def share(self) -> float:
        """The number: what a floor asks of the quantity, or a ceiling allows."""
        return self.low or self.high or 0.0

    def limit(self, name: str, of: Amount) -> Limit:
        """The limit of a measurement, from how much there is of the quantity."""
        share = self.share
        key = "share" if self.low is not None else "error"
        values = {key: f"{share:g}", **of.values}
        return Limit(
            measurements.unit(name),
            Message(self.wording, values),
            low=share * of.value if self.low is not None else None,
            high=share * of.value if self.high is not None else None,
            warn_low=share * of.warn if of.warn is not None else None,
        )


class _Figure(Strict, frozen=True):
    value: Figure
    unit: Sentence
    basis: Sentence


class Figures(Strict, frozen=True):
    """`[figure.*]`: what quantities are made of, and the bounds between which a limit applies."""

    unknown_clock: _Figure
    core_ghz: _Figure
    core_f64_operations: _Figure
    core_f32_operations: _Figure
    chip_link_gbs: _Figure
    job_iops: _Figure
    sharded_least_gbs: _Figure
    pcie_most_tflops: _Figure
    pcie_least_gbs: _Figure
    memory_warn_c: _Figure


class Book(Strict, frozen=True):
    """`derived.toml`: limits, what their quantities are, and figures of which these are made."""

    derived: tuple[DerivedLimit, ...]
    quantity: dict[Sentence, Sentence]
    wording: dict[Sentence, Sentence]  # the English of each row's code
    figure: Figures

    def __post_init__(self) -> None:
        used = {of for row in self.derived for of in row.of}
        if odd := sorted(used ^ self.quantity.keys()):
            raise ValueError(f"quantity: {', '.join(odd)} must stand there and in an `of`")
        if odd := sorted({row.wording for row in self.derived} ^ self.wording.keys()):
            raise ValueError(f"wording: {', '.join(odd)} must stand there and in a limit")
        ours = measurements.shipped().by_name
        named = {name for row in self.derived for of in row.of.values() for name in of} - set(ours)
        if odd := sorted(name for name in named if not fnmatch.filter(ours, name)):
            raise ValueError(f"derived: {', '.join(odd)} is no measurement of rigproof's")

    def rows(self, of: str) -> tuple[DerivedLimit, ...]:
        """The limits of a quantity. Raises SetupError where the file does not have it."""
        found = tuple(row for row in self.derived if of in row.of)
        if not found:
            raise SetupError(f"{FILE}: no limit is of {of}: install rigproof again")
        return found


@functools.cache
def book() -> Book:
    """The shipped file. Raises SetupError."""
    return resources.read(resources.locate(FILE), Book)


def figures() -> Figures:
    """The figures of the shipped file."""
    return book().figure


def names(of: str) -> tuple[str, ...]:
    """The measurements that a quantity limits, in the order of the file."""
    return tuple(name for row in book().rows(of) for name in row.of[of])


def floors(
    of: str,
    component: Component | None,
    origin: Text,
    found: Amount | Message,
    names: Collection[str] = (),
) -> Iterator[Override]:
    """The floors of a component; a message says why there is none.

    `names` are those that are meant, where the file has a pattern or more. Raises SetupError
    where one has no floor, or none has.
    """
    for row, name in _rows(of, "low", names):
        if isinstance(found, Message):
            yield Override(name, origin, component=component, unlimited=found)
        else:
            yield Override(name, origin, row.limit(name, found), component)


def ceilings(
    of: str,
    component: Component,
    rate: Rate | Amount,
    counted: float = 1.0,
    names: Collection[str] = (),
    origin: Text = CEILING,
) -> Iterator[Override]:
    """The ceilings of a component, `counted` times the rate.

    `names` are those that are meant, where the file has a pattern or more. Raises SetupError
    where one has no ceiling, or none has.
    """
    for row, name in _rows(of, "high", names):
        most = rate if isinstance(rate, Amount) else _most(name, rate, counted)
        yield Override(name, origin, row.limit(name, most), component)


def _rows(of: str, side: str, names: Collection[str]) -> list[tuple[DerivedLimit, str]]:
    """The limits of a side, each with its measurements. Raises SetupError where one lacks."""
    rows = [row for row in book().rows(of) if getattr(row, side) is not None]
    found = [
        (row, name)
        for row in rows
        for name in names or row.of[of]
        if name in measurements.shipped().by_name
        and any(fnmatch.fnmatchcase(name, pattern) for pattern in row.of[of])
    ]
    meant = set(names) or {name for row in rows for name in row.of[of]}
    odd = sorted(meant - {name for _, name in found})
    if odd or not found:
        told = ", ".join(odd) or "anything"
        raise SetupError(f"{FILE}: no {side} of {of} limits {told}: install rigproof again")
    return found


def _most(name: str, rate: Rate, counted: float) -> Amount:
    values = known(
        share=f"{counted:g}" if counted != 1.0 else None,
        most=Quantity(rate[0], measurements.unit(name)),
        formula=rate[1],
    )
    return Amount(counted * rate[0], values)
