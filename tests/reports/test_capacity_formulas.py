"""The formulas of the capacity card, by the worked examples that were published with them."""

from __future__ import annotations

import pytest
from cases import each

from acceptance.reports.capacity import formulas
from acceptance.reports.capacity.formulas import LEAN, MIXED, Batch, Layout, Model, Stage

SEVENTY = Model(70e9, 80, 8192)


def about(value: float, digits: float = 1e-3) -> object:
    return pytest.approx(value, rel=digits)


@each(
    "stage, bytes_",
    [(0, 16.0), (1, 4 + 12 / 8), (2, 2 + 14 / 8), (3, 2.0)],
)
def test_bytes_a_parameter_by_stage(stage: Stage, bytes_: float) -> None:
    """ZeRO, table 1: psi (2 + 2 + K), K = 12."""
    assert MIXED.on_each(stage, 8) == bytes_
    assert MIXED.on_each(stage, 1) == 16
    assert (MIXED.total, LEAN.total, Layout(4, 4, 8).total) == (16, 12, 16)


ACTIVATIONS = formulas.activation_bytes(SEVENTY, 4096, 8)
WHOLE = MIXED.total * SEVENTY.parameters + ACTIVATIONS
OF_PASS = formulas.training_flop(1e9, 8 * 4096) / 330e12
PLAIN = formulas.exchange(1.0, 0.9, 1)
TWO, WIDE = Batch(5, 2, 1, 1), Batch(2, 4, 8, 3)
# 70e9 parameters, 15e12 tokens, 1024 H100 at half their dense peak.
FLOP = formulas.training_flop(70e9, 15e12)


@each(
    "found, due",
    [
        (FLOP, about(6.3e24)),
        (formulas.days(FLOP, 1024, 989.5e12 * 0.5), about(143.93, 3e-5)),
        (formulas.largest_model(80e9, MIXED.on_each(3, 8)), about(40.0e9)),
        (formulas.largest_model(80e9, LEAN.on_each(3, 8)), about(53.3e9)),
        # memory of seventy billion parameters
        (ACTIVATIONS / 1e9, about(730.1, 1e-4)),
        (formulas.activation_bytes(SEVENTY, 4096, 8, tensor=8) / 1e9, about(279.2, 2e-4)),
        (WHOLE / 1e9, about(1850)),
        (formulas.gpus_needed(WHOLE, 80e9), 24),
        (formulas.gpus_needed(WHOLE, 24e9), 78),
        # checkpointing keeps the inputs and one layer
        (
            formulas.checkpointed_bytes(SEVENTY, 4096, 8),
            2 * 4096 * 8 * 8192 * 80 + 34 * 4096 * 8 * 8192,
        ),
        # one head on each GPU
        (formulas.head_bandwidth(128, 330e12) / 1e9, about(859)),
        (2 * formulas.head_bandwidth(128, 330e12) / 1e12, about(1.72)),
        (formulas.tensor_parallel_limit(8192, 330e12, 32e9), about(2.38, 2e-3)),
        (formulas.tensor_parallel_limit(8192, 989e12, 450e9), about(11.18, 2e-3)),
        # a step of a layer of a billion parameters
        (OF_PASS, about(0.596)),
        (80 * OF_PASS, about(47.7)),
        (formulas.exchange_seconds(4e9, 32e9), 0.125),
        (formulas.exchange_seconds(4e9, 32e9, 2), 0.25),
        # nccl-tests: the bus bandwidth is bytes / time x 2 (n - 1) / n
        (formulas.all_reduce_seconds(4e9, 2, 40e9), 0.1),
        (formulas.all_reduce_seconds(4e9, 8, 70e9), 0.1),
        # what accumulation hides
        (PLAIN.exposed, pytest.approx(0.4)),
        (PLAIN.exposed_share, pytest.approx(0.4 / 1.3)),
        (PLAIN.unhidden_share, pytest.approx(1 / 1.9)),
        (formulas.exchange(1.0, 0.9, 4).exposed_share, pytest.approx(0.1)),
        (formulas.exchange(0.5, 0.9, 1).exposed, 0.0),
        ([round(share, 3) for share in formulas.bubble(8, 32)], [0.219, 0.179]),
        # batches
        (Batch(10, 1, 1, 1).updates(1000), 100),
        ((TWO.samples, TWO.passes(1000), TWO.updates(1000)), (10, 200, 100)),
        ((WIDE.samples, WIDE.updates(193), WIDE.passes(96)), (192, 2, 2)),
        # rates
        (formulas.mfu(400e12, 989.5e12), about(0.404)),
        (formulas.tokens_a_second(1e9, 600e12), pytest.approx(100_000)),
        # 2 L h s / N: a third of the operations of 7e9 parameters at 16 k tokens
        (formulas.attention_share(Model(7e9, 32, 4096), 4096), about(0.1534)),
    ],
)
def test_a_worked_example(found: object, due: object) -> None:
    assert found == due


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
