"""Facts of a machine in one run. The accepted run's facts are the baseline."""

from __future__ import annotations

import msgspec

from acceptance.history.change_rules import ChangeBook

# How a plan's gap begins if earlier runs cannot be read, so that this run cannot be compared with
# them. Such a gap is no shortfall of the run itself.
CHANGES_UNKNOWN = "what changed since the machine was accepted cannot be told"
NIGHTLY_CHANGES_UNKNOWN = "what changed from night to night cannot be told"
NOT_COMPARED = (CHANGES_UNKNOWN, NIGHTLY_CHANGES_UNKNOWN)


class KnownChange(msgspec.Struct, frozen=True):
    """A change since the baseline that an earlier night has reported.

    `part` is the name in the baseline, "" for the machine. `what` is the fact, or what happened to
    the part ("moved"). `now` is its value on that night, `since` the date of the first night that
    reported it.
    """

    part: str
    what: str
    now: str
    since: str


class MachineFacts(msgspec.Struct, frozen=True):
    """Facts of a machine in one run, which began at `utc`.

    `parts` are its GPUs, disks, DIMMs and network links, with or without a serial number.
    `identities` are UUIDs and serial numbers by component. `looked` names the kinds of parts that
    could be listed. `facts` are (component, name, text), with component "" for the machine.

    `book` has the rules for comparing another run with it, and `known` the changes that the night
    before reported. A plan has both, a certificate neither.
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
