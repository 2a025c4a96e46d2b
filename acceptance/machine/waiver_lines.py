"""A waiver as lines of a machine file, where what is lacking is usual for such a machine."""

from __future__ import annotations

import json
from collections.abc import Iterable

from acceptance.core.component import Component
from acceptance.core.finding import Finding
from acceptance.core.message import Message

VIRTUAL_DISK = "a virtual disk has no SMART report"
# The reasons of skips whose message recommends a waiver, each with the reason to write into it.
_RECOMMENDED = {
    "dmi_no_tables": "a virtual machine has no firmware tables",
    "health_unread": "this disk has no SMART report",
}


def toml_text(text: str) -> str:
    """A TOML basic string.

    JSON's escapes are valid in TOML. TOML also requires an escape for the DEL character.

    A byte that is not UTF-8 (in the name of a network link, for example) becomes a question mark,
    because no text file can hold it.
    """
    known = text.encode("utf-8", errors="replace").decode("utf-8")
    return json.dumps(known, ensure_ascii=False).replace("\x7f", "\\u007f")


def of_skip(check: str, component: Component, reason: str) -> tuple[str, ...]:
    """The waiver of a skip of one component in one check."""
    return (
        "[[waiver]]",
        f"skip = {toml_text(check)}",
        f"component = {toml_text(str(component))}",
        f"reason = {toml_text(reason)}",
    )


def recommended(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The waivers that the messages of these findings recommend; empty where none does."""
    found: dict[tuple[str, ...], None] = {}
    for one in findings:
        reason = one.values.get("reason")
        if one.kind != "skip" or one.component is None:
            continue
        for why in reason if isinstance(reason, tuple) else (reason,):
            if isinstance(why, Message) and why.code in _RECOMMENDED:
                found[of_skip(one.check, one.component, _RECOMMENDED[why.code])] = None
    return tuple(line for waiver in found for line in waiver)
