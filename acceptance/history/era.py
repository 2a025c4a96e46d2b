"""An era: nights measured with the same versions and settings. Pure.

Only nights of one era are compared: another image, driver, profile or load time may give another
value on a sound machine. Properties of the machine itself are not part of an era: a replaced part,
another VBIOS or BIOS is a change of the machine, and must be reported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from acceptance.core.limit import number
from acceptance.core.message import Message
from acceptance.core.plan import Plan
from acceptance.machine.inventory import Inventory

_LOAD = "load "  # prefix of a fact that is a load's seconds
# The other facts of `era_of_run`; an era of another version may have more.
_FACTS = {
    "driver": Message("the_driver"),
    "image": Message("the_image"),
    "image_versions": Message("the_image_versions"),
    "profile": Message("the_profile"),
    "station": Message("the_station"),
}


class Era(msgspec.Struct, frozen=True):
    """The facts that nights of one era share, sorted by name; an unknown fact is absent."""

    facts: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """32 hexadecimal digits, equal for two eras if and only if their facts are."""
        return hashlib.sha256(msgspec.json.encode(self.facts)).hexdigest()[:32]

    @property
    def ground(self) -> tuple[tuple[str, str], ...]:
        """Image, driver and station: a baseline is comparable as long as these are the same.

        Profile and load time may differ. A night is shorter than an acceptance, but does the same
        work in the same way; heat, the effect of a longer load, makes the acceptance the worse of
        the two. Nights are compared with each other more strictly, and only within an era.
        """
        return tuple(
            (name, text)
            for name, text in self.facts
            if name != "profile" and not name.startswith(_LOAD)
        )


def era_of_run(plan: Plan, provenance: Mapping[str, str], inventory: Inventory) -> Era:
    """The era of a run, from facts known before it begins.

    Of the provenance only the station's part is needed. An image of ours is identified by its
    inputs, so that a rebuilt one is the same; any other image by its id.
    """
    facts: dict[str, str | None] = {
        "driver": inventory.board.nvidia_driver,
        "image": provenance.get("image_inputs") or provenance.get("image_id"),
        "image_versions": provenance.get("image_versions"),
        "profile": plan.profile,
        "station": provenance.get("station"),
        **{f"{_LOAD}{name}": f"{number(seconds)} s" for name, seconds in plan.loads_s.items()},
    }
    return Era(tuple(sorted((name, text) for name, text in facts.items() if text)))


def changes(before: Era, after: Era) -> tuple[tuple[str, str | None, str | None], ...]:
    """The facts in which two eras differ: name, text before, text after.

    A text is None if the era lacks the fact.
    """
    was, now = dict(before.facts), dict(after.facts)
    names = sorted({*was, *now})
    return tuple(
        (name, was.get(name), now.get(name)) for name in names if was.get(name) != now.get(name)
    )


def describe_changes(before: Era, after: Era) -> tuple[Message, ...]:
    """The differences between two eras."""
    return tuple(_describe_change(*change) for change in changes(before, after))


def _describe_change(name: str, before: str | None, after: str | None) -> Message:
    fact = _fact(name)
    if before is None:
        return Message("fact_is_new", {"fact": fact, "after": str(after)})
    if after is None:
        return Message("fact_is_gone", {"fact": fact, "before": before})
    return Message("fact_is_other", {"fact": fact, "before": before, "after": after})


def _fact(name: str) -> Message:
    if name.startswith(_LOAD):
        return Message("time_of_load", {"load": name.removeprefix(_LOAD)})
    return _FACTS.get(name) or Message("the_fact", {"name": name.replace("_", " ")})
