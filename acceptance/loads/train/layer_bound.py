"""The small layers that are verified, and the error that a right element of them may have. Pure.

Each layer is also run in a small shape, forward and backward, and again in float64 on the
processor, with the same weights and inputs (which are rounded to the format before). Let u be the
unit roundoff of the format, and r the root mean square of a tensor: the output, or the gradient of
the input or of a parameter.

Between input and gradient lie at most ROUNDINGS roundings to the format: forward and backward
each the norms, the products, the rotation, the scores, the activation, the gate and the sums of
the two parts. Each changes the elements of a tensor by at most u of their size, in either
direction, and what follows hands that on as an error of about the same share of r: norms keep the
scale, and products add many elements. The sum of ROUNDINGS such errors of random sign exceeds
LIKELY * sqrt(ROUNDINGS) * u * r with a probability of at most 2 * exp(-LIKELY**2 / 2) = 5e-18
(Hoeffding). A large element carries its own roundings, so r + |x| stands for r. The sums of
products are made in float32; n of them differ by at most LIKELY * sqrt(n) * 2**-23 of r in the
same way, which counts for float32 alone.

    |got - x| <= (LIKELY * sqrt(ROUNDINGS) * u + LIKELY * sqrt(n) * 2**-23) * (r + |x|)

In units of u the first part is 49. On a processor, over ten seeds, right tensors came to at most
0.39 of the whole bound in bfloat16 and float16 and to 0.15 in float32; gradients of norms, which a
processor sums up in the narrow format, to 0.65.

Two gradients need care. The gradient of the keys' bias is 0, because softmax does not change when
all scores grow alike: what is there is rounding alone. A bias's gradient sums the same terms as
that of its matrix, with 1 for the input, so r is that of the matrix where that is larger. And ReLU
has no derivative at 0: where the reference is nearer to 0 than the bound, it takes the side that
the GPU took, because either is right.
"""

from __future__ import annotations

import math

from acceptance.core.dtype import DtypeName
from acceptance.loads.train.shapes import LayerName, LayerShape

LIKELY = 9.0
ROUNDINGS = 30
# The formats of the table, in their order, with their unit roundoff. TF32 rounds the operands of
# products only, and may cut them off.
UNITS: dict[DtypeName, float] = {
    "bf16": 2.0**-8,
    "f16": 2.0**-11,
    "tf32": 2.0**-10,
    "f32": 2.0**-24,
}
# Heads as wide as those of the judged shapes, so that the same kernels work.
SMALL: dict[LayerName, LayerShape] = {
    "bert": LayerShape("small", 256, 4, 1024, 128, 2),
    "gpt2": LayerShape("small", 256, 4, 1024, 128, 2, causal=True),
    "t5_encoder": LayerShape("small", 256, 4, 1024, 128, 2),
    "t5_decoder": LayerShape("small", 256, 4, 1024, 128, 2, causal=True, cross=True),
    "llama": LayerShape("small", 512, 4, 1536, 128, 2, key_heads=2, causal=True, gated=True),
}


def error_bound(dtype: DtypeName, shape: LayerShape) -> float:
    """The allowed error of an element, as a share of r + |x|."""
    longest = max(shape.inner, shape.batch * shape.sequence)
    return LIKELY * (math.sqrt(ROUNDINGS) * UNITS[dtype] + math.sqrt(longest) * 2.0**-23)
