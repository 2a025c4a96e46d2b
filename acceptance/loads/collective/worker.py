"""One rank of the load: it joins the group, and makes and verifies each step that it is sent.

It fills its buffers before it says that it is ready (`ranks.TaskPipe`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection

from acceptance.core.parts import Component, Gpu, Pair
from acceptance.loads.collective import digest, pattern
from acceptance.loads.collective.contract import Fault
from acceptance.loads.collective.group import Group, Join, Memory
from acceptance.loads.collective.operation import Operation
from acceptance.loads.collective.pattern import ITEMSIZE, Array, CollectiveFault, Numbers, Rule
from acceptance.loads.collective.variant import Joined, VariantRank
from acceptance.loads.miscompare import ElementType, WrongCollective
from acceptance.loads.ranks import TaskPipe

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
        if self.operation.name == "send_receive":
            return Pair(Gpu(self.operation.source), Gpu(rank))
        return Gpu(rank)


def latency_step(ranks: int, turn: int) -> Step:
    """All-reduces of the smallest size in a CUDA graph."""
    return Step(Operation("all_reduce", ranks), "i32", LATENCY_ELEMENTS, turn, graph=True)


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
    return digest.digest(
        [
            digest.part(places, memory.words(got[where]))
            for where, places in _pieces(memory, len(got))
        ]
    )
