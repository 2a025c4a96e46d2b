"""A message: a code with values; only `acceptance.wording` makes a sentence of it.

`Unmeasured` is why something was not measured: every skip says which of these it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

import msgspec


class _Value(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="is"
):
    pass


class Quantity(_Value, frozen=True, tag="quantity"):
    """A value in its unit; `exact` is one that must not be shown rounded."""

    value: float
    unit: str
    exact: bool = False


class Range(_Value, frozen=True, tag="range"):
    """The lowest and the highest allowed value in their unit; at least one of them is set."""

    unit: str
    low: float | None = None
    high: float | None = None


class Term(_Value, frozen=True, tag="term"):
    """A text of rigproof's data files, which each language translates."""

    text: str


class Message(_Value, frozen=True, tag="message"):
    """What is said: a code, which has a wording in each language, and the values in it.

    A text among the values is shown as it is: a name, a date, or the words of somebody else, who
    is not trusted. Several values stand one after the other. `n` is a number of things, which
    decides the plural.
    """

    code: str
    values: Mapping[str, Value] = {}

    def __hash__(self) -> int:
        return hash((self.code, frozenset(self.values.items())))


class Listed(_Value, frozen=True, tag="list"):
    """Names in a list, and the number of those that are left out."""

    items: tuple[str | Term | Message, ...]
    left_out: int = 0

    @staticmethod
    def first(items: Sequence[str | Term | Message], most: int) -> Listed:
        """At most so many of these, and the number of the others."""
        return Listed(tuple(items[:most]), max(0, len(items) - most))


Single = float | str | Quantity | Range | Term | Message | Listed
Value = Single | tuple[Single, ...]
Values = Mapping[str, Value]
# What a reader is told: a message, or the words of somebody else, which no language rewords.
Text = str | Message
# The same, or several texts, each on a line of its own.
Texts = Text | tuple[Text, ...]
NO_VALUES: Values = {}


_Code = TypeVar("_Code", bound=str)


def english(code: _Code, _sentence: str, /) -> _Code:
    """A code, with its English wording beside it; `plural` where it depends on a number of things.

    A part in square brackets is left out where a value in it is not known. Each code has its
    sentence at one place. `make messages` makes the English catalogue of all of them, which
    `acceptance.wording` reads.
    """
    return code


def plural(code: _Code, _one: str, _many: str, /) -> _Code:
    """A code, with its English wordings for one thing and for many beside it."""
    return code


def translatable(text: Text) -> Term | Message:
    """A text of a data file as a term, which each language translates."""
    return Term(text) if isinstance(text, str) else text


def known(**values: Value | None) -> dict[str, Value]:
    """The values that are known: without a value, the part of the wording about it is left out."""
    return {name: value for name, value in values.items() if value is not None and value != ()}


class Coded(Exception):
    """An error that says a code with the values that are known."""

    def __init__(self, code: str, /, **values: Value | None) -> None:
        super().__init__(code)
        self.message = Message(code, known(**values))

    def __str__(self) -> str:
        return ": ".join([self.message.code, *map(str, self.message.values.values())])


class UserError(Exception):
    """A mistake in the user's arguments or files, in one sentence: exit code 2."""


class SetupError(Exception):
    """What rigproof runs on is not as it must be, its own files included: exit code 3."""


class Unmeasured(StrEnum):
    """Why a measurement was not taken; the value is also the code of its finding.

    NOT_OFFERED: this part cannot have it (a virtual disk has no SMART report). NOT_PERMITTED:
    rigproof may not read it as it was started and set up (no root, a program that is not
    installed). NO_ANSWER: it failed to answer (an I/O error, a reading that was there before);
    no waiver covers it, and a reason that is not known is this one. AFTER_FAULT: something else is
    at fault, which has a finding of its own, and this was left out because of it.
    """

    NOT_OFFERED = english(
        "not_offered",
        "{measurement} on {component} was not measured, because this machine does not offer it: "
        "{reason}",
    )
    NOT_PERMITTED = english(
        "not_permitted",
        "{measurement} on {component} was not measured, because rigproof may not read it: {reason}",
    )
    NO_ANSWER = english(
        "no_answer",
        "{measurement} on {component} was not measured, because it failed to answer (no waiver "
        "covers this): {reason}",
    )
    AFTER_FAULT = english("after_fault", "{measurement} on {component} was not measured: {reason}")

    @property
    def waivable(self) -> bool:
        """Whether a waiver of the machine file may cover it."""
        return self is not Unmeasured.NO_ANSWER


class Gap(NamedTuple):
    """A measurement that was not taken: why, and the reason in words, with the cure."""

    why: Unmeasured
    reason: Text


def not_offered(reason: Text) -> Gap:
    """A gap because this part cannot have it."""
    return Gap(Unmeasured.NOT_OFFERED, reason)


def not_permitted(reason: Text) -> Gap:
    """A gap because rigproof may not read it; the reason has the cure."""
    return Gap(Unmeasured.NOT_PERMITTED, reason)


def no_answer(reason: Text) -> Gap:
    """A gap because it failed to answer."""
    return Gap(Unmeasured.NO_ANSWER, reason)


def after_fault(reason: Text) -> Gap:
    """A gap because of something else, which has a finding of its own."""
    return Gap(Unmeasured.AFTER_FAULT, reason)
