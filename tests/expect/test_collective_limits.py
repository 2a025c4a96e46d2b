"""Floors and ceilings of collective operations, from links and published figures."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import msgspec
import pytest
from boxes import BOXES
from known import known
from synthetic_machines import SHEETS, inventory
from worded import worded

from acceptance.core.parts import GPUS, Component, Gpu, Pair
from acceptance.expect import gpu_limits, measurements, sheet
from acceptance.expect.gpu import GpuFacts, PairFacts, collective_limits
from acceptance.expect.limit_book import Override
from acceptance.expect.sheet import COLLECTIVES, Sheet
from acceptance.machine.gpu import gpus
from acceptance.run import planning


def entries(box: str, *names: int) -> dict[tuple[str, Component], Override]:
    """The limits of collectives between these GPUs of a box, or all of them."""
    seen = inventory(BOXES[box])
    due = tuple(gpu.name for gpu in gpus(seen))
    book = planning.book(None, None, seen, tuple(map(Gpu, names)) or due)
    return {
        (one.measurement, one.component): one
        for one in reversed(book.entries)
        if one.component is not None and one.measurement.startswith("collective_")
    }


def low(found: Override) -> float:
    assert found.limit.low is not None
    return found.limit.low


@pytest.mark.usefixtures("shares")
def test_floors_of_two_cards_are_shares_of_the_slowest_way() -> None:
    """Two 3090 Ti: 4 NVLinks of 14.0625 GB/s; PCI Express 4.0 x8 has 15.75 GB/s."""
    found = entries("2x3090ti-bridge.toml")
    pair = Pair(Gpu(0), Gpu(1))
    assert low(found["collective_send_receive", pair]) == pytest.approx(0.5 * 4 * 14.0625)
    assert low(found["collective_send_receive_p2p_off", pair]) == pytest.approx(0.1 * 15.754, 1e-4)
    for name in COLLECTIVES:
        assert low(found[name, GPUS]) == pytest.approx(0.5 * 4 * 14.0625)
        assert low(found[f"{name}_p2p_off", GPUS]) == pytest.approx(0.1 * 15.754, 1e-4)


def test_cards_without_nvlink_have_the_floors_of_their_slots() -> None:
    found = entries("2x4090.toml")
    rate = low(found["collective_all_reduce", GPUS])
    assert rate == low(found["collective_all_reduce_p2p_off", GPUS])
    assert rate == low(found["collective_send_receive", Pair(Gpu(1), Gpu(0))])


@pytest.mark.usefixtures("shares")
def test_published_figures_of_so_many_cards_go_first() -> None:
    """Eight H200: 363 GB/s published; of five of them too, of two our own; not of three."""
    links = 0.5 * 18 * 25
    assert floor("collective_all_reduce", 8) == floor("collective_all_reduce", 5) == 308
    assert floor("collective_all_gather", 8) == links
    assert floor("collective_all_gather", 2) == 231
    assert floor("collective_all_reduce", 3) == links
    # a link is down: the figures are of whole cards
    assert floor("collective_all_gather", 2, 17) == 0.5 * 17 * 25


def eight_h200(count: int) -> list[GpuFacts]:
    return [*gpu_limits.gpu_facts(gpus(inventory(BOXES["8xh200.toml"]))[:count], None)]


def floor(
    name: str,
    facts: list[GpuFacts] | int,
    nvlinks: int = 18,
    first: int | None = None,
    sheets: tuple[Sheet, ...] = tuple(SHEETS.values()),
) -> float:
    """The floor between these GPUs, all joined by so many NVLinks, the first two by `first`."""
    cards = eight_h200(facts) if isinstance(facts, int) else facts
    joined = [PairFacts(a.name, b.name, nvlinks, "ok") for a, b in permutations(cards, 2)]
    if first is not None:
        joined[0] = replace(joined[0], nvlinks=first)
    limits = collective_limits(cards, joined, sheets)
    (found,) = [one for one in limits if (one.measurement, one.component) == (name, GPUS)]
    return low(found)


@pytest.mark.usefixtures("shares")
def test_the_slowest_way_and_the_slower_card_count() -> None:
    assert floor("collective_all_reduce", 5, first=9) == 0.5 * 9 * 25
    # 14.0625 GB/s a link, in either place
    (*_, bridged) = gpu_limits.gpu_facts(gpus(inventory(BOXES["2x3090ti-bridge.toml"])), None)
    one, other = eight_h200(2)
    assert floor("collective_all_gather", [replace(bridged, name=one.name), other]) == (
        0.5 * 18 * 14.0625
    )
    narrow = replace(other, card_link_width=8, slot_link_width=8)
    for pair in ([one, narrow], [narrow, one]):
        assert floor("collective_all_gather_p2p_off", pair) == pytest.approx(0.1 * 63.015 / 2, 1e-4)


@pytest.mark.usefixtures("shares")
def test_published_figures_are_of_one_model() -> None:
    links = 0.5 * 18 * 25
    cards = eight_h200(5)
    for place in (0, 4):
        mixed = [*cards]
        mixed[place] = replace(cards[place], device_id="10de:2330", model="NVIDIA H100 80GB HBM3")
        assert floor("collective_all_reduce", mixed) == links
    # a sheet may have figures and no NVLinks
    bare = msgspec.structs.replace(SHEETS["H200 SXM 141GB"], nvlink=None)
    assert floor("collective_all_gather", 2, 0, sheets=(bare,)) == 231


@pytest.mark.usefixtures("shares")
def test_nvlinks_of_a_model_without_a_sheet_have_no_rate() -> None:
    assert floor("collective_all_gather", 2, sheets=()) == pytest.approx(0.1 * 63.015, 1e-4)


@pytest.mark.usefixtures("shares")
def test_a_basis_names_the_link() -> None:
    found = entries("2x3090ti-bridge.toml")

    def basis(name: str) -> str:
        limit = known(found[name, GPUS].limit)
        return str(worded(limit.basis))

    assert basis("collective_all_reduce") == (
        "0.5 x the slowest way between two of them: 4 NVLinks x 14.0625 GB/s in one direction"
    )
    said = basis("collective_all_reduce_p2p_off")
    assert said.startswith(
        "0.1 x the slowest way between two of them: the PCI Express link of gpu0, 15.8 GB/s ("
    )
    assert "offer generation 4" in said
    assert "the slot offers x8" in said


def test_two_cards_below_one_switch_share_its_way_to_host_memory() -> None:
    """Of eight A100 in a VM such a pair copies at 7.8 of 31.5 GB/s, of which NCCL reaches 0.6."""
    found = entries("8xh200.toml")
    assert low(found["collective_all_reduce_p2p_off", GPUS]) == pytest.approx(0.1 * 63.015, 1e-4)
    path = Pair(Gpu(0), Gpu(5))
    assert low(found["collective_send_receive_p2p_off", path]) == pytest.approx(0.1 * 63.015, 1e-4)


def test_one_gpu_has_no_collective_limits() -> None:
    assert entries("8xh200.toml", 3) == {}
    assert list(collective_limits((), (), ())) == []


def test_links_that_are_not_known_limit_nothing() -> None:
    seen = inventory(BOXES["2x4090.toml"])
    facts = list(gpu_limits.gpu_facts(gpus(seen), None))
    facts[1] = replace(facts[1], card_link_gen=None, slot_link_gen=None)
    found = list(collective_limits(facts, (), tuple(SHEETS.values())))
    assert found
    assert all(one.limit is None and one.unlimited for one in found)


@pytest.mark.usefixtures("shares")
def test_ceilings_are_what_the_ways_carry() -> None:
    seen = inventory(BOXES["8xh200.toml"])
    book = planning.book(None, None, seen, tuple(gpu.name for gpu in gpus(seen)))

    def most(name: str, component: Component) -> float | None:
        found = book.ceiling(name, component)
        return found.high if found is not None else None

    path = Pair(Gpu(0), Gpu(1))
    assert most("collective_all_reduce", GPUS) == pytest.approx(1.02 * 450)
    assert most("collective_send_receive", path) == pytest.approx(1.02 * 450)
    assert most("collective_all_reduce_p2p_off", GPUS) == pytest.approx(1.02 * 63.015, 1e-4)
    assert most("collective_send_receive_p2p_off", path) == pytest.approx(1.02 * 63.015, 1e-4)
    alone = planning.book(None, None, seen, (Gpu(0),))
    found = alone.ceiling("collective_all_reduce", GPUS)
    assert found == measurements.shipped().by_name["collective_all_reduce"].plausible


def test_a_sheet_has_each_published_figure_once() -> None:
    (row, *_) = SHEETS["H200 SXM 141GB"].collective
    twice = msgspec.structs.replace(SHEETS["H200 SXM 141GB"], collective=(row, row))
    assert "stands twice" in str(sheet.problem(twice))
