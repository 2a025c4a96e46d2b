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
from multiprocessing.connection import Connection

from acceptance.core.component import Component
from acceptance.core.dtype import CpuDtype
from acceptance.core.parts import CPU
from acceptance.loads.cpu.contract import GEMM, Gemm
from acceptance.loads.cpu.cores import Core, cores_of, require_allowed
from acceptance.loads.cpu.timed_loop import LoopResult, WorkerReady
from acceptance.loads.miscompare import DifferingDigests, Miscompare
from acceptance.loads.protocol import Output
from acceptance.loads.ranks import Ranks

_PROGRESS_S = 5.0


def ratios(rates: dict[Core, float]) -> dict[Core, float]:
    """Each core's rate over the median of the other cores of its group.

    A core alone in its group has no ratio.
    """
    found = {}
    for core, rate in rates.items():
        others = [
            other for peer, other in rates.items() if peer.group == core.group and peer != core
        ]
        if others:
            found[core] = rate / statistics.median(others)
    return found


def digest_outliers(ready: dict[Core, WorkerReady]) -> dict[str, list[Component]]:
    """Components by digest, where the first products of the cores differ; else empty.

    Only cores whose first product passed the integer check count. That check compares values, this
    one compares bits: two right products agree in both.
    """
    groups: dict[str, list[Component]] = {}
    for core, answer in ready.items():
        if answer.right:
            groups.setdefault(answer.digest, []).append(core.component)
    return groups if len(groups) > 1 else {}


def conclude(
    output: Output,
    dtype: CpuDtype,
    size: int,
    ready: dict[Core, WorkerReady],
    laps: dict[Core, LoopResult],
) -> None:
    """Write the readings from the workers' messages, and end the output."""
    miscompares, whole, of_core, of_others, products = GEMM[dtype]
    groups = digest_outliers(ready)
    if groups:
        output.miscompare(
            DifferingDigests(
                check="digest",
                found="first products that differ between cores",
                digests={digest: tuple(cores) for digest, cores in groups.items()},
            )
        )
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
    require_allowed(cores)
    output.hello(ask.load, ask.parameters())

    def body(core: Core, connection: Connection) -> None:
        from acceptance.loads.cpu import (
            # imported here, so that the pinned worker loads numpy and the parent never does
            gemm_worker,
        )

        inject = ask.inject if core == cores[-1] else None
        gemm_worker.work(core, connection, ask.size, ask.dtype, inject)

    def miscompare(_core: Core, wrong: Miscompare) -> None:
        output.miscompare(wrong)

    with Ranks(cores, body) as ranks:
        ready = ranks.collect("ready", ask.grace, miscompare)
        began = time.monotonic()
        said = began

        def tick() -> None:
            nonlocal said
            now = time.monotonic()
            if now - said >= _PROGRESS_S:
                said = now
                output.progress(round(min(now - began, ask.seconds), 1), ask.seconds)

        ranks.start(lambda moment: (moment, moment + ask.seconds))
        laps = ranks.collect("lap", ask.seconds + ask.grace, miscompare, tick)
        # In the order of the ask, not of arrival.
        conclude(
            output,
            ask.dtype,
            ask.size,
            {core: ready[core] for core in cores},
            {core: laps[core] for core in cores},
        )
