"""A value that a function may not have, and this time has."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value")


def known(value: Value | None) -> Value:
    """The value, which must be there."""
    assert value is not None
    return value
