"""The training steps of one GPU: GPT-2 medium as it is judged, or a table of models and options.

    python -m acceptance.loads train_step seconds=6
    python -m acceptance.loads train_step seconds=100 table=true

It uses CUDA device 0 of those it sees. A step is forward, backward and an update of all weights of
a model of `shapes` by AdamW (fused, learning rate 2e-5), on one batch of random tokens, without
dropout and without a compiler, as plain torch trains ("eager"). Products run under autocast in
bfloat16, on GPUs before Ampere in float16 with a fixed scale of the loss; what autocast leaves in
float32 may use TF32. The batch is the largest that memory allows, up to 16; where not one sample
fits, layers are checkpointed, and a note says so.

`step_<model>`, TFLOP/s: operations of `shapes.ModelShape.sample_flop` over the GPU's own time (CUDA
events, one a step), without the first steps. Three turns of steps and three of matrix products (n =
8192, 4096 on GPUs below 12 GiB, in the same format) alternate after a sixth of `seconds` of
products, so that both are equally hot; the first 0.3 s of a turn of steps and the first half of one
of products do not count. `step_<model>_share` is the one's rate over the other's, `step_matmul` the
products' rate. A note has the rate of each turn of products.

With `table` GPT-2 medium, BERT-large and GPT-Neo-1.3B are trained in float32 (TF32 off), in TF32,
in the judged format with and without the fused optimizer, with 4 and 16 accumulated batches, and
with checkpointing, each a few seconds; `seconds` bounds them all, and a note names those for
which there was no time or memory. The judged models are BERT-large and GPT-Neo-1.3B then. The
latter is for GPUs with 30 GiB and more, and absent on others.

Values: before and after the load, one step of a small model is compared with float64, in float32
and in the judged format: loss, every gradient, every updated weight (`step_bounds`). Of each model
that is trained, the loss of new weights is ln(vocabulary) within a margin (`step_options`); made
again it has the same bits, with checkpointing too, and so has that of the last weights; every
step's loss is finite; and the last is below the first. The last matrix product equals the first bit
for bit. `step_miscompares` counts what was wrong. Gradients of the large models are not compared
with anything: their order of addition is not fixed.

Exit status as of `loads.gemm.load`; too little memory for a judged model is such an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from acceptance.loads.card import CudaCard, ProcessorCard, gpu_identity
from acceptance.loads.protocol import Output
from acceptance.loads.train.shapes import MODELS, TINY, judged_format
from acceptance.loads.train.step_bounds import SMALL
from acceptance.loads.train.step_contract import STEP_SIZES, Ask
from acceptance.loads.train.step_worker import GIB, StepOrder, StepWorker

SMALLER_BELOW = 12 * GIB  # GPUs with less memory have the smaller product
TINY_SIZE = 128


def run(ask: Ask, output: Output) -> None:
    """Run the whole load. Raises LoadError, and RuntimeError for errors of CUDA and torch."""
    real = ask.device == "cuda"
    card: CudaCard | ProcessorCard = CudaCard() if real else ProcessorCard()
    about = gpu_identity() if real else {"gpu": "none", "capability": "8.0"}
    judged, whole_bytes = judged_format(about["capability"]), card.whole_bytes()
    size = STEP_SIZES[whole_bytes < SMALLER_BELOW] if real else TINY_SIZE
    parameters: dict[str, Any] = {
        **ask.parameters(),
        "format": judged,
        "size": size,
        **about,
    }
    output.hello(ask.load, parameters)
    if real and size != STEP_SIZES[0]:
        output.note(
            f"shares are of products of {size}, not {STEP_SIZES[0]}: the GPU's memory is small"
        )
    from acceptance.loads.gemm.product import settings
    from acceptance.loads.train.step_trial import SmallStep, TorchMatmul, TorchTrial

    settings()
    order = StepOrder(
        seconds=ask.seconds,
        table=ask.table,
        judged=judged,
        models={"gpt2": MODELS["gpt2"], "bert": MODELS["bert"], "neo": MODELS["neo"]}
        if real
        else {
            "gpt2": replace(TINY, name=MODELS["gpt2"].name),
            "bert": replace(
                TINY, name=MODELS["bert"].name, layer=replace(TINY.layer, causal=False)
            ),
            "neo": replace(TINY, name=MODELS["neo"].name),
        },
        whole_bytes=whole_bytes,
        inject=ask.inject,
    )
    StepWorker(
        order,
        card,
        output,
        SmallStep(ask.device, shape=SMALL if real else TINY),
        TorchMatmul(judged, size, ask.device),
        lambda shape, option, batch: TorchTrial(shape, option, batch, ask.device),
    ).run()
    output.end()
