"""The parts that belong to a machine, of one run: what is plugged in from outside, and what a hypervisor offers, comes and goes."""

from __future__ import annotations

from acceptance.judge.birth import Birth
from acceptance.judge.change_rules import Counted
from acceptance.judge.circumstances import Facts

_PREFIX = {"gpu": "gpu", "disk:": "disk", "dimm:": "dimm", "net:": "net"}
NETWORK = "net"


def kind_of(component: str) -> str:
    """The kind of part that a component is, as rules name it: "gpu", "disk", "dimm", "net", "cpu", "memory"; "machine" for the machine."""
    found = (kind for prefix, kind in _PREFIX.items() if component.startswith(prefix))
    return next(found, component or "machine")


def _counts(component: str, facts: Facts, counted: Counted) -> bool:
    kind = kind_of(component)
    if kind == "disk":
        return facts.get((component, "transport")) in counted.disks and facts.get((component, "kind")) != "virtual"
    if kind == NETWORK:
        own = facts.get((component, "bus")) == "pci" and facts.get((component, "is_virtual_function")) != "on"
        return own and facts.get((component, "kind")) in counted.links
    return True


class Parts:
    """The parts of one run that count, their identities, and the facts about them and about the machine."""

    def __init__(self, told: Birth, counted: Counted) -> None:
        facts = told.told()
        self.names = tuple(part for part in told.parts if _counts(part, facts, counted))
        others = set(told.parts) - set(self.names)
        self.facts = {name: text for name, text in facts.items() if name[0] not in others}
        self.identities = {part: identity for part, identity in told.identities.items() if part in self.names}
        self.looked = frozenset(told.looked)

    def fact(self, part: str, name: str) -> str | None:
        """One fact; None where it was not told."""
        return self.facts.get((part, name))

    def called(self, part: str) -> str:
        """A part with what is printed on it and where it is, for somebody who looks for it."""
        model = self.fact(part, "name") or self.fact(part, "model") or self.fact(part, "part_number")
        identity = self.identities.get(part) or self.fact(part, "mac")
        told = ", ".join(filter(None, [model, identity, self.place(part)]))
        return f"{part} ({told})" if told else part

    def place(self, part: str) -> str | None:
        """Where a part is on the PCI bus: the name of its slot, and its address."""
        slot, address = self.fact(part, "slot"), self.fact(part, "pci_address")
        return f"{address} in slot {slot}" if slot and address else address

    def macs(self) -> frozenset[str]:
        """The addresses that its network cards were made with."""
        return frozenset(filter(None, (self.fact(part, "mac") for part in self.names)))

    def links(self, shared: frozenset[str]) -> dict[str, str]:
        """What tells each network link from the others: its own address where that is `shared` with the other run, else its place on the
        bus, with its port. Names of links change with the system."""
        found = {}
        for part in self.names:
            mac, place = self.fact(part, "mac"), self.fact(part, "pci_address")
            if kind_of(part) == NETWORK and mac is not None and mac in shared:
                found[part] = mac
            elif kind_of(part) == NETWORK and place is not None:
                found[part] = f"{place}/{part.partition('/')[2]}"
        return found
