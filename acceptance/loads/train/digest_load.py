"""The digests of a training run on one GPU: what repeats must end in the same bits.

    python -m acceptance.loads train_digest seconds=12

It uses CUDA device 0 of those it sees. A GPT of 124 M parameters (`shapes`, "digest") trains 20
steps of 4 x 1024 synthetic tokens with AdamW (fused), under bfloat16 autocast, and again in float32
with TF32; a GPU without these formats takes float16 autocast with a fixed loss scale, and float32.
Model, batch, steps and seeds are the same on every card and night. torch's strict determinism is
on, so every operation gives the same bits each time or is refused: `digest_training` says which
relies on what.

At each step the loss and every gradient are stamped, after the last one every weight and both
moments: a digest of 64 bits (all words, each times an odd number of its place, modulo 2**64), the
plain sum, and the number of elements that are not finite. The GPU makes the stamps, and they are
read once a run. Both runs are repeated for `seconds`, at least once, and each repeat is compared
with the first run: `digest_repeats_differ` counts those with other bits.
All stamps of the first run of each format are printed (`digest_log`), so that they can be compared
with those of other GPUs.

`inject` flips one bit (of the middle half of a random element, by `inject_seed`) at a random step
of the second run of one format: of an activation (the output of a feed-forward part), a gradient, a
weight or a moment. With `persistent` it is the same bit of a gradient in every run. `digest_trials`
makes many such faults.

With `device=cpu` the model is tiny: for tests.

Exit status: 0 when it ran whole, whatever it found (the readings say what); 1 when the GPU or torch
cannot be used or fails, with one sentence on standard error and no end line; 2 for arguments that
cannot be used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from acceptance.loads.card import gpu_identity
from acceptance.loads.miscompare import DigestFormat
from acceptance.loads.protocol import Output
from acceptance.loads.train import digest_contract
from acceptance.loads.train.digest_contract import BATCH, RECIPE, STEPS, Ask
from acceptance.loads.train.digest_worker import DigestWorker, Training
from acceptance.loads.train.library_version import cublas_version
from acceptance.loads.train.shapes import MODELS, TINY, ModelShape

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"

Make = Callable[[str], Training]


def formats_of(about: Mapping[str, Any]) -> tuple[DigestFormat, ...]:
    """The formats of the two runs on what `identity` names; a processor has all."""
    return digest_contract.formats(about.get("capability", "8.0"))


def shape_of(device: str) -> ModelShape:
    """The model that is trained."""
    return TINY if device == "cpu" else MODELS["digest"]


def training(device: str) -> Training:
    """The training run."""
    from acceptance.loads.train import digest_training

    digest_training.strict()
    return digest_training.DigestTraining(shape_of(device), device, BATCH, STEPS)


def identity(device: str) -> dict[str, Any]:
    """The GPU and the versions that the bits depend on; of a processor torch's version alone.

    Raises LoadError where torch or a GPU is missing, or a version is unknown.
    """
    os.environ[WORKSPACE] = ":4096:8"  # before CUDA starts
    if device == "cpu":
        import torch

        return {"library": f"torch {torch.__version__}"}
    found = gpu_identity()
    import torch

    torch.ones(1, 1, device=device) @ torch.ones(1, 1, device=device)  # loads cuBLAS
    return {
        **found,
        "cublas": cublas_version(),
        "multiprocessors": int(torch.cuda.get_device_properties(0).multi_processor_count),
    }


def run(
    ask: Ask,
    output: Output,
    make: Make = training,
    identify: Callable[[str], dict[str, Any]] = identity,
) -> None:
    """Run the whole load, from the GPU's name to the last reading.

    Raises LoadError, and RuntimeError for errors of CUDA and torch.
    """
    about, shape = identify(ask.device), shape_of(ask.device)
    formats = formats_of(about)
    parameters: dict[str, Any] = {
        **ask.parameters(),
        "formats": list(formats),
        "model": shape.name,
        "batch": BATCH,
        "sequence": shape.sequence,
        "steps": STEPS,
        "recipe": RECIPE,
        **about,
    }
    if ask.inject is not None:
        parameters["inject_seed"] = ask.inject_seed
    output.hello(ask.load, parameters)
    DigestWorker(ask, formats, make(ask.device), output).run()
    output.end()
