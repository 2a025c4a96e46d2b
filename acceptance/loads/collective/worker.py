"""One rank of the load: it joins the group, and makes and verifies each step that it is sent.

A turn has two parts, so that a rank that never arrives is known: each rank fills its buffers and
says that it is ready, which needs no other rank; then all are sent on, and each says that it enters
the operation before it does.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from acceptance.core.parts import Component, Gpu, Pair
from acceptance.loads.collective import digest, pattern
from acceptance.loads.collective.contract import Fault
from acceptance.loads.collective.group import Group, Join, Memory
from acceptance.loads.collective.operation import Operation
from acceptance.loads.collective.pattern import ITEMSIZE, Array, CollectiveFault, Numbers, Rule
from acceptance.loads.miscompare import CollectiveArm, ElementType, WrongCollective

# Elements made or compared at a time, and the memory that their intermediate values need: int64,
# and about eight of them at once.
CHUNK = 1 << 22
WORK = 12 * 8 * CHUNK
INJECTED_TURN = 1
LATENCY_CALLS = 50
LATENCY_ELEMENTS = 2  # of int32: 8 bytes
REPORTED = 8  # wrong results that a rank reports; all are counted


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of one operation; a `random` one has random numbers, whose bits are compared."""

    operation: Operation
    dtype: ElementType
    share: int
    turn: int
    random: bool = False

    @property
    def size(self) -> int:
        """S in bytes."""
        return self.operation.size(self.share, ITEMSIZE[self.dtype])

    def component(self, rank: int) -> Component:
        """What a wrong element at this rank belongs to."""
        if self.operation.name == "send_receive":
            return Pair(Gpu(self.operation.source), Gpu(rank))
        return Gpu(rank)


@dataclass(frozen=True, slots=True)
class LatencyStep:
    """All-reduces of the smallest size in a CUDA graph."""

    operation: Operation
    turn: int

    @property
    def dtype(self) -> ElementType:
        """The format."""
        return "i32"

    @property
    def size(self) -> int:
        """S in bytes."""
        return self.operation.size(LATENCY_ELEMENTS, ITEMSIZE[self.dtype])

    def component(self, rank: int) -> Component:
        """What a wrong element at this rank belongs to."""
        return Gpu(rank)


@dataclass(frozen=True, slots=True)
class Joined:
    """A rank whose device works: its free memory in bytes, its library, and its GPU's UUID."""

    free_bytes: int
    about: str
    uuid: str


@dataclass(frozen=True, slots=True)
class Entered:
    """A rank is about to enter the operation of a turn."""

    turn: int


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
    rank: int,
    ranks: int,
    connection: Connection,
    join: Join,
    folder: Path,
    arm: CollectiveArm,
    inject: Fault | None,
) -> None:
    """The rank's whole sequence, until it is told to leave."""
    group = join(rank, ranks, folder)
    connection.send(("joined", Joined(group.memory.free_bytes(), group.about, group.uuid)))
    reported = 0
    while True:
        _, step = connection.recv()
        if step is None:
            group.leave()
            connection.send(("left", None))
            return
        if isinstance(step, LatencyStep):
            done, found = _latency(group, connection, step, rank)
        else:
            fault = inject if inject == "lost" or step.turn == INJECTED_TURN else None
            done, found = _turn(group, connection, step, rank, fault)
        if found is not None and (reported := reported + 1) <= REPORTED:
            wrong = WrongCollective(
                component=step.component(rank),
                check=step.operation.name,
                format=step.dtype,
                arm=arm,
                size=step.size,
                turn=step.turn,
                elements=found.elements,
                unwritten=found.unwritten,
                first=found.first,
            )
            connection.send(("miscompare", wrong))
        connection.send(("done", done))


def _turn(
    group: Group, connection: Connection, step: Step, rank: int, fault: Fault | None
) -> tuple[Done, CollectiveFault | None]:
    """One turn at this rank; its buffers are free when it returns."""
    source, destination = _fill(group.memory, step, 0 if fault == "order" else rank, rank)
    connection.send(("ready", None))
    connection.recv()
    if fault == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "hang":
        time.sleep(3600)
    connection.send(("entered", Entered(step.turn)))
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


def _latency(
    group: Group, connection: Connection, step: LatencyStep, rank: int
) -> tuple[Done, CollectiveFault | None]:
    """The time of one call, and how the buffer differs after all of them."""
    numbers = Numbers(step.dtype, step.operation.ranks)
    places = group.memory.places(0, LATENCY_ELEMENTS)
    buffer = group.memory.buffer(step.dtype, LATENCY_ELEMENTS)
    buffer[:] = numbers.own(rank, step.turn, places)
    connection.send(("ready", None))
    connection.recv()
    connection.send(("entered", Entered(step.turn)))
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
    return digest.digest(
        [
            digest.part(places, memory.words(got[where]))
            for where, places in _pieces(memory, len(got))
        ]
    )
