"""Rules for changes of the machine: `fixtures/changes.toml`, read strictly.

The rules of a run are part of its plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from acceptance import resources
from acceptance.core.strict import Strict, Text

# A fact differs, is lower or is higher. A part is missing, added, replaced or moved; "unread":
# parts of its kind could not be listed.
FactChange = Literal["differs", "lower", "higher"]
PartChange = Literal["missing", "added", "replaced", "moved", "unread"]
ChangeMeaning = Literal["fail", "warn", "note", "nothing"]
PartKind = Literal["machine", "cpu", "memory", "gpu", "dimm", "disk", "net"]
_OF_FACTS: tuple[FactChange, ...] = ("differs", "lower", "higher")
# Changes without a value of their own, so that tonight's cannot be distinguished from last night's.
_NAMELESS: tuple[PartChange, ...] = (
    "missing",
    "added",
    "replaced",
    "unread",
)
_PARTS: tuple[PartKind, ...] = ("gpu", "dimm", "disk", "net")
_Texts = Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]


class ChangeFileError(Exception):
    """rigproof's own file of change rules is wrong; the message names file and entry."""


class ChangeRule(Strict, frozen=True, kw_only=True):
    """The meaning of one kind of change.

    `facts` has the wording of each fact by its name; it is empty if the rule is about parts
    themselves.

    `within` is the share of the earlier value by which a number may be lower or higher without
    meaning anything. `afterwards` is the meaning once an earlier night has reported the change;
    without it the meaning is the same every night.
    """

    of: Annotated[tuple[PartKind, ...], msgspec.Meta(min_length=1)]
    change: FactChange | PartChange
    means: ChangeMeaning
    event: Annotated[str, msgspec.Meta(pattern=r"\Ainventory\.[a-z]+\Z")]
    basis: Text
    facts: dict[Text, Text] = msgspec.field(default_factory=dict)
    within: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    afterwards: Literal["note"] | None = None


class CountedParts(Strict, frozen=True):
    """The disks (by transport) and links (by kind) that are parts of the machine.

    Others come and go.
    """

    disks: _Texts
    links: _Texts
    basis: Text


class ChangeBook(Strict, frozen=True):
    """All rules; the first that fits applies."""

    counted: CountedParts
    change: tuple[ChangeRule, ...]

    def of_part(self, kind: str, change: PartChange) -> ChangeRule | None:
        """The rule for a change of a part; None if that means nothing."""
        return next(
            (
                rule
                for rule in self.change
                if not rule.facts and kind in rule.of and rule.change == change
            ),
            None,
        )

    def of_fact(self, kind: str, fact: str, *changes: FactChange) -> ChangeRule | None:
        """The first rule for one of these changes of a fact; None if the fact is not compared."""
        found = (
            rule
            for rule in self.change
            if kind in rule.of and fact in rule.facts and rule.change in changes
        )
        return next(found, None)


def _problems(book: ChangeBook) -> Iterator[str]:
    """Errors that types cannot express.

    Examples are a fact without a rule for each direction, and a part whose loss means nothing.
    """
    for rule in book.change:
        if bool(rule.facts) != (rule.change in _OF_FACTS):
            yield (
                f"a rule for what is {rule.change} "
                f"{'names facts' if rule.facts else 'names no fact'} ({rule.basis})"
            )
        if rule.within and rule.change not in ("lower", "higher"):
            yield f"within is for what is lower or higher ({rule.basis})"
        if rule.afterwards and (rule.means != "warn" or rule.change in _NAMELESS):
            yield (
                "afterwards is for a warning about a fact, or about a part that is moved "
                f"({rule.basis})"
            )
    for kind, fact in dict.fromkeys(
        (kind, fact) for rule in book.change for kind in rule.of for fact in rule.facts
    ):
        directions = [book.of_fact(kind, fact, "lower"), book.of_fact(kind, fact, "higher")]
        if book.of_fact(kind, fact, "differs") is None and None in directions:
            yield (
                f"{fact} of {kind} needs a rule for `differs`, or one for `lower` and one for "
                "`higher`"
            )
    for kind in _PARTS:
        if None in (
            book.of_part(kind, "missing"),
            book.of_part(kind, "added"),
            book.of_part(kind, "unread"),
        ):
            yield (
                f"{kind} needs a rule for a part that is missing, one for a part that was "
                "added, "
                "and one for parts that are unread"
            )


def read(path: Path) -> ChangeBook:
    """The rules of a file.

    Raises ChangeFileError if anything is wrong, and for a fact without a rule for each change.
    """
    book = resources.read(path, ChangeBook, ChangeFileError)
    for problem in _problems(book):
        raise ChangeFileError(f"{path.name}: {problem}")
    return book
