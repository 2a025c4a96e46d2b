"""The paths between GPUs, held together from what a run measured: each contradiction that there is,
and none on sound machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from cases import each
from gpu_machine import device, link, machine, pairs
from msgspec.structs import replace as replaced
from suite_box import Said, ask, planned

from acceptance.core.judgement import Judgement, judge
from acceptance.core.parts import Gpu, Pair
from acceptance.core.plan import Plan
from acceptance.core.record import Measured
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


def notes(said: Said) -> str:
    return "\n".join(
        words.text(one.note) for one in said.written if isinstance(one, Measured) and one.note
    )


@pytest.mark.parametrize(
    ("seen", "rates"), [(without_links, STAGED), (offered, PCIE), (bridged, BRIDGE)]
)
def test_sound_paths(seen: Callable[[], Inventory], rates: Rates) -> None:
    said = peers(seen(), rates)
    assert (said.outcome, said.message) == ("pass", "")
    assert said.measured("link_contradictions") == {THERE: 0.0, BACK: 0.0}
    assert notes(said) == ""


def test_both_published_ways_of_a_sound_path_may_differ() -> None:
    """Two H200s in one run: 361 and 393 GB/s; a VM with eight A100: 13 and 20 GB/s staged."""
    assert peers(bridged(), BRIDGE, {**BRIDGE, "p2p_write": 48.5}).outcome == "pass"
    slower = {"p2p_write": 13.4, "p2p_staged": 13.4, "p2p_gain": 1.0}
    faster = {"p2p_write": 20.4, "p2p_staged": 20.4, "p2p_gain": 1.0}
    assert peers(without_links(), slower, faster).outcome == "pass"


def test_peer_access_that_is_offered_and_goes_through_host_memory() -> None:
    slow = {"p2p_write": 11.3, "p2p_staged": 11.2, "p2p_gain": 1.01}
    said = peers(offered(), slow)
    assert said.outcome == "fail"
    assert said.measured("link_contradictions") == {THERE: 1.0, BACK: 1.0}
    assert "offers peer access, and copies go through host memory" in notes(said)
    # without host copies nothing says what the links carry
    assert peers(offered(), slow, of_gpus={}).outcome == "pass"
    # as fast with and without, and both as fast as the links: nothing contradicts that
    even = {"p2p_write": 22.5, "p2p_staged": 22.3, "p2p_gain": 1.0}
    assert peers(offered(), even).outcome == "pass"


def test_what_a_limit_has_failed_is_not_failed_again() -> None:
    said = peers(bridged(), {**BRIDGE, "p2p_write": 6.3, "p2p_gain": 1.01, "copy_d2d_write": 6.3})
    assert said.outcome == "pass"
    assert said.measured("link_contradictions") == {THERE: 0.0, BACK: 0.0}
    assert "4 NVLinks are up, and data goes at the rate of PCI Express" in notes(said)
    assert "p2p_gain" in notes(said)
    assert "already)" in notes(said)


def test_nvlinks_of_an_unknown_model_whose_copies_are_of_pci_express() -> None:
    """p2p_gain passes only beside a slow way through host memory; nothing else has a limit."""
    seen = bridged(name="NVIDIA Unheard Of")
    said = peers(seen, {"p2p_write": 26.0, "p2p_staged": 11.0, "p2p_gain": 2.4})
    assert said.outcome == "fail"
    assert "data goes at the rate of PCI Express (p2p_write)" in notes(said)


def test_one_way_that_is_slower_than_the_other() -> None:
    said = peers(offered(), {**PCIE, "copy_d2d_write": 12.8}, PCIE)
    assert said.outcome == "fail"
    assert said.measured("link_contradictions") == {THERE: 2.0, BACK: 0.0}
    assert "copy_d2d_write is far slower this way than back" in notes(said)
    assert "p2pBandwidthLatencyTest and nvbandwidth differ widely" in notes(said)


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


def test_copies_that_gain_by_peer_access_which_the_driver_refuses() -> None:
    said = peers(without_links(), {"p2p_write": 40.0, "p2p_staged": 21.6, "p2p_gain": 1.85})
    assert said.outcome == "fail"
    assert "offers no peer access (read not-supported, write not-supported)" in notes(said)


def test_peer_access_one_way() -> None:
    seen = offered()
    first, second = seen.nvml.pairs
    refused = replace(first, p2p_read="chipset-not-supported")
    seen = replace(seen, nvml=replace(seen.nvml, pairs=(refused, second)))
    said = peers(seen, PCIE)
    assert said.outcome == "fail"
    assert "offers peer access back, and not there (read chipset-not-supported" in notes(said)


def test_half_a_bridge() -> None:
    """One card shows two links, the other four."""
    rates = {**BRIDGE, "p2p_write": 52.0}
    said = peers(bridged(up=(2, 4), name="NVIDIA Unheard Of"), rates)
    assert said.outcome == "fail"
    assert said.measured("link_contradictions") == {THERE: 1.0, BACK: 0.0}
    assert "2 NVLinks lead there and 4 lead back" in notes(said)


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
