"""Readings that were there before the run and are not there after it.

Such a reading was not measured: that nothing grew, or that all is as it was, is not known. It is an
error of the check, and no skip, which a waiver might cover.
"""

from __future__ import annotations

from collections.abc import Iterable

from acceptance.core.message import Message, Value, known
from acceptance.core.parts import Component
from acceptance.wording.errors import WordedError


def loss(component: Component, what: Value, why: Value | None = None) -> Message:
    """What is said of a reading of a component that is there no more."""
    lost = Message("reading_lost", known(what=what, why=why))
    return Message("component_says", {"component": str(component), "why": lost})


def refuse(losses: Iterable[Message]) -> None:
    """Raise WordedError if there are any; what was journalled before stays evidence."""
    if found := tuple(losses):
        raise WordedError("clauses", why=found)
