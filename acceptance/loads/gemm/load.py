"""The matrix load of one GPU: square products in seven number formats, short and sustained.

    python -m acceptance.loads.gemm.load --dtypes f64,f32,tf32,i8 --seconds 6 --table 128,2048

It uses CUDA device 0 of those it sees. (CUDA_VISIBLE_DEVICES names one by its UUID; to load a
machine, run one process for each GPU side by side.) Formats: `f64` float64, `f32` float32 (TF32
off), `tf32` TF32, `f16` float16, `bf16` bfloat16, `f8` FP8 e4m3 (bfloat16 result, scale 1, fast
accumulation), `i8` int8 (int32 result). Operands are normal-random (`dtypes`), made by torch's
generator with a fixed seed; torch gives the products to cuBLAS. Formats that the GPU lacks are
reported as absent and not measured.

First, for each format, the first products are made and verified (`verification`), and the GPU rests
for half a second. Then products fill a tenth of a second: `gemm_<d>_short`, TFLOP/s. Then follows
the table by size, where asked for. Then, for each format, products run without a pause for
`--seconds`: `gemm_<d>`, TFLOP/s, is the mean over the last half, when clocks, power and heat are in
balance.

The same operands and library give the same bits, so later products are compared with the first. One
format has the GPU's memory at a time. In its first turn the last product of the tenth of a second
is compared with the first bit for bit. Before the sustained load the operands are made again from
the seed and the first product again: its digest (64 bits of all elements and their places) must
equal that of the first. The last product of the sustained load is compared with that one bit for
bit. `gemm_<d>_miscompares` counts the products found wrong, of the up to five that are checked.

Times are the GPU's own (CUDA events), with 2 n^3 operations a product; verifying is never inside
them. At 8192, the size that is judged, a product takes 0.3 ms at 4 PFLOP/s and its launch 0.02 ms:
no GPU waits for the processor. Not measured are rectangular shapes, batches, other inputs (zeros
are up to a third faster) and sparsity. Products between the first and the last are not verified. On
a GPU whose total memory is too small for one format at 8192, 4096 is judged instead, under the same
names: `size` and a note say so.

Exit status: 0 when it ran whole, whatever it found (the readings say what); 1 when the GPU or torch
cannot be used or fails, with one sentence on standard error and no end line; 2 for arguments that
cannot be used.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

from acceptance.loads.card import CudaCard, gpu_identity
from acceptance.loads.gemm.dtypes import DTYPES, Dtype
from acceptance.loads.gemm.table import LARGEST, sizes
from acceptance.loads.gemm.worker import GemmOptions, GemmWorker, fitting_size, report_absent
from acceptance.loads.program import exit_load, run_guarded, seconds
from acceptance.loads.protocol import Output

NAME = "gpu_gemm"
INPUTS = "normal-random"
# Environment variables that change how the libraries multiply. They are removed, so that they
# cannot change the measurement.
STRAYS = (
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUBLASLT_WORKSPACE_SIZE",
)


def dtypes(text: str) -> tuple[Dtype, ...]:
    """A list of formats from the command line; raises argparse.ArgumentTypeError for others."""
    names = text.split(",")
    if len(set(names)) != len(names) or not DTYPES.keys() >= set(names):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of {','.join(DTYPES)}, each at most once"
        )
    return tuple(DTYPES[name] for name in names)


def _size(text: str) -> int:
    if (
        not re.fullmatch(r"\d{1,5}", text, re.ASCII)
        or int(text) % 16
        or not 64 <= int(text) <= LARGEST
    ):
        raise argparse.ArgumentTypeError(f"{text!r} is not a multiple of 16 from 64 to {LARGEST}")
    return int(text)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Multiply matrices on one GPU, briefly and sustained, and verify the results.",
    )
    parser.add_argument(
        "--dtypes",
        "--dtype",
        required=True,
        type=dtypes,
        help=f"of {','.join(DTYPES)}, in this order",
    )
    parser.add_argument(
        "--seconds", required=True, type=seconds, help="of sustained load, for each format"
    )
    parser.add_argument(
        "--size",
        type=_size,
        default=8192,
        help="rows and columns of what is judged (default %(default)s)",
    )
    parser.add_argument(
        "--table",
        type=sizes,
        default=(),
        help="sizes of the table, 128,512,... (default: no table)",
    )
    parser.add_argument(
        "--inject",
        choices=("wrong", "slow"),
        help="a fault, to prove that it is found; such a run never passes",
    )
    return parser


def run(options: argparse.Namespace, output: Output) -> None:
    """Run the whole load, from the GPU's name to the last reading.

    Raises CardError, and RuntimeError for errors of CUDA and torch.
    """
    card, own = gpu_identity(), CudaCard()
    major, minor = map(int, card["capability"].split("."))
    offered = [dtype for dtype in options.dtypes if dtype.missing((major, minor)) is None]
    size = fitting_size(offered, options.size, own.whole_bytes())
    parameters: dict[str, Any] = {
        "dtypes": [dtype.short for dtype in options.dtypes],
        "seconds": options.seconds,
        "size": size,
        "table": list(options.table),
        "inputs": INPUTS,
        **card,
    }
    if options.inject is not None:
        parameters["inject"] = options.inject
    output.hello(NAME, parameters)
    if size != options.size:
        output.note(
            f"{size} is judged, not {options.size}: the GPU's memory is too small for one "
            "format of that size"
        )
    from acceptance.loads.gemm.product import normal, settings
    from acceptance.loads.gemm.verification import FormatTrial

    settings()
    order = GemmOptions(
        report_absent(output, options.dtypes, (major, minor)),
        options.seconds,
        size,
        options.table,
        options.inject,
    )
    GemmWorker(
        order,
        own,
        output,
        lambda dtype, size: FormatTrial(dtype, size, "cuda"),
        lambda dtype, size: normal(dtype, size, "cuda").multiply,
    ).run()
    output.end()


def main(argv: Sequence[str] | None = None) -> int:
    """The program; the module's docstring lists its exit statuses."""
    options = arguments().parse_args(argv)
    return run_guarded(NAME, lambda: run(options, Output(sys.stdout)), strays=STRAYS)


if __name__ == "__main__":
    exit_load(main())
