"""The cores of a load of processors or RAM, each a rank of it, and its workers on them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from acceptance.core import parts
from acceptance.loads.cpu.contract import Gemm, Groups, MemoryBandwidth, MemoryRandom
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Heartbeat, Output
from acceptance.loads.ranks import Ranks

# Read by OpenBLAS, MKL, BLIS and OpenMP when they are loaded; a second thread would share the
# core's one CPU and slow it down.
ONE_THREAD = {
    name: "1"
    for name in (
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "GOTO_NUM_THREADS",
    )
}


@dataclass(frozen=True, slots=True)
class Core:
    """One physical core, a rank of a load: its group for comparison, and its logical CPUs."""

    group: str
    cpus: tuple[int, ...]

    @property
    def cpu(self) -> int:
        """The logical CPU that the load uses: the core's first."""
        return self.cpus[0]

    @property
    def component(self) -> parts.Core:
        """The core's name in readings."""
        return parts.Core(self.cpu)

    def prepare(self) -> None:
        """Pin this process to the core and its libraries to one thread."""
        os.sched_setaffinity(0, {self.cpu})
        os.environ.update(ONE_THREAD)


def cores_of(groups: Groups, allowed: set[int] | None = None) -> tuple[Core, ...]:
    """The cores of these groups, in their order.

    Raises LoadError when this process may not run on the first CPU of one of them. `allowed` is for
    tests.
    """
    cores = tuple(Core(name, tuple(cpus)) for name, own in groups.items() for cpus in own)
    usable = os.sched_getaffinity(0) if allowed is None else allowed
    refused = [str(core.cpu) for core in cores if core.cpu not in usable]
    if refused:
        raise LoadError(
            f"this process may not run on CPU {', '.join(refused)}: name other cores, or "
            "lift the affinity or cpuset it runs under"
        )
    return cores


CpuAsk = Gemm | MemoryBandwidth | MemoryRandom
Body = Callable[[Core, Connection, Any], None]  # the last is the core's fault


@dataclass(frozen=True, slots=True)
class Done:
    """One core's turn: when it began and ended, wrong results, and processor seconds.

    `verified_s` went into the comparison, `spent_s` into the whole turn, where they are measured.
    """

    began: float
    ended: float
    wrong: int
    verified_s: float = 0.0
    spent_s: float = 0.0


def spent(turns: Iterable[Done]) -> float:
    """Seconds from the first core's start to the last one's end."""
    every = tuple(turns)
    return max(one.ended for one in every) - min(one.began for one in every)


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers of a load while they run."""

    ask: CpuAsk
    output: Output
    cores: tuple[Core, ...]
    ranks: Ranks[Core]

    def collect(
        self, kind: str, more_s: float = 0.0, tick: Callable[[], None] = lambda: None
    ) -> dict[Core, Any]:
        """The answers of all cores, in the order of the ask. Raises RankLost."""

        def report(_core: Core, wrong: Any) -> None:
            self.output.miscompare(wrong)

        found = self.ranks.collect(kind, self.ask.grace + more_s, report, tick)
        return {core: found[core] for core in self.cores}

    def do(self, message: Callable[[float], Any]) -> dict[Core, Done]:
        """One turn of all cores. Raises RankLost."""
        self.ranks.start(message)
        return self.collect("done")

    def rounds(self, least: int) -> Iterator[None]:
        """Rounds until the time is over, at least so many."""
        began, progress, done = time.monotonic(), Heartbeat(self.output, self.ask.seconds), 0
        while (now_s := time.monotonic() - began) < self.ask.seconds or done < least:
            progress.at(now_s)
            yield
            done += 1


@contextmanager
def working(ask: CpuAsk, output: Output, cores: tuple[Core, ...], body: Body) -> Iterator[Workers]:
    """The workers, which have begun; the last core has the injected fault."""

    def work(core: Core, connection: Connection) -> None:
        body(core, connection, ask.inject if core == cores[-1] else None)

    with Ranks(cores, work) as ranks:
        yield Workers(ask, output, cores, ranks)
