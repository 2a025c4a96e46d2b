"""Ways of training a model, and the loss of new weights. Pure.

The loss of new weights is not ln(v) for v words (padded ones among them), because logits vary: the
last norm's output x has |x|^2 = h, and weights a standard deviation of 0.02, so a logit has the
variance s^2 = 0.02^2 h, and the mean of exp(logit) over the words is exp(s^2 / 2). The expected
loss is ln(v) + s^2 / 2, which is 11.03 for GPT-2 medium. It may differ from that by

    9 s / sqrt(n)                   the mean of n targets' logits (drawn without regard to x)
    + 9 sqrt((exp(s^2) - 1) / v)    the mean of exp(logit) over v words
    + 0.02 s + 0.01                 the output's own word, whose vector is part of x; rounding

On the processor, one sample of GPT-2 medium and of BERT-large differed by 0.09 of that at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from acceptance.core.dtype import trained_dtype
from acceptance.loads.train.shapes import ModelShape

StepFormat = Literal["f32", "tf32", "bf16", "f16"]
FORMAT_NAMES: dict[StepFormat, str] = {
    "f32": "float32",
    "tf32": "TF32",
    "bf16": "bfloat16",
    "f16": "float16",
}
NARROW: tuple[StepFormat, ...] = ("bf16", "f16")  # those of autocast
SPREAD = 0.02  # the standard deviation of new weights (`blocks.SPREAD`, which needs torch)
LIKELY = 9.0  # as in `loads.gemm.dtypes`: exceeded once in 1e17 draws


@dataclass(frozen=True, slots=True)
class StepOption:
    """One way of training: the format of products, the optimizer, and how backward is fed.

    `accumulation` batches are added up before each update. `checkpointed` layers compute their
    forward pass again in backward.
    """

    format: StepFormat
    fused: bool = True
    accumulation: int = 1
    checkpointed: bool = False

    @property
    def narrow(self) -> bool:
        """Whether products run under autocast."""
        return self.format in NARROW

    @property
    def name(self) -> str:
        """Its name in tables and notes."""
        more = [] if self.fused else ["unfused"]
        more += ["checkpointing"] if self.checkpointed else []
        more += [f"{self.accumulation} accumulated"] if self.accumulation > 1 else []
        return ", ".join([FORMAT_NAMES[self.format], *more])


def judged_format(compute_capability: str) -> StepFormat:
    """bfloat16 where the GPU's tensor cores have it, else float16."""
    return trained_dtype(compute_capability)


def options(judged: StepFormat) -> Iterator[StepOption]:
    """The options of the table, the judged one first; TF32 only where the GPU has it."""
    yield StepOption(judged)
    yield StepOption(judged, fused=False)
    if judged == "bf16":
        yield StepOption("tf32")
    yield StepOption("f32")
    yield StepOption(judged, accumulation=4)
    yield StepOption(judged, accumulation=16)
    yield StepOption(judged, checkpointed=True)


def first_loss(shape: ModelShape, batch: int) -> tuple[float, float]:
    """The loss of new weights on random tokens, and how far it may lie from that."""
    variance = SPREAD**2 * shape.layer.hidden
    spread, words = math.sqrt(variance), shape.words
    margin = LIKELY * spread / math.sqrt(batch * shape.sequence)
    margin += LIKELY * math.sqrt(math.expm1(variance) / words)
    return math.log(words) + variance / 2, margin + 0.02 * spread + 0.01
