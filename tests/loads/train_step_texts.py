"""What the load of training steps prints on a GPU: figures of an H200, and where it has none, of
the recorded H100s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import load_texts

from acceptance.loads.miscompare import Miscompare, read
from acceptance.loads.train.shapes import MODELS
from acceptance.loads.train.step_contract import (
    STEP_CHECK_COLUMNS,
    STEP_CHECKS,
    STEP_LOAD_COLUMNS,
    STEP_LOSSES,
    STEP_REFERENCED,
    STEP_TABLE,
    Ask,
    StepModel,
)
from acceptance.loads.train.step_options import FORMAT_NAMES, StepOption, judged_format, options

MATMUL = 658.0  # of an H200
SHARES: Mapping[StepModel, float] = {"gpt2": 0.57, "bert": 0.387, "neo": 0.675}
# What a load says for whose model the memory does not suffice.
TOO_LARGE = (
    "GPT-2 medium needs about 6.1 GiB of the GPU's memory for one sample with checkpointing, and "
    "the GPU has 5.8 GiB: end what else uses it; on a smaller card leave this check out with --only"
)
WRONG = read(
    {
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
)


def row(model: StepModel, option: StepOption, rate: float) -> tuple[float | str, ...]:
    """A row of the table of steps."""
    shape = MODELS[model]
    samples = rate * 1e12 / shape.sample_flop(checkpointed=option.checkpointed)
    figures: dict[str, float | str] = {
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
    return tuple(figures[name] for name in STEP_LOAD_COLUMNS)


def whole(
    ask: Ask,
    about: Mapping[str, Any],
    *,
    share: float = 1.0,
    matmul: float = MATMUL,
    wrong: Sequence[Miscompare] = (),
) -> dict[str, Any]:
    """The whole output, for `load_texts.printed`.

    `about` is the GPU's identity; `share` is left of the rates of steps, which are so much of
    `matmul`.
    """
    judged = judged_format(about["capability"])
    own = FORMAT_NAMES[judged]
    rates = {model: round(share * SHARES[model] * matmul, 3) for model in SHARES}
    values = {"step_matmul": matmul, "step_miscompares": float(len(wrong))}
    values |= {f"step_{model}": rate for model, rate in rates.items()}
    values |= {f"step_{model}_share": rate / matmul for model, rate in rates.items()}
    models: Sequence[StepModel] = ("gpt2", *ask.models) if ask.table else ask.models
    trained = list(options(judged)) if ask.table else [StepOption(judged)]
    rows = [row(model, option, rates[model]) for model in models for option in trained]
    checks: list[tuple[float | str, ...]] = [
        ("small model", name, what, 2.0 if what == "loss" else 3749888.0, 0.237)
        for name in ("float32", own)
        for what in STEP_REFERENCED
    ]
    ways = dict.fromkeys((one[0], str(one[1]).partition(",")[0]) for one in rows)
    checks += [(*one, what, 9.0, 0.7) for one in ways for what in STEP_LOSSES]
    checks.append(("matmul", own, "repeated product", 67108864.0, 0.0))
    return {
        "about": {"format": judged, "size": 8192, **about},
        "values": values,
        "tables": {
            STEP_TABLE: (STEP_LOAD_COLUMNS, rows),
            STEP_CHECKS: (STEP_CHECK_COLUMNS, checks),
        },
        "wrong": wrong,
    }


def printed(ask: Ask, about: Mapping[str, Any], **more: Any) -> str:
    """The whole output as text; `more` is as in `whole`."""
    return load_texts.printed(ask, **whole(ask, about, **more))
