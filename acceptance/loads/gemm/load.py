"""The matrix load of one GPU: square products in seven number formats, short and sustained.

    python -m acceptance.loads gpu_gemm dtypes=f64,f32,tf32,i8 seconds=6 table=128,2048

It uses CUDA device 0 of those it sees. (CUDA_VISIBLE_DEVICES names one by its UUID; to load a
machine, run one process for each GPU side by side.) Formats: `f64` float64, `f32` float32 (TF32
off), `tf32` TF32, `f16` float16, `bf16` bfloat16, `f8` FP8 e4m3 (bfloat16 result, scale 1, fast
accumulation), `i8` int8 (int32 result). Operands are normal-random (`dtypes`), made by torch's
generator with a fixed seed; torch gives the products to cuBLAS. Formats that the GPU lacks are
reported as absent and not measured.

First, for each format, the first products are made and verified (`verification`), and the GPU rests
for half a second. Then products fill a tenth of a second: `gemm_<d>_short`, TFLOP/s. Then follows
the table by size, where asked for. Then, for each format, products run without a pause for
`seconds`: `gemm_<d>`, TFLOP/s, is the mean over the last half, when clocks, power and heat are in
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

from typing import Any

from acceptance.loads.card import CudaCard, gpu_identity
from acceptance.loads.gemm.contract import Ask
from acceptance.loads.gemm.dtypes import DTYPES
from acceptance.loads.gemm.worker import GemmOptions, GemmWorker, fitting_size, report_absent
from acceptance.loads.protocol import Output

INPUTS = "normal-random"


def run(ask: Ask, output: Output) -> None:
    """Run the whole load, from the GPU's name to the last reading.

    Raises LoadError, and RuntimeError for errors of CUDA and torch.
    """
    card, own = gpu_identity(), CudaCard()
    major, minor = map(int, card["capability"].split("."))
    dtypes = [DTYPES[name] for name in ask.dtypes]
    offered = [dtype for dtype in dtypes if dtype.missing((major, minor)) is None]
    size = fitting_size(offered, ask.size, own.whole_bytes())
    parameters: dict[str, Any] = {**ask.parameters(), "size": size, "inputs": INPUTS, **card}
    output.hello(ask.load, parameters)
    if size != ask.size:
        output.note(
            f"{size} is judged, not {ask.size}: the GPU's memory is too small for one "
            "format of that size"
        )
    from acceptance.loads.gemm.product import normal, settings
    from acceptance.loads.gemm.verification import FormatTrial

    settings()
    order = GemmOptions(
        report_absent(output, dtypes, (major, minor)), ask.seconds, size, ask.table, ask.inject
    )
    GemmWorker(
        order,
        own,
        output,
        lambda dtype, size: FormatTrial(dtype, size, "cuda"),
        lambda dtype, size: normal(dtype, size, "cuda").multiply,
    ).run()
    output.end()
