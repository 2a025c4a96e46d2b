"""Limits by precedence: the machine file's own, those from declarations, class defaults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from acceptance.core.limit import Limit
from acceptance.core.message import Message, Term, Text
from acceptance.core.parts import Component
from acceptance.expect.measurements import Measurements

# The origins of entries without a limit because the GPU's model is not known. Measurements that
# have no limit on purpose have another origin.
NO_SHEET, NO_ARCHITECTURE = Message("model_sheets"), Message("architectures")
CLASS_DEFAULT = Message("class_default")
SITE = Message("site_limit")
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
    for one in families.by_name.values():
        if one.plausible is not None:
            yield Override(one.name, CLASS_DEFAULT, one.plausible)


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
    return Message("unless_limited", {"why": why, "table": LIMIT_TABLE})
