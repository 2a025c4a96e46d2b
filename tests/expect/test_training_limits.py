"""Floors of layers and steps: shares from model sheets; and their ceilings."""

from __future__ import annotations

import math

from cases import each
from known import known

from acceptance.core.limit import Limit
from acceptance.core.parts import Gpu
from acceptance.expect import architecture, gpu_limits
from acceptance.expect.ceiling import gpu_ceilings
from acceptance.expect.compute import ComputeFacts, training_limits
from acceptance.expect.gpu import GpuFacts
from acceptance.expect.sheet import Sheet
from acceptance.loads.train.rates import OF_MATMUL, TRAINING_RATES
from acceptance.wording import words

SHEETS = gpu_limits.sheets()
SHARED = tuple(one for one in SHEETS if one.share)


def card(one: Sheet, model: str | None = None) -> ComputeFacts:
    name, clock = model or one.nvml_names[0], one.nvml_max_sm_mhz or one.boost_mhz
    cores = one.cuda_cores
    return ComputeFacts(
        Gpu(0), name, one.pci_ids[0], one.compute_capability, cores, clock, None, None
    )


def ceilings(one: Sheet) -> dict[str, Limit]:
    """The ceilings of a card of this model."""
    facts = GpuFacts(
        name=Gpu(0), model=one.nvml_names[0], device_id=one.pci_ids[0],
        compute_capability=one.compute_capability, memory_mib=None, card_link_gen=None,
        card_link_width=None, slot_link_gen=None, slot_link_width=None, nvlink_active=0,
        nvlink_total=0,
    )  # fmt: skip
    return {
        entry.measurement: entry.limit
        for entry in gpu_ceilings([facts], [card(one)], SHEETS, architecture.shipped())
        if entry.limit is not None and entry.limit.high is not None
    }


@each("one", SHARED, told=lambda one: one.name)
def test_just_below_each_floor_fails_and_at_it_passes(one: Sheet) -> None:
    found = {entry.measurement: entry for entry in training_limits([card(one)], SHEETS)}
    assert set(found) == {row.measurement for row in one.share}
    for row in one.share:
        entry = found[row.measurement]
        assert words.text(entry.origin) == f"sheet of {one.name}"
        assert entry.component == Gpu(0)
        assert known(entry.limit).grade(row.low) == "pass"
        assert known(entry.limit).grade(math.nextafter(row.low, 0)) == "fail"


@each("one", SHARED, told=lambda one: one.name)
def test_each_floor_is_the_share_that_its_basis_says(one: Sheet) -> None:
    """And below what was published, whose rate and product the basis names."""
    for row in one.share:
        part, _, rest = row.basis.partition(" x ")
        share = float(rest.partition(":")[0])
        assert row.low <= float(part) * share < row.low + 0.015, f"{one.name}: {row.basis}"
        ours = "measured by us" in row.basis
        assert ours or one.published(row.measurement.removesuffix("_share"))


def test_a_card_without_figures_has_no_floor() -> None:
    h200 = next(one for one in SHEETS if one.name == "H200 SXM 141GB")
    assert list(training_limits([card(h200, "NVIDIA Another")], SHEETS)) == []
    t4 = next(one for one in SHEETS if one.name == "T4")
    assert list(training_limits([card(t4)], SHEETS)) == []


@each("one", SHEETS, told=lambda one: one.name)
def test_every_published_rate_is_below_its_ceiling(one: Sheet) -> None:
    """All rates have one: 1.1 x the peak, and as much more as causal attention counts too much."""
    found = ceilings(one)
    assert found.keys() >= TRAINING_RATES | {*OF_MATMUL}
    for name in TRAINING_RATES:
        limit = found[name]
        assert all(limit.grade(figure.tflops) == "pass" for figure in one.published(name))


def test_causal_attention_counts_whole() -> None:
    h200 = next(one for one in SHEETS if one.name == "H200 SXM 141GB")
    found = {name: known(limit.high) for name, limit in ceilings(h200).items()}
    most = found["gemm_bf16"]
    assert found["layer_matmul"] == found["layer_bert"] == found["layer_dense"] == most
    assert found["layer_gpt2"] == found["layer_gpt2_forward"] > 1.07 * most
    assert 1.03 * most < found["layer_llama"] < 1.05 * most
    assert found["step_gpt2"] == found["layer_gpt2"]
    assert found["step_bert"] == most
