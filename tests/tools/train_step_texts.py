"""What the load of training steps prints on a GPU: figures of an H200, and where it has none, of
the recorded H100s; by the forms of `acceptance.loads.train.names`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from acceptance.loads.train.names import (
    STEP_CHECK_COLUMNS,
    STEP_CHECKS,
    STEP_LOAD_COLUMNS,
    STEP_LOSSES,
    STEP_READINGS,
    STEP_REFERENCED,
    STEP_TABLE,
    StepModel,
)
from acceptance.loads.train.shapes import MODELS
from acceptance.loads.train.step_options import FORMAT_NAMES, judged_format, options

Line = dict[str, Any]
MATMUL = 658.0  # of an H200
SHARES: Mapping[StepModel, float] = {"gpt2": 0.57, "bert": 0.387, "neo": 0.675}
# What a load says for whose model the memory does not suffice.
TOO_LARGE = (
    "GPT-2 medium needs about 6.1 GiB of the GPU's memory for one sample with checkpointing, and "
    "the GPU has 5.8 GiB: end what else uses it; on a smaller card leave this check out with --only"
)
WRONG: Line = {
    "component": "gpu0",
    "check": "step_reference",
    "model": "small model",
    "option": "bfloat16",
    "tensor": "tokens.weight",
    "elements": 1,
    "of": 262144,
    "first": [
        {"index": [0, 7], "expected": "-0.01573995192311166", "got": "-0.015719983726739883"}
    ],
}


def lines(
    about: Mapping[str, Any],
    *,
    seconds: float,
    table: bool = False,
    neo: bool = True,
    share: float = 1.0,
    matmul: float = MATMUL,
    wrong: Sequence[Line] = (),
) -> list[Line]:
    """All lines. `about` is the GPU's identity with its `capability`; `share` is left of the rates
    of steps, which are so much of `matmul`; `neo` says whether the GPU has memory for the largest
    model.
    """
    judged = judged_format(about["capability"])
    own = FORMAT_NAMES[judged]
    hello = {
        "device": "cuda",
        "seconds": seconds,
        "table": table,
        "format": judged,
        "size": 8192,
        **about,
    }
    found: list[Line] = []
    kept: list[StepModel] = ["bert", "neo"] if table else ["gpt2"]
    if table and not neo:
        kept = ["bert"]
        why = {"code": "gpu_memory_small", "values": {"gib": "24", "least": "30"}}
        found += [
            {"absent": name.format("neo"), "component": "gpu0", "reason": why}
            for name in STEP_READINGS
        ]
    found += [{"miscompare": one} for one in wrong]
    rows: list[list[Any]] = []
    for model in ["gpt2", *kept] if table else kept:
        rate = round(share * SHARES[model] * matmul, 3)
        shape = MODELS[model]
        for option in options(judged) if table else [next(options(judged))]:
            samples = rate * 1e12 / shape.sample_flop(checkpointed=option.checkpointed)
            figures: dict[str, str | float] = {
                "model": shape.name,
                "option": option.name,
                "batch": 16.0,
                "accumulation": float(option.accumulation),
                "samples/s": round(samples, 3),
                "ktokens/s": round(samples * shape.sequence / 1e3, 3),
                "TFLOP/s": rate,
                "GiB": 29.2,
                "ms": 105.9,
                "ms p5": 105.7,
                "ms p95": 106.4,
            }
            rows.append([figures[name] for name in STEP_LOAD_COLUMNS])
        if model in kept:
            for name, value in zip(STEP_READINGS, (rate, rate / matmul), strict=True):
                unit = STEP_READINGS[name]
                reading = {"reading": name.format(model), "unit": unit, "component": "gpu0"}
                found.append({**reading, "value": value})
    found.append({"table": STEP_TABLE, "columns": list(STEP_LOAD_COLUMNS), "rows": rows})
    checked: list[list[str | float]] = [
        ["small model", name, what, 2.0 if what == "loss" else 3749888.0, 0.237]
        for name in ("float32", own)
        for what in STEP_REFERENCED
    ]
    trained = dict.fromkeys((row[0], row[1].partition(",")[0]) for row in rows)
    checked += [[*one, what, 9.0, 0.7] for one in trained for what in STEP_LOSSES]
    checked.append(["matmul", own, "repeated product", 67108864.0, 0.0])
    found.append({"table": STEP_CHECKS, "columns": list(STEP_CHECK_COLUMNS), "rows": checked})
    for name, unit, value in (
        ("step_matmul", "TFLOP/s", matmul),
        ("step_miscompares", "count", float(len(wrong))),
    ):
        found.append({"reading": name, "unit": unit, "component": "gpu0", "value": value})
    counted = sum(not one.keys() & {"miscompare", "note"} for one in found)
    first = {"rigproof_load": 1, "load": "train_step", "parameters": hello}
    return [first, *found, {"end": True, "readings": counted}]


def printed(told: Sequence[Line]) -> str:
    """The lines as text."""
    return "".join(json.dumps(line) + "\n" for line in told)
