"""Reads a plan of format 1, in which what a value is held against had a field for each kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

# In the order in which a value is held against them: (field of format 1, tag of the criterion).
_FIELDS = (("ceiling", "plausible"), ("limit", "limit"), ("past", "past"))


def upgraded(line: bytes) -> bytes | None:
    """A line of format 1 with a plan as of today; None for any other line.

    Raises msgspec.ValidationError for a plan of neither format.
    """
    record = msgspec.json.decode(line)
    try:
        body = record["body"]
        if body["record"] != "run-started":
            return None
        for check in body["plan"]["checks"]:
            for due in check["due"]:
                if "criteria" in due:
                    return None
                if "limit" not in due:
                    raise msgspec.ValidationError(
                        "a measurement of the plan has neither `criteria` nor, as in format 1, "
                        "`limit`"
                    )
                due["criteria"] = list(_criteria(due))
    except (KeyError, TypeError, AttributeError):
        return None
    return msgspec.json.encode(record)


def _criteria(due: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for field, tag in _FIELDS:
        found = due.pop(field, None)
        if found is not None:
            if field != "past":
                yield {"limit": found, "criterion": tag}
            elif isinstance(found, dict):
                yield {**found, "criterion": tag}
            else:
                raise msgspec.ValidationError("`past` of a measurement of the plan is no object")
