"""What the load of parallel training prints on two GPUs and more: figures of the recorded H100s, by
the forms of `acceptance.loads.train.names`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from acceptance.loads.train import parallel_values
from acceptance.loads.train.names import (
    PARALLEL_COLUMNS,
    PARALLEL_VALUE_COLUMNS,
    ParallelWay,
    parallel_efficiency,
)
from acceptance.loads.train.shapes import MODELS

ARMS = ("default", "p2p_off")
WAYS: tuple[ParallelWay, ...] = ("ddp", "zero2", "zero3", "tp")
ACCUMULATIONS = (1, 4)
Line = dict[str, Any]
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


def lines(
    uuids: Sequence[str],
    *,
    seconds: float,
    ways: Sequence[ParallelWay] = WAYS,
    accumulate: Sequence[int] = ACCUMULATIONS,
    efficiency: Efficiency = healthy,
    counts: Mapping[str, float] | None = None,
) -> list[Line]:
    """All lines. `efficiency` is of an arm, a way and an accumulation; `counts` what was wrong."""
    ranks, batch, shape = len(uuids), 8, MODELS["parallel"]
    flop = shape.sample_flop() / shape.sequence
    found: list[Line] = []

    def reading(name: str, unit: str, value: float) -> None:
        found.append({"reading": name, "unit": unit, "component": "gpus", "value": value})

    def row(arm: str, way: str, count: int) -> list[Any]:
        alone = ALONE_TFLOPS * 1e12 / flop
        share = 1.0 if way == "alone" else efficiency(arm, way, count)
        rate = alone * share * (1 if way == "alone" else ranks)
        own = batch * ranks if way == "tp" else batch
        samples = count * (batch if way == "alone" else batch * ranks)
        step_ms = samples * shape.sequence / rate * 1e3
        optimizer = 0.05
        compute = round(min((1 - optimizer) * share, 1.0), 4)
        communication = round(1 - compute - optimizer, 4)
        return [
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
        ]

    rows = [
        row(arm, way, count) for arm, count in product(ARMS, accumulate) for way in ("alone", *ways)
    ]
    for arm, count, way in product(ARMS, accumulate, ways):
        name = parallel_efficiency(way, arm, accumulated=count > 1)
        reading(name, "ratio", efficiency(arm, way, count))
        if (arm, way, count) == ("default", "ddp", 1):
            (own,) = [one for one in rows if one[:3] == [arm, way, count]]
            reading("parallel_ddp", "Mtokens/s", own[4] / 1e3)
    for name in ("parallel_miscompares", "parallel_disagreements"):
        reading(name, "count", (counts or {}).get(name, 0.0))
    steps = parallel_values.STEPS
    values = [
        [
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
        ]
        for arm, count, way in product(ARMS, accumulate, ways)
    ]
    found.append({"table": "train_parallel", "columns": list(PARALLEL_COLUMNS), "rows": rows})
    columns = list(PARALLEL_VALUE_COLUMNS)
    found.append({"table": "train_parallel_values", "columns": columns, "rows": values})
    hello: Line = {
        "rigproof_load": 1,
        "load": "train_parallel",
        "parameters": {
            "backend": "nccl",
            "ranks": ranks,
            "seconds": seconds,
            "ways": list(ways),
            "accumulate": list(accumulate),
            "arms": list(ARMS),
            "model": "parallel",
            "batch": batch,
            "tensor_batch": batch * ranks,
            "format": "bf16",
            "uuids": list(uuids),
            "library": "torch 2.10.0+cu128, nccl 2.27.5, NVIDIA H200",
        },
    }
    return [hello, *found, {"end": True, "readings": len(found)}]


def wrong(arm: str = "default", component: str = "gpu1", **more: Any) -> Line:
    """A gradient that differs from one card's."""
    found = {
        "component": component,
        "check": "parallel_gradient",
        "way": "ddp",
        "arm": arm,
        "accumulation": 1,
        "step": 1,
        "tensor": "blocks.0.feed_forward.up.weight",
        "difference": "0.000198671",
        "bound": 0.0001589362848002848,
    }
    return {"miscompare": {**found, **more}}


def disagreement() -> Line:
    """Ranks that hold other weights."""
    return {
        "miscompare": {
            "check": "digest",
            "found": "weights that differ between ranks",
            "digests": {"0" * 16: ["gpu0"], "1" * 16: ["gpu1"]},
        }
    }


def printed(told: Sequence[Line]) -> str:
    """The lines as text."""
    return "".join(json.dumps(line) + "\n" for line in told)
