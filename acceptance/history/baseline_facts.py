"""Facts of a machine in one run. The accepted run's facts are the baseline."""

from __future__ import annotations

import msgspec

from acceptance.history.change_rules import ChangeBook

# How a gap of a plan begins that is none of the run's own: what was before it cannot be read, and
# the run is to be held against that.
CHANGES_UNKNOWN = "what changed since the machine was accepted cannot be told"
NIGHTLY_CHANGES_UNKNOWN = "what changed from night to night cannot be told"
NOT_COMPARED = (CHANGES_UNKNOWN, NIGHTLY_CHANGES_UNKNOWN)


class KnownChange(msgspec.Struct, frozen=True):
    """A change since the baseline that a night before has told of: `part` as the baseline names it,
    "" for the machine.

    `what` is the fact, or what became of the part ("moved"); `now` is what it was on that night,
    `since` the date of the first night that told of it.
    """

    part: str
    what: str
    now: str
    since: str


class MachineFacts(msgspec.Struct, frozen=True):
    """A machine as one run found it: `utc` is when that run began.

    `parts` are its GPUs, disks, DIMMs and network links, those without a serial number too;
    `identities` are UUIDs and serial numbers by component. `looked` names the kinds of parts that
    could be looked for. `facts` are (component, name, text), the component "" for the machine.
    `book` has the rules by which another run is held against it; a certificate has none, a plan
    has. So it is with `known`: the changes that the night before has told of.
    """

    run_id: str
    utc: str
    parts: tuple[str, ...]
    identities: dict[str, str]
    facts: tuple[tuple[str, str, str], ...]
    looked: tuple[str, ...]
    book: ChangeBook | None = None
    known: tuple[KnownChange, ...] = ()

    def by_name(self) -> dict[tuple[str, str], str]:
        """The facts by component and name."""
        return {(component, name): text for component, name, text in self.facts}
