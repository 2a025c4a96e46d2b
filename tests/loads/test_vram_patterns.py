from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from cases import each
from thoroughness import some
from vram_on_cpu import array

from acceptance.loads.vram import patterns
from acceptance.loads.vram.passes import ALL, TILE, Copy, Pass, Spin, Sweep, Words, seed_of
from acceptance.loads.vram.patterns import (
    BACKGROUNDS,
    PATTERNS,
    REPEATS,
    STEPS,
    WINDOW,
    rest_s,
    retention,
)

WORDS = 131 * TILE + 77
H200 = 139 * (1 << 30) // 8 // TILE * TILE
every = each("name", PATTERNS)


def passes(name: str, turn: int = 0, words: int = WORDS) -> list[Pass]:
    return list(PATTERNS[name](words, turn))


def sweeps(one: Pass) -> list[Sweep]:
    return [work for work in one.works if isinstance(work, Sweep)]


@every
def test_every_pass_lies_in_the_memory_and_moves_bytes(name: str) -> None:
    for turn in range(13):
        for words in (4 * TILE, 5 * TILE + 1, WORDS, H200):
            for one in passes(name, turn, words) if words != H200 or turn < 6 else ():
                assert one.moved > 0
                for work in one.works:
                    if isinstance(work, Sweep):
                        assert work.kernel.startswith(("fill_", "verify_", "turn_"))
                        assert 0 <= work.begin <= work.begin + work.count <= words
                    else:
                        assert isinstance(work, Copy)
                        assert (
                            0
                            <= min(work.source, work.target)
                            <= max(work.source, work.target) + work.words
                            <= words
                        )
                        assert abs(work.source - work.target) >= work.words


@every
def test_rounds_differ(name: str) -> None:
    known = [passes(name, turn) for turn in range(6)]
    different = [one for place, one in enumerate(known) if one not in known[:place]]
    assert len(different) == (1 if name == "own_address" else 6)


@every
def test_nearly_all_of_a_large_memory_is_written_and_compared(name: str) -> None:
    written = compared = 0
    for one in passes(name, 5, H200):
        written = max(written, sum(work.words for work in sweeps(one) if work.writes))
        compared = max(
            compared, sum(work.words for work in sweeps(one) if work.reads and not work.writes)
        )
    if name == "block_move":
        assert written == compared > 0.4999 * H200
    else:
        assert written >= H200
        assert compared == H200


def test_walking_bits_have_been_everywhere_after_eight_rounds() -> None:
    seen = set()
    for turn in range(8):
        for one in passes("walking_bits", turn):
            (work,) = sweeps(one)
            if work.reads:
                seen.add((work.reads.seed, work.reads.mask))
    assert seen == {(seed, mask) for seed in range(64) for mask in (0, ALL)}
    assert len(passes("walking_bits")) == 2 * STEPS + 1


def test_backgrounds_tell_all_bits_of_a_word_apart() -> None:
    assert 0 in BACKGROUNDS
    for one in range(64):
        for other in range(one):
            assert any((mask >> one ^ mask >> other) & 1 for mask in BACKGROUNDS)


def test_moving_inversions_go_up_and_down_over_all_backgrounds() -> None:
    found = [sweeps(one)[0] for one in passes("moving_inversions", 3)]
    assert {work.writes.mask for work in found if work.writes} == {
        mask ^ inverse for mask in BACKGROUNDS for inverse in (0, ALL)
    }
    assert sum(work.descending for work in found) == len(BACKGROUNDS)


def test_march_c_is_march_c() -> None:
    told = []
    for one in passes("march_c"):
        (work,) = sweeps(one)
        zero = BACKGROUNDS[-1]
        reads, writes = (
            "" if words is None else f"{what}{int(words.mask != zero)}"
            for what, words in (("r", work.reads), ("w", work.writes))
        )
        told.append(f"{'down' if work.descending else 'up'} {reads}{writes}")
    assert told == ["up w0", "up r0w1", "up r1w0", "down r0w1", "down r1w0", "up r0"]


Compared = Callable[[slice, Any, Any], object]


def play(passes: Iterable[Pass], memory: Any, compared: Compared, left_out: int = -1) -> None:
    """Every pass on a memory of numpy's, but for the copies of the pass of that number: `compared`
    is told where is looked, which of the words there, and what is expected of them.
    """
    copies = -1
    for one in passes:
        copies += isinstance(one.works[0], Copy)
        for work in one.works:
            if isinstance(work, Copy):
                if copies != left_out:
                    memory[work.target :][: work.words] = memory[work.source :][: work.words]
                continue
            assert isinstance(work, Sweep)
            swept = slice(work.begin, work.begin + work.count)
            first = (work.begin + work.shift) % (1 << 64)
            chosen = np.ones(work.count, np.bool_)
            if work.stripe is not None:
                tiles = np.arange(work.count) // TILE
                whole = work.count // TILE >> work.stripe + 1 << work.stripe + 1
                chosen = (tiles < whole) & ((tiles >> work.stripe & 1) == work.role)
            assert int(chosen.sum()) == work.words
            if work.reads:
                compared(swept, chosen, array(work.reads, first, work.count)[chosen])
            if work.writes:
                memory[swept][chosen] = array(work.writes, first, work.count)[chosen]


@every
@each("turn", some(range(7), 2))
def test_each_pattern_expects_what_it_wrote(name: str, turn: int) -> None:
    """What is compared is there, and each word was compared with two that differ in all bits."""
    memory = np.random.default_rng(5).integers(0, ALL, WORDS, np.uint64, endpoint=True)
    ones, zeros = np.zeros(WORDS, np.uint64), np.zeros(WORDS, np.uint64)

    def compared(swept: slice, chosen: Any, expected: Any) -> None:
        assert np.array_equal(memory[swept][chosen], expected)
        ones[swept][chosen] |= expected
        zeros[swept][chosen] |= ~expected

    play(passes(name, turn), memory, compared)
    if name == "block_move":
        assert not (ones & zeros == np.uint64(ALL)).any()
        assert int((ones | zeros == np.uint64(ALL)).sum()) == 128 * TILE
    elif name != "neighbours":  # the last stripe may be left out of the repeats
        assert (ones & zeros == np.uint64(ALL)).all()


@each("left_out", [0, 1])
def test_block_move_finds_a_copy_that_does_nothing(left_out: int) -> None:
    """What lies at a target before a copy is never what is expected after it."""
    memory, wrong = np.zeros(131 * TILE, np.uint64), list[int]()

    def compared(swept: slice, chosen: Any, expected: Any) -> None:
        wrong.append(int((memory[swept][chosen] != expected).sum()))

    play(passes("block_move", 0, memory.size), memory, compared, left_out)
    assert sum(wrong) >= 64 * TILE


def test_block_move_reverses_the_blocks() -> None:
    _, up, turned, down, _ = passes("block_move")
    blocks = [(work.source, work.target, work.words) for work in up.works if isinstance(work, Copy)]
    size = WORDS // TILE // 2 // 64 * TILE
    assert blocks == [(block * size, (127 - block) * size, size) for block in range(64)]
    assert [
        (work.target, work.source, work.words) for work in down.works if isinstance(work, Copy)
    ] == blocks
    assert [(work.begin + work.shift, work.begin, work.count) for work in sweeps(turned)] == blocks


@each("turn", range(6))
def test_neighbours_are_repeated_beside_a_memory_that_no_cache_holds(turn: int) -> None:
    found = passes("neighbours", turn, H200)
    assert len(found) == 5
    for one, role in ((found[1], 0), (found[3], 1)):
        windows: dict[int, int] = {}
        for work in sweeps(one):
            assert work.role == role
            windows[work.begin] = windows.get(work.begin, 0) + 1
            assert WINDOW <= work.count < 2 * WINDOW
            assert work.words * 8 >= 256 << 20
        assert set(windows.values()) == {REPEATS}
        assert one.words > 0.99 * REPEATS * H200 / 2


def test_retention_pauses_on_both_polarities() -> None:
    found = list(retention(WORDS, 2.5))
    assert [one.rest_s for one in found] == [2.5, 2.5, 0]
    now = sweeps(found[0])[0].writes
    assert now is not None
    assert [(work.reads, work.writes) for one in found for work in sweeps(one)] == [
        (None, now),
        (now, now.inverse()),
        (now.inverse(), None),
    ]


@each("seconds, rest", [(0.1, 1), (5, 1), (20, 1), (60, 3), (100, 5), (86400, 5)])
def test_a_pause_is_in_proportion(seconds: float, rest: float) -> None:
    assert rest_s(seconds) == rest


def test_seeds_are_all_different() -> None:
    assert len({seed_of(place) for place in range(4000)}) == 4000
    used = [
        work.writes.seed
        for turn in range(50)
        for name in ("random_inverse", "block_move", "neighbours")
        for work in sweeps(passes(name, turn, 4 * TILE)[0])
        if work.writes
    ]
    assert len(set(used)) == len(used) == 150
    assert seed_of(0) not in used


def test_what_a_pass_moves_and_expects() -> None:
    one = Words("number")
    both = Pass(
        (
            Copy(0, TILE, TILE),
            Sweep(None, one, 0, TILE),
            Sweep(one, None, 0, TILE),
            Sweep(one, one, 0, 5),
        )
    )
    assert both.moved == 8 * (2 * TILE + TILE + TILE + 2 * 5)
    assert both.words == 2 * TILE + 5
    assert both.reads == one
    assert Pass((Copy(0, 2, 1), Spin())).reads is None
    assert patterns.RETENTION not in PATTERNS
