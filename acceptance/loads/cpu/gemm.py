"""The CPU's matrix load: all cores multiply at the same time, and every result is verified.

    python -m acceptance.loads cpu_gemm dtype=float64 seconds=60 cores='{"all": [[0, 1], [2, 3]]}'

One process for each physical core, pinned to the core's first logical CPU, multiplies two size x
size matrices of whole numbers (`exact_product.py`) with numpy's BLAS in one thread. The first
product is checked in exact integer arithmetic. In the same loop every later one is compared with
the first, bit for bit and whole. The result buffer is spoiled in between, so that a multiplication
that did nothing is found. The digests of the cores' first products are compared with each other.
The workers warm up, start at one moment, and stop at one deadline.

The measurement is products completed x 2 x size**3 / seconds of the worker's own loop, comparing
included, for every core while all others work too. It does not cover the cores' other hardware
threads (their SMT siblings are idle), more than one thread a product, inputs other than whole
numbers (power differs with the data), or memory bandwidth. At the default size of 1536 a worker
holds four matrices: 75 MB in float64, 38 MB in float32, beside some 40 MB for Python and numpy.

It ends with one sentence on standard error and no end line when a worker dies or stops answering.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

from acceptance.core.dtype import CpuDtype
from acceptance.core.parts import CPU, Component
from acceptance.loads.collective.pattern import report_differing
from acceptance.loads.cpu.contract import GEMM, Gemm
from acceptance.loads.cpu.cores import Core, cores_of, working
from acceptance.loads.protocol import Heartbeat, Output


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """A warm worker's message.

    The digest of its first product, whether the integer check passed, and the library used.
    """

    digest: str
    right: bool
    library: str


@dataclass(frozen=True, slots=True)
class LoopResult:
    """A worker's result between start and deadline.

    The number of products, the number of wrong ones, and the seconds of its own loop.
    """

    products: int
    wrong: int
    seconds: float


def ratios(rates: dict[Core, float]) -> dict[Core, float]:
    """Each core's rate over the median of the other cores of its group.

    A core alone in its group has no ratio.
    """
    others = {
        core: [other for peer, other in rates.items() if peer.group == core.group and peer != core]
        for core in rates
    }
    return {core: rates[core] / statistics.median(found) for core, found in others.items() if found}


def conclude(
    output: Output,
    dtype: CpuDtype,
    size: int,
    ready: dict[Core, WorkerReady],
    laps: dict[Core, LoopResult],
) -> None:
    """Write the readings from the workers' messages, and end the output."""
    miscompares, whole, of_core, of_others, products = GEMM[dtype]
    # Of those that passed the integer check, which compares values: this one compares bits.
    digests: dict[Component, str] = {
        core.component: one.digest for core, one in ready.items() if one.right
    }
    groups = report_differing(output, digests, "first products that differ between cores")
    for library in sorted({answer.library for answer in ready.values()}):
        output.note(f"products made by {library}")
    if not groups and all(answer.right for answer in ready.values()):
        output.note(
            f"sha256 of the first product on every core: {next(iter(ready.values())).digest}"
        )
    rates = {core: lap.products * 2 * size**3 / lap.seconds / 1e9 for core, lap in laps.items()}
    minority = sum(map(len, groups.values())) - max(map(len, groups.values()), default=0)
    wrong_first = sum(not answer.right for answer in ready.values())
    wrong = sum(lap.wrong for lap in laps.values()) + wrong_first + minority
    made = sum(lap.products for lap in laps.values()) + len(laps)
    output.reading(whole, "GFLOP/s", CPU, sum(rates.values()))
    for core, rate in rates.items():
        output.reading(of_core, "GFLOP/s", core.component, rate)
    for core, ratio in ratios(rates).items():
        output.reading(of_others, "ratio", core.component, ratio)
    output.reading(miscompares, "count", CPU, wrong)
    output.reading(products, "count", CPU, made - wrong)
    output.end()


def run(ask: Gemm, output: Output) -> None:
    """Run the workers from fork to the last reading. Raises LoadError."""
    cores = cores_of(ask.cores)
    output.hello(ask.load, ask.parameters())

    def body(core: Core, connection: Connection, fault: str | None) -> None:
        from acceptance.loads.cpu import (
            # imported here, so that the pinned worker loads numpy and the parent never does
            gemm_worker,
        )

        gemm_worker.work(core, connection, ask.size, ask.dtype, fault)

    with working(ask, output, cores, body) as workers:
        ready = workers.collect("ready")
        began, progress = time.monotonic(), Heartbeat(output, ask.seconds)
        workers.ranks.start(lambda moment: (moment, moment + ask.seconds))
        laps = workers.collect("lap", ask.seconds, lambda: progress.at(time.monotonic() - began))
        conclude(output, ask.dtype, ask.size, ready, laps)
