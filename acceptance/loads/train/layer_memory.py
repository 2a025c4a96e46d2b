"""The memory that a layer needs, and the batch that fits a GPU. Pure."""

from __future__ import annotations

from acceptance.core.dtype import DtypeName
from acceptance.loads.gemm.worker import ROOM
from acceptance.loads.train.shapes import LayerName, LayerShape

BYTES: dict[DtypeName, int] = {"bf16": 2, "f16": 2, "tf32": 4, "f32": 4}


def needed_bytes(
    name: LayerName, shape: LayerShape, batch: int, sequence: int, dtype: DtypeName
) -> int:
    """Bytes that a layer needs at the most, forward with backward; an estimate from above.

    Of each token some tensors of the width are kept for backward, and some of the feed-forward
    width. Norms work in float32, some of them with copies. T5's mask has a gradient of its own for
    each score; grouped queries keep all scores where there is no flash attention, which bfloat16
    always has. Of the weights there are gradients of three turns: two kept and one new.
    """
    size = BYTES[dtype]
    width = (28 if shape.cross else 20) * shape.hidden + (6 if shape.gated else 5) * shape.inner
    tokens = batch * sequence * (width * size + 4 * 6 * shape.hidden)
    scores = batch * shape.heads * sequence**2 * size
    grouped = shape.key_heads and dtype != "bf16"
    kept = 2 if name.startswith("t5_") else 6 if grouped else 0
    return tokens + kept * scores + 4 * shape.parameters * size


def fitting_batch(
    name: LayerName,
    shape: LayerShape,
    dtype: DtypeName,
    product_bytes: int,
    whole_bytes: int,
) -> int:
    """The judged batch on a GPU with this total memory: halved until all fits.

    `product_bytes` are those of the matrix product that stays there. Memory in use by others does
    not count: a GPU in use is to be freed, not measured with less.
    """
    batch, room = shape.batch, ROOM * whole_bytes - product_bytes
    while batch > 1 and needed_bytes(name, shape, batch, shape.sequence, dtype) > room:
        batch //= 2
    return batch
