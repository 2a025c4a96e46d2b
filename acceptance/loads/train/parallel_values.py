"""What the verification of parallel training compares, and how far sound results lie apart. Pure.

A small model is trained for STEPS steps in float32 without TF32, once by all ranks together and
once by each rank alone with the whole batch. Both calculate the same sums in other orders: places
and batches are added up by ranks and buckets, and with tensor parallelism a sum over the width is
cut in as many parts as there are ranks.

The bound. A float32 sum of n terms, in whatever order, lies within

    C x sqrt(n) x u,  u = 2**-24

of the exact one, relative to the size of its terms, with a probability of at least
1 - 2 exp(-C**2 / 2) for each rounding (Higham and Mary, "A new approach to probabilistic rounding
error analysis", 2019, theorem 2.4). Two orders differ by at most twice that. A value passes one sum
after the other and each adds its error, so n is the number of all terms on the longest path
(`terms`): of norms, projections, scores, softmax and feed-forward part of each layer, of the head,
of the softmax over the vocabulary and of the mean over all places; for a gradient the way back too,
whose sums are as long twice over, and the sum over all places, batches and ranks. C is CONFIDENCE:
at 8 that probability is 1 - 2.5e-14.

- A loss may differ by `relative(...)` of itself.
- A gradient is compared as a whole tensor: the norm of the difference against the norm of the
  tensor, or, where a tensor has next to no gradient (that of the keys' bias is 0 but for rounding),
  against what the root mean square of the whole model's gradient gives a tensor of its size.
- Of the weights after the last step, what changed since the beginning is compared in the same way,
  with twice the bound, and each step's rounding of the weights on top. Twice, because the optimizer
  is AdamW with an epsilon of EPSILON, above every gradient: then its step, m / (sqrt(v) + epsilon),
  is at least half of what it would be for the smallest gradients, and its slope nowhere larger.
  With the usual epsilon of 1e-8 a gradient that is nothing but rounding would make a whole step in
  a random direction, and nothing could be compared.

Errors add up from step to step, so each bound is multiplied by the number of the step. A finding is
a difference above the bound, or one that is no number. Over gloo, between two and three processors,
the largest difference of any gradient was 0.0064 of its bound, of weights 0.0023 of it and of
losses 0.0018, in every way and with 1 and 4 accumulated batches: the bound is not tight.
"""

from __future__ import annotations

import math
from typing import Literal

from acceptance.loads.train.shapes import LayerShape, ModelShape

ParallelWay = Literal["ddp", "zero2", "zero3", "tp"]
UNIT = 2.0**-24  # of rounding, float32
CONFIDENCE = 8.0
STEPS = 3
BATCH = 2  # samples of a rank in each of the accumulated batches
RATE, EPSILON = 0.1, 1.0  # of the optimizer
# As many heads as ranks at most; three buckets of DDP at one MiB each, and more.
VERIFIED = ModelShape(
    "verified", LayerShape("block", 256, 16, 1024, 64, BATCH, causal=True), 2, 521, 64
)
# Above the bound by this much is what `--inject wrong` adds to one element of a gradient.
INJECTED = 1.25


def terms(shape: ModelShape, places: int, parts: int, *, gradient: bool) -> int:
    """The terms of all sums on the longest path of a loss, or of a gradient.

    `places` are those of the whole batch, `parts` the batches and ranks that are added up.
    """
    layer, sequence = shape.layer, shape.sequence
    # two norms with a mean and a variance each, four projections and the feed-forward part's first,
    # its second, scores, softmax and what it weighs, two additions
    of_layer = 4 * layer.hidden + 5 * layer.hidden + layer.inner + layer.head + 2 * sequence + 2
    of_head = 3 * layer.hidden + shape.words
    forward = shape.layers * of_layer + of_head + places + parts
    return 3 * forward + places + parts if gradient else forward


def relative(shape: ModelShape, places: int, parts: int, step: int, *, gradient: bool) -> float:
    """How far two sound calculations lie apart after `step` steps, as a share."""
    count = terms(shape, places, parts, gradient=gradient)
    return step * 2 * CONFIDENCE * math.sqrt(count) * UNIT


def norm_bound(share: float, norm: float, size: int, mean_square: float) -> float:
    """How large the norm of a difference may be, of a gradient or of a change of weights.

    `share` is `relative(...)`, `norm` and `size` are those of the whole tensor, `mean_square` is of
    the whole model's gradients or changes.
    """
    return share * max(norm, math.sqrt(mean_square * size))


def weight_bound(of_change: float, norm: float, step: int) -> float:
    """How large the norm of a difference of weights may be after `step` steps.

    `of_change` is the bound of what training changed, `norm` is that of the tensor.
    """
    return 2 * of_change + 2 * step * UNIT * norm


def share(count: int, rank: int, ranks: int) -> tuple[int, int]:
    """The first and the end of what rank `rank` has of `count` things, as even as possible."""
    return count * rank // ranks, count * (rank + 1) // ranks


def split_parameters(shape: ModelShape) -> int:
    """The parameters that tensor parallelism splits between the ranks."""
    layer = shape.layer
    attention = 4 * layer.hidden**2 + 3 * layer.hidden
    return shape.layers * (attention + 2 * layer.hidden * layer.inner + layer.inner)


def whole_parameters(shape: ModelShape) -> int:
    """The parameters that every rank has then: norms, biases behind a sum, embedding, head."""
    hidden = shape.layer.hidden
    return shape.layers * 6 * hidden + (shape.words + shape.sequence + 2) * hidden


def elements(way: ParallelWay, ranks: int, shape: ModelShape = VERIFIED) -> int:
    """How many parameters all ranks together hold: as many gradients, and weights, are compared."""
    split, whole = split_parameters(shape), whole_parameters(shape)
    match way:
        case "ddp":
            return ranks * (split + whole)
        case "tp":
            return split + ranks * whole
        case _:
            return split + whole
