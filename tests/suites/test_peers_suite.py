"""The paths between GPUs, held together from what a run measured: each contradiction that there is,
and none on sound machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pytest
from cases import each
from gpu_machine import device, link, machine, pairs
from msgspec.structs import replace as replaced
from suite_box import Said, ask, planned

from acceptance.core.parts import Gpu, Pair
from acceptance.core.plan import Plan
from acceptance.core.record import Measured
from acceptance.core.verdict import Judgement, judge
from acceptance.diagnosis import peer_paths, transports
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.suites import link as link_suite
from acceptance.wording import words

NAMES = (Gpu(0), Gpu(1))
THERE, BACK = Pair(*NAMES), Pair(Gpu(1), Gpu(0))
HOST = {"copy_h2d": 25.0, "copy_d2h": 26.0}
STAGED = {"p2p_write": 21.5, "p2p_staged": 21.6, "p2p_gain": 1.0}
PCIE = {"p2p_write": 25.0, "p2p_staged": 21.6, "p2p_gain": 1.16, "copy_d2d_write": 25.4}
BRIDGE = {"p2p_write": 52.8, "p2p_staged": 6.2, "p2p_gain": 8.5, "copy_d2d_write": 53.0}
Rates = Mapping[str, float]


def without_links() -> Inventory:
    return machine(device(0), device(1), found=pairs(2, "not-supported", "not-supported"))


def offered() -> Inventory:
    """Two cards of a model without a sheet, which have peer access over PCI Express."""
    cards = (device(index, name="NVIDIA Unheard Of") for index in range(2))
    return machine(*cards, found=pairs(2))


def bridged(*, up: tuple[int, int] = (4, 4), name: str = "NVIDIA GeForce RTX 3090") -> Inventory:
    cards = [
        device(
            index,
            name=name,
            links=tuple(
                link(n, active=n < up[index], to=1 - index, speed_gbs=14.0625) for n in range(4)
            ),
        )
        for index in range(2)
    ]
    return machine(*cards, found=pairs(2))


def judged(made: Plan, there: Rates, back: Rates, of_gpus: Rates) -> tuple[Judgement, ...]:
    found: list[Judgement] = []
    for check in made.checks:
        measured = []
        for due in check.due:
            values = {THERE: there, BACK: back}.get(due.component, of_gpus)
            if due.measurement in values:
                value = values[due.measurement]
                measured.append(Measured(check.id, due.measurement, due.component, due.unit, value))
        found += judge(check, measured, (), ())
    return tuple(found)


def peers(seen: Inventory, there: Rates, back: Rates | None = None, of_gpus: Rates = HOST) -> Said:
    made = planned(seen, NAMES, ("link", "watch"), "d")
    before = judged(made, there, there if back is None else back, of_gpus)
    return ask(
        made,
        "link.peers",
        link_suite.test_peers,
        inventory=seen,
        due_gpus=gpus(seen),
        judged_before=before,
    )


def one_way() -> Inventory:
    seen = offered()
    first, second = seen.nvml.pairs
    refused = replace(first, p2p_read="chipset-not-supported")
    return replace(seen, nvml=replace(seen.nvml, pairs=(refused, second)))


UNKNOWN = partial(bridged, name="NVIDIA Unheard Of")
SLOW = {"p2p_write": 11.3, "p2p_staged": 11.2, "p2p_gain": 1.01}
SLOWER = {"p2p_write": 13.4, "p2p_staged": 13.4, "p2p_gain": 1.0}
FASTER = {"p2p_write": 20.4, "p2p_staged": 20.4, "p2p_gain": 1.0}


@pytest.mark.parametrize(
    ("seen", "there", "back", "counts", "notes"),
    [
        (without_links, STAGED, None, (0, 0), []),
        (offered, PCIE, None, (0, 0), []),
        (bridged, BRIDGE, None, (0, 0), []),
        # Both published ways of a sound path may differ: two H200s in one run have 361 and
        # 393 GB/s; a VM with eight A100 13 and 20 GB/s staged.
        (bridged, BRIDGE, {**BRIDGE, "p2p_write": 48.5}, (0, 0), []),
        (without_links, SLOWER, FASTER, (0, 0), []),
        # Peer access that is offered, and copies go through host memory.
        (offered, SLOW, None, (1, 1), ["offers peer access, and copies go through host memory"]),
        # As fast with and without, and both as fast as the links: nothing contradicts that.
        (offered, {"p2p_write": 22.5, "p2p_staged": 22.3, "p2p_gain": 1.0}, None, (0, 0), []),
        # What a limit has failed is not failed again.
        (
            *(bridged, {**BRIDGE, "p2p_write": 6.3, "p2p_gain": 1.01, "copy_d2d_write": 6.3}, None),
            (0, 0),
            ["4 NVLinks are up, and data goes at the rate of PCI Express", "p2p_gain", "already)"],
        ),
        # p2p_gain passes only beside a slow way through host memory; nothing else has a limit.
        (
            *(UNKNOWN, {"p2p_write": 26.0, "p2p_staged": 11.0, "p2p_gain": 2.4}, None, (1, 1)),
            ["data goes at the rate of PCI Express (p2p_write)"],
        ),
        (
            *(offered, {**PCIE, "copy_d2d_write": 12.8}, PCIE, (2, 0)),
            ["copy_d2d_write is far slower this way than back", "nvbandwidth differ widely"],
        ),
        (
            *(without_links, {"p2p_write": 40.0, "p2p_staged": 21.6, "p2p_gain": 1.85}, None),
            *((1, 1), ["offers no peer access (read not-supported, write not-supported)"]),
        ),
        (one_way, PCIE, None, (1, 0), ["peer access back, and not there (read chipset-not-sup"]),
        # One card shows two links, the other four.
        (
            *(partial(UNKNOWN, up=(2, 4)), {**BRIDGE, "p2p_write": 52.0}, None, (1, 0)),
            ["2 NVLinks lead there and 4 lead back"],
        ),
    ],
)
def test_paths(
    seen: Callable[[], Inventory],
    there: Rates,
    back: Rates | None,
    counts: tuple[int, int],
    notes: list[str],
) -> None:
    said = peers(seen(), there, back)
    assert said.outcome == ("fail" if any(counts) else "pass")
    assert said.measured("link_contradictions") == dict(zip((THERE, BACK), counts, strict=True))
    told = "\n".join(said.notes("link_contradictions").values())
    assert (told == "") == (notes == [])
    for note in notes:
        assert note in told


def test_without_host_copies_nothing_says_what_the_links_carry() -> None:
    assert peers(offered(), SLOW, of_gpus={}).outcome == "pass"


@each("path, open_ways", (("PIX", 1.0), ("PXB", 1.0), ("PHB", 0.0), ("SYS", 0.0)))
def test_collectives_may_differ_both_ways_where_they_go_through_host_memory(
    path: str, open_ways: float
) -> None:
    """Across a host bridge NCCL leaves peer access alone, though the driver offers it."""
    cards = (device(index, name="NVIDIA Unheard Of") for index in range(2))
    seen = machine(*cards, found=pairs(2, path=path))
    rates = {**PCIE, "collective_send_receive": 12.0}
    said = peers(seen, {**rates, "collective_send_receive": 8.0}, rates)
    assert said.measured("link_contradictions") == {THERE: open_ways, BACK: 0.0}


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"collective_send_receive": 40.0}, None),
        (
            {"collective_send_receive": 20.0},
            "NCCL sends far less over the NVLinks than copies reach",
        ),
        (
            {"collective_send_receive": 24.0, "collective_send_receive_p2p_off": 23.0},
            "4 NVLinks are up, and NCCL sends no faster than with P2P off",
        ),
    ],
)
def test_collectives_beside_copies(sent: Rates, told: str | None) -> None:
    """What collectives measured is in the journal; here another plan says so."""
    seen = bridged()
    made = planned(seen, NAMES, ("link", "watch"), "d")
    rates = judged(made, BRIDGE, BRIDGE, {"copy_h2d": 12.0, "copy_d2h": 12.0})
    like = next(one for one in rates if one.due.measurement == "p2p_staged")
    more = tuple(
        Judgement(replaced(like.due, measurement=name, component=pair), value, None, None, ())
        for name, value in sent.items()
        for pair in (THERE, BACK)
    )
    found = peer_paths.paths(
        transports.pair_links(seen, gpus(seen), ()), gpus(seen), (*rates, *more)
    )
    said = [words.message(one.why) for path in found for one in path.open]
    assert {path.joined for path in found} == {"NV4"}
    assert said == ([] if told is None else [told, told])


def test_nothing_to_compare_is_a_skip() -> None:
    said = peers(offered(), {})
    assert said.skipped() == {("link_contradictions", THERE), ("link_contradictions", BACK)}


def test_one_gpu_has_no_paths() -> None:
    made = planned(machine(device(0)), (Gpu(0),), ("link", "gpu.present"), "d")
    assert "link.peers" not in {check.id for check in made.checks}
