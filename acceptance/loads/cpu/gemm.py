"""The CPU's matrix load: all cores multiply at the same time, and every result is verified.

    python -m acceptance.loads.cpu.gemm --dtype float64 --seconds 60 --cores '0,1;2,3'

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

Exit status: 0 when it ran whole, whatever it found (the readings say what); 1 when a worker died or
stopped answering, with one sentence on standard error and no end line; 2 for arguments that cannot
be used.
"""

from __future__ import annotations

import argparse
import re
import signal
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from acceptance.core.component import Component
from acceptance.core.dtype import CPU_DTYPES
from acceptance.core.parts import CPU
from acceptance.loads.cpu.cores import Core, CoresError, by_group, parse_cores, require_allowed
from acceptance.loads.cpu.timed_loop import LoopResult, WorkerReady
from acceptance.loads.miscompare import DifferingDigests, Miscompare
from acceptance.loads.program import exit_load, seconds
from acceptance.loads.protocol import Output
from acceptance.loads.ranks import RankLost, Ranks

NAME = "cpu_gemm"
# Of each number format: the rates of all cores and of each, each core's ratio to the others, and
# how many products were wrong and right.
READINGS: Mapping[str, tuple[str, str, str, str, str]] = {
    "float64": (
        "cpu_gemm_f64",
        "cpu_gemm_core_f64",
        "cpu_gemm_core_ratio_f64",
        "cpu_gemm_miscompares_f64",
        "cpu_gemm_products_f64",
    ),
    "float32": (
        "cpu_gemm_f32",
        "cpu_gemm_core_f32",
        "cpu_gemm_core_ratio_f32",
        "cpu_gemm_miscompares_f32",
        "cpu_gemm_products_f32",
    ),
}
_PROGRESS_S = 5.0


def _size(text: str) -> int:
    if not re.fullmatch(r"\d{1,5}", text, re.ASCII) or not 8 <= int(text) <= 8192:
        raise argparse.ArgumentTypeError(f"{text!r} is not a matrix size from 8 to 8192")
    return int(text)


def _fault(text: str) -> str:
    if not re.fullmatch(r"bitflip|stuck|nan|die|hang|slow:[1-9][0-9]?", text, re.ASCII):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not one of bitflip, stuck, nan, die, hang, slow:PERCENT"
        )
    return text


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog=NAME, description="Multiply matrices on all cores at once and verify every result."
    )
    parser.add_argument("--dtype", required=True, choices=sorted(CPU_DTYPES.values()))
    parser.add_argument(
        "--seconds",
        required=True,
        type=seconds,
        help="how long the cores work, warm-up not counted",
    )
    parser.add_argument(
        "--cores",
        required=True,
        type=parse_cores,
        help="'0,1;2,3' (two cores), or groups: 'performance=0,1;2,3 efficiency=4;5'",
    )
    parser.add_argument(
        "--size",
        type=_size,
        default=1536,
        help="rows and columns of the matrices (default %(default)s)",
    )
    parser.add_argument(
        "--grace",
        type=seconds,
        default=60.0,
        help="seconds a worker may be late before it counts as hung",
    )
    parser.add_argument(
        "--inject",
        type=_fault,
        help="a fault on the last core, to prove that it is found; such a run never passes",
    )
    return parser


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
    dtype: str,
    size: int,
    ready: dict[Core, WorkerReady],
    laps: dict[Core, LoopResult],
) -> None:
    """Write the readings from the workers' messages, and end the output."""
    whole, of_core, of_others, miscompares, products = READINGS[dtype]
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


def run(options: argparse.Namespace, output: Output) -> None:
    """Run the workers from fork to the last reading; raises RankLost."""
    cores: tuple[Core, ...] = options.cores
    parameters: dict[str, Any] = {
        "dtype": options.dtype,
        "seconds": options.seconds,
        "size": options.size,
        "cores": by_group(cores),
    }
    if options.inject is not None:
        parameters["inject"] = options.inject
    output.hello(NAME, parameters)

    def body(core: Core, connection: Connection) -> None:
        from acceptance.loads.cpu import (
            # imported here, so that the pinned worker loads numpy and the parent never does
            gemm_worker,
        )

        gemm_worker.work(
            core,
            connection,
            options.size,
            options.dtype,
            options.inject if core == cores[-1] else None,
        )

    def miscompare(_core: Core, wrong: Miscompare) -> None:
        output.miscompare(wrong)

    with Ranks(cores, body) as ranks:
        ready = ranks.collect("ready", options.grace, miscompare)
        began = time.monotonic()
        said = began

        def tick() -> None:
            nonlocal said
            now = time.monotonic()
            if now - said >= _PROGRESS_S:
                said = now
                output.progress(round(min(now - began, options.seconds), 1), options.seconds)

        ranks.start(lambda moment: (moment, moment + options.seconds))
        laps = ranks.collect("lap", options.seconds + options.grace, miscompare, tick)
        # In the order of the command line, not of arrival.
        conclude(
            output,
            options.dtype,
            options.size,
            {core: ready[core] for core in cores},
            {core: laps[core] for core in cores},
        )


def main(argv: Sequence[str] | None = None) -> int:
    """The program; the module's docstring lists its exit statuses."""
    # ends parent and workers alike, without tracebacks
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parser = arguments()
    options = parser.parse_args(argv)
    try:
        require_allowed(options.cores)
    except CoresError as error:
        parser.error(str(error))
    try:
        run(options, Output(sys.stdout))
    except RankLost as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    exit_load(main())
