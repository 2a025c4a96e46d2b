"""The formulas of the capacity card, by the worked examples that were published with them."""

from __future__ import annotations

import pytest
from cases import each

from acceptance.reports.capacity import formulas
from acceptance.reports.capacity.formulas import LEAN, MIXED, Batch, Layout, Model, Stage

SEVENTY = Model(70e9, 80, 8192)


def about(value: float, digits: float = 1e-3) -> object:
    return pytest.approx(value, rel=digits)


def test_days_to_train() -> None:
    """70e9 parameters, 15e12 tokens, 1024 H100 at half their dense peak."""
    flop = formulas.training_flop(70e9, 15e12)
    assert flop == about(6.3e24)
    assert formulas.days(flop, 1024, 989.5e12 * 0.5) == about(143.93, 3e-5)


def test_parameters_that_fit() -> None:
    memory = 80e9
    assert formulas.largest_model(memory, MIXED.on_each(3, 8)) == about(40.0e9)
    assert formulas.largest_model(memory, LEAN.on_each(3, 8)) == about(53.3e9)


@each(
    "stage, bytes_",
    [(0, 16.0), (1, 4 + 12 / 8), (2, 2 + 14 / 8), (3, 2.0)],
)
def test_bytes_a_parameter_by_stage(stage: Stage, bytes_: float) -> None:
    """ZeRO, table 1: psi (2 + 2 + K), K = 12."""
    assert MIXED.on_each(stage, 8) == bytes_
    assert MIXED.on_each(stage, 1) == 16
    assert (MIXED.total, LEAN.total, Layout(4, 4, 8).total) == (16, 12, 16)


def test_memory_of_seventy_billion() -> None:
    model = SEVENTY
    assert [part * model.parameters / 1e9 for part in (2, 2, 12)] == [140, 140, 840]
    assert formulas.activation_bytes(model, 4096, 8) / 1e9 == about(730.1, 1e-4)
    assert formulas.activation_bytes(model, 4096, 8, tensor=8) / 1e9 == about(279.2, 2e-4)
    whole = MIXED.total * model.parameters + formulas.activation_bytes(model, 4096, 8)
    assert whole / 1e9 == about(1850)
    assert formulas.gpus_needed(whole, 80e9) == 24
    assert formulas.gpus_needed(whole, 24e9) == 78


def test_checkpointing_keeps_the_inputs_and_one_layer() -> None:
    kept = 2 * 4096 * 8 * 8192 * 80
    one = 34 * 4096 * 8 * 8192
    assert formulas.checkpointed_bytes(SEVENTY, 4096, 8) == kept + one


def test_one_head_on_each_gpu() -> None:
    assert formulas.head_bandwidth(128, 330e12) / 1e9 == about(859)
    assert 2 * formulas.head_bandwidth(128, 330e12) / 1e12 == about(1.72)


@each("rate, link, gpus", [(330e12, 32e9, 2.38), (989e12, 450e9, 11.18)])
def test_tensor_parallel_limit(rate: float, link: float, gpus: float) -> None:
    assert formulas.tensor_parallel_limit(8192, rate, link) == about(gpus, 2e-3)


def test_a_step_of_a_layer_of_a_billion() -> None:
    of_pass = formulas.training_flop(1e9, 8 * 4096) / 330e12
    assert of_pass == about(0.596)
    assert 80 * of_pass == about(47.7)
    assert formulas.exchange_seconds(4e9, 32e9) == 0.125
    assert formulas.exchange_seconds(4e9, 32e9, 2) == 0.25


def test_an_all_reduce_by_its_bus_bandwidth() -> None:
    """nccl-tests: the bus bandwidth is bytes / time x 2 (n - 1) / n."""
    assert formulas.all_reduce_seconds(4e9, 2, 40e9) == 0.1
    assert formulas.all_reduce_seconds(4e9, 8, 70e9) == 0.1


def test_what_accumulation_hides() -> None:
    plain = formulas.exchange(1.0, 0.9, 1)
    assert plain.exposed == pytest.approx(0.4)
    assert plain.exposed_share == pytest.approx(0.4 / 1.3)
    assert plain.unhidden_share == pytest.approx(1 / 1.9)
    assert formulas.exchange(1.0, 0.9, 4).exposed_share == pytest.approx(0.1)
    assert formulas.exchange(0.5, 0.9, 1).exposed == 0.0


def test_the_bubble_of_a_pipeline() -> None:
    ideal, whole = formulas.bubble(8, 32)
    assert (round(ideal, 3), round(whole, 3)) == (0.219, 0.179)


def test_batches() -> None:
    assert Batch(10, 1, 1, 1).updates(1000) == 100
    two = Batch(5, 2, 1, 1)
    assert (two.samples, two.passes(1000), two.updates(1000)) == (10, 200, 100)
    wide = Batch(2, 4, 8, 3)
    assert (wide.samples, wide.updates(193), wide.passes(96)) == (192, 2, 2)


def test_rates() -> None:
    assert formulas.mfu(400e12, 989.5e12) == about(0.404)
    assert formulas.tokens_a_second(1e9, 600e12) == pytest.approx(100_000)
    # 2 L h s / N: a third of the operations of 7e9 parameters at 16 k tokens
    assert formulas.attention_share(Model(7e9, 32, 4096), 4096) == about(0.1534)


@each(
    "size, layers, hidden, found",
    [
        (7e9, None, None, (33, 4224)),
        (70e9, None, None, (71, 9088)),
        (8e9, 32, None, (32, 4608)),
        (8e9, None, 4096, (40, 4096)),
        (8e9, 32, 4096, (32, 4096)),
        (1.0, None, None, (1, 128)),
    ],
)
def test_the_shape_of_a_size(
    size: float, layers: int | None, hidden: int | None, found: tuple[int, int]
) -> None:
    model = formulas.shape_of(size, layers, hidden)
    assert (model.layers, model.hidden) == found
