"""Rules for changes of the machine: `fixtures/changes.toml`, read strictly.

The rules of a run are part of its plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from acceptance import resources
from acceptance.core.machine_facts import (
    ChangeBook,
    FactChange,
    PartChange,
    PartKind,
)
from acceptance.core.message import SetupError

_OF_FACTS: tuple[FactChange, ...] = ("differs", "lower", "higher")
# Changes without a value of their own, so that tonight's cannot be distinguished from last night's.
_NAMELESS: tuple[PartChange, ...] = (
    "missing",
    "added",
    "replaced",
    "unread",
)
_PARTS: tuple[PartKind, ...] = ("gpu", "dimm", "disk", "net")


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
    for rule in book.change:
        for kind in rule.of if rule.given is not None else ():
            if book.of_fact(kind, str(rule.given), "differs") is None:
                yield f"{rule.given}, on which facts of {kind} depend, needs a rule ({rule.basis})"
        if rule.given is not None and rule.change != "differs":
            yield f"given is for what differs ({rule.basis})"
        if rule.dated and (not rule.facts or rule.afterwards):
            yield f"dated is for a fact that is told in the same way every night ({rule.basis})"
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

    Raises SetupError if anything is wrong, and for a fact without a rule for each change.
    """
    book = resources.read(path, ChangeBook)
    for problem in _problems(book):
        raise SetupError(f"{path.name}: {problem}")
    return book
