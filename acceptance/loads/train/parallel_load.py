"""The load of parallel training: one model over all GPUs, timed against each of them alone.

    python -m acceptance.loads train_parallel ranks=2 seconds=12

One process for each GPU, in the order in which CUDA shows them: rank 0 has `gpu0`. Two variants,
each with processes of its own: `default` as the machine comes, `p2p_off` with NCCL_P2P_DISABLE=1.
NCCL_* variables of the environment are removed, and NVLink multicast is off (NCCL_NVLS_ENABLE=0).
The processes of both start at once, and those of the second wait for the end of the first.
Over gloo, between processors, the model is the smallest and peer access means nothing: for tests.

The ways (`ways`), each with the accumulated batches of `accumulate`:

- `ddp`: DistributedDataParallel; every GPU has the whole model;
- `zero2`, `zero3`: FSDP2; optimizer, gradients and parameters are sharded, and parameters are
  gathered once (`zero2`), or again for the way back (`zero3`);
- `tp`: tensor parallelism by hand (`parallel_split`); embedding, norms and head are whole on every
  GPU, so that its efficiency has an upper bound: of the 1.3 G model 0.93 for two, 0.66 for eight.

Each variant

1. trains a small model in float32 every way and compares losses, gradients and weights with those
   of one card that has the whole batch (`parallel_values` has the bound and its derivation);
   with `ddp` all ranks must end with the same bits;
2. trains a model of 1.3 G parameters, or the largest below it for which there is memory
   (`memory`), under autocast with the fused AdamW: first each GPU alone, without
   communication, then every way. `seconds` are shared by all of these, with LEAST_STEPS each.
   After `ddp` all ranks must hold the same bits. A loss that is no finite number is wrong.

A step is timed by CUDA events at each rank, and the slowest rank counts. Efficiency is the rate of
all GPUs together against the sum of what each does alone with as many accumulated batches. With
tensor parallelism all GPUs work on one batch, as large as theirs together, or as memory allows.

Where the time of a step goes, as shares of it:

- compute: forward and backward of the slowest GPU alone, for the same work (with tensor parallelism
  that of its share of the batch, so what all of them do in vain is not in it);
- optimizer: its time within the parallel step;
- communication: what is left. It is communication that is not hidden behind compute, waiting for a
  slower rank, and work that one card alone does not have, such as copies into buckets. Where the
  two others exceed the step it is 0, and a note says by how much.

Readings of `gpus`: `parallel_ddp` in Mtokens/s, `parallel_WAY_efficiency`, with four accumulated
batches `parallel_WAY_efficiency_accumulated`, each with `_p2p_off` in that variant;
`parallel_miscompares` counts tensors and losses outside their bound, and losses that are no finite
numbers, `parallel_disagreements` trainings after which ranks held different weights. The table
`train_parallel` has every timed training (rates are of all GPUs together, those of `alone` of one),
`train_parallel_values` what was compared, and the largest difference as a share of its bound.

Exit status: 0 when it ran whole, whatever it found; 1 when a rank died or did not answer within
`grace` seconds, or torch failed, with one sentence on standard error, which names the rank that
never arrived, and no end line; 2 for arguments that cannot be used.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from acceptance.core.limit import GIB
from acceptance.core.parts import GPUS, Component, Gpu
from acceptance.loads.collective.pattern import report_differing
from acceptance.loads.collective.worker import VariantRank, VariantRun, forked
from acceptance.loads.protocol import Output
from acceptance.loads.train import (
    memory,
    parallel_contract,
    parallel_values,
    parallel_worker,
)
from acceptance.loads.train.parallel_contract import ALONE, Ask, efficiency
from acceptance.loads.train.parallel_values import BATCH, STEPS, VERIFIED, ParallelWay
from acceptance.loads.train.parallel_worker import (
    Clock,
    Clocked,
    Deviation,
    Join,
    Task,
    TrainedFormat,
    TrainerJoined,
    Verified,
    Verify,
    compare,
    named,
)
from acceptance.loads.train.shapes import MODELS, TINY, ModelShape

TINY_BATCH = 2
Row = tuple[str | float, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """What the ranks train: the model, the batches of one card and of all with `tp`, the format."""

    name: str
    shape: ModelShape
    batch: int
    tensor_batch: int
    dtype: TrainedFormat

    def of_way(self, way: str) -> int:
        """Samples of one forward pass at one rank."""
        return self.tensor_batch if way == "tp" else self.batch


def work_for(ask: Ask, joined: Sequence[TrainerJoined]) -> Work:
    """The largest model and batch for which all ranks have memory; over gloo the smallest."""
    # Sums and shards go between the ranks in this format, so it is one that all of them have.
    dtype: TrainedFormat = "f16" if any(one.dtype == "f16" for one in joined) else "bf16"
    if ask.backend == "gloo":
        return Work("tiny", TINY, TINY_BATCH, TINY_BATCH * ask.ranks, dtype)
    room = min(one.free_bytes for one in joined)
    name, batch = memory.parallel_model(room)
    shape = MODELS[name]
    whole = memory.tensor_batch(shape, batch, ask.ranks, room)
    return Work(name, shape, batch, whole, dtype)


@dataclass(slots=True)
class TrainingRun(VariantRun):
    """One variant of the trainings while it runs, and what was found."""

    ask: Ask = field(kw_only=True)
    wrong: int = 0
    disagreements: int = 0
    rows: list[Row] = field(default_factory=list)
    values: list[Row] = field(default_factory=list)

    def take(self, task: Task) -> dict[int, Any]:
        """The answers of all ranks to a task, by their numbers. Raises RankLost."""
        found = self.do(task, task.seconds if isinstance(task, Clock) else 0.0)
        return {rank.number: one for rank, one in found.items()}

    def verify(self, way: ParallelWay, accumulation: int) -> None:
        """Compare the small model's training with one card's."""
        task = Verify(way, accumulation)
        told: dict[int, Verified] = self.take(task)
        self.wrong += sum(len(one.deviations) for one in told.values())
        nearest = self._losses(task, told)
        digests = {number: one.digest for number, one in told.items() if one.digest}
        self._agree(digests, f"after {task}")
        self.values.append(
            (
                self.variant,
                way,
                accumulation,
                STEPS,
                sum(len(one.losses) for one in told.values()),
                sum(one.gradients for one in told.values()),
                sum(one.weights for one in told.values()),
                len(digests),
                nearest,
                *(max(one.nearest[kind] for one in told.values()) for kind in range(2)),
            )
        )

    def _losses(self, task: Verify, told: Mapping[int, Verified]) -> float:
        """Compare the losses of each step; the largest difference as a share of its bound.

        With tensor parallelism every rank has the loss of the whole batch, else that of its share.
        """
        parts = task.accumulation * self.ask.ranks
        places = BATCH * parts * VERIFIED.sequence
        nearest = 0.0
        for step in range(1, STEPS + 1):
            share = parallel_values.relative(VERIFIED, places, parts, step, gradient=False)
            mean = statistics.fmean(one.losses[step - 1] for one in told.values())
            for number, one in told.items():
                whole, alone = (
                    one.losses[step - 1] if task.way == "tp" else mean,
                    one.alone[step - 1],
                )
                difference, bound = abs(whole - alone), share * abs(alone)
                found = compare("parallel_loss", step, "loss", difference, bound)
                if math.isfinite(difference):
                    nearest = max(nearest, difference / bound)
                if found is not None:
                    self._wrong(found, task, number)
        return nearest

    def _wrong(self, found: Deviation, task: Task, number: int) -> None:
        self.wrong += 1
        self.output.miscompare(parallel_worker.wrong(found, task, self.variant, number))

    def _agree(self, digests: Mapping[int, str], when: str) -> None:
        """Report ranks that hold other weights."""
        found = f"weights that differ between ranks {when} ({self.variant})"
        own: dict[Component, str] = {Gpu(number): one for number, one in digests.items()}
        self.disagreements += bool(report_differing(self.output, own, found))

    def clock(
        self, way: ParallelWay | str, accumulation: int, work: Work, seconds_: float
    ) -> dict[int, Clocked]:
        """Time a training; its losses must be numbers, and after `ddp` all weights equal."""
        task = Clock(
            cast(Any, way), accumulation, work.shape, work.of_way(way), seconds_, work.dtype
        )
        told: dict[int, Clocked] = self.take(task)
        for number, one in told.items():
            if one.infinite:
                self.wrong += one.infinite - 1
                self._wrong(
                    Deviation("parallel_finite", one.steps, "loss", math.nan, 0.0), task, number
                )
        self._agree(
            {number: one.digest for number, one in told.items() if one.digest}, f"after {task}"
        )
        return told

    def measure(self, work: Work, seconds_: float) -> dict[tuple[ParallelWay, int], float]:
        """Time each card alone and every way; efficiencies."""
        found: dict[tuple[ParallelWay, int], float] = {}
        for accumulation in self.ask.accumulate:
            alone = self.clock(ALONE, accumulation, work, seconds_)
            self.rows.append(self._row_alone(work, accumulation, alone))
            for way in self.ask.ways:
                together = self.clock(way, accumulation, work, seconds_)
                row = self._row(work, way, accumulation, together, alone)
                self.rows.append(row)
                found[way, accumulation] = float(row[6])
        return found

    def _row_alone(self, work: Work, accumulation: int, told: Mapping[int, Clocked]) -> Row:
        """The mean card's rate, and the slowest card's times."""
        rate = statistics.fmean(
            _tokens(work, work.batch * accumulation) / one.step_s for one in told.values()
        )
        slowest = max(told.values(), key=_step_s)
        optimizer = min(1.0, slowest.optimizer_s / slowest.step_s)
        return self._cells(
            work,
            ALONE,
            accumulation,
            rate,
            1.0,
            told,
            (round(1.0 - optimizer, 4), 0.0, round(optimizer, 4)),
        )

    def _row(
        self,
        work: Work,
        way: ParallelWay,
        accumulation: int,
        told: Mapping[int, Clocked],
        alone: Mapping[int, Clocked],
    ) -> Row:
        batch, ranks = work.of_way(way), self.ask.ranks
        samples = accumulation * (batch if way == "tp" else batch * ranks)
        slowest = max(told.values(), key=_step_s)
        rate = _tokens(work, samples) / slowest.step_s
        due = sum(_tokens(work, work.batch * accumulation) / one.step_s for one in alone.values())
        passes_s = max(one.passes_s for one in alone.values())
        passes_s *= samples / (work.batch * accumulation * ranks)
        compute = passes_s / slowest.step_s
        optimizer = slowest.optimizer_s / slowest.step_s
        communication = 1.0 - compute - optimizer
        if communication < 0:
            self.output.note(
                f"{self.variant}: {named(way, accumulation)}: compute of one card alone and "
                f"optimizer are {-communication:.1%} longer than the step; communication is said "
                "to be 0"
            )
        shares = (compute, max(0.0, communication), optimizer)
        return self._cells(
            work,
            way,
            accumulation,
            rate,
            rate / due,
            told,
            tuple(round(one, 4) for one in shares),
        )

    def _cells(
        self,
        work: Work,
        way: str,
        accumulation: int,
        rate: float,
        efficiency: float,
        told: Mapping[int, Clocked],
        shares: tuple[float, ...],
    ) -> Row:
        flop = work.shape.sample_flop() / work.shape.sequence
        return (
            self.variant,
            way,
            accumulation,
            work.of_way(way),
            round(rate / 1e3, 3),
            round(rate * flop / 1e12, 3),
            round(efficiency, 4),
            round(max(one.peak_bytes for one in told.values()) / GIB, 2),
            round(max(map(_step_s, told.values())) * 1e3, 3),
            *shares,
        )


def _step_s(one: Clocked) -> float:
    return one.step_s


def _tokens(work: Work, samples: int) -> int:
    return samples * work.shape.sequence


def run_variant(run: TrainingRun, work: Work) -> None:
    """One variant, from its first task to its last reading. Raises RankLost."""
    ask = run.ask
    run.begin()
    for accumulation in ask.accumulate:
        for way in ask.ways:
            run.verify(way, accumulation)
    timed = len(ask.accumulate) * (1 + len(ask.ways)) * len(ask.arms)
    found = run.measure(work, ask.seconds / timed)
    run.leave()
    for (way, batches), share in found.items():
        name = efficiency(way, run.variant, accumulated=batches > 1)
        run.output.reading(name, "ratio", GPUS, share)
    if run.variant == "default" and ("ddp", 1) in found:
        row = next(one for one in run.rows if one[1:3] == ("ddp", 1))
        run.output.reading(parallel_contract.TOTAL, "Mtokens/s", GPUS, float(row[4]) / 1e3)


def run(ask: Ask, output: Output, join: Join | None = None) -> None:
    """Start the ranks of all variants, and run one after the other. `join` is for tests.

    Raises RankLost, and ValueError where no model fits.
    """
    entry = partial(_torch_join, ask.backend) if join is None else join

    def body(rank: VariantRank, connection: Connection, fault: Any) -> None:
        parallel_worker.work(rank, ask.ranks, connection, entry, fault)

    runs = []
    with contextlib.ExitStack() as stack:
        for variant in ask.arms:
            every, ranks = stack.enter_context(forked(ask, variant, body))
            whole_s = ask.seconds / len(ask.arms)
            runs.append(TrainingRun(every, ranks, output, ask.grace, whole_s, ask=ask))
        joined = [list(one.collect("joined").values()) for one in runs]
        work = work_for(ask, [one for variant in joined for one in variant])
        _hello(ask, joined, work, output)
        for one in runs:
            run_variant(one, work)
    wrong = sum(one.wrong for one in runs), sum(one.disagreements for one in runs)
    for name, count in zip(parallel_contract.COUNTS, wrong, strict=True):
        output.reading(name, "count", GPUS, count)
    rows = [row for one in runs for row in one.rows]
    output.table(parallel_contract.TABLE, parallel_contract.COLUMNS, rows)
    values = [row for one in runs for row in one.values]
    output.table(parallel_contract.VALUES, parallel_contract.VALUE_COLUMNS, values)
    output.end()


def _torch_join(backend: str, rank: int, ranks: int, folder: Path) -> parallel_worker.Trainer:
    # torch is imported in the ranks alone
    from acceptance.loads.train.parallel_torch import TorchTrainer

    return TorchTrainer(backend, rank, ranks, folder)


def _hello(ask: Ask, joined: Sequence[Sequence[TrainerJoined]], work: Work, output: Output) -> None:
    """The first line. Raises RuntimeError where the variants have other GPUs."""
    uuids = [[one.uuid for one in variant] for variant in joined]
    if any(other != uuids[0] for other in uuids):
        raise RuntimeError("the variants have other GPUs than each other")
    parameters: dict[str, Any] = {
        **ask.parameters(),
        "model": work.name,
        "batch": work.batch,
        "tensor_batch": work.tensor_batch,
        "format": work.dtype,
        "uuids": uuids[0],
        "library": ", ".join(sorted({one.about for variant in joined for one in variant})),
    }
    output.hello(ask.load, parameters)
