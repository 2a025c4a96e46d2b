"""A waiver as lines of a machine file, where what is lacking is usual for such a machine."""

from __future__ import annotations

import json
from collections.abc import Iterable

from acceptance.core.finding import Finding
from acceptance.core.message import Message, Unmeasured
from acceptance.core.parts import Component

VIRTUAL_DISK = "a virtual disk has no SMART report"
# The reason to write into a waiver, by the code of what is not offered.
_REASONS = {
    "dmi_no_tables": "a virtual machine has no firmware tables",
    "health_unread": "this disk has no SMART report",
    "health_of_volume": "a volume of a RAID controller; the health of its members is read by hand",
}
_REASON = "this machine does not offer it"


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
    """The waivers of what these findings say is not offered; empty where everything is.

    What may not be read has a better cure, and what failed to answer cannot be waived.
    """
    found: dict[tuple[str, ...], None] = {}
    for one in findings:
        if one.code != Unmeasured.NOT_OFFERED or one.component is None:
            continue
        why = one.values.get("reason")
        reason = _REASONS.get(why.code, _REASON) if isinstance(why, Message) else _REASON
        found[of_skip(one.check, one.component, reason)] = None
    return tuple(line for waiver in found for line in waiver)
