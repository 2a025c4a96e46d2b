"""The burn of one GPU: continuous matrix products, every element compared bit for bit.

    python -m acceptance.loads.burn.load --dtypes f64,f32,tf32,f16,bf16,f8,i8 --seconds 240

It uses CUDA device 0 of those it sees; the others, where `--peers` counts them, are only copied to.
The seven number formats and the inputs are those of `gpu_gemm`. Each format has three shapes
(`shape`): square, tall and wide.

First the burn proves the first product of each format and shape (`product`): products of whole
numbers exactly, products of normal-random numbers against float64. The table `burn_digests` has its
digest and that of its inputs. Equal GPUs with the same library have equal digests.

Then the formats take turns, in at least two laps. In its turn a format has the memory: for
operands, for the first product of each shape, made anew (its digest must equal that of the proof:
`again`), and for a ring of results in all the rest, except for a reserve of RESERVE bytes and
RESERVE_A_PEER for each peer. Products of the three shapes fill the ring group by group. Before a
group is overwritten, the GPU compares every element of it with the first product (`compare`). At
the end of the turn it compares all that is left in memory, and reads the inputs again (`inputs`).
So each product of a turn is compared once, after it lay in memory for one round of the ring.

Readings:

- `burn_<d>`: TFLOP/s by the GPU's clock, 2 m n k operations a product, over all turns of a format,
  with the comparing included;
- `burn_<d>_kept`: the rate of the last lap over that of the first;
- `burn_<d>_miscompares`: products, references and operands found wrong;
- `burn_filled`: bytes of results over the memory that was free at first, the minimum over the
  formats;
- `burn_copied` and `burn_copy_miscompares`, and those of peers (`copies`);
- `burn_<d>_plain`, TFLOP/s, and `burn_<d>_verified_ratio`: with `--plain` each turn is halved, and
  its second half makes the same products without comparing them. The ratio is `burn_<d>` over the
  plain rate, and shows what verifying costs.

A wrong product is reported as soon as it is found: the number of wrong elements, with NaN and
infinite ones apart, the first addresses, their distance, the bits, and when it was made. The burn
does not test the memory that operands and driver use, video engines, or graphics. It proves the
first product only in as many rows as the note says.

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
from acceptance.loads.burn.worker import BurnOptions, BurnWorker
from acceptance.loads.card import CardError, gpu_identity
from acceptance.loads.gemm.dtypes import DTYPES, Dtype
from acceptance.loads.gemm.load import STRAYS
from acceptance.loads.gemm.worker import report_absent
from acceptance.loads.names import BURN_READINGS
from acceptance.loads.program import exit_load, run_guarded, seconds
from acceptance.loads.protocol import Output

NAME = "burn"
# For torch's own allocations, the library's work space, and the examination of a wrong result.
RESERVE = 640 << 20
# For the memory of this GPU that a peer's burn takes after both have begun. The peer's context, its
# kernels and the buffer that it copies to are already allocated by then (`Copies` does so first),
# and no longer count as free.
RESERVE_A_PEER = 300 << 20


def dtypes(text: str) -> tuple[Dtype, ...]:
    """A list of formats from the command line; raises argparse.ArgumentTypeError for others."""
    names = text.split(",")
    if len(set(names)) != len(names) or not DTYPES.keys() >= set(names):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of {','.join(DTYPES)}, each at most once"
        )
    return tuple(DTYPES[name] for name in names)


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
    """Run the whole burn, from the GPU's name to the last reading.

    Raises CardError, and RuntimeError for errors of CUDA and torch.
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
    report_absent(output, options.dtypes, (major, minor), tuple(BURN_READINGS))
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
    """The program; the module's docstring lists its exit statuses."""
    options = arguments().parse_args(argv)
    return run_guarded(NAME, lambda: run(options, Output(sys.stdout)), strays=STRAYS)


if __name__ == "__main__":
    exit_load(main())
