"""Network cards: which ports are a machine's own, which are equal, and how their counters grew."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from acceptance.core.grouping import grouped
from acceptance.core.message import Gap, Listed, Message, Values, english, not_offered
from acceptance.core.parts import Component
from acceptance.machine import disk_link, topology
from acceptance.machine.disk_link import LinkShare, PcieLink
from acceptance.machine.gpu import Gpu
from acceptance.machine.inventory import Inventory, NetworkLink

# Measurement -> the counters of which it is the largest growth.
COUNTERS: Mapping[str, tuple[str, ...]] = {
    "network_errors": (
        "port_rcv_errors",
        "local_link_integrity_errors",
        "excessive_buffer_overrun_errors",
        "rx_errors",
        "tx_errors",
        "rx_crc_errors",
    ),
    "network_symbol_errors": ("symbol_error",),
    "network_remote_errors": ("port_rcv_remote_physical_errors",),
    "network_link_downs": ("link_downed", "link_error_recovery", "carrier_changes"),
}
# The highest value of an InfiniBand counter, at which it stays: of 16, 8 and 4 bits (InfiniBand
# Architecture Specification, PortCounters; drivers/infiniband/core/sysfs.c of the kernel).
_FULL = {
    "symbol_error": 0xFFFF,
    "port_rcv_errors": 0xFFFF,
    "port_rcv_remote_physical_errors": 0xFFFF,
    "link_error_recovery": 0xFF,
    "link_downed": 0xFF,
    "local_link_integrity_errors": 0xF,
    "excessive_buffer_overrun_errors": 0xF,
}
# Packets of a wrong length are among a port's receive errors: whoever sent them made them so.
_OF_SENDER = {"rx_errors": "rx_length_errors"}
# Fewest Ethernet ports of equal cards of which equal rates are to be expected. Of two, one is often
# for another network (data and management).
_LEAST_EQUAL = 3
# From the nearest to the farthest (`topology.LEGEND`).
PATHS = ("PIX", "PXB", "PHB", "NODE", "SYS")


def ports(links: Iterable[NetworkLink]) -> tuple[NetworkLink, ...]:
    """The ports of the machine's own cards.

    Left out are devices of a hypervisor, functions that SR-IOV cut out of a card, cards on USB,
    and wireless ones; and IP over InfiniBand, which has its InfiniBand port.
    """
    own = [
        link
        for link in links
        if link.bus == "pci"
        and link.pci_address is not None
        and not link.virtual
        and not link.is_virtual_function
        and link.kind != "wireless"
    ]
    functions = {link.pci_address for link in own if _is_infiniband_port(link)}
    return tuple(
        link
        for link in own
        if link.kind != "infiniband"
        or _is_infiniband_port(link)
        or link.pci_address not in functions
    )


def _is_infiniband_port(link: NetworkLink) -> bool:
    return "/" in link.name


def cards(links: Iterable[NetworkLink]) -> dict[str, NetworkLink]:
    """The first port of each card by PCI address; InfiniBand ports take precedence."""
    found: dict[str, NetworkLink] = {}
    for port in sorted(ports(links), key=lambda port: not _is_infiniband_port(port)):
        found.setdefault(str(port.pci_address), port)
    return dict(sorted(found.items()))


def pcie_link(port: NetworkLink) -> PcieLink:
    """The PCI Express link of a port's card."""
    return PcieLink(
        address=str(port.pci_address),
        speed_gts=port.pcie_speed_gts,
        width=port.pcie_width,
        max_speed_gts=port.max_pcie_speed_gts,
        max_width=port.max_pcie_width,
        slot_max_speed_gts=port.slot_max_pcie_speed_gts,
        slot_max_width=port.slot_max_pcie_width,
    )


def shows_link(port: NetworkLink, *, virtualised: bool) -> bool:
    """Whether the kernel shows a PCI Express link of the card.

    A card of the chipset has none. In a virtual machine the current link must be known too: a
    function that was passed through may hide it.
    """
    return (
        disk_link.share(pcie_link(port)) is not None
        if virtualised
        else port.max_pcie_width is not None or port.pcie_width is not None
    )


def link_share(port: NetworkLink) -> LinkShare | None:
    """The card's link against the most that card and slot can have together; None if unknown."""
    return disk_link.share(pcie_link(port))


def rated(port: NetworkLink) -> bool:
    """Whether a port is up and the driver reports its rate."""
    return bool(port.up) and port.speed_mbps is not None


def equal_ports(
    links: Sequence[NetworkLink], declared: Collection[str]
) -> tuple[tuple[Component, ...], ...]:
    """The ports that are up of which equal rates are to be expected.

    They are of cards of one model: two and more of InfiniBand, three and more of Ethernet. A port
    whose speed is declared, by its own name or by that of its IP over InfiniBand, is held to that
    instead.
    """
    named = {
        link.pci_address for link in links if link.kind == "infiniband" and link.name in declared
    }
    groups = grouped(
        ((port.device_id, port.kind), port.component)
        for port in ports(links)
        if rated(port)
        and port.device_id is not None
        and port.name not in declared
        and not (port.kind == "infiniband" and port.pci_address in named)
    )
    return tuple(
        group
        for (_, kind), group in groups.items()
        if len(group) >= (2 if kind == "infiniband" else _LEAST_EQUAL)
    )


def lost_counters(
    before: Mapping[str, int], after: Mapping[str, int], names: Sequence[str]
) -> tuple[Message, ...]:
    """Which of these counters are gone, or were set back: nothing is known of their growth."""
    found = []
    for name in names:
        about = {"counter": name}
        if name in before and name not in after:
            found.append(
                Message(
                    english(
                        "network_counter_gone",
                        "the kernel showed {counter} before the run and does not after it: run "
                        "again once the driver is back",
                    ),
                    about,
                )
            )
        elif name in before and after[name] < before[name]:
            found.append(
                Message(
                    english(
                        "network_counter_reset",
                        "{counter} was set back during the run, so nothing shows how far it grew: "
                        "run again without that",
                    ),
                    about,
                )
            )
    return tuple(found)


def growth(
    before: Mapping[str, int], after: Mapping[str, int], names: Sequence[str]
) -> tuple[float, Message | None] | Gap:
    """The largest growth of these counters, and a message that names all that grew.

    Counters that were absent before are left out, and those of `lost_counters`. Where none grew and
    one stood at its highest value, which counts no more, a gap says so.
    """
    rose: dict[str, int] = {}
    full: list[Message] = []
    for name in names:
        if name not in before or after.get(name, -1) < before[name]:
            continue
        if before[name] == _FULL.get(name):
            at_most: Values = {"counter": name, "value": before[name]}
            full.append(
                Message(
                    english(
                        "network_counter_full",
                        "{counter} stood at {value} before the run, the highest that it can count "
                        "to, so nothing shows whether it grew: set it back (`sudo perfquery -R`) "
                        "and run again",
                    ),
                    at_most,
                )
            )
        elif (more := after[name] - before[name] - _by_sender(before, after, name)) > 0:
            rose[name] = more
    if rose:
        grew = tuple(
            Message(
                english("network_counter_rose", "{counter} +{count}"),
                {"counter": name, "count": count},
            )
            for name, count in rose.items()
        )
        return float(max(rose.values())), Message(
            english("network_counters_rose", "{counters}"), {"counters": Listed(grew)}
        )
    return not_offered(Message("clauses", {"why": tuple(full)})) if full else (0.0, None)


def _by_sender(before: Mapping[str, int], after: Mapping[str, int], name: str) -> int:
    """How much of a counter's growth the senders of packets have made."""
    part = _OF_SENDER.get(name, "")
    return max(0, after.get(part, 0) - before[part]) if part in before else 0


def nearest(inventory: Inventory, gpu: Gpu) -> tuple[str, tuple[NetworkLink, ...]] | None:
    """The shortest path from a GPU to any network card, and the first ports of the cards there.

    None where the place of the GPU, or of every card, is unknown.
    """
    places = inventory.places
    if gpu.pci_address not in places:
        return None
    found = grouped(
        (topology.path(places[gpu.pci_address], places[address]), port)
        for address, port in cards(inventory.links or ()).items()
        if address in places
    )
    return next(((path, found[path]) for path in PATHS if path in found), None)
