"""The network cards before and after the run: their PCI Express links, the rates of their ports,
what they counted, and which GPU each is near."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from acceptance.core import message
from acceptance.core.message import (
    Gap,
    Listed,
    Message,
    after_fault,
    english,
    no_answer,
    not_offered,
)
from acceptance.core.parts import Component
from acceptance.core.parts import Gpu as GpuName
from acceptance.machine import network_card
from acceptance.machine.gpu import Gpu, uuids
from acceptance.machine.inventory import Inventory, NetworkLink, known
from acceptance.machine.machine_file import Machine
from acceptance.observe import network
from acceptance.session.check import Check, Figures

Ports = Mapping[Component, NetworkLink]


@pytest.fixture
def ports_before(inventory: Inventory) -> Ports:
    """The ports as the inventory before the run has them, by component."""
    return _by_component(network_card.ports(known(inventory.links)))


@pytest.fixture
def ports_now(root: Path) -> Ports:
    """The ports at this moment, by component."""
    return _by_component(network_card.ports(network.read(root)))


def _by_component(ports: Sequence[NetworkLink]) -> Ports:
    return {port.component: port for port in ports}


def _serials(ports: Ports) -> dict[Component, str | None]:
    """What identifies each port: the GUID of an RDMA device, else the MAC address."""
    return {name: port.guid or port.mac for name, port in ports.items()}


def _present(ports_before: Ports, ports_now: Ports, name: Component) -> NetworkLink | None:
    """A port as it is now; None if it is gone, or another card has its name."""
    before, now = ports_before[name], ports_now.get(name)
    return now if now is not None and now.pci_address == before.pci_address else None


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("network_link_share")
def test_links(ports_before: Ports, ports_now: Ports, check: Check) -> None:
    """The PCI Express link of every network card before the run, against the most that card and
    slot can have together.

    Measured: generation and lanes as a share of the data rate; a card does not slow its link down
    to save power. Not measured: data over the link.
    """
    _links(ports_before, ports_now, check)


@pytest.mark.session("host-after")
@pytest.mark.costs(0.1)
@pytest.mark.measures("network_link_share")
def test_links_after(ports_before: Ports, ports_now: Ports, check: Check) -> None:
    """The PCI Express link of every network card after the run, against the most that card and
    slot can have together.

    Measured: generation and lanes as a share of the data rate. A link that lost lanes in the heat
    of the run shows here. Not measured: data over the link.
    """
    _links(ports_before, ports_now, check)


def _links(ports_before: Ports, ports_now: Ports, check: Check) -> None:
    shares = Figures()
    for name in check.components("network_link_share"):
        port = _present(ports_before, ports_now, name)
        found = None if port is None else network_card.link_share(port)
        if found is not None:
            shares.add(name, found.share, found.told)
        elif port is None:
            shares.skip(
                name,
                no_answer(
                    Message(
                        english(
                            "network_port_gone",
                            "the port is not there any more, or another card has its name",
                        )
                    )
                ),
            )
        elif network_card.link_share(ports_before[name]) is not None:
            shares.skip(name, no_answer(Message("reading_lost", {"what": "network_link_share"})))
        else:
            shares.skip(
                name,
                not_offered(
                    Message(
                        english(
                            "network_link_unread",
                            "the kernel does not show the card's link, or the most that it could "
                            "be: if that is usual for this card, waive it in the machine file",
                        )
                    )
                ),
            )
    check.take("network_link_share", shares, serials=_serials(ports_before))


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("network_rate", "network_rate_ratio")
def test_rates(ports_before: Ports, ports_now: Ports, check: Check) -> None:
    """The rate of every port that is up, also as a ratio to the ports of equal cards.

    Measured: the rate on which the two ends agreed, by the kernel. A port whose speed the machine
    file declares is compared with that (inventory.network) and not with others. Not measured: data
    over the network.
    """
    rates = Figures()
    for name in check.components("network_rate"):
        port = _present(ports_before, ports_now, name)
        if port is not None and port.up and port.speed_mbps is not None:
            rates.add(name, float(port.speed_mbps))
        else:
            lost = Message(
                english(
                    "network_port_down",
                    "the port was up when the run began and is down now, or its driver does not "
                    "report the rate: bring it up and run again",
                )
                if port is not None
                else "network_port_gone"
            )
            rates.skip(name, no_answer(lost))
    serials = _serials(ports_before)
    check.take("network_rate", rates, serials=serials)
    no_equal = after_fault(
        Message(english("network_no_equal", "no equal port is up to compare this one with"))
    )
    lone = dict.fromkeys(check.components("network_rate_ratio"), no_equal)
    check.ratio("network_rate_ratio", skipped={**lone, **rates.gaps}, serials=serials)


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("gpu_network_distance", "gpu_network_differs")
def test_affinity(
    inventory: Inventory, machine: Machine | None, due_gpus: tuple[Gpu, ...], check: Check
) -> None:
    """Which network card is nearest to each GPU, and whether it is the declared one.

    Measured: how far it is in the PCI tree, by the kernel: 1 one switch (PIX), 2 several bridges
    (PXB), 3 the host bridge (PHB), 4 the NUMA node (NODE), 5 another one (SYS). Not measured: data
    between them.
    """
    distances, differs = Figures(), Figures()
    due = check.components("gpu_network_differs")
    links = {link.name: link for link in known(inventory.links)}
    for gpu in due_gpus:
        found = network_card.nearest(inventory, gpu)
        if found is None:
            continue
        path, nearest = found
        names = Listed(tuple(port.name for port in nearest))
        note = Message(
            english("network_cards_near", "{path}: {cards}"), {"path": path, "cards": names}
        )
        distances.add(gpu.name, float(network_card.PATHS.index(path) + 1), note)
        addresses = {port.pci_address for port in nearest}
        declared = [
            link.name
            for link in (machine.network if machine else ())
            if gpu.name in {GpuName(number) for number in link.gpus}
        ]
        far = any(
            name not in links or links[name].pci_address not in addresses for name in declared
        )
        if gpu.name in due:
            differs.add(gpu.name, float(far), note)
    serials = uuids(due_gpus)
    check.take("gpu_network_distance", distances, serials=serials)
    unknown = dict.fromkeys(
        due,
        not_offered(
            Message(
                english(
                    "network_place_unknown",
                    "the kernel does not show the place of the GPU or of any network card in the "
                    "PCI tree: waive it in the machine file, or remove gpus from its network table",
                )
            )
        ),
    )
    check.take("gpu_network_differs", differs, skipped=unknown, serials=serials)


@pytest.mark.session("host-after")
@pytest.mark.costs(0.1)
@pytest.mark.measures("network_port_lost", "network_rate_share")
def test_ports(ports_before: Ports, ports_now: Ports, check: Check) -> None:
    """Every port that was up before the run is up after it, at its rate.

    Measured: ports that are down now, or gone with their card, and the rate after the run as a
    share of that before. A port that was down before is no fault. Not measured: data over the
    network.
    """
    lost, shares = Figures(), Figures()
    rated = check.components("network_rate_share")
    for name in check.components("network_port_lost"):
        before, now = ports_before[name], _present(ports_before, ports_now, name)
        fell = now is None or (bool(before.up) and not now.up)
        note = _fall(now) if fell else None
        if fell and name in rated:
            shares.add(name, 0.0, note)
        elif name in rated and (now is None or now.speed_mbps is None):
            shares.skip(name, no_answer(Message("speed_not_told")))
        elif name in rated and now is not None and now.speed_mbps is not None:
            speeds = {"before": known(before.speed_mbps), "after": now.speed_mbps}
            note = Message(
                english("network_rate_moved", "{before} Mbit/s before the run, {after} after it"),
                speeds,
            )
            shares.add(name, now.speed_mbps / known(before.speed_mbps), note)
        lost.add(name, float(fell), note)
    serials = _serials(ports_before)
    check.take("network_port_lost", lost, serials=serials)
    check.take("network_rate_share", shares, serials=serials)


def _fall(now: NetworkLink | None) -> Message:
    if now is None:
        return Message("network_port_gone")
    return Message(
        english(
            "network_port_fell", "up before the run, {state} after it[, physical state {physical}]"
        ),
        message.known(state=now.state, physical=now.phys_state),
    )


@pytest.mark.session("host-after")
@pytest.mark.costs(0.1)
@pytest.mark.measures(
    "network_errors", "network_symbol_errors", "network_remote_errors", "network_link_downs"
)
def test_counters(ports_before: Ports, ports_now: Ports, check: Check) -> None:
    """Errors that every port counted during the run, and how often its link went down.

    Measured: the growth of the kernel's counters from before the run until after it, the largest of
    each kind. An InfiniBand counter that stood at its highest value tells nothing: it is a skip.
    One that is gone, or was set back meanwhile, is an error. Not measured: errors before the run.
    """
    serials = _serials(ports_before)
    for measurement, names in network_card.COUNTERS.items():
        grown = Figures()
        for component in check.components(measurement):
            now = _present(ports_before, ports_now, component)
            if now is None:
                grown.skip(component, no_answer(Message("network_port_gone")))
                continue
            before, after = ports_before[component].counters, now.counters
            lost = network_card.lost_counters(before, after, names)
            found = network_card.growth(before, after, names)
            if isinstance(found, Gap):
                grown.skip(component, found)
            elif found[0] or not lost:
                grown.add(component, *found)
            if lost:
                grown.skip(component, no_answer(Message("clauses", {"why": lost})))
        check.take(measurement, grown, serials=serials)
