"""What the ranks train: the largest model and batch for which every GPU has memory. Pure.

Calculated for GPUs, with mixed precision: a parameter takes 16 bytes (ADAMW_BYTES), and 2 more for
its copy in the format of the products. A token takes of each layer 42 h bytes (inputs of two norms
in float32, 8 h; inputs of the six products, 18 h; what attention and the activation need, 16 h),
and 16 bytes for each row of the vocabulary. With tensor parallelism 16 h of the 42 are whole on
each rank. RESERVE is for what allocations waste, and FIXED for the libraries' buffers.
"""

from __future__ import annotations

from acceptance.core.limit import GIB
from acceptance.loads.train import parallel_values
from acceptance.loads.train.shapes import ADAMW_BYTES, MODELS, ModelName, ModelShape

COPY_BYTES = 2
TOKEN, WHOLE_TOKEN = 42, 16  # bytes of a token in each layer, for each of h
WORD_BYTES = 16
RESERVE, FIXED = 1.15, GIB
# The first that fits is taken.
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


def needed(shape: ModelShape, batch: int, ranks: int = 1) -> int:
    """The memory of one GPU that trains `batch` samples at a time.

    With `ranks` it is one of so many that share the model by tensor parallelism; each of several
    that have all of it needs as much as one alone.
    """
    split = parallel_values.split_parameters(shape) / ranks
    parameters = split + parallel_values.whole_parameters(shape)
    of_layer = (WHOLE_TOKEN + (TOKEN - WHOLE_TOKEN) / ranks) * shape.layer.hidden
    token = shape.layers * of_layer + WORD_BYTES * shape.words
    model = (ADAMW_BYTES + COPY_BYTES) * parameters
    return int(RESERVE * (model + batch * shape.sequence * token)) + FIXED


def choose(room: int) -> tuple[ModelName, int]:
    """The model, and the batch of one GPU, for `room` bytes of free memory.

    Raises ValueError where not even the smallest fits.
    """
    for name, batch in CHOICES:
        if needed(MODELS[name], batch) <= room:
            return name, batch
    raise ValueError(f"{room / GIB:.2f} GiB of free memory are too little for any model")


def tensor_batch(shape: ModelShape, batch: int, ranks: int, room: int) -> int:
    """The batch of all ranks together under tensor parallelism.

    That is the sum of their batches, halved until every GPU has memory for it.
    """
    whole = batch * ranks
    while whole > 1 and needed(shape, whole, ranks) > room:
        whole = (whole + 1) // 2
    return whole
