"""The power load: full load that comes and goes on all GPUs, in steps, every result compared.

    python -m acceptance.loads pulse gpus=2 steps=cold,8/square,9,2

One process for each GPU, in the order in which CUDA shows them. A step is KIND,SECONDS, for a wave
KIND,SECONDS,HERTZ, and KIND,SECONDS,HERTZ,GPUS where only the first so many GPUs work. Kinds are
those of `power_step`. Below 200 Hz the host launches matrix products between two edges; from there
on a kernel of ours works and rests by the GPU's own clock. Each result is compared with the first
one, bit for bit, during the step and after it. The first one is proved before.

Each step is told on the stream before it begins (`contract.REST_S` sooner), and after its end with
the edges that were made. It ends with the step at which the watchdog is pulled or nobody holds it
(`watchdog`): then the steps after it are left out. It changes no limit and no clock.

Readings: `power_miscompares` of each GPU, and `power_steps`, the share of the steps that was made
whole. The table `power_steps` has every step: edges commanded and made on all of its GPUs, the
latest edge, and results; where GPUs follow their own clocks, which are held against the host's at
the step's begin and at its end, also the most by which two of them may have been apart.

Exit status: 0 when it ran to its last step or was stopped; 1 when a rank died or hangs, a GPU made
fewer than nine tenths of its edges of a step, or torch failed, with one sentence on standard error;
2 for arguments that cannot be used.

One rank of the power load: it makes the edges of its GPU, and compares every result.

Each edge has its time on one clock, so that a late one shifts no other. The host queues no more
products than end before the next edge; what it expects of one is what the last ones took.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from acceptance.core.dtype import DtypeName
from acceptance.core.parts import GPUS, Component, Gpu
from acceptance.loads.miscompare import WrongRepeat
from acceptance.loads.power_step import Step
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Output
from acceptance.loads.pulse import device as pulse_device
from acceptance.loads.pulse.contract import (
    COLUMNS,
    LATE_S,
    MADE,
    MISCOMPARES,
    PREPARED_S,
    REST_S,
    STEPS,
    Ask,
    row_of,
    text_of,
)
from acceptance.loads.pulse.device import GROUP, Compared, Device, Drift, Make
from acceptance.loads.pulse.edges import edges, within_kernel
from acceptance.loads.pulse.watchdog import Watchdog
from acceptance.loads.ranks import REPORTED, GpuRank, Ranks, TaskPipe, sleep_until

QUEUED = 2  # groups at once
SLICE_S = 0.05  # the watchdog is looked at so often
SEGMENT_S = 0.25  # waves within one launch: a display's watchdog ends kernels of seconds
STAIR_S = 0.02  # a level between none and full is work for that share of each such time
LEAST_WORKED = 1 / 3  # of the time between two edges; with less the first one was not made


@dataclass(frozen=True, slots=True)
class Turn:
    """A step, and when it begins on the monotonic clock."""

    step: Step
    begin_s: float


@dataclass(frozen=True, slots=True)
class Done:
    """A rank's step: edges due and made, the latest of them, results, and why it ended early.

    `drift` is that of its GPU's clock from the begin of the step to its end, where it makes the
    edges by it.
    """

    due: int
    made: int
    late_s: float
    right: int
    wrong: int
    stopped: str | None = None
    drift: Drift | None = None


@dataclass(slots=True)
class _Player:
    device: Device
    gpu: Component
    watchdog: Watchdog
    report: Callable[[WrongRepeat], None]
    inject: str | None
    one_s: float = 1e-3
    step: str = ""
    right: int = 0
    wrong: int = 0
    made: int = 0
    late_s: float = 0.0
    stopped: str | None = None
    looked_s: float = field(default=float("-inf"))

    def play(self, turn: Turn) -> Done:
        """One step, whose results are all compared."""
        step = turn.step
        self.step = f"{step.kind} {step.hertz:g} Hz" if step.hertz is not None else step.kind
        self.right = self.wrong = self.made = 0
        self.late_s, self.stopped = 0.0, None
        own = [(edge.at_s, edge.level) for edge in edges(step) if edge.gpu == self.gpu]
        drift: Drift | None = None
        if own and within_kernel(step):
            begin = self.device.align()
            self._within_kernel(turn, own)
            if self.stopped is None:
                drift = pulse_device.drift(begin, self.device.align())
        elif own:
            self._by_host(turn.begin_s, own)
        if self.stopped is None:
            self._take(self.device.start(GROUP))
        return Done(len(own), self.made, self.late_s, self.right, self.wrong, self.stopped, drift)

    def _by_host(self, begin_s: float, own: Sequence[tuple[float, float]]) -> None:
        for (at_s, level), (next_s, _) in itertools.pairwise(own):
            if not self._rest(begin_s + at_s):
                return
            worked = level == 0.0 or self._level(begin_s + at_s, begin_s + next_s, level)
            self.made += worked
        if self._rest(begin_s + own[-1][0]):
            self.made += 1
            self.late_s = max(self.late_s, time.monotonic() - begin_s - own[-1][0])

    def _level(self, on_s: float, off_s: float, level: float) -> bool:
        """Work from one edge to the next; whether enough was done."""
        self.late_s = max(self.late_s, time.monotonic() - on_s)
        if level == 1.0:
            return self._work(on_s, off_s)
        worked, begin_s = False, on_s
        while begin_s < off_s and self._rest(begin_s):
            worked |= self._work(begin_s, min(begin_s + level * STAIR_S, off_s))
            begin_s += STAIR_S
        return worked

    def _work(self, on_s: float, until_s: float) -> bool:
        """Products until then, all compared before it returns; whether they took long enough."""
        waiting: deque[Any] = deque()
        began_s = free_s = time.monotonic()
        while not self._over():
            now_s = time.monotonic()
            free_s = max(free_s, now_s)
            count = min(GROUP, int((until_s - free_s) / self.one_s))
            if count < 1:
                break
            waiting.append(self.device.start(count))
            free_s += count * self.one_s
            if len(waiting) == QUEUED:
                self._take(waiting.popleft())
        while waiting:
            self._take(waiting.popleft())
        ended_s = time.monotonic()
        self.late_s = max(self.late_s, ended_s - until_s)
        return ended_s - began_s >= LEAST_WORKED * (until_s - on_s)

    def _within_kernel(self, turn: Turn, own: Sequence[tuple[float, float]]) -> None:
        assert turn.step.hertz is not None
        half_s, first_s = 0.5 / turn.step.hertz, turn.begin_s + own[0][0]
        count = len(own) // 2
        each = max(1, int(SEGMENT_S / (2 * half_s)))
        waiting: deque[Any] = deque()
        for begin in range(0, count, each):
            if self._over():
                break
            waves = min(each, count - begin)
            waiting.append(self.device.waves(first_s + 2 * half_s * begin, half_s, waves))
            if len(waiting) == QUEUED:
                self._take(waiting.popleft())
        while waiting:
            self._take(waiting.popleft())

    def _take(self, ticket: Any) -> None:
        """Wait for queued work, and count it."""
        found: Compared = self.device.compared(ticket)
        wrong = found.wrong
        if self.inject == "element" and not self.wrong:
            wrong = (*wrong, 1)
        self.right += found.right
        self.made += 2 * found.waves
        for elements in wrong:
            self.wrong += 1
            if self.wrong <= REPORTED:
                self.report(_wrong(self.gpu, self.device.dtype, self.step, elements))
        if not found.waves and (count := found.right + len(found.wrong)):
            self.one_s = max(1e-6, found.seconds / count)

    def _rest(self, until_s: float) -> bool:
        """Do nothing until then; whether the load may go on."""
        while (left_s := until_s - time.monotonic()) > SLICE_S:
            if self._over():
                return False
            time.sleep(min(SLICE_S, left_s - SLICE_S / 2))
        sleep_until(until_s)
        return not self._over()

    def _over(self) -> bool:
        now_s = time.monotonic()
        if self.stopped is None and now_s - self.looked_s >= SLICE_S:
            self.looked_s = now_s
            self.stopped = self.watchdog.reason()
        return self.stopped is not None


def _wrong(gpu: Component, dtype: DtypeName, step: str, elements: int) -> WrongRepeat:
    return WrongRepeat(
        component=gpu,
        dtype=dtype,
        check="repeat",
        after=step,
        seconds=time.clock_gettime(time.CLOCK_BOOTTIME),
        elements=elements,
        nan=0,
        first=(),
    )


def work(
    number: int, connection: Connection, make: Make, watchdog: Watchdog, inject: str | None
) -> None:
    """The rank's whole sequence, until it is told to leave."""
    device = make()
    gpu = Gpu(number)

    def report(one: WrongRepeat) -> None:
        connection.send(("miscompare", one))

    player = _Player(device, gpu, watchdog, report, inject)
    connection.send(("ready", device.about))
    for turn in TaskPipe(connection).tasks():
        connection.send(("done", player.play(turn)))
    connection.send(("left", None))


LEAST_MADE = 0.9  # share of a GPU's edges; with fewer the step was not what it is called


class OneGpuRank(GpuRank):
    """A process that sees one GPU."""

    def prepare(self) -> None:
        """Show it its own GPU alone."""
        shown = os.environ.get("CUDA_VISIBLE_DEVICES")
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        own = shown.split(",")[self.number] if shown else str(self.number)
        os.environ["CUDA_VISIBLE_DEVICES"] = own


def _row(step: Step, done: Mapping[OneGpuRank, Done]) -> tuple[float | str, ...]:
    found = done.values()
    apart_ns = pulse_device.apart_ns(one.drift for one in found if one.drift is not None)
    return (
        *row_of(step),
        sum(one.due for one in found),
        sum(one.made for one in found),
        round(1e3 * max(one.late_s for one in found), 3),
        sum(one.right for one in found),
        sum(one.wrong for one in found),
        "-" if apart_ns is None else round(apart_ns / 1e3, 3),
    )


def cuda() -> Device:
    """The GPU of a rank."""
    from acceptance.loads.pulse.cuda_device import CudaDevice

    return CudaDevice()


def run(ask: Ask, output: Output) -> None:
    """All steps. Raises LoadError, also for a GPU with too few edges of a step."""
    watchdog = Watchdog(None if ask.watchdog is None else Path(ask.watchdog))
    try:
        _run(ask, watchdog, output)
    finally:
        watchdog.drop()


def _run(ask: Ask, watchdog: Watchdog, output: Output) -> None:
    every, steps = tuple(map(OneGpuRank, range(ask.gpus))), ask.power_steps()

    def body(rank: GpuRank, connection: Connection) -> None:
        inject = ask.inject if rank == every[-1] else None
        work(rank.number, connection, cuda, watchdog, inject)

    wrong: Counter[Component] = Counter()
    rows: list[tuple[float | str, ...]] = []
    stopped: str | None = None
    whole = 0
    with Ranks(every, body) as ranks:
        ready: dict[OneGpuRank, dict[str, Any]] = ranks.collect(
            "ready", PREPARED_S, lambda *_: None
        )
        about = [ready[rank] for rank in every]
        # from here on the steps follow one another: what loads the machine beside them begins now
        watchdog.wait()
        uuids = [one.get("uuid") for one in about]
        output.hello(ask.load, {**ask.parameters(), "uuids": uuids})
        for text in dict.fromkeys(str(one) for one in about):
            output.note(text)
        for step in steps:
            # what is written of it must be on the disk before it begins
            output.step_begins(step, time.clock_gettime(time.CLOCK_BOOTTIME) + REST_S)
            turn = Turn(step, time.monotonic() + REST_S)
            ranks.start(lambda _, turn=turn: turn)  # type: ignore[misc]  # the loop's own
            done: dict[OneGpuRank, Done] = ranks.collect(
                "done",
                REST_S + step.seconds + LATE_S,
                lambda _, one: output.miscompare(one),
            )
            for rank, one in done.items():
                wrong[rank.component] += one.wrong
            rows.append(_row(step, done))
            found = done.values()
            output.step_ended(
                step,
                edges=sum(one.made for one in found),
                right=sum(one.right for one in found),
                wrong=sum(one.wrong for one in found),
            )
            stopped = next((one.stopped for one in done.values() if one.stopped), None)
            if stopped is not None:
                output.note(f"{stopped}: the steps after {text_of(step)} are left out")
                break
            for rank, one in done.items():
                if one.made < LEAST_MADE * one.due:
                    raise LoadError(
                        f"of the {one.due} edges of the step {text_of(step)} "
                        f"{rank.component} made {one.made}"
                    )
            whole += 1
        ranks.start(lambda _: None)
        ranks.collect("left", LATE_S, lambda *_: None)
    for rank in every:
        output.reading(MISCOMPARES, "count", rank.component, wrong[rank.component])
    output.reading(MADE, "ratio", GPUS, whole / len(steps))
    output.table(STEPS, COLUMNS, rows)
    output.end()
