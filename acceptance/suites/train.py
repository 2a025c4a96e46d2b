"""Training: transformer layers, steps, runs whose bits must agree, and training on several GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from acceptance.core.component import Component
from acceptance.core.parts import GPUS
from acceptance.session.check import Check
from acceptance.suites.fixtures.train_parallel import ParallelTraining, RunParallel

WriteTable = Callable[[Component, str, Sequence[str], Sequence[Sequence[float | str]]], None]
PARALLEL_WRONG = ("parallel_miscompares", "parallel_disagreements")
PARALLEL = ("parallel_ddp", "parallel_ddp_efficiency", "parallel_ddp_efficiency_p2p_off")
PARALLEL_REST = (
    "parallel_ddp_efficiency_accumulated",
    "parallel_ddp_efficiency_accumulated_p2p_off",
    "parallel_zero2_efficiency",
    "parallel_zero2_efficiency_p2p_off",
    "parallel_zero2_efficiency_accumulated",
    "parallel_zero2_efficiency_accumulated_p2p_off",
    "parallel_zero3_efficiency",
    "parallel_zero3_efficiency_p2p_off",
    "parallel_zero3_efficiency_accumulated",
    "parallel_zero3_efficiency_accumulated_p2p_off",
    "parallel_tp_efficiency",
    "parallel_tp_efficiency_p2p_off",
    "parallel_tp_efficiency_accumulated",
    "parallel_tp_efficiency_accumulated_p2p_off",
)


def _parallel(
    found: ParallelTraining, names: Sequence[str], table: WriteTable, check: Check
) -> None:
    """Judge what was wrong, then the rates and efficiencies."""
    for name in PARALLEL_WRONG:
        counts, notes = found.counts(name)
        check(name, counts, notes=notes)
    found.raise_failed()
    for name in names:
        check(name, found.values(name))
    for one in found.tables():
        table(GPUS, one.name, one.columns, one.rows)


@pytest.mark.session("load")
# Two arms, whose processes start together; the slack is for slow links and few steps of a slow
# card, and for a rank that hangs, which the load itself ends after a minute.
@pytest.mark.costs(20.0, load="train_parallel", per_gpu=2.0, slack=240.0)
@pytest.mark.measures(*PARALLEL_WRONG, *PARALLEL)
def test_parallel(parallel_training: RunParallel, table: WriteTable, check: Check) -> None:
    """One model trained by all GPUs together (DistributedDataParallel), as the machine comes and
    with peer access switched off, against each GPU alone.

    Measured: tokens a second, and the efficiency against the sum of what each GPU does alone; a
    small model's losses, gradients and weights compared with those of one card that has the whole
    batch, and the bits of all weights compared between GPUs. Not measured: reading of data,
    several machines, NVLink multicast.
    """
    _parallel(parallel_training("train_parallel"), PARALLEL, table, check)


@pytest.mark.session("load")
@pytest.mark.costs(60.0, load="train_parallel_table", per_gpu=5.0, slack=600.0)
@pytest.mark.measures(*PARALLEL_WRONG, *PARALLEL_REST)
def test_parallel_table(parallel_training: RunParallel, table: WriteTable, check: Check) -> None:
    """One model trained by all GPUs in every way: data parallel, sharded (FSDP2, as ZeRO-2 and
    ZeRO-3) and tensor parallel, with 1 and 4 accumulated batches, with peer access on and off.

    Measured: the efficiency of each way against each GPU alone, memory, and where the time of a
    step goes; values compared as in the short form, in every way. Not measured: pipeline
    parallelism, several machines, NVLink multicast.
    """
    _parallel(parallel_training("train_parallel_table"), PARALLEL_REST, table, check)
