"""The load of collective operations between all GPUs: each timed, and every element verified.

    python -m acceptance.loads collective backend=nccl ranks=2 seconds=20

One process for each GPU, in the order in which CUDA shows them: rank 0 has `gpu0`. The operations
are those of torch.distributed, over NCCL, or over gloo between processes without a GPU. Two
variants, each with processes of its own: `default` as the machine comes, and `p2p_off` with
NCCL_P2P_DISABLE=1. NCCL_* variables of the environment are removed, and NVLink multicast is off
(NCCL_NVLS_ENABLE=0). A third one runs only where it is asked for: `multicast` has it on
(NCCL_NVLS_ENABLE=1), and leaves out send-receives, which have no use of it. NCCL writes a log for
each rank, which is kept in the output.

Each variant makes, each turn with numbers of its own (`pattern`):

1. all-reduce and reduce-scatter of small and large size in bfloat16, float16 and int32;
2. an all-reduce of random numbers, after which all ranks must hold the same bits;
3. a send-receive from each rank to each other one, of a small and a large size; a path slower than
   SLOW of the median path is tried again, with the sender's and the receiver's best other paths;
4. all-reduce, all-gather, reduce-scatter, all-to-all and broadcast (from rank 0) in float32, of the
   largest size up to 1 GiB, then of every other one from 8 bytes (`operation`) to `most` while
   `seconds` of the variant last;
5. between GPUs, all-reduces of 8 bytes in a CUDA graph, which no call of the host delays.

A turn is timed alone at every rank, and the slowest rank counts. One turn of each size warms up;
the median of `turns` others counts. Sizes and bus bandwidth are those of
nccl-tests (`operation`). The destination is spoiled before each turn and compared whole after it.

Readings, in GB/s of bus bandwidth: `collective_all_reduce` and so on of `gpus`, of the largest size
up to 1 GiB, and `collective_send_receive` of `gpu0->gpu1`, of a path that was tried again the
second; `collective_latency` in microseconds. `collective_miscompares` counts wrong
elements at each GPU, `collective_send_receive_miscompares` those of each path,
`collective_disagreements` turns with random numbers after which ranks held different bits. Each
other variant has the same readings, which end in its name (`_p2p_off`). The table `collectives` has
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
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from acceptance.core.limit import GIB
from acceptance.core.parts import GPUS, Component
from acceptance.loads.collective import worker
from acceptance.loads.collective.contract import (
    COLLECTIVES,
    COLUMNS,
    LATENCY,
    SLOW_PATH_COLUMNS,
    SLOW_PATHS,
    SUMS,
    WHOLE_GROUP,
    Ask,
    PairAsk,
    path_of,
    rate_of,
)
from acceptance.loads.collective.pattern import (
    ELEMENT_TYPES,
    ITEMSIZE,
    Numbers,
    Operation,
    affordable,
    fitting,
    pairs,
    report_differing,
)
from acceptance.loads.collective.worker import (
    LATENCY_ELEMENTS,
    Done,
    Group,
    Join,
    Joined,
    Step,
    VariantRank,
    VariantRun,
    forked,
)
from acceptance.loads.miscompare import (
    COLLECTIVE_MISCOMPARES,
    DISAGREEMENTS,
    PATH_MISCOMPARES,
    CollectiveCheck,
    ElementType,
    of_variant,
)
from acceptance.loads.protocol import Output

SMALL, LARGE = 4096, 16 * 2**20  # for NCCL's small and large protocols
PATH = 128 * 2**20
HEADLINE = GIB  # the largest size of a reading
RANDOM_TURNS = 3
SLOW = 0.9  # of the median of all paths
MOST_SLOW = 8  # paths that are tried again
Row = tuple[str | float, ...]


@dataclass(slots=True)
class CollectiveRun(VariantRun):
    """One variant of the collectives while it runs, and what was found."""

    ask: Ask | PairAsk = field(kw_only=True)
    turns: int = 0
    wrong: Counter[Component] = field(default_factory=Counter)
    disagreements: int = 0
    rows: list[Row] = field(default_factory=list)
    slow: list[Row] = field(default_factory=list)

    def take(
        self, operation: Operation, dtype: ElementType, share: int, *, random: bool = False
    ) -> dict[VariantRank, Done]:
        """One turn. Raises RankLost."""
        return self._step(Step(operation, dtype, share, self.turns, random))

    def _step(self, step: Step) -> dict[VariantRank, Done]:
        self.turns += 1
        done: dict[VariantRank, Done] = self.do(step)
        for rank, one in done.items():
            self.wrong[step.component(rank.number)] += one.wrong
        return done

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
                self.variant,
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
            digests: dict[Component, str] = {
                rank.component: one.digest for rank, one in done.items()
            }
            found = "sums of random numbers that differ between ranks"
            self.disagreements += bool(report_differing(self.output, digests, found))

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
                    self.variant,
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
                if affordable(size, headline, took[name], left):
                    self.measure(Operation(name, self.ask.ranks), "f32", size)
                else:
                    untried.append(f"{name} of {size} bytes")
        if untried:
            self.output.note(f"{self.variant}: no time was left for {', '.join(untried)}")

    def latency(self) -> None:
        """All-reduces of the smallest size in a CUDA graph, where there are GPUs."""
        step = Step(
            Operation("all_reduce", self.ask.ranks), "i32", LATENCY_ELEMENTS, self.turns, graph=True
        )
        done = self._step(step)
        if all(one.seconds is not None for one in done.values()):
            self.reading(LATENCY, "us", GPUS, slowest(step.operation, done) * 1e6)

    def reading(self, base: str, unit: str, component: Component, value: float) -> None:
        """A reading of this variant."""
        self.output.reading(of_variant(base, self.variant), unit, component, value)


def slowest(operation: Operation, done: Mapping[VariantRank, Done]) -> float:
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


def entry(
    backend: str, join: Join | None, meet: str | None = None, gpu: int | None = None
) -> tuple[Join, Callable[[], object]]:
    """How a rank joins the group, and how it loads its libraries before; `join` is for tests."""
    if join is not None:
        return join, lambda: None
    # Each rank loads torch: its program does not.
    load_libraries = partial(import_module, "acceptance.loads.collective.torch_group")

    def enter(rank: int, ranks: int, folder: Path) -> Group:
        from acceptance.loads.collective.torch_group import TorchGroup

        return TorchGroup(backend, rank, ranks, folder, meet, gpu)

    return enter, load_libraries


def run_variant(run: CollectiveRun, opening: Opening) -> None:
    """One variant, from its ranks' start to its last reading. Raises RankLost."""
    try:
        with run.ranks:
            _measure(run, opening)
    finally:
        # What NCCL wrote tells most where ranks were lost.
        for rank in run.every:
            rank.report_log(run.output)
    for rank in run.every:
        run.reading(COLLECTIVE_MISCOMPARES, "count", rank.component, run.wrong[rank.component])
    run.reading(DISAGREEMENTS, "count", GPUS, run.disagreements)


def _measure(run: CollectiveRun, opening: Opening) -> None:
    run.ranks.start(lambda _moment: None)
    joined: list[Joined] = list(run.collect("joined").values())
    opening([one.uuid for one in joined])
    run.begin()
    for about in sorted({one.about for one in joined}):
        run.output.note(f"{run.variant}: {about}")
    room = min(one.free_bytes for one in joined)
    sizes = [size for size in fitting(room, worker.WORK) if size <= run.ask.most]
    run.sums(sizes[-1])
    run.begin()  # libraries are loaded, and the group has met
    run.same_bits(sizes[-1])
    if run.variant != "multicast":
        run.paths(sizes[-1])
    run.ladder(sizes)
    run.latency()
    run.leave()


def run(ask: Ask, output: Output, join: Join | None = None) -> None:
    """Run the variants one after the other; `join` is for tests.

    The ranks of all of them load their libraries at once, while no turn is timed. Raises RankLost,
    and ValueError where no size fits.
    """
    own, load_libraries = entry(ask.backend, join)
    seen: list[str] = []

    def body(rank: VariantRank, connection: Connection, fault: Any) -> None:
        """Load the libraries, and touch no GPU before the variant's turn."""
        load_libraries()
        connection.recv()
        worker.work(rank, ask.ranks, connection, own, fault)

    def opening(uuids: Sequence[str]) -> None:
        """The first line, with the GPUs that the ranks of the first variant have."""
        if not seen:
            seen.extend(uuids)
            output.hello(ask.load, {**ask.parameters(), "uuids": seen})
        elif seen != list(uuids):
            raise RuntimeError(f"the ranks have other GPUs than before: {', '.join(uuids)}")

    with contextlib.ExitStack() as stack:
        runs = []
        for variant in ask.arms:
            every, ranks = stack.enter_context(forked(ask, variant, body, logged=True))
            runs.append(CollectiveRun(every, ranks, output, ask.grace, ask.seconds, ask=ask))
        for one in runs:
            run_variant(one, opening)
    output.table(COLLECTIVES, COLUMNS, [row for one in runs for row in one.rows])
    if slow := [row for one in runs for row in one.slow]:
        output.table(SLOW_PATHS, SLOW_PATH_COLUMNS, slow)
    output.end()
