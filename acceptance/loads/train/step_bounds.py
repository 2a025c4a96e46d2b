"""How far one training step of a small model may lie from a float64 reference. Pure.

The reference is the same model with the same weights and tokens in float64 on the processor. Let u
be the unit roundoff of the products' operands (bfloat16 2^-8, float16 2^-11) and k the number of
tensors that are rounded on the way from the weights to a gradient. In a layer these are 17 forward:
the inputs and weights of the six matrices, queries, keys, values, the softmax, its mix, the outputs
of the three others; at the head 3; and each of them twice more in backward, which has two products
for each one of forward. So k = 51 layers + 9. Norms keep the sizes of what passes through them, and
new weights of a standard deviation of 0.02 make a layer add little to what goes past it, so each
rounding is passed on about as large, relative to its tensor, as it was made. They are independent,
so their squares add up: a gradient's relative error is about

    e = sqrt(k) u

In float32 nothing is rounded to a narrow format; each product of matrices adds up n numbers, at
most 1024 of them here, and each addition rounds with u = 2^-24: in place of u that is sqrt(n) u.

An element of a gradient is a sum over all tokens of products of independent factors, so its error
has the size e times that of its row or its column (root mean squares, the larger one; of a vector
its own), and exceeds 9 times that as rarely as in `loads.gemm.dtypes`. The size of a bias is at
least that of its matrix's row, whose terms are its own times inputs of size 1: the sum for the bias
of keys is exactly 0, because the softmax does not change with it. The loss is the mean over n
tokens of errors of logits, whose standard deviation is s = 0.02 sqrt(h): 9 e s / sqrt(n), and in
float32 the rounding of its own sum beside it.

The optimizer is held to the gradients that the GPU itself found, which are float32: in float64 its
first step gives w (1 - d r) - r g / (|g| + eps) for a rate r and a decay d. A weight may differ
from that by 8 roundings of itself, which is rounded two or three times, and by 64 of the step's
size r: AdamW rounds some 15 times, and where it has 1 - 0.95 in float32, that is 20 roundings
wrong. A lost update is 2,000 times what a usual weight may differ.

On the processor (torch 2.13, three seeds) the largest errors are 0.08 of these bounds for the loss,
0.16 for gradients (in float32 0.04), and 0.30 for weights.
"""

from __future__ import annotations

import math

from acceptance.loads.train.shapes import LIKELY, SPREAD, LayerShape, ModelShape, StepFormat

# Wide enough for the GPU's tiles and one head of 64, and small enough for float64 on a processor.
SMALL = ModelShape(
    "small model", LayerShape("block", 256, 4, 1024, 128, 2, causal=True), 2, 1021, 128
)
SMALL_BATCH = 2
ROUNDOFF: dict[StepFormat, float] = {
    "f32": math.sqrt(1024) * 2.0**-24,
    "bf16": 2.0**-8,
    "f16": 2.0**-11,
}
SINGLE = 2.0**-24  # the unit roundoff of float32
# AdamW's learning rate, in all models. Without a warm-up its first steps have full size: with 1e-4
# the loss of BERT-large rises above its first value at the fifth, with 2e-5 it falls at each.
RATE = 2e-5
DECAY = 0.1
EPSILON = 1e-8
BETAS = 0.9, 0.95


def roundings(layers: int) -> int:
    """Tensors that are rounded between the weights and a gradient."""
    return 51 * layers + 9


def gradient_error(shape: ModelShape, dtype: StepFormat) -> float:
    """The allowed error of a gradient's element, as a share of the size of its row or column."""
    return LIKELY * math.sqrt(roundings(shape.layers)) * ROUNDOFF[dtype]


def loss_error(shape: ModelShape, batch: int, dtype: StepFormat) -> float:
    """The allowed error of the loss."""
    spread = SPREAD * math.sqrt(shape.layer.hidden)
    found = gradient_error(shape, dtype) * spread / math.sqrt(batch * shape.sequence)
    return found + 8 * SINGLE * math.log(shape.words)


def weight_error() -> tuple[float, float]:
    """The allowed error of an updated weight: a share of itself, and in its own size."""
    return 8 * SINGLE, 64 * SINGLE * RATE
