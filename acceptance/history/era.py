"""An era: nights measured with the same versions and settings. Only nights of one era are compared.
Pure.

Another image, driver, profile or time of load may give another value on a sound machine; what the
machine itself is does not belong here: a replaced part, another VBIOS or BIOS is a change of the
machine, and must be seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from acceptance.core.limit import number
from acceptance.core.plan import Plan
from acceptance.machine import recorded_inventory

_LOAD = "load "  # before the name of a load whose seconds are a fact


class Era(msgspec.Struct, frozen=True):
    """What nights of one era have in common: facts by name, in order of their names; what is not
    known is absent.
    """

    facts: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """The same for two eras if and only if their facts are: 32 hexadecimal digits."""
        return hashlib.sha256(msgspec.json.encode(self.facts)).hexdigest()[:32]

    @property
    def ground(self) -> tuple[tuple[str, str], ...]:
        """Image, driver and station: a baseline counts as long as these are the same, whatever the
        profile and how long it loads.

        A night is shorter than an acceptance, but does the same work in the same way; what a longer
        load makes different (heat) is worse in the longer one, which the acceptance is. Nights
        among themselves are held tighter, and only within an era.
        """
        return tuple(
            (name, text)
            for name, text in self.facts
            if name != "profile" and not name.startswith(_LOAD)
        )


def era_of_run(plan: Plan, provenance: Mapping[str, str], inventory: Mapping[str, Any]) -> Era:
    """The era of a run, from what is known before it begins: of the provenance the station's own
    part is enough.

    An image of ours is known by what went into it, so that one built anew from the same is the
    same; any other by its id.
    """
    driver = recorded_inventory.table(inventory, "board").get("nvidia_driver")
    facts: dict[str, str | None] = {
        "driver": driver if isinstance(driver, str) else None,
        "image": provenance.get("image_inputs") or provenance.get("image_id"),
        "image_versions": provenance.get("image_versions"),
        "profile": plan.profile,
        "station": provenance.get("station"),
        **{f"{_LOAD}{name}": f"{number(seconds)} s" for name, seconds in plan.loads_s.items()},
    }
    return Era(tuple(sorted((name, text) for name, text in facts.items() if text)))


def changes(before: Era, after: Era) -> tuple[tuple[str, str | None, str | None], ...]:
    """The facts in which two eras differ: name, text before and after; None where an era has
    none of that name.
    """
    was, now = dict(before.facts), dict(after.facts)
    names = sorted({*was, *now})
    return tuple(
        (name, was.get(name), now.get(name)) for name in names if was.get(name) != now.get(name)
    )


def describe_changes(before: Era, after: Era) -> str:
    """What changed between two eras, in words; empty where nothing did."""
    return "; ".join(_describe_change(*change) for change in changes(before, after))


def _describe_change(name: str, before: str | None, after: str | None) -> str:
    what = (
        f"the time of {name.removeprefix(_LOAD)}"
        if name.startswith(_LOAD)
        else f"the {name.replace('_', ' ')}"
    )
    if before is None:
        return f"{what} is {after}, and was not told before"
    if after is None:
        return f"{what} is not told any more, and was {before}"
    return f"{what} changed from {before} to {after}"
