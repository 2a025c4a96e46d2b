"""The steps of the memory load and its division of time, independent of torch.

A `TestedMemory` runs the passes. First comes the rate of a copy inside the memory; then the first
round: every pattern once, whatever the time, `retention` last; then round after round with new
seeds, of which a pattern that does not fit into the time is left out, while any fits; then the copy
once more. The pauses of `retention` are no part of the time, for which the GPU is to be seen at
work: it rests in them.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from acceptance.loads.contract import OWN
from acceptance.loads.miscompare import VRAM_MISCOMPARES, WrongMemory
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Heartbeat, Output
from acceptance.loads.vram.contract import MAP, MAP_COLUMNS, PASS_COLUMNS, PASSES
from acceptance.loads.vram.findings import Map, wrong_words
from acceptance.loads.vram.passes import TILE, Copy, Pass, SweepRecord
from acceptance.loads.vram.patterns import PATTERNS, RETENTION, rest_s, retention

MIN_WORDS = 4 * TILE  # minimum number of words for the patterns
LINES = 64  # miscompares reported in a run; all are counted
_COPIES = 3  # copies that count, before the passes and again after them


@dataclass(frozen=True, slots=True)
class PassResult:
    """A finished pass: its seconds by the GPU's clock, and its kernels' findings."""

    seconds: float
    record: SweepRecord


class TestedMemory(Protocol):
    """The tested memory, and the GPU that works on it."""

    @property
    def words(self) -> int:
        """Number of tested words."""

    @property
    def whole_bytes(self) -> int:
        """Total memory of the GPU."""

    def work(self, one: Pass, late_s: float = 0.0) -> PassResult:
        """Run a pass and wait for it; LoadError where the GPU does not answer.

        The time begins `late_s` before the work is queued.
        """


@dataclass(slots=True)
class _Tally:
    """The totals of one pattern."""

    passes: int = 0
    moved: int = 0
    seconds: float = 0.0
    wrong: int = 0
    lasted_s: float = 0.0  # duration of the last time, by the processor's clock


def copy_of(words: int) -> Pass:
    """A copy of the memory's lower half to the upper half."""
    return Pass((Copy(0, words - words // 2, words // 2),))


class VramWorker:
    """Tests a memory for some seconds and reports each finding at once."""

    def __init__(
        self,
        seconds: float,
        memory: TestedMemory,
        output: Output,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._seconds, self._memory, self._output = seconds, memory, output
        self._clock, self._sleep = clock, sleep
        self._tallies: dict[str, _Tally] = {}
        self._copies: list[float] = []
        self._map = Map(memory.words)
        self._told, self._untold, self._heartbeat = 0, 0, Heartbeat(output, seconds)
        self._began = clock()
        self._rested_s = 0.0

    def run(self) -> None:
        """Run from the first copy to the last reading; raises LoadError."""
        words = self._memory.words
        if words < MIN_WORDS:
            raise LoadError(
                f"only {words * 8 // 1024} KiB of the GPU's memory are free: end what uses it"
            )
        self._memory.work(copy_of(words))
        self._copy()
        rounds = 0
        for name, pattern in PATTERNS.items():
            self._pattern(name, pattern(words, 0))
        self._pattern(RETENTION, retention(words, rest_s(self._seconds)))
        turns = itertools.count(1)
        while ran := self._round(next(turns)):
            rounds += ran == len(PATTERNS)
        lasted_s = self._clock() - self._began
        self._copy()
        self._readings(rounds + 1, lasted_s)

    def _copy(self) -> None:
        """Measure GB/s of some copies inside the memory, read and write both counted."""
        one = copy_of(self._memory.words)
        self._copies += [one.moved / self._memory.work(one).seconds / 1e9 for _ in range(_COPIES)]

    def _round(self, turn: int) -> int:
        """Run one more round, and return how many patterns fitted into the time."""
        ran = 0
        for name, pattern in PATTERNS.items():
            if self._spent_s() + self._tallies[name].lasted_s <= self._seconds:
                self._pattern(name, pattern(self._memory.words, turn))
                ran += 1
        return ran

    def _spent_s(self) -> float:
        """Seconds of the load's time, without pauses."""
        return self._clock() - self._began - self._rested_s

    def _pattern(self, name: str, passes: Iterator[Pass]) -> None:
        tally = self._tallies.setdefault(name, _Tally())
        began = self._clock()
        for one in passes:
            done = self._memory.work(one)
            if done.record.seen != one.words:
                text = (
                    f"{done.record.seen} of {one.words} words were written or compared in a "
                    "pass "
                    f"of {name}"
                )
                raise LoadError(f"{text}: what the GPU says of its memory cannot be believed")
            if done.record.wrong:
                self._wrong(name, tally, one, done.record)
            tally.passes += 1
            tally.moved += one.moved
            tally.seconds += done.seconds
            if one.rest_s:
                rests = self._clock()
                self._sleep(one.rest_s)
                self._rested_s += self._clock() - rests
            self._heartbeat.at(min(self._spent_s(), self._seconds))
        tally.lasted_s = self._clock() - began

    def _wrong(self, name: str, tally: _Tally, one: Pass, record: SweepRecord) -> None:
        tally.wrong += record.wrong
        self._map.add(record)
        if self._told == LINES:
            self._untold += 1
            return
        self._told += 1
        self._output.miscompare(
            WrongMemory(
                component=OWN,
                check="vram",
                pattern=name,
                number=tally.passes,
                found_s=time.clock_gettime(time.CLOCK_BOOTTIME),
                **wrong_words(record, one.reads, self._memory.words),
            )
        )

    def _readings(self, rounds: int, lasted_s: float) -> None:
        output, tallies = self._output, self._tallies.values()
        moved, seconds = (
            sum(tally.moved for tally in tallies),
            sum(tally.seconds for tally in tallies),
        )
        copy = statistics.median(self._copies)
        passes = sum(tally.passes for tally in tallies)
        whole = f"{rounds} whole round{'s' if rounds > 1 else ''}"
        output.note(
            f"{passes} passes in {lasted_s:.1f} s, {seconds:.1f} s of them the GPU's; {whole}"
        )
        output.note(
            f"copies inside the memory: {', '.join(f'{rate:.1f}' for rate in self._copies)} GB/s"
        )
        if self._untold:
            output.note(
                f"{self._untold} more passes found wrong words, which are counted and in the "
                "map, but not told"
            )
        output.reading(
            "vram_tested", "ratio", OWN, self._memory.words * 8 / self._memory.whole_bytes
        )
        output.reading("vram_rate", "ratio", OWN, moved / seconds / 1e9 / copy)
        output.reading("vram_copy", "GB/s", OWN, copy)
        output.reading(VRAM_MISCOMPARES, "count", OWN, sum(tally.wrong for tally in tallies))
        output.table(
            PASSES,
            PASS_COLUMNS,
            [
                [name, tally.passes, tally.moved / tally.seconds / 1e9, tally.wrong]
                for name, tally in self._tallies.items()
            ],
        )
        rows = self._map.rows()
        if rows:
            output.table(MAP, MAP_COLUMNS, rows)
