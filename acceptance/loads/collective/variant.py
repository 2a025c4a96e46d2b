"""A variant of a load between all GPUs: its ranks, the tasks that they are given, their answers.

A variant is NCCL as the machine comes, without peer access, or with NVLink multicast. It has
processes of its own, one for each GPU. A task has two parts, so that a rank that never arrives is
known: each rank says that it is ready, which needs no other one; then all are sent on, and each
says that it enters what they do together before it does (`ranks.TaskPipe`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from acceptance.core.parts import listed
from acceptance.loads.collective.contract import NCCL_LOG, Ask
from acceptance.loads.miscompare import CollectiveVariant, Miscompare, of_variant
from acceptance.loads.protocol import Heartbeat, Output
from acceptance.loads.ranks import Entered, GpuRank, Ranks, RankSilent
from acceptance.loads.train.parallel_contract import Ask as TrainingAsk

# What NCCL writes to the log of a rank: the subsystems that `tools.read.nccl_log` reads.
NCCL_DEBUG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,P2P,SHM,NET,NVLS,TUNING"}


def set_variables(variant: CollectiveVariant, log: Path | None = None) -> None:
    """Set the variant's variables of NCCL, and no others; with `log` it writes one there."""
    for name in [name for name in os.environ if name.startswith("NCCL_")]:
        del os.environ[name]
    if log is not None:
        os.environ |= {**NCCL_DEBUG, "NCCL_DEBUG_FILE": str(log)}
    os.environ["NCCL_NVLS_ENABLE"] = "1" if variant == "multicast" else "0"
    if variant == "p2p_off":
        os.environ["NCCL_P2P_DISABLE"] = "1"


@dataclass(frozen=True, slots=True)
class VariantRank(GpuRank):
    """The process of one GPU in a variant.

    All of them meet in `folder`; with `logged` NCCL writes a log there.
    """

    variant: CollectiveVariant
    folder: Path
    logged: bool = False

    @property
    def log(self) -> Path:
        """Where NCCL writes its log."""
        return self.folder / f"nccl-{self.number}.log"

    def prepare(self) -> None:
        """Set the variant's variables of NCCL, and no others."""
        set_variables(self.variant, self.log if self.logged else None)

    def report_log(self, output: Output) -> None:
        """Put what NCCL wrote into the output."""
        if self.log.is_file():
            text = self.log.read_text(encoding="utf-8", errors="replace")
            output.log(of_variant(NCCL_LOG, self.variant), self.component, text)


@dataclass(frozen=True, slots=True)
class Joined:
    """A rank whose device works: its free memory in bytes, its library, and its GPU's UUID."""

    free_bytes: int
    about: str
    uuid: str


@dataclass(slots=True)
class VariantRun:
    """A variant while it runs.

    A rank may be late by `grace` seconds; progress is of `seconds`, which begin with `begin`.
    """

    every: tuple[VariantRank, ...]
    ranks: Ranks[VariantRank]
    output: Output
    grace: float
    seconds: float
    entered: set[VariantRank] = field(default_factory=set)
    began: float = field(default_factory=time.monotonic)
    told: Heartbeat | None = None

    @property
    def variant(self) -> CollectiveVariant:
        """The variant of all its ranks."""
        return self.every[0].variant

    def begin(self) -> None:
        """The first line is out: from here on it says how far it is."""
        self.began, self.told = time.monotonic(), Heartbeat(self.output, self.seconds)

    def progress(self) -> None:
        """Called about once a second while it waits for the ranks."""
        if self.told is not None:
            self.told.at(time.monotonic() - self.began)

    def receive(self, rank: VariantRank, value: Miscompare | Entered) -> None:
        """Take what a rank says besides its answers."""
        if isinstance(value, Entered):
            self.entered.add(rank)
        else:
            self.output.miscompare(value)

    def collect(self, kind: str, more_s: float = 0.0) -> dict[VariantRank, Any]:
        """The answers of all ranks, in their order. Raises RankLost."""
        found = self.ranks.collect(kind, self.grace + more_s, self.receive, self.progress)
        return {rank: found[rank] for rank in self.every}

    def do(self, task: object, more_s: float = 0.0) -> dict[VariantRank, Any]:
        """One task. Raises RankLost, with the ranks that never arrived where it does not end."""
        self.entered.clear()
        self.ranks.start(lambda _moment: task)
        self.collect("ready")
        self.ranks.start(lambda _moment: None)
        try:
            return self.collect("done", more_s)
        except RankSilent as error:
            raise self.silent(error, task) from None

    def silent(self, error: RankSilent, task: object) -> RankSilent:
        """The error of a task that does not end, with the ranks that never arrived."""
        absent = [rank.component for rank in self.every if rank not in self.entered]
        who = f"{listed(absent)} never arrived" if absent else "all ranks had arrived"
        return RankSilent(f"{error}: {who} at {task}")

    def leave(self) -> None:
        """Let all ranks leave their group."""
        self.ranks.start(lambda _moment: None)
        self.collect("left")


Body = Callable[[VariantRank, Connection, Any], None]  # the last is the rank's fault
Forked = tuple[tuple[VariantRank, ...], Ranks[VariantRank]]


@contextmanager
def forked(
    ask: Ask | TrainingAsk, variant: CollectiveVariant, body: Body, *, logged: bool = False
) -> Iterator[Forked]:
    """The ranks of a variant, which have begun; they have a folder for as long as this lasts."""
    inject = ask.inject if variant == ask.arms[0] else None
    with TemporaryDirectory() as folder:
        every = tuple(
            VariantRank(number, variant, Path(folder), logged) for number in range(ask.ranks)
        )

        def work(rank: VariantRank, connection: Connection) -> None:
            body(rank, connection, inject if rank == every[-1] else None)

        with Ranks(every, work) as ranks:
            yield every, ranks
