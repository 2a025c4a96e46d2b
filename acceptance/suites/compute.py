"""Our own GPU loads: verified matrix products in every number format of a GPU, and copies."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from acceptance.core.dtype import DTYPES, DtypeName
from acceptance.core.parts import Component
from acceptance.loads.copy import contract as copies
from acceptance.loads.gemm.contract import SIZES, Ask, by_size
from acceptance.loads.protocol import LoadTable
from acceptance.machine import topology
from acceptance.machine.gpu import Gpu
from acceptance.machine.inventory import Inventory
from acceptance.session.check import Check
from acceptance.session.loads import Loads, alone, with_peers

GEMM_TABLE = "gpu_gemm_table"  # the table of sizes, made where the profile names it
# Of every number format: the rate from cool and under sustained load, the ratio of each to the
# siblings' rates, and the wrong results of both.
OF_FORMAT = (
    "gemm_{}_short",
    "gemm_{}_short_ratio",
    "gemm_{}",
    "gemm_{}_ratio",
    "gemm_{}_miscompares",
)


def with_mfu(table: LoadTable, peak: float | None) -> LoadTable:
    """A table of (n, TFLOP/s) with a third column, the share of the sheet's peak.

    Unchanged where no peak is known.
    """
    if peak is None:
        return table
    rows = tuple((*row, float(row[1]) / peak) for row in table.rows)
    return LoadTable(table.name, (*table.columns, "MFU"), rows)


@pytest.mark.session("gpu-load")
# It is the first to start torch: 3 s, and 10 where nothing has read it from the disk yet. The slack
# is for formats that a GPU only emulates: a float64 product takes a T4 4.5 s, and six are made.
@pytest.mark.costs(13.0, load="gpu_gemm", extra_load=GEMM_TABLE, slack=600.0)
@pytest.mark.measures(*(name.format(dtype) for name in OF_FORMAT for dtype in DTYPES))
def test_gemm_together(
    loads: Loads,
    due_gpus: tuple[Gpu, ...],
    formats: Mapping[Component, tuple[DtypeName, ...]],
    load_s: Mapping[str, float],
    peaks: Mapping[Component, Mapping[str, float]],
    check: Check,
) -> None:
    """Products of matrices on all GPUs at once, in every format that each has: for a tenth of a
    second from cool, then sustained; between them the table of sizes, where the profile has it.

    Measured: 2 n^3 operations over the GPU's own time at n = 8192, normal-random inputs; of the
    sustained ones the mean of the last half, when clocks, power and heat are in balance. The first
    product of each format is verified, and the last of both must equal it bit for bit. Not
    measured: results between the first and the last, rectangular shapes, sparsity, formats that a
    GPU emulates.
    """
    # The profile's time is that of all formats together; all GPUs work for the same time.
    seconds = load_s["gpu_gemm"] / max(map(len, formats.values()))
    table = SIZES if GEMM_TABLE in load_s else ()
    results = loads.run(
        lambda place: Ask(dtypes=formats[place.component], seconds=seconds, table=table),
        on=alone(due_gpus),
    )
    sizes = {by_size(dtype): dtype for dtype in DTYPES}
    check.all(results, table=lambda gpu, one: with_mfu(one, peaks[gpu].get(sizes[one.name])))


@pytest.mark.session("load")
# Torch and what is private to a GPU take about 6 s, its turn on the way to the host 5 s, and a peer
# a quarter of a second: two H100s took 6, 4.7 each, and 0.5 for a GPU's only peer.
@pytest.mark.costs(6.0, load="gpu_copy", per_turn=5.0, per_pair=0.25, slack=215.0)
@pytest.mark.measures(
    *copies.PATHS,
    "copy_own_d2d_ratio",
    "copy_own_p2p",
    "copy_own_miscompares",
    "copy_own_p2p_miscompares",
    "elementwise_miscompares",
)
def test_copies(
    loads: Loads,
    due_gpus: tuple[Gpu, ...],
    inventory: Inventory,
    turns: str,
    load_s: Mapping[str, float],
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
    # They take turns where they share; a group of GPUs is named after its first.
    groups = topology.host_link_groups(inventory, due_gpus)
    links = {gpu.name: str(group[0].name) for group in groups for gpu in group}
    results = loads.run(
        lambda place: copies.Ask(
            seconds=load_s["gpu_copy"],
            peers=len(place.gpus) - 1,
            turns=turns,
            link=links[place.component],
        ),
        on=with_peers(due_gpus),
    )
    check.all(results)
