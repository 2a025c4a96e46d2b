"""Advice: what a finding means, its usual causes, and the next command."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Annotated, Literal, get_args

import msgspec

from acceptance.core.strict import Strict

# Properties of the finding's component: PCI address, slot, serial number, UUID, the driver's index,
# the kernel's name for it.
PLACEHOLDERS = frozenset({"address", "slot", "serial", "uuid", "index", "name"})
# One line, not empty, without surrounding white space.
Line = Annotated[str, msgspec.Meta(pattern=r"\A\S([^\n]*\S)?\Z")]


# On which side a value is; on which an event is: at all, or before the finding's own event.
Side = Literal["zero", "not zero", "failed", "sound", "low", "high", "below", "above"]
Presence = Literal["there", "not there", "before"]
Whose = Literal["its", "any", "others"]
Settles = Literal["both", "confirms", "excludes"]
_SIDES: tuple[Side, ...] = ("below", "above")
_Names = Line | Annotated[tuple[Line, ...], msgspec.Meta(min_length=1)]


# The kind of symptom of a value: on which side of its limit it is, or why it proves nothing.
Symptom = Literal["low", "high", "better", "impossible", "vanished", "not finite", "contradiction"]


SIDES: tuple[Symptom, ...] = ("low", "high")


class Condition(Strict, frozen=True, rename={"is_": "is"}):
    """What must have been measured in the run if a cause is the right one.

    It is about exactly one of: `measurement`, one or several of ours, of which one suffices, also
    by a pattern of those that the run measured (`burn_*_kept`);
    `event`, likewise (`xid`, `xid.79`); `rule`, a function of `acceptance.diagnosis.causes` by its
    name. `is` is the side on which the value must be: `failed` and `sound` are its limit's, `low`
    and `high` the side of the limit that failed, `below` and `above` that of `value`. Of an event
    it is `there`, `not there`, or `before` the finding's own.

    `of` says whose value counts: that of the finding's component and what belongs to it (`its`),
    of any component, or of `others` of its kind. `settles` says what the condition can do: if it is
    met it `confirms` the cause, if it is not it `excludes` it, or both. A value that was not
    measured does neither.

    Raises ValueError, in one sentence, for keys that do not go together.
    """

    measurement: _Names | None = None
    event: _Names | None = None
    rule: Line | None = None
    is_: Side | Presence | None = None
    value: float | None = None
    of: Whose = "its"
    settles: Settles = "both"

    def __post_init__(self) -> None:
        given = [one for one in (self.measurement, self.event, self.rule) if one is not None]
        if len(given) != 1:
            raise ValueError("a condition is about one of measurement, event and rule")
        sides: tuple[object, ...] = get_args(Side)
        if self.event is not None:
            sides = get_args(Presence)
        if self.rule is not None:
            sides = ()
        if self.is_ not in (*sides, None):
            raise ValueError(f"is = {self.is_!r} is not for this condition")
        if self.measurement is not None and self.is_ is None:
            raise ValueError("a condition on a measurement needs is, the side of its value")
        if (self.is_ in _SIDES) != (self.value is not None):
            raise ValueError("value goes with is = below and is = above, and they need it")

    @property
    def measurements(self) -> tuple[str, ...]:
        """The measurements that it is about."""
        return _listed(self.measurement)

    @property
    def events(self) -> tuple[str, ...]:
        """The kinds of events that it is about."""
        return _listed(self.event)


def _listed(names: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else names


class LikelyCause(Strict, frozen=True):
    """One likely cause: `what` it is, and how to `tell` it from the others.

    `when` are the conditions that this run's own measurements must meet, all of them. If they
    confirm the cause the report says `seen`, or where there is none `tell`, as measured. `fault` is
    one name for a cause that families word each in its own way: what it is confirmed of is of one
    fault of the machine.
    """

    what: Line
    tell: Line
    when: Condition | tuple[Condition, ...] = ()
    seen: Line | None = None
    fault: Line | None = None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Its conditions, none of most causes."""
        return (self.when,) if isinstance(self.when, Condition) else self.when


class Advice(Strict, frozen=True):
    """The advice for one family of measurements, or one kind of event.

    `symptom` is one sentence: what is seen, and what it means. `causes` are in order, the most
    likely first. `next` is one command line for Debian and Ubuntu; `shows` says what to look for in
    its output, and what a healthy machine prints. `vendor` is what to send the vendor if the
    trouble stays. `events` are the kinds of events (or codes: `xid.79`) that it is for.

    `side` is the side of the limit whose symptom it explains, where the measurement does not tell
    (`both`: any value outside). `instead` is the advice for other kinds of symptoms of the same
    measurements, each with the `kinds` that it is for; without one the advice of that kind applies,
    which all families share (`fixtures/causes.toml`).

    `next` may have placeholders for the component's location; `next_anywhere` is then its general
    form, for an unknown location or several components. Raises ValueError for another placeholder,
    and if one of the two forms is missing.
    """

    symptom: Line
    causes: Annotated[tuple[LikelyCause, ...], msgspec.Meta(min_length=2, max_length=5)]
    next: Line
    shows: Line
    vendor: Line
    next_anywhere: Line | None = None
    events: tuple[Line, ...] = ()
    side: Literal["low", "high", "both"] | None = None
    kinds: tuple[Symptom, ...] = ()
    instead: tuple[Advice, ...] = ()

    def __post_init__(self) -> None:
        used = placeholders(self.next)
        if unknown := used - PLACEHOLDERS:
            known = ", ".join(sorted(PLACEHOLDERS))
            raise ValueError(f"next has {{{min(unknown)}}}; the placeholders are {known}")
        if bool(used) != (self.next_anywhere is not None):
            raise ValueError(
                "next_anywhere is for a command with placeholders, and such a command needs it"
            )

        for one in self.instead:
            if not one.kinds or one.instead or one.events:
                raise ValueError("instead is of kinds of symptoms, and of nothing else")

    def fits(self, kind: Symptom | None) -> bool:
        """Whether it explains this kind of symptom; of an unknown kind that is its best guess."""
        return kind is None or kind == self.side or (self.side == "both" and kind in SIDES)

    def command(self, place: Mapping[str, str]) -> str:
        """The next command for this location (values by placeholder).

        It is the command's general form if a value is unknown.
        """
        needed = placeholders(self.next)
        return (
            self.next.format_map({name: place[name] for name in needed})
            if self.next_anywhere is None or needed <= place.keys()
            else self.next_anywhere
        )


def placeholders(text: str) -> frozenset[str]:
    """The names in braces.

    Raises ValueError for braces that are not a placeholder, also those of the command itself.
    """
    found = set()
    for _, name, form, conversion in string.Formatter().parse(text):
        if name is not None:
            if not name.isidentifier() or form or conversion:
                raise ValueError(f"{{{name}}} is no placeholder")
            found.add(name)
    return frozenset(found)
