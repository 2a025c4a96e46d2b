"""The burn of one GPU: continuous matrix products, every element compared bit for bit.

    python -m acceptance.loads burn dtypes=f64,f32,tf32,f16,bf16,f8,i8 seconds=240

It uses CUDA device 0 of those it sees; the others, where `peers` counts them, are only copied to.
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
- `burn_<d>_plain`, TFLOP/s, and `burn_<d>_verified_ratio`: with `plain` each turn is halved, and
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

from typing import Any

from acceptance.loads.burn import fault
from acceptance.loads.burn.contract import Ask
from acceptance.loads.burn.shape import divisor_for
from acceptance.loads.burn.worker import BurnOptions, BurnWorker
from acceptance.loads.card import PatientCard, boot_s, gpu_identity
from acceptance.loads.gemm.dtypes import DTYPES
from acceptance.loads.gemm.worker import report_absent
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Output

# For torch's own allocations, the library's work space, and the examination of a wrong result.
RESERVE = 640 << 20
# For the memory of this GPU that a peer's burn takes after both have begun. The peer's context, its
# kernels and the buffer that it copies to are already allocated by then (`Copies` does so first),
# and no longer count as free.
RESERVE_A_PEER = 300 << 20


def run(ask: Ask, output: Output) -> None:
    """Run the whole burn, from the GPU's name to the last reading.

    Raises LoadError, and RuntimeError for errors of CUDA and torch.
    """
    card, own = gpu_identity(), PatientCard()
    import torch

    from acceptance.loads.burn.compare import KernelComparator
    from acceptance.loads.burn.copies import Copies, KernelPattern
    from acceptance.loads.burn.device import TorchDevice
    from acceptance.loads.gemm.product import settings

    if torch.cuda.device_count() <= ask.peers:
        seen = torch.cuda.device_count() - 1
        raise LoadError(
            f"{ask.peers} peers are to be copied to, and {seen} are seen: see CUDA_VISIBLE_DEVICES"
        )
    major, minor = map(int, card["capability"].split("."))
    dtypes = [DTYPES[name] for name in ask.dtypes]
    offered = tuple(dtype for dtype in dtypes if dtype.missing((major, minor)) is None)
    whole = own.whole_bytes()
    divisors = {str(one.short): divisor_for(one, (major, minor), whole) for one in offered}
    order = BurnOptions(offered, ask.seconds, ask.plain, fault.slowness(ask.inject), divisors)
    parameters: dict[str, Any] = {**ask.parameters(), "laps": order.laps, **card}
    if ask.plain:
        parameters["plain"] = True
    output.hello(ask.load, parameters)
    report_absent(output, dtypes, (major, minor), tuple(ask.readings()))
    settings()
    comparator = KernelComparator()
    stoppage = fault.Stoppage() if ask.inject is not None else None
    device = TorchDevice("cuda", own, comparator, ask.inject, stoppage)
    copies = Copies(output, KernelPattern, range(1, ask.peers + 1), boot_s)
    BurnWorker(order, device, own, output, copies, boot_s).run(RESERVE + ask.peers * RESERVE_A_PEER)
    output.end()
