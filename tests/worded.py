"""What was made, with its messages in English, for tests that compare what users read."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from acceptance.core.message import Message
from acceptance.wording import words


def worded(value: Any) -> Any:
    """The same value, with every message in it as its English sentence."""
    if isinstance(value, Message):
        return words.message(value)
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(worded(one) for one in value)
    if isinstance(value, dict):
        return {name: worded(one) for name, one in value.items()}
    if isinstance(value, msgspec.Struct):
        told = {name: worded(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **told)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        told = {one.name: worded(getattr(value, one.name)) for one in dataclasses.fields(value)}
        return dataclasses.replace(value, **told)
    return value
