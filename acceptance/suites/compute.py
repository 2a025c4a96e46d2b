"""Our own GPU loads: verified matrix products in every number format of a GPU, and copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

import pytest

from acceptance.core.component import Component
from acceptance.loads.protocol import LoadTable
from acceptance.session.check import Check
from acceptance.suites.fixtures.gpu_loads import GpuLoads

WriteTable = Callable[[Component, str, Sequence[str], Sequence[Sequence[float | str]]], None]
# Of every number format: the rate, its ratio to the siblings' rates, and the wrong results.
ALONE = (
    ("gemm_f64_short", "gemm_f64_short_ratio", "gemm_f64_miscompares"),
    ("gemm_f32_short", "gemm_f32_short_ratio", "gemm_f32_miscompares"),
    ("gemm_tf32_short", "gemm_tf32_short_ratio", "gemm_tf32_miscompares"),
    ("gemm_f16_short", "gemm_f16_short_ratio", "gemm_f16_miscompares"),
    ("gemm_bf16_short", "gemm_bf16_short_ratio", "gemm_bf16_miscompares"),
    ("gemm_f8_short", "gemm_f8_short_ratio", "gemm_f8_miscompares"),
    ("gemm_i8_short", "gemm_i8_short_ratio", "gemm_i8_miscompares"),
)
TOGETHER = (
    ("gemm_f64", "gemm_f64_ratio", "gemm_f64_miscompares"),
    ("gemm_f32", "gemm_f32_ratio", "gemm_f32_miscompares"),
    ("gemm_tf32", "gemm_tf32_ratio", "gemm_tf32_miscompares"),
    ("gemm_f16", "gemm_f16_ratio", "gemm_f16_miscompares"),
    ("gemm_bf16", "gemm_bf16_ratio", "gemm_bf16_miscompares"),
    ("gemm_f8", "gemm_f8_ratio", "gemm_f8_miscompares"),
    ("gemm_i8", "gemm_i8_ratio", "gemm_i8_miscompares"),
)


def with_mfu(
    table: LoadTable, peak: float | None
) -> tuple[tuple[str, ...], tuple[tuple[float | str, ...], ...]]:
    """A table of (n, TFLOP/s) with a third column, the share of the sheet's peak.

    Unchanged where no peak is known.
    """
    if peak is None:
        return table.columns, table.rows
    return (*table.columns, "MFU"), tuple((*row, float(row[1]) / peak) for row in table.rows)


def _products(loads: GpuLoads, names: Iterable[tuple[str, str, str]], check: Check) -> None:
    """Judge the rates of every format, each GPU against its siblings, and the wrong results."""
    for rate, ratio, miscompares in names:
        check(rate, loads.values(rate))
        check.ratio(ratio)
        counts, notes = loads.miscompares(miscompares)
        check(miscompares, counts, notes=notes)


@pytest.mark.session("gpu-load")
# The slack is for formats that a GPU only emulates: a float64 product takes a T4 4.5 s, and six are
# made.
@pytest.mark.costs(1.0, load="gpu_gemm_short", per_gpu=25.0, slack=600.0)
@pytest.mark.measures(*chain(*ALONE))
def test_gemm_alone(
    gemm_alone: Callable[[], GpuLoads],
    peaks: Mapping[Component, Mapping[str, float]],
    table: WriteTable,
    check: Check,
) -> None:
    """Products of matrices on each GPU by itself, for a tenth of a second from cool, in every
    format that it has; and the table of sizes.

    Measured: 2 n^3 operations over the GPU's own time at n = 8192, normal-random inputs, the first
    and the last product verified. Not measured: rectangular shapes, sparsity, formats that a GPU
    emulates.
    """
    loads = gemm_alone()
    _products(loads, ALONE, check)
    for gpu, output in loads.outputs.items():
        for one in output.tables:
            columns, rows = with_mfu(
                one, peaks[gpu].get(one.name.removeprefix("gemm_").removesuffix("_by_size"))
            )
            table(gpu, one.name, columns, rows)
    loads.raise_failed()


@pytest.mark.session("gpu-load")
@pytest.mark.costs(13.0, load="gpu_gemm", slack=245.0, loads_gpus=True)
@pytest.mark.measures(*chain(*TOGETHER))
def test_gemm_together(gemm_together: Callable[[], GpuLoads], check: Check) -> None:
    """Products of matrices on all GPUs at once, sustained, in every format that each has.

    Measured: the mean rate of the last half, when clocks, power and heat are in balance, at n =
    8192, normal-random inputs; the last product must equal the first one bit for bit. Not measured:
    results between the first and the last.
    """
    loads = gemm_together()
    _products(loads, TOGETHER, check)
    loads.raise_failed()


@pytest.mark.session("load")
# Torch and what is private to a GPU take about 7 s, its turn on the way to the host 4 s, and a peer
# half a second more than its copies, for its CUDA context.
@pytest.mark.costs(7.0, load="gpu_copy", per_gpu=4.0, per_pair=0.5, slack=215.0)
@pytest.mark.measures(
    "copy_own_h2d",
    "copy_own_d2h",
    "copy_own_h2d_bidirectional",
    "copy_own_d2h_bidirectional",
    "copy_own_h2d_pageable",
    "copy_own_d2h_pageable",
    "copy_own_d2d",
    "copy_own_d2d_ratio",
    "copy_own_p2p",
    "copy_own_miscompares",
    "copy_own_p2p_miscompares",
    "elementwise_miscompares",
)
def test_copies(
    gpu_copies: Callable[[], GpuLoads],
    table: WriteTable,
    check: Check,
) -> None:
    """Copies between host and GPU, inside each GPU and to every peer, all bytes of every copy
    compared; and the elementwise product.

    Measured: the median of single copies of 512 MiB (4 GiB inside the GPU), host memory on the
    GPU's own NUMA node; pageable memory and both ways at once are recorded. All GPUs copy inside
    themselves at once; between host and GPU copy GPUs of different NUMA nodes at once, those of one
    node in turns; peers are written by one GPU at a time, while nothing else copies. Not measured:
    all GPUs copying to or from their host at once.
    """
    loads = gpu_copies()
    for name in (
        "copy_own_h2d",
        "copy_own_d2h",
        "copy_own_h2d_bidirectional",
        "copy_own_d2h_bidirectional",
        "copy_own_h2d_pageable",
        "copy_own_d2h_pageable",
        "copy_own_d2d",
        "copy_own_p2p",
    ):
        check(name, loads.values(name))
    check.ratio("copy_own_d2d_ratio")
    for name in ("copy_own_miscompares", "copy_own_p2p_miscompares", "elementwise_miscompares"):
        counts, notes = loads.miscompares(name)
        check(name, counts, notes=notes)
    for gpu, output in loads.outputs.items():
        for one in output.tables:
            table(gpu, one.name, one.columns, one.rows)
    loads.raise_failed()
