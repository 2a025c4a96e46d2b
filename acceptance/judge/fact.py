"""What a load told of a wrong result, key by key: what is missing, or of another kind, is named. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_HEX = re.compile(r"[0-9a-fA-F]{1,32}")
_FOREVER_S = 1e12


class Unclear(ValueError):
    """What a load told cannot be used; the message names the key."""


def value(fact: Mapping[str, Any], key: str) -> Any:
    """What stands under a key. Raises Unclear, as all of these do, naming the key."""
    if key not in fact:
        raise Unclear(f"it does not tell its {key}")
    return fact[key]


def text(fact: Mapping[str, Any], key: str) -> str:
    """A text that is not empty."""
    found = value(fact, key)
    if not isinstance(found, str) or not found:
        raise Unclear(f"its {key} is no text")
    return found


def bits_of(fact: Mapping[str, Any], key: str) -> int:
    """A text of hexadecimal digits, as the whole number that it is."""
    found = text(fact, key)
    if not _HEX.fullmatch(found):
        raise Unclear(f"its {key} is not in hexadecimal digits")
    return int(found, 16)


def whole(found: object) -> bool:
    """Whether this is a whole number, 0 or above, that fits 64 bits."""
    return isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 1 << 64


def count(fact: Mapping[str, Any], key: str) -> int:
    """A whole number, 0 or above."""
    found = value(fact, key)
    if not whole(found):
        raise Unclear(f"its {key} is no whole number")
    assert isinstance(found, int)
    return found


def seconds(fact: Mapping[str, Any], key: str) -> float:
    """A finite number of seconds."""
    found = value(fact, key)
    if isinstance(found, bool) or not isinstance(found, int | float) or not -_FOREVER_S < found < _FOREVER_S:
        raise Unclear(f"its {key} is no finite number of seconds")
    return float(found)


def listed(fact: Mapping[str, Any], key: str) -> Sequence[Any]:
    """A list."""
    found = value(fact, key)
    if not isinstance(found, list | tuple):
        raise Unclear(f"its {key} is no list")
    return found
