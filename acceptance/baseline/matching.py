"""Match the components of two runs: by serial number or UUID if both have one, else by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from acceptance.core.parts import Component, Renamed, renamed
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory

# What firmware writes for a part without a serial number. A single part may have it one night, and
# another part the next.
_NOBODY = re.compile("0*|f{4,}|n/?a|none|unknown", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MovedPart:
    """One part under two names: it was moved to another slot."""

    identity: str
    before: Component
    after: Component


@dataclass(frozen=True, slots=True)
class ReplacedPart:
    """Two parts under one name."""

    component: Component
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Matching:
    """The components of a later run matched to those of the first.

    `names` has the first run's name of each.
    """

    names: Mapping[Component, Component]
    moved: tuple[MovedPart, ...]
    replaced: tuple[ReplacedPart, ...]

    def name(self, component: Component) -> Component:
        """The name in the first run; a path is named by its two ends."""
        return renamed(component, lambda end: self.names.get(end, end))

    def is_other(self, component: Component) -> bool:
        """Whether a component of the first run is another part in the later one.

        A path is another part if one of its ends is.
        """
        known = {one.component for one in self.replaced}
        return any(end in known for end in component.ends)


def identities(inventory: Inventory) -> dict[Component, str]:
    """The UUID (of GPUs) or serial number of each component, as the part reports it.

    They may be ambiguous; `unique_identities` has those that identify one part alone.
    """
    parts: dict[Component, str | None] = {
        gpu.name: gpu.uuid or gpu.serial for gpu in gpus(inventory)
    }
    parts |= {disk.component: disk.serial for disk in inventory.disks or ()}
    parts |= {dimm.component: dimm.serial for dimm in inventory.memory.dimms or ()}
    return {component: identity for component, identity in parts.items() if identity}


def unique_identities(identities: Mapping[Component, str]) -> dict[Component, str]:
    """Identities by component, without those that identify no part.

    Left out are identities that several components share, and placeholders.
    """
    times = Counter(identities.values())
    return {
        component: identity
        for component, identity in identities.items()
        if times[identity] == 1 and not _NOBODY.fullmatch(identity.strip())
    }


def match(
    first: Mapping[Component, str], later: Mapping[Component, str], others: Iterable[Component]
) -> Matching:
    """Match the components of a later run to those of the first.

    `first` and `later` are identities by component, `others` all components of the later run. A
    part that only the later run has keeps its name if the first run does not use it, and gets a `'`
    otherwise.
    """
    before, after = (
        {identity: component for component, identity in unique_identities(found).items()}
        for found in (first, later)
    )
    both = {
        identity: (before[identity], after[identity]) for identity in before.keys() & after.keys()
    }
    names = {new: old for old, new in both.values()}
    taken = set(names.values())
    for component in sorted({end for name in (*later, *others) for end in name.ends} - set(names)):
        name = component
        while name in taken:
            name = Renamed(name)
        names[component] = name
        taken.add(name)
    moved = sorted((old, new, identity) for identity, (old, new) in both.items() if old != new)
    replaced = sorted(
        (old, first[old], later[new])
        for new, old in names.items()
        if old in first and new in later and first[old] != later[new]
    )
    return Matching(
        names,
        tuple(MovedPart(identity, old, new) for old, new, identity in moved),
        tuple(ReplacedPart(*one) for one in replaced),
    )
