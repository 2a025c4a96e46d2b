from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from cases import each
from written import ran_text

from acceptance.core.parts import Gpu
from acceptance.loads.miscompare import details
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import LoadOutput, parse
from acceptance.loads.vram.passes import TILE, Copy, Pass, SweepRecord, WrongWord, blank, record
from acceptance.loads.vram.patterns import PATTERNS, retention
from acceptance.loads.vram.worker import (
    LINES,
    MIN_WORDS,
    PassResult,
    VramWorker,
    copy_of,
)

WORDS = 64 * TILE
BYTES_S = 1e6  # of the fake memory: a pass that reads and writes all takes 2.1 s
Find = Callable[[int, Pass], SweepRecord]


def right(one: Pass) -> SweepRecord:
    return record([one.words, *blank()[1:]])


def wrong(one: Pass, count: int = 1, place: int = 7) -> SweepRecord:
    return SweepRecord(
        one.words, count, count, 4, {2: count}, {0: (count, 4)}, (WrongWord(place, 0, 4),)
    )


@dataclass
class FakeMemory:
    """A memory whose time goes on by what is moved, and which finds what a test lets it find: a
    function of how many passes came before.
    """

    find: Find = lambda _, one: right(one)
    words: int = WORDS
    whole_bytes: int = WORDS * 10
    share: float = 1.0  # of a copy's rate, that sweeps have
    now: float = 0.0
    idle_s: float = 0.0  # between passes, by the processor's clock
    passes: list[Pass] = field(default_factory=list)
    slept: list[tuple[float, Pass]] = field(default_factory=list)

    def work(self, one: Pass, late_s: float = 0.0) -> PassResult:
        assert late_s == 0
        copies = all(isinstance(work, Copy) for work in one.works)
        seconds = one.moved / BYTES_S / (1 if copies else self.share)
        self.now += seconds + self.idle_s
        self.passes.append(one)
        return PassResult(seconds, self.find(len(self.passes) - 1, one))

    def sleep(self, seconds: float) -> None:
        self.slept.append((seconds, self.passes[-1]))
        self.now += seconds

    def run(self, seconds: float = 1.0) -> LoadOutput:
        self.text = ran_text(
            "vram",
            lambda output: VramWorker(
                seconds, self, output, clock=lambda: self.now, sleep=self.sleep
            ).run(),
        )
        return parse(self.text)


def first_round(seconds: float = 1.0) -> list[Pass]:
    return [one for pattern in PATTERNS.values() for one in pattern(WORDS, 0)] + list(
        retention(WORDS, 1.0)
    )


def values(output: LoadOutput) -> dict[str, tuple[str, str, float]]:
    return {
        reading.name: (reading.unit, reading.component, reading.value)
        for reading in output.readings
    }


def test_every_pattern_comes_once_however_short_the_time() -> None:
    memory = FakeMemory()
    output = memory.run(0.001)
    copy = copy_of(WORDS)
    assert memory.passes == [copy] * 4 + first_round() + [copy] * 3
    assert values(output) == {
        "vram_tested": ("ratio", Gpu(0), 0.8),
        "vram_rate": ("ratio", Gpu(0), pytest.approx(1.0)),
        "vram_copy": ("GB/s", Gpu(0), pytest.approx(BYTES_S / 1e9)),
        "vram_miscompares": ("count", Gpu(0), 0),
    }
    assert output.miscompares == ()
    (table,) = output.tables
    assert (table.name, table.columns) == ("vram_passes", ("pattern", "passes", "GB/s", "wrong"))
    rates = pytest.approx(BYTES_S / 1e9)
    counts = {name: len(list(pattern(WORDS, 0))) for name, pattern in PATTERNS.items()} | {
        "retention": 3
    }
    assert [tuple(row) for row in table.rows] == [
        (name, count, rates, 0) for name, count in counts.items()
    ]


def test_the_rest_of_the_time_is_further_rounds_with_other_seeds() -> None:
    memory = FakeMemory()
    memory.run(0.001)
    round_s = memory.now
    memory = FakeMemory()
    output = memory.run(3.2 * round_s)
    rest = memory.passes[len(first_round()) + 4 : -3]
    for turn in (1, 2, 3, 4, 5):
        for name, pattern in PATTERNS.items():
            passes = list(pattern(WORDS, turn))
            if rest[: len(passes)] == passes:
                rest = rest[len(passes) :]
            else:
                assert turn > 2, f"{name} of round {turn} was left out"
    assert rest == [], "a pattern that is begun is ended, and none runs twice"
    assert 0.85 * 3.2 * round_s < memory.now < 3.3 * round_s
    assert any("3 whole rounds" in note for note in output.notes)


def test_the_time_is_spent_but_for_the_shortest_pattern_and_pauses_are_none_of_it() -> None:
    """In nightly's ten seconds of 80 GB at 3 TB/s the pauses and one long pattern that did not fit
    left the GPU idle for three of them.
    """
    for seconds in (200, 300, 333, 500, 1000):
        memory = FakeMemory(idle_s=0.1)
        memory.run(seconds)
        shortest = min(
            sum(one.moved / BYTES_S + 0.1 for one in pattern(WORDS, 1))
            for pattern in PATTERNS.values()
        )
        rested = sum(pause for pause, _ in memory.slept)
        spent = memory.now - rested - 3 * (copy_of(WORDS).moved / BYTES_S + 0.1)
        assert seconds - shortest < spent <= seconds


def test_pauses_are_no_time_of_the_passes() -> None:
    memory = FakeMemory()
    output = memory.run(40)
    found = list(retention(WORDS, 2.0))
    assert memory.slept == [(2.0, found[0]), (2.0, found[1])]
    assert values(output)["vram_rate"][2] == pytest.approx(1.0)


@each("share", [0.5, 0.8, 1.1])
def test_the_rate_is_that_of_all_passes_together(share: float) -> None:
    output = FakeMemory(share=share).run()
    moved = sum(one.moved for one in first_round())
    copied = sum(one.moved for one in first_round() if isinstance(one.works[0], Copy))
    assert values(output)["vram_rate"][2] == pytest.approx(
        moved / (copied + (moved - copied) / share)
    )


def test_the_copy_is_the_median_of_before_and_after() -> None:
    rates = iter([1.0, 5, 1, 2, 3, 4, 9])  # the first is to warm up

    class Uneven(FakeMemory):
        def work(self, one: Pass, late_s: float = 0.0) -> PassResult:
            done = super().work(one, late_s)
            return (
                PassResult(one.moved / 1e9 / next(rates), done.record)
                if one == copy_of(WORDS)
                else done
            )

    output = Uneven().run()
    assert values(output)["vram_copy"][2] == pytest.approx(3.5)
    assert "copies inside the memory: 5.0, 1.0, 2.0, 3.0, 4.0, 9.0 GB/s" in output.notes


def test_the_copy_takes_all_of_the_memory() -> None:
    assert copy_of(10).works == (Copy(0, 5, 5),)
    assert copy_of(11).works == (Copy(0, 6, 5),)


def test_what_is_wrong_is_told_at_once() -> None:
    at = 4 + 3 + 2  # after the copies, the own addresses, the first two passes of the walking bits
    memory = FakeMemory(lambda place, one: wrong(one, 3) if place == at else right(one))
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    output = memory.run()
    (one,) = output.miscompares
    found = details(one)
    assert before <= found.pop("found_s") <= time.clock_gettime(time.CLOCK_BOOTTIME)
    assert found == {
        "component": "gpu0",
        "check": "vram",
        "pattern": "walking_bits",
        "pass": 2,
        "words": 3,
        "bits": {"2": 3},
        "xor_or": "0000000000000004",
        "xor_and": "0000000000000004",
        "first": [
            {
                "address": 56,
                "expected": "0" * 16,
                "got": "0000000000000004",
                "xor": "0000000000000004",
            },
        ],
    }
    assert values(output)["vram_miscompares"][2] == 3
    tables = {table.name: table for table in output.tables}
    assert [row[3] for row in tables["vram_passes"].rows] == [0, 3, 0, 0, 0, 0, 0, 0]
    assert tables["vram_map"].columns == ("from MiB", "to MiB", "wrong", "bits")
    assert [tuple(row) for row in tables["vram_map"].rows] == [(0.0, TILE * 8 / 2**20, 3, "2")]


def test_at_most_64_are_told_and_all_are_counted() -> None:
    memory = FakeMemory(lambda _, one: wrong(one, 5) if one.words else right(one))
    output = memory.run(1000)
    passes = sum(1 for one in memory.passes if one.words)
    assert passes > LINES == len(output.miscompares)
    assert values(output)["vram_miscompares"][2] == 5 * passes
    assert any(one.startswith(f"{passes - LINES} more passes found wrong") for one in output.notes)
    rows = next(table for table in output.tables if table.name == "vram_map").rows
    assert [row[2] for row in rows] == [5 * passes]
    numbers = [found.number for found in output.miscompares if found.pattern == "own_address"]
    assert numbers == list(range(len(numbers))), "over all rounds"


@each("seen", [0, WORDS - 1, WORDS + 1])
def test_a_kernel_that_did_not_do_its_work_proves_nothing(seen: int) -> None:
    memory = FakeMemory(
        lambda _, one: right(one) if not one.words else record([seen, *blank()[1:]])
    )
    with pytest.raises(
        LoadError,
        match=f"^{seen} of {WORDS} words were written or compared in a pass of own_address",
    ):
        memory.run()


def test_too_little_memory_is_said_so() -> None:
    with pytest.raises(LoadError, match="only 56 KiB of the GPU's memory are free"):
        FakeMemory(words=MIN_WORDS - TILE // 2).run()
    assert values(FakeMemory(words=MIN_WORDS).run())["vram_miscompares"][2] == 0


def test_progress_goes_up_to_its_end() -> None:
    memory = FakeMemory()
    memory.run(400)
    told = [line for line in memory.text.splitlines() if line.startswith('{"progress"')]
    done = [float(line.split(":")[1].split(",")[0]) for line in told]
    assert all(later - earlier >= 4.9 for earlier, later in pairwise(done))
    assert len(done) > 40
    assert max(done) <= 400
