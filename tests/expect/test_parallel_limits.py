"""Floors and ceilings of the efficiency of parallel training, by what joins the GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest
from boxes import BOXES, Box
from cases import each
from known import known
from synthetic_machines import SHEETS, inventory
from worded import worded

from acceptance.core.parts import GPUS, Gpu
from acceptance.expect import gpu_limits, limit_book
from acceptance.expect.gpu import GpuFacts, PairFacts, host_way, parallel_ceilings, parallel_limits
from acceptance.expect.limit_book import Override
from acceptance.loads.train.parallel_contract import EFFICIENCIES
from acceptance.machine.gpu import gpus


def shown(box: Box) -> tuple[list[GpuFacts], list[PairFacts]]:
    """The cards of a box, and the pairs of them."""
    seen = inventory(box)
    due = gpus(seen)
    return list(gpu_limits.gpu_facts(due, None)), list(gpu_limits.pair_facts(seen, due))


def limits(facts: Sequence[GpuFacts], pairs: Sequence[PairFacts]) -> list[Override]:
    return list(parallel_limits(facts, pairs, gpu_limits.sheets()))


def entries(box: Box) -> dict[str, Override]:
    """The limits of parallel training on a box."""
    found = limits(*shown(box))
    names = [one.measurement for one in found]
    assert len(set(names)) == len(names)
    assert set(names) <= set(EFFICIENCIES)
    assert {one.component for one in found} <= {GPUS}
    return {one.measurement: one for one in found}


def low(found: Override) -> float:
    assert found.limit.low is not None
    return found.limit.low


H200 = BOXES["8xh200.toml"]


@pytest.mark.usefixtures("shares")
@each(
    "box, ddp, accumulated, basis",
    [
        (replace(H200, count=2), 0.85, 0.90, "two H200s reach 0.916"),
        (BOXES["2x3090ti-bridge.toml"], 0.85, 0.90, "two 3090 Ti 0.90"),
        (H200, 0.80, 0.85, "each of 8 GPUs sends up to 1.75 times as much"),
        (replace(H200, count=3), 0.80, 0.85, "each of 3 GPUs sends"),
    ],
)
def test_over_nvlink(box: Box, ddp: float, accumulated: float, basis: str) -> None:
    found = entries(box)
    assert low(found["parallel_ddp_efficiency"]) == ddp
    assert basis in worded(found["parallel_ddp_efficiency"].limit.basis)  # type: ignore[union-attr]
    assert low(found["parallel_ddp_efficiency_accumulated"]) == pytest.approx(accumulated)
    assert not any(name.endswith("p2p_off") or "_tp_" in name for name in found)


@pytest.mark.usefixtures("shares")
@each("box, judged", [(replace(H200, count=2), True), (BOXES["2x3090ti-bridge.toml"], False)])
def test_sharded_training_is_judged_over_fast_links_alone(box: Box, judged: bool) -> None:
    found = entries(box)
    for way in ("zero2", "zero3"):
        for more in ("", "_accumulated"):
            one = found[f"parallel_{way}_efficiency{more}"]
            if judged:
                assert low(one) == 0.70
            else:
                assert one.limit is None
                assert "NVLinks of at least 200 GB/s" in worded(one.unlimited)


@pytest.mark.usefixtures("shares")
@each("slot", [(4, 16), (4, 8)])
def test_over_pci_express_two_cards_have_the_calculated_floors(slot: tuple[int, int]) -> None:
    found = entries(replace(BOXES["2x4090.toml"], slot=slot))
    for arm in ("", "_p2p_off"):
        assert low(found[f"parallel_ddp_efficiency{arm}"]) == 0.30
        assert low(found[f"parallel_ddp_efficiency_accumulated{arm}"]) == 0.60
    for more, told in (("", "a calculated 0.46, not"), ("_accumulated", "a calculated 0.87, not")):
        basis = known(found[f"parallel_ddp_efficiency{more}"].limit)
        assert told in worded(basis.basis)
    assert not any("zero" in name for name in found)


@each(
    "box",
    [
        replace(BOXES["2x4090.toml"], count=3),
        replace(BOXES["2x4090.toml"], slot=(3, 8)),
        replace(BOXES["2x4090.toml"], sheet=BOXES["2xa100-40gb-7049gp.toml"].sheet),
        replace(H200, count=2, nvlinks=0),
    ],
)
def test_other_cards_over_pci_express_are_recorded(box: Box) -> None:
    found = entries(box)
    assert found.keys() == {
        f"parallel_ddp_efficiency{more}{arm}"
        for more in ("", "_accumulated")
        for arm in ("", "_p2p_off")
    }
    for one in found.values():
        assert one.limit is None
        assert "known only of two cards" in worded(one.unlimited)


def test_a_card_without_a_sheet_and_a_slot_that_is_not_known_have_no_floor() -> None:
    facts, _ = shown(BOXES["2x4090.toml"])
    for given, sheets in (
        (facts, ()),
        (tuple(replace(one, slot_link_gen=None, card_link_gen=None) for one in facts), SHEETS),
    ):
        found = list(parallel_limits(given, (), tuple(SHEETS.values()) if sheets else ()))
        assert found
        assert all(one.limit is None for one in found)


def test_the_slower_of_two_cards_over_pci_express_decides() -> None:
    (first, second), _ = shown(BOXES["2x4090.toml"])
    for other in (replace(second, slot_link_width=4), replace(second, device_id="10de:ffff")):
        for cards in ((first, other), (other, first)):
            assert not any(one.limit for one in limits(cards, ()))


@pytest.mark.usefixtures("shares")
def test_the_bounds_of_cards_and_links_belong_to_what_is_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cards, _ = shown(BOXES["2x4090.toml"])
    links = known(SHEETS["H200 SXM 141GB"].nvlink)
    shipped = limit_book.figures()
    edges = {
        "pcie_most_tflops": SHEETS["GeForce RTX 4090"].peak.by_dtype()["f16"],
        "pcie_least_gbs": known(host_way(*cards)).value,
        "sharded_least_gbs": 18 * links.link_gbs,
    }
    at_edge = msgspec.structs.replace(
        shipped,
        **{
            name: msgspec.structs.replace(getattr(shipped, name), value=value)
            for name, value in edges.items()
        },
    )
    monkeypatch.setattr(limit_book, "figures", lambda: at_edge)
    assert low(entries(BOXES["2x4090.toml"])["parallel_ddp_efficiency"]) == 0.30
    assert low(entries(replace(H200, count=2))["parallel_zero2_efficiency"]) == 0.70


def test_the_pair_with_the_fewest_links_decides() -> None:
    facts, (one, other) = shown(replace(H200, count=2))
    for pairs in ((one, replace(other, nvlinks=2)), (replace(one, nvlinks=2), other)):
        found = {limit.measurement: limit for limit in limits(facts, pairs)}
        assert found["parallel_zero2_efficiency"].limit is None
        assert found["parallel_ddp_efficiency"].limit is not None


def test_cards_of_which_only_some_are_linked_have_no_floor() -> None:
    facts, _ = shown(replace(H200, count=3))
    pairs = [PairFacts(Gpu(0), Gpu(1), 18, "ok"), PairFacts(Gpu(1), Gpu(0), 18, "ok")]
    assert limits(facts, pairs) == []


@pytest.mark.usefixtures("shares")
def test_one_gpu_has_no_limit_and_several_have_a_ceiling() -> None:
    facts, _ = shown(H200)
    assert limits(facts[:1], ()) == []
    assert list(parallel_ceilings(facts[:1])) == []
    found = list(parallel_ceilings(facts))
    assert [one.measurement for one in found] == list(EFFICIENCIES)
    for one in found:
        assert known(one.limit).high == 1.15
        assert "1.15" in worded(known(one.limit).basis)
    assert list(parallel_ceilings(facts[:2])) == found


@each("box", [replace(H200, count=2), BOXES["2x3090ti-bridge.toml"]])
def test_gpus_of_several_models_are_only_recorded(box: Box) -> None:
    """The slowest sets the pace, and the sum of what all do alone is out of reach."""
    (first, *others), pairs = shown(box)
    found = limits([replace(first, model="NVIDIA Another"), *others], pairs)
    assert [one.measurement for one in found] == list(EFFICIENCIES)
    assert not any(one.limit for one in found)
    assert "of several models" in worded(found[0].unlimited)
