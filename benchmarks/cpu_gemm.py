"""What verifying costs the matrix load: verified over plain matmul of the same library, on one
core, in the same run.

    python -m benchmarks.cpu_gemm [--seconds 2] [--pairs 5] [--cpu N]

Plain and verified laps take turns on the same operands and buffers, through the load's own loop;
only the check differs. Each pair gives a ratio of rates; the median and the range are printed (aim:
0.97). Other work on the machine shows in the range.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

from acceptance.core.dtype import CPU_DTYPES
from acceptance.core.parts import CPU
from acceptance.loads.cpu.contract import SIZE
from acceptance.loads.cpu.cores import ONE_THREAD


def main() -> int:
    """Print one line a dtype."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one lap")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.cpu})
    os.environ.update(ONE_THREAD)
    for dtype in CPU_DTYPES.values():
        print(measure(dtype, options.size, options.seconds, options.pairs), flush=True)
    return 0


def measure(dtype: str, size: int, seconds: float, pairs: int) -> str:
    """The line for one dtype."""
    from acceptance.loads.cpu.gemm_worker import (  # here, so that numpy finds the environment set
        ProductCheck,
        numpy_product,
        run_loop,
        spoiled_result,
    )

    _a, _b, multiply = numpy_product(size, dtype)
    first, result = spoiled_result(size, dtype), spoiled_result(size, dtype)
    multiply(-1, first)
    comparison = ProductCheck(first, result, print, CPU, time.monotonic())

    def rate(*, verified: bool) -> float:
        check = comparison if verified else lambda _turn: None
        products, took = run_loop(
            time.monotonic() + seconds, lambda turn: multiply(turn, result), check
        )
        return products * 2 * size**3 / took / 1e9

    rate(verified=True)  # warm
    rates = [(rate(verified=False), rate(verified=True)) for _ in range(pairs)]
    ratios = [verified / unverified for unverified, verified in rates]
    if comparison.wrong:
        return (
            f"cpu_gemm {dtype}: {comparison.wrong} products were wrong: this is no machine to "
            "measure on"
        )
    return (
        f"cpu_gemm {dtype} {size}: plain {statistics.median(r for r, _ in rates):.1f}, verified"
        f" {statistics.median(r for _, r in rates):.1f} GFLOP/s on one core; ratio "
        f"{statistics.median(ratios):.4f}"
        f" ({min(ratios):.4f} to {max(ratios):.4f}, {pairs} pairs)"
    )


if __name__ == "__main__":
    sys.exit(main())
