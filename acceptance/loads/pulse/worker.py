"""One rank of the power load: it makes the edges of its GPU, and compares every result.

Each edge has its time on one clock, so that a late one shifts no other. The host queues no more
products than end before the next edge; what it expects of one is what the last ones took.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from acceptance.core.dtype import DtypeName
from acceptance.core.parts import Component, Gpu
from acceptance.loads.miscompare import WrongRepeat
from acceptance.loads.power_step import Step
from acceptance.loads.pulse import clocks
from acceptance.loads.pulse.clocks import Drift
from acceptance.loads.pulse.device import GROUP, Compared, Device, Make
from acceptance.loads.pulse.edges import edges, within_kernel
from acceptance.loads.pulse.watchdog import Watchdog
from acceptance.loads.ranks import REPORTED, TaskPipe, sleep_until

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
                drift = clocks.drift(begin, self.device.align())
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
