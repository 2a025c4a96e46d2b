"""The memory that training needs, and the largest batch for which a GPU has it. Pure.

Estimates of three kinds of work share what a parameter and a token take. A batch is halved until it
fits. Memory in use by others does not count: a GPU in use is to be freed, not measured with less.

A training step (`step_bytes`) takes the most of two moments: when the forward pass ends, with all
that backward needs, and when backward ends, with all gradients. Gradients of the step before are
freed by then, but for those that accumulate.

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

Training by several GPUs (`parallel_bytes`) is with mixed precision. Of a token's 42 h bytes in each
layer (inputs of two norms in float32, 8 h; inputs of the six products, 18 h; what attention and the
activation need, 16 h) 16 h are whole on each rank under tensor parallelism. RESERVE is for what
allocations waste, and FIXED for the libraries' buffers.

A layer alone (`layer_bytes`) is estimated from above. Of each token some tensors of the width are
kept for backward, and some of the feed-forward width. Norms work in float32, some of them with
copies. T5's mask has a gradient of its own for each score; grouped queries keep all scores where
there is no flash attention, which bfloat16 always has. Of the weights there are gradients of three
turns: two kept and one new.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from acceptance.core.dtype import DtypeName
from acceptance.core.limit import GIB
from acceptance.loads.gemm.contract import ROOM as LAYER_ROOM
from acceptance.loads.train import parallel_values
from acceptance.loads.train.shapes import (
    ADAMW_BYTES,
    MODELS,
    LayerName,
    LayerShape,
    ModelName,
    ModelShape,
    StepOption,
)

COPY_BYTES = 2  # a parameter's copy in the format of the products
GRADIENT_BYTES = 4
NARROW_TOKEN, WIDE_TOKEN = 42, 64  # bytes of a token in each layer, for each of the hidden width
WHOLE_TOKEN = 16  # of the narrow ones, whole on each rank under tensor parallelism
WORD_BYTES = 16  # bytes of a token for each row of the vocabulary
MOST_BATCH = 16
ROOM = 0.92  # of the GPU's total memory; fragments, a display and the driver need the rest
CONTEXT_BYTES = 3 << 28  # CUDA's own, and its libraries' work space
RESERVE, FIXED = 1.15, GIB
ELEMENT_BYTES: dict[DtypeName, int] = {"bf16": 2, "f16": 2, "tf32": 4, "f32": 4}
# Model and batch of each GPU, of which the first that fits is taken.
CHOICES: tuple[tuple[ModelName, int], ...] = (
    ("parallel", 8),
    ("parallel", 4),
    ("gpt2", 8),
    ("gpt2", 4),
    ("gpt2", 2),
    ("gpt2", 1),
    ("digest", 2),
    ("digest", 1),
)


def halved(most: int, fits: Callable[[int], bool]) -> int:
    """The batch `most`, halved until it fits; 0 where not even one sample does."""
    while most and not fits(most):
        most //= 2
    return most


def step_bytes(shape: ModelShape, option: StepOption, batch: int) -> int:
    """Estimated peak memory of a training step."""
    tokens = batch * shape.sequence
    layer = (NARROW_TOKEN if option.narrow else WIDE_TOKEN) * shape.layer.hidden * tokens
    kept = 4 * shape.layer.hidden * tokens * shape.layers + layer
    activations = kept if option.checkpointed else layer * shape.layers
    states = (ADAMW_BYTES + COPY_BYTES * option.narrow) * shape.parameters
    freed = GRADIENT_BYTES * shape.parameters if option.accumulation == 1 else 0
    return max(states, states - freed + activations + WORD_BYTES * shape.words * tokens)


def step_batch(
    shape: ModelShape, option: StepOption, whole_bytes: int, beside_bytes: int
) -> tuple[StepOption, int] | None:
    """The option and the largest batch that fit into this memory beside other `beside_bytes`.

    Where not even one sample fits it is the same with checkpointing; None where that does not
    either.
    """
    room = ROOM * whole_bytes - CONTEXT_BYTES - beside_bytes

    def largest(tried: StepOption) -> int:
        return halved(MOST_BATCH, lambda size: step_bytes(shape, tried, size) <= room)

    for tried in (option, replace(option, checkpointed=True)):
        if batch := largest(tried):
            return tried, batch
    return None


def parallel_bytes(shape: ModelShape, batch: int, ranks: int = 1) -> int:
    """The memory of one GPU that trains `batch` samples at a time.

    With `ranks` it is one of so many that share the model by tensor parallelism; each of several
    that have all of it needs as much as one alone.
    """
    split = parallel_values.split_parameters(shape) / ranks
    parameters = split + parallel_values.whole_parameters(shape)
    of_layer = (WHOLE_TOKEN + (NARROW_TOKEN - WHOLE_TOKEN) / ranks) * shape.layer.hidden
    token = shape.layers * of_layer + WORD_BYTES * shape.words
    model = (ADAMW_BYTES + COPY_BYTES) * parameters
    return int(RESERVE * (model + batch * shape.sequence * token)) + FIXED


def parallel_model(room: int) -> tuple[ModelName, int]:
    """The model, and the batch of one GPU, for `room` bytes of free memory.

    Raises ValueError where not even the smallest fits.
    """
    for name, batch in CHOICES:
        if parallel_bytes(MODELS[name], batch) <= room:
            return name, batch
    raise ValueError(f"{room / GIB:.2f} GiB of free memory are too little for any model")


def tensor_batch(shape: ModelShape, batch: int, ranks: int, room: int) -> int:
    """The batch of all ranks together under tensor parallelism.

    That is the sum of their batches, halved until every GPU has memory for it.
    """
    whole = batch * ranks
    while whole > 1 and parallel_bytes(shape, whole, ranks) > room:
        whole = (whole + 1) // 2
    return whole


def layer_bytes(
    name: LayerName, shape: LayerShape, batch: int, sequence: int, dtype: DtypeName
) -> int:
    """Bytes that a layer needs at the most, forward with backward."""
    size = ELEMENT_BYTES[dtype]
    width = (28 if shape.cross else 20) * shape.hidden + (6 if shape.gated else 5) * shape.inner
    tokens = batch * sequence * (width * size + 4 * 6 * shape.hidden)
    scores = batch * shape.heads * sequence**2 * size
    grouped = shape.key_heads and dtype != "bf16"
    kept = 2 if name.startswith("t5_") else 6 if grouped else 0
    return tokens + kept * scores + 4 * shape.parameters * size


def layer_batch(
    name: LayerName, shape: LayerShape, dtype: DtypeName, product_bytes: int, whole_bytes: int
) -> int:
    """The judged batch on a GPU with this total memory, at least one sample.

    `product_bytes` are those of the matrix product that stays there.
    """
    room = LAYER_ROOM * whole_bytes - product_bytes
    return max(
        1,
        halved(
            shape.batch, lambda size: layer_bytes(name, shape, size, shape.sequence, dtype) <= room
        ),
    )
