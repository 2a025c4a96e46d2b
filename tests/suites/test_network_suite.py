"""The checks of network cards, on cards that are made of files: as functions with their real
limits, and in sessions of the product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cases import each
from gpu_machine import look, tree_of
from suite_box import Said, ask, planned

from acceptance.core.language import ENGLISH
from acceptance.core.parts import Component, Gpu, Part
from acceptance.core.plan import Plan
from acceptance.expect import components
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, NetworkLink
from acceptance.machine.machine_file import DeclaredLink, Machine
from acceptance.observe import draft
from acceptance.observe import network as observe_network
from acceptance.reports.page import machine as page_machine
from acceptance.suites import network
from selftest import network_card
from selftest.fault import NetworkCard

CARDS = (NetworkCard("ens7"), NetworkCard("ens8"), NetworkCard("mlx9_0/1"))
ENS7, ENS8, MLX9 = (Part("net", card.name) for card in CARDS)
THREE = (*CARDS, NetworkCard("ens9"))  # of Ethernet, beside InfiniBand
ENS9 = Part("net", "ens9")


def laid(root: Path, *cards: NetworkCard, gpu_count: int = 0) -> Inventory:
    """A machine with these cards."""
    tree = tree_of(root, gpu_count)
    for number, card in enumerate(cards):
        network_card.lay(root, number, card)
    return look(tree, ())


def after(inventory: Inventory, **changed: dict[str, Any] | None) -> dict[Component, NetworkLink]:
    """The ports after the run; of each that is named (ens7, ...) what changed, None: it is gone."""
    found = {}
    for link in inventory.links or ():
        change = changed.get(link.name.partition("_")[0], {})
        if change is not None:
            found[link.component] = replace(link, **change)
    return found


def plan_of(inventory: Inventory, machine: Machine | None = None, names: Any = ()) -> Plan:
    return planned(inventory, names, ["network"], "digest", machine)


def said(
    inventory: Inventory,
    check: str,
    function: Callable[..., None],
    **changed: dict[str, Any] | None,
) -> Said:
    """What a check says of the ports before and after the run."""
    ports = {link.component: link for link in inventory.links or ()}
    return ask(
        plan_of(inventory),
        f"network.{check}",
        function,
        ports_before=ports,
        ports_now=after(inventory, **changed),
    )


def test_sound_cards_pass(tmp_path: Path) -> None:
    inventory = laid(tmp_path, *CARDS)
    for check, function in (
        ("links", network.test_links),
        ("links_after", network.test_links_after),
        ("rates", network.test_rates),
        ("ports", network.test_ports),
        ("counters", network.test_counters),
    ):
        found = said(inventory, check, function)
        assert (found.outcome, found.skipped()) == ("pass", set()), (check, found.message)
    assert said(inventory, "rates", network.test_rates).measured("network_rate") == {
        ENS7: 400_000.0,
        ENS8: 400_000.0,
        MLX9: 400_000.0,
    }


def one_port(root: Path, **changed: Any) -> Inventory:
    """A machine with one card, of whose port this is other."""
    inventory = laid(root, NetworkCard("ens7"))
    (link,) = inventory.links or ()
    return replace(inventory, links=(replace(link, **changed),))


def test_a_link_that_is_narrower_or_hidden_or_gone(tmp_path: Path) -> None:
    changed = {"ens7": {"pcie_width": 8}, "ens8": {"pcie_width": None}, "mlx9": None}
    found = said(laid(tmp_path, *CARDS), "links", network.test_links, **changed)
    assert found.outcome == "fail"
    assert found.measured("network_link_share") == {ENS7: 0.5}
    assert found.skipped() == {("network_link_share", ENS8), ("network_link_share", MLX9)}


def test_a_link_that_was_never_shown_is_a_skip(tmp_path: Path) -> None:
    found = said(one_port(tmp_path, pcie_width=None), "links", network.test_links)
    assert (found.outcome, found.skipped()) == ("pass", {("network_link_share", ENS7)})


def test_a_slow_port_fails_beside_its_equals_and_one_that_fell_is_a_skip(tmp_path: Path) -> None:
    inventory = laid(tmp_path, NetworkCard("ens7", speed_mbps=100_000), *THREE[1:])
    found = said(inventory, "rates", network.test_rates)
    assert found.outcome == "fail"
    assert found.measured("network_rate_ratio") == {ENS7: 0.25, ENS8: 1.6, ENS9: 1.6}
    found = said(inventory, "rates", network.test_rates, ens8={"up": False}, ens9=None, mlx9=None)
    assert found.measured("network_rate") == {ENS7: 100_000.0}
    assert found.skipped() == {
        *(("network_rate", name) for name in (ENS8, ENS9, MLX9)),
        *(("network_rate_ratio", name) for name in (ENS7, ENS8, ENS9)),
    }


def test_of_two_ports_none_is_blamed(tmp_path: Path) -> None:
    """Data and management, of one card: no machine file says which rate is right."""
    inventory = laid(tmp_path, NetworkCard("ens7", speed_mbps=1_000), *CARDS[1:])
    found = said(inventory, "rates", network.test_rates)
    assert found.outcome == "pass"
    assert found.measured("network_rate_ratio") == {}
    assert found.measured("network_rate")[ENS7] == 1_000.0


def test_a_declared_speed_takes_a_port_out_of_the_comparison(tmp_path: Path) -> None:
    inventory = laid(tmp_path, NetworkCard("ens7", speed_mbps=100_000), *CARDS[1:])
    machine = Machine(
        schema=1, name="box", network=(DeclaredLink("ens7", 100_000), DeclaredLink("ens8"))
    )
    assert components.network_siblings(machine, inventory) == ()
    classes = components.resolve(machine, inventory, frozenset(), ())
    assert classes["network-port-with-peers"] == ()
    assert classes["network-port-rated"] == (ENS7, ENS8, MLX9)


@each(
    "changed, lost, shares",
    [
        ({"up": False, "state": "down", "speed_mbps": None}, 1.0, 0.0),
        (None, 1.0, 0.0),
        ({"pci_address": "0000:aa:00.0"}, 1.0, 0.0),  # another card has its name
        ({"speed_mbps": 200_000}, 0.0, 0.5),
        ({"speed_mbps": None}, 0.0, None),
    ],
)
def test_a_port_after_the_run(
    tmp_path: Path, changed: dict[str, Any] | None, lost: float, shares: float | None
) -> None:
    found = said(laid(tmp_path, *CARDS), "ports", network.test_ports, ens7=changed)
    assert found.outcome == ("error" if shares is None else "fail")
    assert found.measured("network_port_lost") == {ENS7: lost, ENS8: 0.0, MLX9: 0.0}
    assert found.measured("network_rate_share").get(ENS7) == shares
    assert found.skipped() == (set() if shares is not None else {("network_rate_share", ENS7)})


def test_a_port_that_was_down_before_is_no_fault(tmp_path: Path) -> None:
    down = one_port(tmp_path, up=False, speed_mbps=None, state="down")
    found = said(down, "ports", network.test_ports)
    assert (found.outcome, found.measured("network_port_lost")) == ("pass", {ENS7: 0.0})
    assert said(down, "ports", network.test_ports, ens7=None).outcome == "fail"


@each(
    "counters, measurement, outcome",
    [
        ({"rx_errors": 1}, "network_errors", "fail"),
        ({"excessive_buffer_overrun_errors": 1}, "network_errors", "fail"),
        ({"symbol_error": 10}, "network_symbol_errors", "pass"),
        ({"symbol_error": 11}, "network_symbol_errors", "fail"),
        ({"port_rcv_remote_physical_errors": 100}, "network_remote_errors", "pass"),
        ({"port_rcv_remote_physical_errors": 101}, "network_remote_errors", "fail"),
        ({"carrier_changes": 3}, "network_link_downs", "fail"),
        ({"link_error_recovery": 1}, "network_link_downs", "fail"),
    ],
)
def test_counters_that_rose(
    tmp_path: Path, counters: dict[str, int], measurement: str, outcome: str
) -> None:
    (link,) = laid(tmp_path / "first", NetworkCard("ens7")).links or ()
    zero = dict.fromkeys(counters, 0) | link.counters
    before = one_port(tmp_path / "second", counters=zero)
    found = said(before, "counters", network.test_counters, ens7={"counters": zero | counters})
    assert (found.outcome, bool(found.measured(measurement)[ENS7])) == (outcome, True)


def counted(inventory: Inventory, **counters: int) -> Inventory:
    """The machine with these counters of its first card before the run."""
    first, *others = inventory.links or ()
    first = replace(first, counters={**first.counters, **counters})
    return replace(inventory, links=(first, *others))


@each("after", [{}, {"rx_errors": 4, "carrier_changes": 2, "tx_errors": 0, "rx_crc_errors": 0}])
def test_counters_that_are_gone_or_were_set_back_are_errors(
    tmp_path: Path, after: dict[str, int]
) -> None:
    inventory = counted(laid(tmp_path, *CARDS), rx_errors=5)
    found = said(inventory, "counters", network.test_counters, ens7={"counters": after}, mlx9=None)
    assert found.outcome == "error"  # they told something before
    assert ENS7 in {component for _, component in found.skipped()}
    assert found.measured("network_errors") == {ENS8: 0.0}


def test_a_counter_that_rose_is_evidence_beside_one_that_is_gone(tmp_path: Path) -> None:
    found = said(
        laid(tmp_path, NetworkCard("ens7")),
        "counters",
        network.test_counters,
        ens7={"counters": {"rx_errors": 2, "carrier_changes": 2}},
    )
    assert found.outcome == "fail"
    assert found.measured("network_errors") == {ENS7: 2.0}


def test_a_counter_that_cannot_count_further_is_a_skip(tmp_path: Path) -> None:
    full = counted(laid(tmp_path, NetworkCard("ens7")), port_rcv_errors=0xFFFF)
    found = said(full, "counters", network.test_counters)
    assert (found.outcome, found.skipped()) == ("pass", {("network_errors", ENS7)})


def affinity(inventory: Inventory, machine: Machine | None) -> Said:
    names = (Gpu(0), Gpu(1))
    return ask(
        plan_of(inventory, machine, names),
        "network.affinity",
        network.test_affinity,
        inventory=inventory,
        machine=machine,
        due_gpus=gpus(inventory, names),
    )


@each(
    "near, far, differs",
    [
        (None, None, {}),  # nothing is declared
        ([0, 1], [], {Gpu(0): 0.0, Gpu(1): 0.0}),
        ([0], [1], {Gpu(0): 0.0, Gpu(1): 1.0}),
        ([0, 1], [0], {Gpu(0): 1.0, Gpu(1): 0.0}),
    ],
)
def test_the_nearest_card_of_each_gpu_is_recorded_and_the_declared_one(
    tmp_path: Path, near: list[int] | None, far: list[int] | None, differs: dict[Component, float]
) -> None:
    card = NetworkCard("ens7", below="pci0000:00/0000:00:01.0")
    inventory = laid(tmp_path, card, NetworkCard("ens8"), gpu_count=2)
    rows = (DeclaredLink("ens7", gpus=(*(near or ()),)), DeclaredLink("ens8", gpus=(*(far or ()),)))
    machine = None if near is None else Machine(schema=1, name="box", gpus=2, network=rows)
    found = affinity(inventory, machine)
    assert found.measured("gpu_network_distance") == {Gpu(0): 1.0, Gpu(1): 3.0}
    assert found.measured("gpu_network_differs") == differs
    assert found.outcome == ("fail" if any(differs.values()) else "pass")


def test_a_declared_card_that_is_missing_or_has_no_place(tmp_path: Path) -> None:
    inventory = laid(tmp_path, NetworkCard("ens8"), gpu_count=2)
    machine = Machine(schema=1, name="box", gpus=2, network=(DeclaredLink("ens7", gpus=(0,)),))
    found = affinity(inventory, machine)
    assert (found.outcome, found.measured("gpu_network_differs")) == ("fail", {Gpu(0): 1.0})
    found = affinity(replace(inventory, places={}), machine)
    assert (found.outcome, found.skipped()) == ("pass", {("gpu_network_differs", Gpu(0))})


def test_the_inventory_shows_a_card_and_the_draft_declares_its_gpus(tmp_path: Path) -> None:
    near = NetworkCard("ens7", below="pci0000:00/0000:00:01.0", width=8)
    inventory = laid(tmp_path, near, NetworkCard("ens8"), gpu_count=2)
    rows = dict(page_machine.parts(inventory, ENGLISH))
    assert rows["network ens7"] == (
        "up, 400000 Mbit/s, mlx5_core, 9998:01:00.0, PCIe generation 5 x8"
    )
    text = draft.render(inventory)
    assert 'name = "ens7"\nspeed_mbps = 400000\ngpus = [0, 1]\n' in text
    assert 'name = "ens8"\nspeed_mbps = 400000\n' in text
    assert text.count("gpus = [") == 1
    alone = draft.render(replace(inventory, links=(inventory.links or ())[:1]))
    assert "gpus = [" not in alone  # nearest of one says nothing


def test_a_card_of_a_hypervisor_is_not_due(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, 0)
    tree.nic("eth0", driver="virtio_net")
    tree.link("sys/class/net/eth0/device/subsystem", "sys/bus/virtio")
    assert observe_network.read(tmp_path)[0].virtual
    classes = components.resolve(None, look(tree, ()), frozenset(), ())
    assert not any(members for name, members in classes.items() if name.startswith("network"))
