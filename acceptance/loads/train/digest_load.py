"""The digests of a training run on one GPU: what repeats must end in the same bits.

    python -m acceptance.loads.train.digest_load --device cuda --seconds 12

It uses CUDA device 0 of those it sees. A GPT of 124 M parameters (`shapes`, "digest") trains 20
steps of 4 x 1024 synthetic tokens with AdamW (fused), under bfloat16 autocast, and again in float32
with TF32; a GPU without these formats takes float16 autocast with a fixed loss scale, and float32.
Model, batch, steps and seeds are the same on every card and night. torch's strict determinism is
on, so every operation gives the same bits each time or is refused: `digest_training` says which
relies on what.

At each step the loss and every gradient are stamped, after the last one every weight and both
moments: a digest of 64 bits (all words, each times an odd number of its place, modulo 2**64), the
plain sum, and the number of elements that are not finite. The GPU makes the stamps, and they are
read once a run. Both runs are repeated for `--seconds`, at least once, and each repeat is compared
with the first run: `digest_repeats_differ` counts those with other bits.
All stamps of the first run of each format are printed (`digest_log`), so that they can be compared
with those of other GPUs.

`--inject` flips one bit (of the middle half of a random element, by `--inject-seed`) at a random
step of the second run of one format: of an activation (the output of a feed-forward part), a
gradient, a weight or a moment. With `persistent` it is the same bit of a gradient in every run.
`--trials N` makes N faults of each kind in each format instead, prints what became of each, and a
row for each kind: tried, found, masked (no bit of loss, weights and moments at the end differs) and
missed.

With `--device cpu` the model is tiny: for tests.

Exit status: 0 when it ran whole, whatever it found (the readings say what); 1 when the GPU or torch
cannot be used or fails, with one sentence on standard error and no end line, or when a trial was
missed; 2 for arguments that cannot be used.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from acceptance.loads.card import gpu_identity
from acceptance.loads.gemm.dtypes import DTYPES
from acceptance.loads.miscompare import DigestFormat
from acceptance.loads.program import exit_load, run_guarded, seconds
from acceptance.loads.protocol import Output
from acceptance.loads.train.digest_worker import (
    FAULT_KINDS,
    PERSISTENT,
    DigestOrder,
    DigestWorker,
    Training,
    trials,
)
from acceptance.loads.train.library_version import cublas_version
from acceptance.loads.train.names import (
    DIGEST_BATCH,
    DIGEST_FORMATS,
    DIGEST_RECIPE,
    DIGEST_STEPS,
)
from acceptance.loads.train.shapes import MODELS, TINY, ModelShape

NAME = "train_digest"
WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
# Environment variables that change how the libraries multiply. They are removed, so that they
# cannot change the bits.
STRAYS = (
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "DISABLE_ADDMM_CUDA_LT",
    "CUBLASLT_WORKSPACE_SIZE",
)

Make = Callable[[ModelShape, str, int, int], Training]


def formats(capability: tuple[int, int]) -> tuple[DigestFormat, ...]:
    """The formats of the two runs on a GPU of this compute capability.

    float16 autocast is for every GPU without bfloat16, with tensor cores or without.
    """
    return tuple(
        first if DTYPES[first].missing(capability) is None else other
        for first, other in DIGEST_FORMATS
    )


def _count(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 999999")
    return int(text)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog=NAME, description="Train a model again and again, and compare the bits."
    )
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="cpu is for tests: a tiny model"
    )
    parser.add_argument(
        "--seconds",
        default=12.0,
        type=seconds,
        help="of load (default %(default)g)",
    )
    parser.add_argument(
        "--inject",
        choices=(*FAULT_KINDS, PERSISTENT),
        help="a fault, to prove that it is found; such a run never passes",
    )
    parser.add_argument(
        "--inject-seed", type=int, default=0, help="chooses where (default %(default)s)"
    )
    parser.add_argument(
        "--trials", type=_count, help="instead, so many faults of each kind in each format"
    )
    return parser


def _training(shape: ModelShape, device: str, size: int, steps: int) -> Training:
    from acceptance.loads.train import digest_training

    digest_training.strict()
    return digest_training.DigestTraining(shape, device, size, steps)


def identity(device: str) -> dict[str, Any]:
    """The GPU and the versions that the bits depend on; of a processor torch's version alone.

    Raises CardError where torch or a GPU is missing, or a version is unknown.
    """
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
    options: argparse.Namespace,
    output: Output,
    make: Make = _training,
    identify: Callable[[str], dict[str, Any]] = identity,
) -> None:
    """Run the whole load, from the GPU's name to the last reading.

    Raises CardError, and RuntimeError for errors of CUDA and torch.
    """
    about = identify(options.device)
    major, minor = map(int, about.get("capability", "8.0").split("."))
    asked, shape = formats((major, minor)), TINY if options.device == "cpu" else MODELS["digest"]
    parameters: dict[str, Any] = {
        "device": options.device,
        "seconds": options.seconds,
        "formats": list(asked),
        "model": shape.name,
        "batch": DIGEST_BATCH,
        "sequence": shape.sequence,
        "steps": DIGEST_STEPS,
        "recipe": DIGEST_RECIPE,
        **about,
    }
    if options.inject is not None:
        parameters |= {"inject": options.inject, "inject_seed": options.inject_seed}
    output.hello(NAME, parameters)
    order = DigestOrder(asked, options.seconds, options.inject, options.inject_seed)
    DigestWorker(order, make(shape, options.device, DIGEST_BATCH, DIGEST_STEPS), output).run()
    output.end()


def try_faults(
    options: argparse.Namespace,
    say: Callable[[str], None] = print,
    make: Make = _training,
    identify: Callable[[str], dict[str, Any]] = identity,
) -> int:
    """Make the faults of `--trials` and print what became of them; 1 where one was missed."""
    about = identify(options.device)
    major, minor = map(int, about.get("capability", "8.0").split("."))
    shape = TINY if options.device == "cpu" else MODELS["digest"]
    training = make(shape, options.device, DIGEST_BATCH, DIGEST_STEPS)
    tallies = trials(formats((major, minor)), training, options.trials, options.inject_seed, say)
    say("kind format tried found masked missed named-one-bit")
    for one in tallies:
        counts = one.tried, one.found, one.masked, one.missed, one.named
        say(f"{one.kind} {one.format} {' '.join(map(str, counts))}")
    return int(any(one.missed for one in tallies))


def main(argv: Sequence[str] | None = None) -> int:
    """The program; the module's docstring lists its exit statuses."""
    options = arguments().parse_args(argv)
    os.environ[WORKSPACE] = ":4096:8"  # before CUDA starts
    status = 0

    def work() -> None:
        nonlocal status
        if options.trials is None:
            run(options, Output(sys.stdout))
        else:
            status = try_faults(options)

    return run_guarded(NAME, work, strays=STRAYS) or status


if __name__ == "__main__":
    exit_load(main())
