"""Network cards: whose ports they are, which are equal, how far they are, how counters grew."""

from __future__ import annotations

from dataclasses import replace

from cases import each
from gpu_machine import empty
from known import known

from acceptance.core.message import Gap, Unmeasured
from acceptance.core.parts import Part
from acceptance.machine import network_card
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, NetworkLink, PciPlace
from acceptance.wording import words

CARD = NetworkLink(
    "ens7",
    "ethernet",
    "mlx5_core",
    400_000,
    "b8:00:00:00:00:00",
    True,
    False,
    "0000:81:00.0",
    bus="pci",
    is_virtual_function=False,
    device_id="15b3:1021",
    pcie_speed_gts=32.0,
    pcie_width=16,
    max_pcie_speed_gts=32.0,
    max_pcie_width=16,
)


@each(
    "changed, own",
    [
        ({}, True),
        ({"kind": "infiniband"}, True),
        ({"virtual": True}, False),
        ({"is_virtual_function": True}, False),
        ({"bus": "usb"}, False),
        ({"bus": None}, False),
        ({"kind": "wireless"}, False),
        ({"pci_address": None}, False),
    ],
)
def test_the_ports_of_the_machine_itself(changed: dict[str, object], own: bool) -> None:
    port = replace(CARD, **changed)  # type: ignore[arg-type]
    assert network_card.ports([port]) == ((port,) if own else ())


def test_ip_over_infiniband_is_one_with_its_port() -> None:
    port = replace(CARD, name="mlx5_0/1", kind="infiniband")
    over = replace(CARD, name="ibs7", kind="infiniband")
    assert network_card.ports([over, port]) == (port,)
    assert network_card.ports([over]) == (over,)  # in a container without RDMA
    other = replace(port, name="mlx5_1/1", pci_address="0000:21:00.0")
    both = (port.component, other.component)
    assert network_card.equal_ports([over, port, other], []) == (both,)
    assert network_card.equal_ports([over, port, other], ["ibs7"]) == ()


def test_a_card_is_named_by_its_infiniband_port() -> None:
    other = replace(CARD, name="ens3", pci_address="0000:21:00.0")
    port = replace(CARD, name="mlx5_0/1", kind="infiniband")
    assert network_card.cards([CARD, port, other]) == {
        "0000:21:00.0": other,
        "0000:81:00.0": port,
    }


@each(
    "changed, bare, virtual",
    [
        ({}, True, True),
        ({"pcie_width": None}, True, False),
        ({"pcie_speed_gts": None}, True, False),
        ({"pcie_width": None, "max_pcie_width": None}, False, False),
    ],
)
def test_whether_the_kernel_shows_a_link(
    changed: dict[str, object], bare: bool, virtual: bool
) -> None:
    port = replace(CARD, **changed)  # type: ignore[arg-type]
    assert network_card.shows_link(port, virtualised=False) is bare
    assert network_card.shows_link(port, virtualised=True) is virtual


def test_a_link_against_card_and_slot() -> None:
    narrow = replace(CARD, pcie_width=4, slot_max_pcie_width=8)
    found = known(network_card.link_share(narrow))
    assert found.share == 0.5
    assert "0000:81:00.0 runs at" in words.message(found.told)
    assert network_card.link_share(replace(CARD, pcie_width=None)) is None


def test_equal_ports_are_up_and_of_one_model() -> None:
    links = [
        CARD,
        replace(CARD, name="ens8"),
        replace(CARD, name="ens9", up=False),
        replace(CARD, name="ens10", speed_mbps=None),
        replace(CARD, name="mlx5_0/1", kind="infiniband"),
        replace(CARD, name="eno1", device_id="8086:15f3"),
        replace(CARD, name="eno2", device_id=None),
        replace(CARD, name="ens11"),
    ]
    named = (Part("net", "ens7"), Part("net", "ens8"), Part("net", "ens11"))
    assert network_card.equal_ports(links, ()) == (named,)
    # Of two ports of Ethernet one is often for another network.
    assert network_card.equal_ports(links, ["ens7"]) == ()
    fabric = [replace(CARD, name=f"mlx5_{n}/1", kind="infiniband") for n in range(2)]
    assert network_card.equal_ports(fabric, ()) == (tuple(one.component for one in fabric),)
    assert network_card.equal_ports(fabric[1:], ()) == ()


@each(
    "before, after, grown, text",
    [
        ({}, {"rx_errors": 5}, 0.0, ""),
        ({"rx_errors": 5}, {"rx_errors": 5}, 0.0, ""),
        ({"rx_errors": 5}, {"rx_errors": 7}, 2.0, "rx_errors +2"),
        (
            {"rx_errors": 0, "tx_errors": 1},
            {"rx_errors": 1, "tx_errors": 5},
            4.0,
            "rx_errors +1, tx_errors +4",
        ),
        ({"rx_errors": 5}, {}, 0.0, ""),  # which `lost_counters` names
        # a packet of a wrong length is the sender's
        (
            {"rx_errors": 5, "rx_length_errors": 3},
            {"rx_errors": 7, "rx_length_errors": 5},
            0.0,
            "",
        ),
        (
            {"rx_errors": 5, "rx_length_errors": 3},
            {"rx_errors": 8, "rx_length_errors": 5},
            1.0,
            "rx_errors +1",
        ),
        ({"rx_errors": 5, "rx_length_errors": 3}, {"rx_errors": 6}, 1.0, "rx_errors +1"),
        ({"rx_errors": 5}, {"rx_errors": 4}, 0.0, ""),
        ({"port_rcv_errors": 65535}, {"port_rcv_errors": 65535}, None, "stood at 65535 before"),
        ({"local_link_integrity_errors": 15}, {"local_link_integrity_errors": 15}, None, "at 15"),
        ({"port_rcv_errors": 65534}, {"port_rcv_errors": 65535}, 1.0, "port_rcv_errors +1"),
        # a counter that grew is evidence, whatever became of the others
        ({"rx_errors": 5, "tx_errors": 5}, {"tx_errors": 6}, 1.0, "tx_errors +1"),
    ],
)
def test_how_counters_grew(
    before: dict[str, int], after: dict[str, int], grown: float | None, text: str
) -> None:
    told = network_card.growth(before, after, network_card.COUNTERS["network_errors"])
    if isinstance(told, Gap):
        full = "stood at" in text or "at 15" in text
        assert told.why is (Unmeasured.NOT_OFFERED if full else Unmeasured.NO_ANSWER)
        assert grown is None
        assert text in words.text(told.reason)
        return
    found, message = told
    assert found == grown
    assert text in ("" if message is None else words.message(message))
    assert (message is None) == (text == "")


@each(
    "before, after, codes",
    [
        ({"rx_errors": 5}, {"rx_errors": 5}, []),
        ({}, {"rx_errors": 5}, []),
        ({"rx_errors": 5}, {}, ["network_counter_gone"]),
        (
            {"rx_errors": 5, "tx_errors": 0},
            {"rx_errors": 4},
            ["network_counter_reset", "network_counter_gone"],
        ),
    ],
)
def test_counters_whose_growth_is_not_known(
    before: dict[str, int], after: dict[str, int], codes: list[str]
) -> None:
    names = network_card.COUNTERS["network_errors"]
    assert [one.code for one in network_card.lost_counters(before, after, names)] == codes


def near(*bridges: tuple[str, ...], own: str = "0000:01:00.0") -> Inventory:
    """A machine with a GPU below the first bridges, and a card below each of the others."""
    names = [own, *(f"0000:{0x80 + number:02x}:00.0" for number in range(1, len(bridges)))]
    places = {
        name: PciPlace(name, path[0], path[1:], 0 if path[0] != "pci0000:c0" else 1, None)
        for name, path in zip(names, bridges, strict=True)
    }
    cards = tuple(
        replace(CARD, name=f"ens{number}", pci_address=name)
        for number, name in enumerate(names[1:], start=1)
    )
    return replace(empty(1), links=cards, places=places)


SWITCH = ("pci0000:00", "0000:00:01.0", "0000:02:00.0")


@each(
    "bridges, path, names",
    [
        (((*SWITCH, "a"), (*SWITCH, "b"), ("pci0000:00", "c")), "PIX", "ens1"),
        (((*SWITCH, "a"), (*SWITCH, "b"), (*SWITCH, "c")), "PIX", "ens1 ens2"),
        (((*SWITCH, "a"), ("pci0000:c0", "b"), ("pci0000:00", "c")), "PHB", "ens2"),
        (((*SWITCH, "a"), ("pci0000:c0", "b"), ("pci0000:80", "c")), "NODE", "ens2"),
        (((*SWITCH, "a"), ("pci0000:c0", "b")), "SYS", "ens1"),
    ],
)
def test_the_nearest_card(bridges: tuple[tuple[str, ...], ...], path: str, names: str) -> None:
    inventory = near(*bridges)
    (gpu,) = gpus(inventory)
    found = known(network_card.nearest(inventory, gpu))
    assert (found[0], " ".join(port.name for port in found[1])) == (path, names)


def test_no_place_and_no_card_is_near() -> None:
    inventory = near(SWITCH, SWITCH)
    (gpu,) = gpus(inventory)
    own = {gpu.pci_address: inventory.places[gpu.pci_address]}
    assert network_card.nearest(replace(inventory, places={}), gpu) is None
    assert network_card.nearest(replace(inventory, links=()), gpu) is None
    assert network_card.nearest(replace(inventory, places=own), gpu) is None
