"""The load of transformer layers on one GPU: their rates, and whether they are right.

    python -m acceptance.loads train_layers dtype=bf16 seconds=8
    python -m acceptance.loads train_layers dtype=bf16 seconds=100 table=true

It uses CUDA device 0 of those it sees. The layers are those of `shapes`: a BERT-large layer, a
GPT-2 medium block, a T5-large encoder layer and decoder layer, and a Llama-8B-like block, of torch
modules of our own (`blocks`), with scaled-dot-product attention and without dropout. `dtype` is
the judged format.

First, each layer is verified in a small shape against float64 on the processor: its output and all
gradients, within the bound of `layer_bound`. Then `seconds` of load: the card's own product of
8192 x 8192 matrices in the same format (4096 where the memory is small) warms it up. Then, for each
layer in its judged shape, a slice of that product, forward passes, and passes forward and backward,
without a pause. The product is measured before, between and after the layers, because a cool card
is up to a quarter faster than a hot one: `layer_matmul` is the median of the slices. Each rate is
of the last half of its slice, when clocks and power are in balance.

- `layer_<name>`: TFLOP/s forward with backward, by the operations of `shapes` x 3
- `layer_<name>_forward`: the forward pass alone
- `layer_<name>_share`: `layer_<name>` / `layer_matmul`
- `layer_miscompares`: tensors found wrong, of those that are compared

The judged batch halves until a layer fits the GPU's whole memory; `batches` in the first line and
the table `train_layers` say which it was. Before and after its rates the layer's output, and output
and gradients under strict determinism, are made and must have the same bits (`layer_trial`).
Results between the first and the last are not compared.

With `table` the small layers are verified in every format that the GPU has (bfloat16, float16,
TF32, float32). Then follow the parts of a BERT-large layer at batch 64, sequence 128, and the table
of published shapes: one brief measurement of each, format by format, within `seconds`. A cell for
which time or memory did not suffice says so.

Times are the GPU's own (CUDA events). `device=cpu` is for tests: it uses the small shapes.

Exit status: 0 when it ran whole, whatever it found (the readings say what); 1 when the GPU or torch
cannot be used or fails, with one sentence on standard error and no end line; 2 for arguments that
cannot be used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from acceptance.core.dtype import DtypeName
from acceptance.loads.card import Card, CudaCard, ProcessorCard, gpu_identity
from acceptance.loads.gemm.dtypes import DTYPES
from acceptance.loads.gemm.worker import fitting_size, needs
from acceptance.loads.protocol import Output
from acceptance.loads.train.layer_bound import SMALL, UNITS
from acceptance.loads.train.layer_contract import Ask
from acceptance.loads.train.layer_worker import LayerOptions, LayerWorker
from acceptance.loads.train.memory import layer_batch
from acceptance.loads.train.shapes import LAYERS, LayerName, LayerShape

SIZE = 8192
SMALL_SIZE = 256
# cuBLAS adds in one order only with a workspace of this kind; it must be set before CUDA starts.
WORKSPACE = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def judged(dtype: DtypeName, size: int, whole_bytes: int) -> dict[LayerName, LayerShape]:
    """The layers with the batch that fits a GPU with this total memory."""
    product = needs([DTYPES[dtype]], size)
    return {
        name: replace(shape, batch=layer_batch(name, shape, dtype, product, whole_bytes))
        for name, shape in LAYERS.items()
    }


def run(ask: Ask, output: Output) -> None:
    """Run the whole load, from the GPU's name to the last reading.

    Raises LoadError, and RuntimeError for errors of CUDA and torch.
    """
    os.environ[WORKSPACE[0]] = WORKSPACE[1]
    identity: Mapping[str, Any]
    card: Card
    if ask.device == "cuda":
        identity, cuda = gpu_identity(), CudaCard()
        whole = cuda.whole_bytes()
        size = fitting_size([DTYPES[ask.dtype]], SIZE, whole)
        card, shapes = cuda, judged(ask.dtype, size, whole)
        major, minor = map(int, identity["capability"].split("."))
        formats = tuple(one for one in UNITS if DTYPES[one].missing((major, minor)) is None)
    else:
        identity, card, size, shapes, formats = {}, ProcessorCard(), SMALL_SIZE, SMALL, tuple(UNITS)
    parameters: dict[str, Any] = {
        **ask.parameters(),
        "formats": list(formats) if ask.table else [],
        "size": size,
        "batches": {} if ask.table else {name: one.batch for name, one in shapes.items()},
        **identity,
    }
    output.hello(ask.load, parameters)
    from acceptance.loads.gemm.product import settings
    from acceptance.loads.train.layer_trial import TorchLayers

    settings()
    own = formats if ask.table else ()
    order = LayerOptions(ask.dtype, ask.seconds, size, shapes, own, ask.inject)
    worker = LayerWorker(order, card, output, TorchLayers(ask.device, shapes))
    if ask.table:
        worker.tabulate()
    else:
        worker.judge()
    output.end()
