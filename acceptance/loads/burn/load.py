"""The burn of one GPU: products of matrices without a pause in seven number formats, every element
of every product compared bit for bit.

    python -m acceptance.loads.burn.load --dtypes f64,f32,tf32,f16,bf16,f8,i8 --seconds 240

It uses CUDA device 0 of those it sees; the others, where `--peers` counts them, are only copied to.
Formats and inputs are those of `gpu_gemm`; three shapes of each (`shape`): square, tall and wide.

First, for each format and shape, the first product is proved right (`product`): products of whole
numbers exactly, products of normal-random numbers against float64. Its digest and that of its
inputs are in the table `burn_digests`: equal GPUs with one library have equal ones.

Then the formats take turns, two laps of them at least. In its turn a format has the memory:
operands, the first product of each shape, made anew (its digest must be that of the proof:
`again`), and in all the rest, but a reserve of RESERVE bytes and RESERVE_A_PEER for each peer, a
ring of results. Products of the three shapes fill it, group after group. Before a group is
overwritten, every element of it is compared with the first product, on the GPU (`compare`); at the
end of the turn all that is left in memory is compared, and the inputs are read again (`inputs`). So
each product of a turn is compared once, after it lay in memory for as long as the ring takes.

Readings: `burn_<d>`, TFLOP/s, 2 m n k operations over all turns of a format, comparing included, by
the GPU's clock; `burn_<d>_kept`, the rate of the last lap over that of the first;
`burn_<d>_miscompares`, products, references and operands found wrong; `burn_filled`, results over
the memory that was free at first, the least of the formats; `burn_copied` and
`burn_copy_miscompares`, and those of peers (`copies`). With `--plain` each turn is halved, and its
second half makes the same products without comparing any: `burn_<d>_plain`, TFLOP/s, and
`burn_<d>_verified_ratio`, the one rate over the other: what verifying costs.

A wrong product is told as soon as it is found: how many elements, NaN and infinite ones apart, the
first addresses, their distance, the bits, when it was made. What this is not: a test of the memory
that operands and driver use, of video engines, of graphics; a proof that the first product is right
in more rows than the note says.

Exit status: 0 when it ran whole, whatever it found; 1 when the GPU or torch cannot be used, fails,
or hangs (nothing finished for HANG_S), with one sentence on standard error and no end line; 2 for
arguments that cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from acceptance.loads.burn import fault
from acceptance.loads.burn.card import PatientCard, boot_s
from acceptance.loads.burn.shape import divisor_for
from acceptance.loads.burn.worker import NAMES, BurnOptions, BurnWorker
from acceptance.loads.card import CardError, gpu_identity
from acceptance.loads.gemm.load import STRAYS, dtypes
from acceptance.loads.gemm.worker import report_absent
from acceptance.loads.program import exit_load, run_guarded, seconds
from acceptance.loads.protocol import Output

NAME = "burn"
# For torch's own pieces, the library's work space, and what looking at a wrong result takes.
RESERVE = 640 << 20
# For what a peer's burn still takes of this GPU after both have begun; its context, its kernels and
# the buffer that it copies to are there by then (`Copies` takes them first), and no longer free.
RESERVE_A_PEER = 300 << 20


def _peers(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of peers from 0 to 31")
    return int(text)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog=NAME, description="Burn one GPU with products of matrices, every one of them verified."
    )
    parser.add_argument(
        "--dtypes", required=True, type=dtypes, help="number formats, f64,f32,...: they take turns"
    )
    parser.add_argument(
        "--seconds", required=True, type=seconds, help="of burn, all formats together"
    )
    parser.add_argument(
        "--peers", type=_peers, default=0, help="how many of the other GPUs it sees are copied to"
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="time the same products without verifying too, half of each turn",
    )
    parser.add_argument(
        "--inject",
        type=fault.argument,
        metavar="FAULT",
        help=(
            f"a fault, to prove that it is found: {', '.join(fault.KINDS)}, slow:PERCENT; such a "
            "run never passes"
        ),
    )
    return parser


def run(options: argparse.Namespace, output: Output) -> None:
    """From the GPU's name to the last reading; raises CardError, and
    RuntimeError for what CUDA and torch say.
    """
    card, own = gpu_identity(), PatientCard()
    import torch

    from acceptance.loads.burn.compare import KernelComparator
    from acceptance.loads.burn.copies import Copies, KernelPattern
    from acceptance.loads.burn.device import TorchDevice
    from acceptance.loads.gemm.product import settings

    if torch.cuda.device_count() <= options.peers:
        seen = torch.cuda.device_count() - 1
        raise CardError(
            f"{options.peers} peers are to be copied to, and {seen} are seen: see "
            "CUDA_VISIBLE_DEVICES"
        )
    major, minor = map(int, card["capability"].split("."))
    offered = tuple(dtype for dtype in options.dtypes if dtype.missing((major, minor)) is None)
    whole = own.whole_bytes()
    divisors = {dtype.short: divisor_for(dtype, (major, minor), whole) for dtype in offered}
    order = BurnOptions(
        offered, options.seconds, options.plain, fault.slowness(options.inject), divisors
    )
    parameters: dict[str, Any] = {
        "dtypes": [dtype.short for dtype in options.dtypes],
        "seconds": options.seconds,
        "peers": options.peers,
        "laps": order.laps,
        **card,
    }
    if options.plain:
        parameters["plain"] = True
    if options.inject is not None:
        parameters["inject"] = options.inject
    output.hello(NAME, parameters)
    report_absent(output, options.dtypes, (major, minor), NAMES)
    settings()
    comparator = KernelComparator()
    stoppage = fault.Stoppage() if options.inject is not None else None
    device = TorchDevice("cuda", own, comparator, options.inject, stoppage)
    copies = Copies(output, KernelPattern, range(1, options.peers + 1), boot_s)
    BurnWorker(order, device, own, output, copies, boot_s).run(
        RESERVE + options.peers * RESERVE_A_PEER
    )
    output.end()


def main(argv: Sequence[str] | None = None) -> int:
    """The program; see the module for its exit status."""
    options = arguments().parse_args(argv)
    return run_guarded(NAME, lambda: run(options, Output(sys.stdout)), strays=STRAYS)


if __name__ == "__main__":
    exit_load(main())
