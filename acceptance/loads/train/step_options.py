"""Ways of training a model, the memory that each needs, and the loss of new weights. Pure.

Estimated bytes of a step, from which the batch is chosen. They are the most of two moments: when
the forward pass ends, with all that backward needs, and when backward ends, with all gradients.
Gradients of the step before are freed by then, but for those that accumulate.

- a parameter: 12 (float32 weight and AdamW's two moments), 4 more for its gradient, and 2 more for
  its narrow copy under autocast;
- a token, in each layer, for backward: under autocast 42 bytes for each of the hidden width's
  numbers (two float32 inputs of norms, 17 narrow tensors of that width: inputs of the five matrices
  before the feed-forward part, queries, keys and values, their mix twice, and 8 for that part's two
  of four times the width), 64 in float32; with checkpointing its float32 input alone, and one layer
  whole;
- a token, at the head: 16 bytes for each word (logits, their logarithms, and gradients of both).

On two H100s the peaks of 21 models and options lay 2 to 22 % below that. A first step that runs
out of memory all the same is tried again with half the batch.

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
from dataclasses import dataclass, replace
from typing import Literal

from acceptance.core.dtype import trained_dtype
from acceptance.loads.train.shapes import ADAMW_BYTES, ModelShape

StepFormat = Literal["f32", "tf32", "bf16", "f16"]
FORMAT_NAMES: dict[StepFormat, str] = {
    "f32": "float32",
    "tf32": "TF32",
    "bf16": "bfloat16",
    "f16": "float16",
}
NARROW: tuple[StepFormat, ...] = ("bf16", "f16")  # those of autocast
MOST_BATCH = 16
SPREAD = 0.02  # the standard deviation of new weights (`blocks.SPREAD`, which needs torch)
LIKELY = 9.0  # as in `loads.gemm.dtypes`: exceeded once in 1e17 draws
ROOM = 0.92  # of the GPU's total memory; fragments, a display and the driver need the rest
CONTEXT_BYTES = 3 << 28  # CUDA's own, and its libraries' work space
_SAVED = {True: 42, False: 64}  # bytes a token, layer and number of the hidden width, by narrow
_HEAD = 16  # bytes a token and word
_GRADIENT = 4  # bytes a parameter


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


def bytes_needed(shape: ModelShape, option: StepOption, batch: int) -> int:
    """Estimated peak memory of a step."""
    tokens = batch * shape.sequence
    layer = _SAVED[option.narrow] * shape.layer.hidden * tokens
    kept = 4 * shape.layer.hidden * tokens * shape.layers + layer
    activations = kept if option.checkpointed else layer * shape.layers
    states = (ADAMW_BYTES + 2 * option.narrow) * shape.parameters
    freed = _GRADIENT * shape.parameters if option.accumulation == 1 else 0
    return max(states, states - freed + activations + _HEAD * shape.words * tokens)


def fitting(
    shape: ModelShape, option: StepOption, whole_bytes: int, beside_bytes: int
) -> tuple[StepOption, int] | None:
    """The option and the largest batch that fit into this memory beside other `beside_bytes`.

    Where not even one sample fits it is the same with checkpointing; None where that does not
    either. Memory in use by others does not count: a GPU in use is to be freed, not measured with
    less.
    """
    room = ROOM * whole_bytes - CONTEXT_BYTES - beside_bytes
    for tried in (option, replace(option, checkpointed=True)):
        batch = MOST_BATCH
        while batch and bytes_needed(shape, tried, batch) > room:
            batch //= 2
        if batch:
            return tried, batch
    return None


def first_loss(shape: ModelShape, batch: int) -> tuple[float, float]:
    """The loss of new weights on random tokens, and how far it may lie from that."""
    variance = SPREAD**2 * shape.layer.hidden
    spread, words = math.sqrt(variance), shape.words
    margin = LIKELY * spread / math.sqrt(batch * shape.sequence)
    margin += LIKELY * math.sqrt(math.expm1(variance) / words)
    return math.log(words) + variance / 2, margin + 0.02 * spread + 0.01
