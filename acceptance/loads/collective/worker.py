"""One rank of the load: it joins the group, and makes and verifies each step that it is sent.

It fills its buffers before it says that it is ready (`ranks.TaskPipe`).

A group of ranks as one rank uses it: its memory, and the operations of all of them.

A variant of a load between all GPUs: its ranks, the tasks that they are given, their answers.

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
from typing import Any, Protocol

from acceptance.core.parts import Component, Gpu, Pair, listed
from acceptance.loads.collective import pattern
from acceptance.loads.collective.contract import NCCL_LOG, Ask, Fault
from acceptance.loads.collective.pattern import (
    ITEMSIZE,
    Array,
    CollectiveFault,
    Numbers,
    Operation,
    Rule,
)
from acceptance.loads.miscompare import (
    CollectiveVariant,
    ElementType,
    Miscompare,
    WrongCollective,
    of_variant,
)
from acceptance.loads.protocol import Heartbeat, Output
from acceptance.loads.ranks import Entered, GpuRank, Ranks, RankSilent, TaskPipe
from acceptance.loads.train.parallel_contract import Ask as TrainingAsk


class Memory(Protocol):
    """The memory of a rank's device."""

    def places(self, first: int, count: int) -> Array:
        """The numbers from `first` on, as int64."""

    def buffer(self, dtype: ElementType, count: int) -> Array:
        """A new buffer; its content is anything."""

    def write(self, buffer: Array, numbers: Numbers, rule: Rule, turn: int) -> bool:
        """Write the numbers by a kernel of the device; False where it has none."""

    def differing(self, buffer: Array, numbers: Numbers, rule: Rule, turn: int) -> int | None:
        """How many elements are not those of the rule, by a kernel; None where it has none."""

    def words(self, piece: Array) -> Array:
        """The bits of elements of four bytes, as int64."""

    def free_bytes(self) -> int:
        """Memory that can be allocated."""


class Group(Protocol):
    """The group of a rank. All meet in the first operation: what comes before needs no other."""

    @property
    def memory(self) -> Memory:
        """The memory of the rank's device."""

    @property
    def about(self) -> str:
        """The library, for people."""

    @property
    def uuid(self) -> str:
        """The UUID of the rank's GPU; empty without one."""

    def run(self, operation: Operation, source: Array, destination: Array) -> float:
        """Seconds of one operation, from when all ranks are there to its end at this rank.

        `source` and `destination` are one buffer for an operation in place.
        """

    def latency(self, buffer: Array, calls: int) -> float | None:
        """Seconds of one all-reduce of `buffer`, as one of `calls` in a CUDA graph.

        Each takes the largest number at each place, so that more of them change nothing. None
        without a GPU.
        """

    def leave(self) -> None:
        """Leave the group, together with all others."""


# What a rank calls to begin: its number, how many they are, and a folder that all of them see.
Join = Callable[[int, int, Path], Group]


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


# Elements made or compared at a time, and the memory that their intermediate values need: int64,
# and about eight of them at once.
CHUNK = 1 << 22
WORK = 12 * 8 * CHUNK
INJECTED_TURN = 1
LATENCY_CALLS = 50
LATENCY_ELEMENTS = 2  # of int32: 8 bytes


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of one operation.

    A `random` one has random numbers, whose bits are compared; `graph` is all-reduces of the
    smallest size in a CUDA graph.
    """

    operation: Operation
    dtype: ElementType
    share: int
    turn: int
    random: bool = False
    graph: bool = False

    def __str__(self) -> str:
        return f"{self.operation.name} of {self.size} bytes"

    @property
    def size(self) -> int:
        """S in bytes."""
        return self.operation.size(self.share, ITEMSIZE[self.dtype])

    def component(self, rank: int) -> Component:
        """What a wrong element at this rank belongs to."""
        return (
            Pair(Gpu(self.operation.source), Gpu(rank))
            if self.operation.name == "send_receive"
            else Gpu(rank)
        )


@dataclass(frozen=True, slots=True)
class Done:
    """A rank's turn: its seconds, wrong elements, the digest of random numbers, elements compared.

    Of a latency the seconds of one call; None without a GPU.
    """

    seconds: float | None
    wrong: int
    digest: str = ""
    compared: int = 0


def work(
    rank: VariantRank, ranks: int, connection: Connection, join: Join, inject: Fault | None
) -> None:
    """The rank's whole sequence, until it is told to leave."""
    group, pipe = join(rank.number, ranks, rank.folder), TaskPipe(connection)
    connection.send(("joined", Joined(group.memory.free_bytes(), group.about, group.uuid)))
    for step in pipe.tasks():
        fault = inject if inject == "lost" or step.turn == INJECTED_TURN else None
        make = _latency if step.graph else _turn
        done, found = make(group, pipe, step, rank.number, fault)
        if found is not None:
            pipe.report(
                WrongCollective(
                    component=step.component(rank.number),
                    check=step.operation.name,
                    format=step.dtype,
                    arm=rank.variant,
                    size=step.size,
                    turn=step.turn,
                    elements=found.elements,
                    unwritten=found.unwritten,
                    first=found.first,
                )
            )
        connection.send(("done", done))
    group.leave()
    connection.send(("left", None))


Result = tuple[Done, CollectiveFault | None]


def _turn(group: Group, pipe: TaskPipe, step: Step, rank: int, fault: Fault | None) -> Result:
    """One turn at this rank; its buffers are free when it returns."""
    source, destination = _fill(group.memory, step, 0 if fault == "order" else rank, rank)
    pipe.enter(fault)
    seconds = group.run(step.operation, source, destination)
    if fault == "wrong":
        destination[len(destination) // 2] = pattern.SPOILED
    lost = fault == "lost" and step.operation.name == "send_receive"
    if fault == "unwritten" or lost:
        _, destination = _fill(group.memory, step, rank, rank)
    if step.random:
        return Done(seconds, 0, _digest(group.memory, destination)), None
    found, compared = _verify(group.memory, step, rank, destination)
    return Done(seconds, 0 if found is None else found.elements, compared=compared), found


def _latency(group: Group, pipe: TaskPipe, step: Step, rank: int, _fault: Fault | None) -> Result:
    """The time of one call, and how the buffer differs after all of them."""
    numbers = Numbers(step.dtype, step.operation.ranks)
    places = group.memory.places(0, step.share)
    buffer = group.memory.buffer(step.dtype, step.share)
    buffer[:] = numbers.own(rank, step.turn, places)
    pipe.enter()
    seconds = group.latency(buffer, LATENCY_CALLS)
    if seconds is None:
        return Done(None, 0), None
    largest = numbers.own(0, step.turn, places)
    for other in range(1, step.operation.ranks):
        own = numbers.own(other, step.turn, places)
        largest = largest + (own - largest) * (own > largest)
    found = pattern.fault(places, largest, pattern.SPOILED, buffer)
    return Done(seconds, 0 if found is None else found.elements), found


def _pieces(memory: Memory, count: int) -> Iterator[tuple[slice, Array]]:
    """The buffer in pieces: where each lies, and its places."""
    for first in range(0, count, CHUNK):
        size = min(CHUNK, count - first)
        yield slice(first, first + size), memory.places(first, size)


def _fill(memory: Memory, step: Step, sends: int, rank: int) -> tuple[Array, Array]:
    """New buffers: the source with the numbers of rank `sends`, the destination spoiled."""
    operation = step.operation
    destination = memory.buffer(step.dtype, operation.receives(rank, step.share))
    if step.random:
        for where, places in _pieces(memory, len(destination)):
            # rounded to the format, so that every order of addition gives other bits
            destination[where] = pattern.mixed(places + (step.turn << 40) + (rank << 56))
        return destination, destination
    numbers = Numbers(step.dtype, operation.ranks)
    _write(memory, destination, numbers, pattern.before(operation, sends), step.turn)
    if operation.in_place:
        return destination, destination
    source = memory.buffer(step.dtype, operation.sends(rank, step.share))
    _write(memory, source, numbers, Rule(rank=sends), step.turn)
    return source, destination


def _write(memory: Memory, buffer: Array, numbers: Numbers, rule: Rule | None, turn: int) -> None:
    """Write the numbers of a rule into a buffer; None spoils it."""
    if rule is None:
        buffer[:] = pattern.SPOILED
    elif not memory.write(buffer, numbers, rule, turn):
        for where, places in _pieces(memory, len(buffer)):
            buffer[where] = numbers.by(rule, turn, places)


def _verify(
    memory: Memory, step: Step, rank: int, got: Array
) -> tuple[CollectiveFault | None, int]:
    """How the destination differs, and how many of its elements were compared.

    Where the device's kernel finds no difference, nothing else is asked. Raises RuntimeError where
    it counts others than the arrays show.
    """
    numbers = Numbers(step.dtype, step.operation.ranks)
    rule = pattern.due(step.operation, rank, step.share)
    wrong = memory.differing(got, numbers, rule, step.turn)
    if wrong == 0:
        return None, len(got)
    was = pattern.before(step.operation, rank)
    total: CollectiveFault | None = None
    compared = 0
    for where, places in _pieces(memory, len(got)):
        due = numbers.by(rule, step.turn, places)
        old = numbers.by(was, step.turn, places) if was is not None else pattern.SPOILED
        found = pattern.fault(places, due, old, got[where])
        if found is not None:
            total = found if total is None else total + found
        compared += len(due)
    shown = total.elements if total is not None else 0
    if wrong is not None and wrong != shown:
        raise RuntimeError(f"the GPU's kernel counts {wrong} wrong elements, and torch {shown}")
    return total, compared


def _digest(memory: Memory, got: Array) -> str:
    return pattern.digest(
        [
            pattern.part(places, memory.words(got[where]))
            for where, places in _pieces(memory, len(got))
        ]
    )
