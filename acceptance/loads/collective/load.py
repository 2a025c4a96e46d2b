"""The load of collective operations between all GPUs: each timed, and every element verified.

    python -m acceptance.loads collective backend=nccl ranks=2 seconds=20

One process for each GPU, in the order in which CUDA shows them: rank 0 has `gpu0`. The operations
are those of torch.distributed, over NCCL, or over gloo between processes without a GPU. Two arms,
each with processes of its own: `default` as the machine comes, and `p2p_off` with
NCCL_P2P_DISABLE=1. NCCL_* variables of the environment are removed, and NVLink multicast is off
(NCCL_NVLS_ENABLE=0). A third arm runs only where it is asked for: `multicast` has it on
(NCCL_NVLS_ENABLE=1), and leaves out send-receives, which have no use of it. NCCL writes a log for
each rank, which is kept in the output.

Each arm makes, each turn with numbers of its own (`pattern`):

1. all-reduce and reduce-scatter of small and large size in bfloat16, float16 and int32;
2. an all-reduce of random numbers, after which all ranks must hold the same bits;
3. a send-receive from each rank to each other one, of a small and a large size; a path slower than
   SLOW of the median path is tried again, with the sender's and the receiver's best other paths;
4. all-reduce, all-gather, reduce-scatter, all-to-all and broadcast (from rank 0) in float32, of the
   largest size up to 1 GiB, then of every other one from 8 bytes (`ladder`) to `most` while
   `seconds` of the arm last;
5. between GPUs, all-reduces of 8 bytes in a CUDA graph, which no call of the host delays.

A turn is timed alone at every rank, and the slowest rank counts. One turn of each size warms up;
the median of `turns` others counts. Sizes and bus bandwidth are those of
nccl-tests (`operation`). The destination is spoiled before each turn and compared whole after it.

Readings, in GB/s of bus bandwidth: `collective_all_reduce` and so on of `gpus`, of the largest size
up to 1 GiB, and `collective_send_receive` of `gpu0->gpu1`, of a path that was tried again the
second; `collective_latency` in microseconds. `collective_miscompares` counts wrong
elements at each GPU, `collective_send_receive_miscompares` those of each path,
`collective_disagreements` turns with random numbers after which ranks held different bits. Each
other arm has the same readings, which end in its name (`_p2p_off`). The table `collectives` has
every size, with how many elements were compared, `collective_slow_paths` what was tried again; the
logs `nccl`, `nccl_p2p_off` and so on are NCCL's.

Exit status: 0 when it ran whole, whatever it found (the readings say what); 1 when a rank died or
did not answer within `grace` seconds, or torch failed, with one sentence on standard error, which
names the rank that never arrived, and no end line (NCCL's logs are there all the same); 2 for
arguments that cannot be used.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from acceptance.core.component import Component
from acceptance.core.limit import GIB
from acceptance.core.parts import GPUS, Gpu, listed
from acceptance.loads.collective import ladder, nccl_environment, torch_group, worker
from acceptance.loads.collective.contract import (
    COLLECTIVES,
    COLUMNS,
    LATENCY,
    NCCL_LOG,
    SLOW_PATH_COLUMNS,
    SLOW_PATHS,
    SUMS,
    WHOLE_GROUP,
    Ask,
    PairAsk,
    path_of,
    rate_of,
)
from acceptance.loads.collective.digest import differing
from acceptance.loads.collective.group import Join
from acceptance.loads.collective.operation import Operation, pairs
from acceptance.loads.collective.pattern import ELEMENT_TYPES, ITEMSIZE, Numbers
from acceptance.loads.collective.torch_group import TorchGroup
from acceptance.loads.collective.worker import Done, Entered, Joined, LatencyStep, Step
from acceptance.loads.miscompare import (
    COLLECTIVE_MISCOMPARES,
    DISAGREEMENTS,
    PATH_MISCOMPARES,
    CollectiveArm,
    CollectiveCheck,
    DifferingDigests,
    ElementType,
    Miscompare,
    of_arm,
)
from acceptance.loads.protocol import Output
from acceptance.loads.ranks import Ranks, RankSilent

SMALL, LARGE = 4096, 16 * 2**20  # for NCCL's small and large protocols
PATH = 128 * 2**20
HEADLINE = GIB  # the largest size of a reading
RANDOM_TURNS = 3
SLOW = 0.9  # of the median of all paths
MOST_SLOW = 8  # paths that are tried again
Row = tuple[str | float, ...]
_PROGRESS_S = 5.0


@dataclass(frozen=True, slots=True)
class GpuRank:
    """The process of one GPU, and the arm that it is of; `folder` is for NCCL's log."""

    number: int
    arm: CollectiveArm
    folder: Path

    @property
    def component(self) -> Component:
        """Its GPU."""
        return Gpu(self.number)

    @property
    def log(self) -> Path:
        """Where NCCL writes its log."""
        return self.folder / f"nccl-{self.number}.log"

    def prepare(self) -> None:
        """Set the arm's variables of NCCL, and no others."""
        nccl_environment.set_variables(self.arm, self.log)


def _number(rank: GpuRank) -> int:
    return rank.number


@dataclass(slots=True)
class ArmRun:
    """One arm while it runs: its ranks, and what they found."""

    ask: Ask | PairAsk
    arm: CollectiveArm
    ranks: Ranks[GpuRank]
    output: Output
    began: float
    turns: int = 0
    entered: set[GpuRank] = field(default_factory=set)
    wrong: Counter[Component] = field(default_factory=Counter)
    disagreements: int = 0
    rows: list[Row] = field(default_factory=list)
    slow: list[Row] = field(default_factory=list)
    said: float = 0.0
    joined: bool = False

    def heard(self, rank: GpuRank, value: Miscompare | Entered) -> None:
        """Take what a rank says besides its answers."""
        if isinstance(value, Entered):
            self.entered.add(rank)
        else:
            self.output.miscompare(value)

    def collect(self, kind: str) -> dict[GpuRank, Any]:
        """The answers of all ranks."""
        return self.ranks.collect(kind, self.ask.grace, self.heard, self.progress)

    def progress(self) -> None:
        """Say how far the arm is, now and then, once the first line is out."""
        spent = time.monotonic() - self.began
        if self.joined and spent - self.said >= _PROGRESS_S:
            self.said = spent
            self.output.progress(round(min(spent, self.ask.seconds), 1), self.ask.seconds)

    def take(
        self, operation: Operation, dtype: ElementType, share: int, *, random: bool = False
    ) -> dict[GpuRank, Done]:
        """One turn. Raises RankLost, with the ranks that never arrived where it does not end."""
        return self._step(Step(operation, dtype, share, self.turns, random))

    def _step(self, step: Step | LatencyStep) -> dict[GpuRank, Done]:
        self.turns += 1
        self.entered.clear()
        self.ranks.start(lambda _moment: step)
        self.collect("ready")
        self.ranks.start(lambda _moment: None)
        try:
            done = self.collect("done")
        except RankSilent as error:
            raise self.silent(error, step) from None
        for rank, one in done.items():
            self.wrong[step.component(rank.number)] += one.wrong
        return done

    def silent(self, error: RankSilent, step: Step | LatencyStep) -> RankSilent:
        """The error of a turn that does not end, with the ranks that never arrived."""
        operation = step.operation
        entered = {rank.component for rank in self.entered}
        every = map(Gpu, range(operation.ranks))
        absent = [component for component in every if component not in entered]
        who = f"{listed(absent)} never arrived" if absent else "all ranks had arrived"
        return RankSilent(f"{error}: {who} at {operation.name} of {step.size} bytes")

    def measure(
        self, operation: Operation, dtype: ElementType, size: int, component: Component = GPUS
    ) -> float:
        """Turns of one size, the first to warm up; GB/s of bus bandwidth."""
        share = operation.share(size, ITEMSIZE[dtype])
        took, compared = [], 0
        for turn in range(1 + self.ask.turns):
            done = self.take(operation, dtype, share)
            compared += sum(one.compared for one in done.values())
            if turn:
                took.append(slowest(operation, done))
        moved, median = operation.size(share, ITEMSIZE[dtype]), statistics.median(took)
        value = operation.bus_rate(moved, median)
        self.rows.append(
            (
                self.arm,
                operation.name,
                str(component),
                dtype,
                moved,
                self.ask.turns,
                compared,
                round(median * 1e6, 2),
                round(value, 3),
            )
        )
        return value

    def sums(self, most: int) -> None:
        """Sums in all formats but float32, where as many ranks have exact ones."""
        ranks = self.ask.ranks
        for dtype in ELEMENT_TYPES:
            if dtype == "f32":
                continue
            try:
                Numbers(dtype, ranks)
            except ValueError as error:
                self.output.note(str(error))
                continue
            for size in sorted({min(SMALL, most), min(LARGE, most)}):
                for name in SUMS:
                    self.measure(Operation(name, ranks), dtype, size)

    def same_bits(self, most: int) -> None:
        """Sums of random numbers, after which all ranks must hold the same bits."""
        operation = Operation("all_reduce", self.ask.ranks)
        for _ in range(RANDOM_TURNS):
            done = self.take(operation, "f32", min(LARGE, most) // ITEMSIZE["f32"], random=True)
            digests = differing(
                {Gpu(rank.number): done[rank].digest for rank in sorted(done, key=_number)}
            )
            if digests:
                self.disagreements += 1
                self.output.miscompare(
                    DifferingDigests(
                        check="digest",
                        found="sums of random numbers that differ between ranks",
                        digests=digests,
                    )
                )

    def paths(self, most: int) -> None:
        """A send-receive between the ranks of each ordered pair."""
        small, large = min(SMALL, most), min(PATH, most)
        rates: dict[tuple[int, int], float] = {}
        for ends in pairs(self.ask.ranks):
            if small < large:
                self.path(ends, small)
            rates[ends] = self.path(ends, large)
        slow = slow_paths(rates)
        again = {
            ends: self.path(ends, large) for ends in dict.fromkeys(itertools.chain(*slow.values()))
        }
        for ends, tried in slow.items():
            self.slow += [
                (
                    self.arm,
                    str(path_of(ends)),
                    str(path_of(one)),
                    round(rates[one], 3),
                    round(again[one], 3),
                )
                for one in tried
            ]
        for ends, first in rates.items():
            pair = path_of(ends)
            value = again[ends] if ends in slow else first
            self.reading(rate_of("send_receive"), "GB/s", pair, value)
            self.reading(PATH_MISCOMPARES, "count", pair, self.wrong[pair])

    def path(self, ends: tuple[int, int], size: int) -> float:
        """Turns of a send-receive of one size; GB/s."""
        operation = Operation("send_receive", self.ask.ranks, *ends)
        return self.measure(operation, "f32", size, path_of(ends))

    def ladder(self, sizes: Sequence[int]) -> None:
        """The size of the readings for the other operations, then all other sizes in turn."""
        headline = max(size for size in sizes if size <= HEADLINE)
        took: dict[CollectiveCheck, float] = {}
        for name in WHOLE_GROUP:
            begin = time.monotonic()
            value = self.measure(Operation(name, self.ask.ranks), "f32", headline)
            took[name] = time.monotonic() - begin
            self.reading(rate_of(name), "GB/s", GPUS, value)
        untried = []
        for size in sizes:
            for name in WHOLE_GROUP if size != headline else ():
                left = self.ask.seconds - (time.monotonic() - self.began)
                if ladder.affordable(size, headline, took[name], left):
                    self.measure(Operation(name, self.ask.ranks), "f32", size)
                else:
                    untried.append(f"{name} of {size} bytes")
        if untried:
            self.output.note(f"{self.arm}: no time was left for {', '.join(untried)}")

    def latency(self) -> None:
        """All-reduces of the smallest size in a CUDA graph, where there are GPUs."""
        operation = Operation("all_reduce", self.ask.ranks)
        done = self._step(LatencyStep(operation, self.turns))
        if all(one.seconds is not None for one in done.values()):
            self.reading(LATENCY, "us", GPUS, slowest(operation, done) * 1e6)

    def reading(self, base: str, unit: str, component: Component, value: float) -> None:
        """A reading of this arm."""
        self.output.reading(of_arm(base, self.arm), unit, component, value)


def slowest(operation: Operation, done: Mapping[GpuRank, Done]) -> float:
    """The seconds of the slowest rank that takes part."""
    return max(
        one.seconds
        for rank, one in done.items()
        if operation.takes_part(rank.number) and one.seconds is not None
    )


def slow_paths(
    rates: Mapping[tuple[int, int], float],
) -> dict[tuple[int, int], tuple[tuple[int, int], ...]]:
    """The slowest paths below SLOW of the median, and what is to be tried again for each.

    That is the path itself, the sender's best path to another rank, and the best path from another
    rank to the receiver.
    """
    limit = SLOW * statistics.median(rates.values())
    slow = sorted((rate, ends) for ends, rate in rates.items() if rate < limit)[:MOST_SLOW]
    found = {}
    for _, ends in slow:
        source, destination = ends
        sends = [one for one in rates if one[0] == source and one != ends]
        receives = [one for one in rates if one[1] == destination and one != ends]
        partners = [max(group, key=rates.__getitem__) for group in (sends, receives) if group]
        found[ends] = (ends, *partners)
    return found


Opening = Callable[[Sequence[str]], None]  # called with the UUID of every rank's GPU


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm whose ranks have been forked and wait for their turn."""

    name: CollectiveArm
    ranks: Ranks[GpuRank]
    every: tuple[GpuRank, ...]


def begin_arm(
    ask: Ask,
    name: CollectiveArm,
    join: Join,
    load_libraries: Callable[[], None],
    folder: Path,
) -> Arm:
    """Fork the ranks of an arm: they load their libraries, and touch no GPU before their turn."""
    inject = ask.inject if name == ask.arms[0] else None
    every = tuple(GpuRank(number, name, folder) for number in range(ask.ranks))

    def body(rank: GpuRank, connection: Connection) -> None:
        load_libraries()
        connection.recv()
        fault: Any = inject if rank == every[-1] else None
        worker.work(rank.number, ask.ranks, connection, join, rank.folder, name, fault)

    return Arm(name, Ranks(every, body), every)


def run_arm(ask: Ask, arm: Arm, output: Output, opening: Opening) -> ArmRun:
    """One arm, from its ranks' start to its last reading. Raises RankLost."""
    try:
        run = _run_ranks(ask, arm, output, opening)
    finally:
        # What NCCL wrote tells most where ranks were lost.
        for rank in arm.every:
            if rank.log.is_file():
                text = rank.log.read_text(encoding="utf-8", errors="replace")
                output.log(of_arm(NCCL_LOG, arm.name), rank.component, text)
    for rank in arm.every:
        run.reading(COLLECTIVE_MISCOMPARES, "count", rank.component, run.wrong[rank.component])
    run.reading(DISAGREEMENTS, "count", GPUS, run.disagreements)
    return run


def _run_ranks(ask: Ask, arm: Arm, output: Output, opening: Opening) -> ArmRun:
    with arm.ranks as ranks:
        run = ArmRun(ask, arm.name, ranks, output, time.monotonic())
        ranks.start(lambda _moment: None)
        joined: dict[GpuRank, Joined] = run.collect("joined")
        opening([joined[rank].uuid for rank in arm.every])
        run.joined = True
        for about in sorted({one.about for one in joined.values()}):
            output.note(f"{arm.name}: {about}")
        room = min(one.free_bytes for one in joined.values())
        sizes = [size for size in ladder.fitting(room, worker.WORK) if size <= ask.most]
        run.sums(sizes[-1])
        run.began, run.said = time.monotonic(), 0.0  # libraries are loaded, and the group has met
        run.same_bits(sizes[-1])
        if arm.name != "multicast":
            run.paths(sizes[-1])
        run.ladder(sizes)
        run.latency()
        ranks.start(lambda _moment: None)
        run.collect("left")
    return run


def run(ask: Ask, output: Output, join: Join | None = None) -> None:
    """Run the arms one after the other; `join` is for tests.

    The ranks of all of them load their libraries at once, while no turn is timed. Raises RankLost,
    and ValueError where no size fits.
    """
    entry, load_libraries = (
        (partial(TorchGroup, ask.backend), torch_group.load_libraries)
        if join is None
        else (join, lambda: None)
    )
    seen: list[str] = []

    def opening(uuids: Sequence[str]) -> None:
        """The first line, with the GPUs that the ranks of the first arm have."""
        if not seen:
            seen.extend(uuids)
            output.hello(ask.load, {**ask.parameters(), "uuids": seen})
        elif seen != list(uuids):
            raise RuntimeError(f"the ranks have other GPUs than before: {', '.join(uuids)}")

    with contextlib.ExitStack() as stack:
        arms = []
        for name in ask.arms:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            arms.append(begin_arm(ask, name, entry, load_libraries, folder))
            stack.enter_context(arms[-1].ranks)  # ends those whose turn never came
        runs = [run_arm(ask, arm, output, opening) for arm in arms]
    output.table(COLLECTIVES, COLUMNS, [row for one in runs for row in one.rows])
    if slow := [row for one in runs for row in one.slow]:
        output.table(SLOW_PATHS, SLOW_PATH_COLUMNS, slow)
    output.end()
