"""What the load of parallel training prints on two GPUs and more: figures of the recorded H100s."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import load_texts

from acceptance.core.parts import Gpu
from acceptance.loads.miscompare import DifferingDigests, Miscompare, WrongTraining
from acceptance.loads.train import parallel_contract, parallel_values
from acceptance.loads.train.parallel_contract import ACCUMULATIONS, ALONE, Ask
from acceptance.loads.train.shapes import MODELS

Efficiency = Callable[[str, str, int], float]
ALONE_TFLOPS = 412.8  # of one card
# Of two cards, by arm and way: with 1 and with 4 accumulated batches.
EFFICIENCIES: Mapping[tuple[str, str], tuple[float, float]] = {
    ("default", "ddp"): (0.9192, 0.9797),
    ("default", "zero2"): (0.962, 0.9681),
    ("default", "zero3"): (0.9332, 0.9201),
    ("default", "tp"): (0.7559, 0.7365),
    ("p2p_off", "ddp"): (0.5968, 0.8553),
    ("p2p_off", "zero2"): (0.7217, 0.839),
    ("p2p_off", "zero3"): (0.6091, 0.7293),
    ("p2p_off", "tp"): (0.3929, 0.3821),
}


def healthy(arm: str, way: str, accumulation: int) -> float:
    """Efficiencies as two H100s have them."""
    return EFFICIENCIES[arm, way][ACCUMULATIONS.index(accumulation)]


def printed(
    ask: Ask,
    uuids: Sequence[str],
    *,
    efficiency: Efficiency = healthy,
    counts: Mapping[str, float] = {},
    wrong: Sequence[Miscompare] = (),
) -> str:
    """What the load says. `efficiency` is of an arm, a way and an accumulation; `counts` what was
    wrong.
    """
    ranks, batch, shape = ask.ranks, 8, MODELS["parallel"]
    flop = shape.sample_flop() / shape.sequence

    def row(arm: str, way: str, count: int) -> tuple[float | str, ...]:
        alone = ALONE_TFLOPS * 1e12 / flop
        share = 1.0 if way == ALONE else efficiency(arm, way, count)
        rate = alone * share * (1 if way == ALONE else ranks)
        own = batch * ranks if way == "tp" else batch
        samples = count * (batch if way == ALONE else batch * ranks)
        step_ms = samples * shape.sequence / rate * 1e3
        optimizer = 0.05
        compute = round(min((1 - optimizer) * share, 1.0), 4)
        communication = round(1 - compute - optimizer, 4)
        return (
            arm,
            way,
            count,
            own,
            round(rate / 1e3, 3),
            round(rate * flop / 1e12, 3),
            share,
            40.5,
            round(step_ms, 3),
            compute,
            communication,
            optimizer,
        )

    trained = {
        (arm, way, count): row(arm, way, count)
        for arm, count, way in product(ask.arms, ask.accumulate, (ALONE, *ask.ways))
    }
    values = {**counts}
    for arm, count, way in product(ask.arms, ask.accumulate, ask.ways):
        name = parallel_contract.efficiency(way, arm, accumulated=count > 1)
        values[name] = efficiency(arm, way, count)
    if ("default", "ddp", 1) in trained:
        values[parallel_contract.TOTAL] = float(trained["default", "ddp", 1][4]) / 1e3
    steps = parallel_values.STEPS
    compared: list[tuple[float | str, ...]] = [
        (
            arm,
            way,
            count,
            steps,
            steps * ranks,
            steps * parallel_values.elements(way, ranks),
            parallel_values.elements(way, ranks),
            ranks if way == "ddp" else 0,
            0.0017,
            0.004,
            0.0017,
        )
        for arm, count, way in product(ask.arms, ask.accumulate, ask.ways)
    ]
    hello = {
        "model": "parallel",
        "batch": batch,
        "tensor_batch": batch * ranks,
        "format": "bf16",
        "uuids": list(uuids),
        "library": "torch 2.10.0+cu128, nccl 2.27.5, NVIDIA H200",
    }
    tables: Mapping[str, Any] = {
        parallel_contract.TABLE: (parallel_contract.COLUMNS, list(trained.values())),
        parallel_contract.VALUES: (parallel_contract.VALUE_COLUMNS, compared),
    }
    return load_texts.printed(ask, hello, values=values, wrong=wrong, tables=tables)


def wrong(**more: Any) -> WrongTraining:
    """A gradient that differs from one card's."""
    found: dict[str, Any] = {
        "component": Gpu(1),
        "check": "parallel_gradient",
        "way": "ddp",
        "arm": "default",
        "accumulation": 1,
        "step": 1,
        "tensor": "blocks.0.feed_forward.up.weight",
        "difference": "0.000198671",
        "bound": 0.0001589362848002848,
    }
    return WrongTraining(**{**found, **more})


def disagreement() -> DifferingDigests:
    """Ranks that hold other weights."""
    return DifferingDigests(
        check="digest",
        found="weights that differ between ranks",
        digests={"0" * 16: (Gpu(0),), "1" * 16: (Gpu(1),)},
    )
