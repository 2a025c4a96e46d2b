"""The load of parallel training: one model over all GPUs, timed against each of them alone.

    python -m acceptance.loads train_parallel ranks=2 seconds=12

One process for each GPU, in the order in which CUDA shows them: rank 0 has `gpu0`. Two arms, each
with processes of its own: `default` as the machine comes, and `p2p_off` with NCCL_P2P_DISABLE=1.
NCCL_* variables of the environment are removed, and NVLink multicast is off (NCCL_NVLS_ENABLE=0).
The processes of both arms start at once, and those of the second wait for the end of the first.
Over gloo, between processors, the model is the smallest and peer access means nothing: for tests.

The ways (`ways`), each with the accumulated batches of `accumulate`:

- `ddp`: DistributedDataParallel; every GPU has the whole model;
- `zero2`, `zero3`: FSDP2; optimizer, gradients and parameters are sharded, and parameters are
  gathered once (`zero2`), or again for the way back (`zero3`);
- `tp`: tensor parallelism by hand (`parallel_split`); embedding, norms and head are whole on every
  GPU, so that its efficiency has an upper bound: of the 1.3 G model 0.93 for two, 0.66 for eight.

Each arm

1. trains a small model in float32 every way and compares losses, gradients and weights with those
   of one card that has the whole batch (`parallel_values` has the bound and its derivation);
   with `ddp` all ranks must end with the same bits;
2. trains a model of 1.3 G parameters, or the largest below it for which there is memory
   (`parallel_sizes`), under autocast with the fused AdamW: first each GPU alone, without
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
batches `parallel_WAY_efficiency_accumulated`, each with `_p2p_off` in that arm;
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
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from acceptance.core.limit import GIB
from acceptance.core.parts import GPUS, Gpu, listed
from acceptance.loads.collective import nccl_environment
from acceptance.loads.collective.digest import differing
from acceptance.loads.miscompare import DifferingDigests, Miscompare
from acceptance.loads.protocol import Output
from acceptance.loads.ranks import Ranks, RankSilent
from acceptance.loads.train import (
    parallel_contract,
    parallel_sizes,
    parallel_values,
    parallel_worker,
)
from acceptance.loads.train.parallel_contract import ALONE, Arm, Ask, Fault, efficiency
from acceptance.loads.train.parallel_values import BATCH, STEPS, VERIFIED, ParallelWay
from acceptance.loads.train.parallel_worker import (
    Clock,
    Clocked,
    Deviation,
    Entered,
    Join,
    Joined,
    Task,
    TrainedFormat,
    Verified,
    Verify,
    compare,
    named,
)
from acceptance.loads.train.shapes import MODELS, TINY, ModelShape

TINY_BATCH = 2
Row = tuple[str | float, ...]
_PROGRESS_S = 5.0


@dataclass(frozen=True, slots=True)
class GpuRank:
    """The process of one GPU, and the arm that it is of; in `folder` all of them meet."""

    number: int
    arm: Arm
    folder: Path

    @property
    def component(self) -> Gpu:
        """Its GPU."""
        return Gpu(self.number)

    def prepare(self) -> None:
        """Set the arm's variables of NCCL, and no others."""
        nccl_environment.set_variables(self.arm)


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


def work_for(ask: Ask, joined: Sequence[Joined]) -> Work:
    """The largest model and batch for which all ranks have memory; over gloo the smallest."""
    # Sums and shards go between the ranks in this format, so it is one that all of them have.
    dtype: TrainedFormat = "f16" if any(one.dtype == "f16" for one in joined) else "bf16"
    if ask.backend == "gloo":
        return Work("tiny", TINY, TINY_BATCH, TINY_BATCH * ask.ranks, dtype)
    room = min(one.free_bytes for one in joined)
    name, batch = parallel_sizes.choose(room)
    shape = MODELS[name]
    whole = parallel_sizes.tensor_batch(shape, batch, ask.ranks, room)
    return Work(name, shape, batch, whole, dtype)


@dataclass(slots=True)
class ArmRun:
    """One arm while it runs: its ranks, and what they found."""

    ask: Ask
    arm: Arm
    ranks: Ranks[GpuRank]
    output: Output
    entered: set[GpuRank] = field(default_factory=set)
    wrong: int = 0
    disagreements: int = 0
    rows: list[Row] = field(default_factory=list)
    values: list[Row] = field(default_factory=list)
    begun: bool = False
    began: float = field(default_factory=time.monotonic)
    said: float = 0.0

    def heard(self, rank: GpuRank, value: Miscompare | Entered) -> None:
        """Take what a rank says besides its answers."""
        if isinstance(value, Entered):
            self.entered.add(rank)
        else:
            self.output.miscompare(value)

    def progress(self) -> None:
        """Say how far the arm is, now and then, once the first line is out."""
        spent, whole = time.monotonic() - self.began, self.ask.seconds / len(self.ask.arms)
        if self.begun and spent - self.said >= _PROGRESS_S:
            self.said = spent
            self.output.progress(round(min(spent, whole), 1), whole)

    def collect(self, kind: str, more_s: float = 0.0) -> dict[int, Any]:
        """The answers of all ranks, by their numbers."""
        told = self.ranks.collect(kind, self.ask.grace + more_s, self.heard, self.progress)
        return {rank.number: told[rank] for rank in sorted(told, key=lambda one: one.number)}

    def take(self, task: Task) -> dict[int, Any]:
        """One task. Raises RankLost, with the ranks that never arrived where it does not end."""
        self.entered.clear()
        self.ranks.start(lambda _moment: task)
        self.collect("ready")
        self.ranks.start(lambda _moment: None)
        try:
            return self.collect("done", task.seconds if isinstance(task, Clock) else 0.0)
        except RankSilent as error:
            entered = {rank.number for rank in self.entered}
            absent = [Gpu(one) for one in range(self.ask.ranks) if one not in entered]
            who = f"{listed(absent)} never arrived" if absent else "all ranks had arrived"
            raise RankSilent(f"{error}: {who} at {task}") from None

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
                self.arm,
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
        self.output.miscompare(parallel_worker.wrong(found, task, self.arm, number))

    def _agree(self, digests: Mapping[int, str], when: str) -> None:
        """Report ranks that hold other weights."""
        groups = differing({Gpu(number): one for number, one in digests.items()})
        if groups:
            self.disagreements += 1
            found = f"weights that differ between ranks {when} ({self.arm})"
            self.output.miscompare(DifferingDigests(check="digest", found=found, digests=groups))

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
                f"{self.arm}: {named(way, accumulation)}: compute of one card alone and optimizer "
                f"are {-communication:.1%} longer than the step; communication is said to be 0"
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
            self.arm,
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


def run_arm(run: ArmRun, work: Work) -> None:
    """One arm, from its first task to its last reading. Raises RankLost."""
    ask = run.ask
    run.began, run.begun = time.monotonic(), True
    for accumulation in ask.accumulate:
        for way in ask.ways:
            run.verify(way, accumulation)
    timed = len(ask.accumulate) * (1 + len(ask.ways)) * len(ask.arms)
    found = run.measure(work, ask.seconds / timed)
    run.ranks.start(lambda _moment: None)
    run.collect("left")
    for (way, batches), share in found.items():
        name = efficiency(way, run.arm, accumulated=batches > 1)
        run.output.reading(name, "ratio", GPUS, share)
    if run.arm == "default" and ("ddp", 1) in found:
        row = next(one for one in run.rows if one[1:3] == ("ddp", 1))
        run.output.reading(parallel_contract.TOTAL, "Mtokens/s", GPUS, float(row[4]) / 1e3)


def run(ask: Ask, output: Output, join: Join | None = None) -> None:
    """Start the ranks of all arms, and run one arm after the other. `join` is for tests.

    Raises RankLost, and ValueError where no model fits.
    """
    entry = partial(_torch_join, ask.backend) if join is None else join
    runs = []
    with contextlib.ExitStack() as stack:
        for arm in ask.arms:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            every = tuple(GpuRank(number, arm, folder) for number in range(ask.ranks))
            inject = ask.inject if arm == ask.arms[0] else None

            def body(rank: GpuRank, connection: Connection, inject: Fault | None = inject) -> None:
                fault = inject if rank.number == ask.ranks - 1 else None
                parallel_worker.work(
                    rank.number, ask.ranks, connection, entry, rank.folder, rank.arm, fault
                )

            runs.append(ArmRun(ask, arm, stack.enter_context(Ranks(every, body)), output))
        joined = [list(one.collect("joined").values()) for one in runs]
        work = work_for(ask, [one for arm in joined for one in arm])
        _hello(ask, joined, work, output)
        for one in runs:
            run_arm(one, work)
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


def _hello(ask: Ask, joined: Sequence[Sequence[Joined]], work: Work, output: Output) -> None:
    """The first line. Raises RuntimeError where the arms have other GPUs."""
    uuids = [[one.uuid for one in arm] for arm in joined]
    if any(other != uuids[0] for other in uuids):
        raise RuntimeError("the arms have other GPUs than each other")
    parameters: dict[str, Any] = {
        **ask.parameters(),
        "model": work.name,
        "batch": work.batch,
        "tensor_batch": work.tensor_batch,
        "format": work.dtype,
        "uuids": uuids[0],
        "library": ", ".join(sorted({one.about for arm in joined for one in arm})),
    }
    output.hello(ask.load, parameters)
