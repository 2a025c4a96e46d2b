"""`kernels/vram.cu`, the very source that NVRTC compiles, built for the processor by `cc`."""

from __future__ import annotations

import ctypes
import shutil
from typing import Any

import numpy as np
import pytest
from cases import each
from cuda_on_cpu import Built
from vram_on_cpu import array, pointer

from acceptance.loads.vram.passes import (
    ALL,
    FAMILIES,
    LISTED,
    RECORD,
    REGIONS,
    THREADS,
    TILE,
    Sweep,
    SweepArguments,
    SweepRecord,
    Words,
    WrongWord,
    arguments,
    blank,
    record,
    region_tiles,
    seed_of,
)

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler `cc` here")
KERNELS = "vram"
GUARD = 0xA5A5A5A5A5A5A5A5
SIZES = (1, 2, 3, 255, 2047, TILE, TILE + 1, 3 * TILE - 1, 7 * TILE + 1234, 37 * TILE + 5)
WORDS = (
    Words("number"),
    Words("number", 0, ALL),
    Words("constant", 0, 0x3333333333333333),
    Words("walk", 0),
    Words("walk", 63, ALL),
    Words("random", seed_of(1)),
    Words("random", seed_of(2), ALL),
)
every = each("words", WORDS)
family = each("family", FAMILIES)
# Every word meets every size, and both meet all numbers of blocks and orders.
SAMPLE = [
    (words, count, (1, 3, 40)[(row + column) % 3], (row + column // 3) % 2 == 1)
    for row, words in enumerate(WORDS)
    for column, count in enumerate(SIZES)
]


class Memory:
    """So many words between two guards, 16-byte aligned as a GPU's are."""

    def __init__(self, built: Built, count: int) -> None:
        self.built = built
        room = np.full(count + 8, GUARD, np.uint64)
        first = 2 + room.ctypes.data % 16 // 8
        self.words = room[first : first + count]
        self.guards = (room[:first], room[first + count :])

    def sweep(self, sweep: Sweep, blocks: int = 3) -> SweepRecord:
        kept = np.array(blank(), np.uint64)
        given = arguments(sweep, self.words.size)
        self.built.launch(sweep.kernel, blocks, THREADS, pointer(self.words), pointer(kept), given)
        assert all((guard == GUARD).all() for guard in self.guards), "it wrote beside the memory"
        found = record([int(word) for word in kept])
        assert found.seen == sweep.words
        return found

    def filled(self, words: Words) -> Memory:
        self.sweep(Sweep(None, words, 0, self.words.size))
        return self

    def verify(self, words: Words) -> SweepRecord:
        return self.sweep(Sweep(words, None, 0, self.words.size))


def nothing(found: SweepRecord) -> bool:
    return found == SweepRecord(found.seen, 0, 0, ALL, {}, {}, ())


@each("words, count, blocks, descending", SAMPLE)
def test_what_is_written_and_found_right(
    built: Built, words: Words, count: int, blocks: int, descending: bool
) -> None:
    memory = Memory(built, count)
    for sweep in (
        Sweep(None, words, 0, count, descending=descending),
        Sweep(words, None, 0, count, descending=descending),
        Sweep(words, words.inverse(), 0, count, descending=descending),
        Sweep(words.inverse(), None, 0, count, descending=descending),
    ):
        assert nothing(memory.sweep(sweep, blocks)), sweep
        expected = words.inverse() if words.inverse() in (sweep.reads, sweep.writes) else words
        assert np.array_equal(memory.words, array(expected, 0, count))
        numbers = [number for number in (0, 1, 2, 63, 64, 2047, 2048, count - 1) if number < count]
        assert [expected.word(one) for one in numbers] == memory.words[numbers].tolist()


def test_all_kernels_are_there(built: Built) -> None:
    assert set(built.names) == {
        f"{mode}_{one}" for mode in ("fill", "verify", "turn") for one in FAMILIES
    } | {"spin"}
    assert ctypes.sizeof(SweepArguments) == 12 * 8


@every
def test_large_numbers_as_on_the_largest_gpus(built: Built, words: Words) -> None:
    shift = (1 << 36) - TILE  # half a TiB
    memory = Memory(built, 2 * TILE + 3)
    memory.sweep(Sweep(None, words, 0, memory.words.size, shift))
    assert np.array_equal(memory.words, array(words, shift, memory.words.size))
    assert [int(word) for word in memory.words[-3:]] == [
        words.word(shift + 2 * TILE + n) for n in range(3)
    ]
    assert nothing(memory.sweep(Sweep(words, None, 0, memory.words.size, shift)))


@family
def test_every_bit_position_is_found(built: Built, family: str) -> None:
    words = Words(family, 7)
    count = 3 * TILE + 701
    memory = Memory(built, count).filled(words)
    for bit in range(64):
        place = (bit * 104729 + 1) % count
        memory.words[place] ^= np.uint64(1 << bit)
        found = memory.verify(words)
        assert (found.wrong, found.told, found.every, found.any) == (1, 1, 1 << bit, 1 << bit)
        assert found.bits == {bit: 1}
        expected = words.word(place)
        assert found.first == (WrongWord(place, expected, expected ^ 1 << bit),)
        memory.words[place] ^= np.uint64(1 << bit)


@family
@each("count", SIZES)
@each("last", [False, True])
def test_the_first_and_the_last_word(built: Built, family: str, count: int, last: bool) -> None:
    words = Words(family, 5)
    place = count - 1 if last else 0
    for sweep in (
        Sweep(words, None, 0, count),
        Sweep(words, words.inverse(), 0, count, descending=True),
    ):
        memory = Memory(built, count).filled(words)
        memory.words[place] ^= np.uint64(3 << 40)
        found = memory.sweep(sweep)
        assert (found.wrong, [one.place for one in found.first]) == (1, [place])
        assert found.bits == {40: 1, 41: 1}


def test_thousands_of_wrong_words(built: Built) -> None:
    words = Words("random", seed_of(3))
    memory = Memory(built, 50 * TILE + 77).filled(words)
    places = np.random.default_rng(1).choice(memory.words.size, 9000, replace=False)
    flips = np.random.default_rng(2).integers(1, ALL, 9000, np.uint64, endpoint=True)
    memory.words[places] ^= flips
    found = memory.verify(words)
    assert (found.wrong, found.told) == (9000, 9000)
    assert found.any == int(np.bitwise_or.reduce(flips))
    assert found.every == int(np.bitwise_and.reduce(flips))
    assert found.bits == {
        bit: int((flips >> np.uint64(bit) & np.uint64(1)).sum()) for bit in range(64)
    }
    size = region_tiles(memory.words.size) * TILE
    numbers, counts = np.unique(places // size, return_counts=True)
    assert {region: wrong for region, (wrong, _) in found.regions.items()} == dict(
        zip(numbers.tolist(), counts.tolist(), strict=True)
    )
    for region, (_, bits) in found.regions.items():
        assert bits == int(np.bitwise_or.reduce(flips[places // size == region]))
    assert len(found.first) == LISTED
    told = dict(zip(places.tolist(), flips.tolist(), strict=True))
    for one in found.first:
        assert one.expected == words.word(one.place)
        assert one.xor == told[one.place]


def test_a_memory_that_is_wrong_all_over(built: Built) -> None:
    words = Words("constant", 0, 0)
    memory = Memory(built, 600 * TILE + 5).filled(words.inverse())
    found = memory.verify(words)
    assert found.wrong == memory.words.size > 1 << 20
    assert found.told == 1 << 20
    assert found.bits == dict.fromkeys(range(64), 1 << 20)
    assert (found.any, found.every) == (ALL, ALL)
    size = region_tiles(memory.words.size) * TILE
    assert set(found.regions) == set(range(-(-memory.words.size // size)))
    assert {
        wrong for region, (wrong, _) in found.regions.items() if region + 1 < len(found.regions)
    } == {size}
    assert len(found.regions) <= REGIONS


@family
@each("wrong", [[0, 5000, 10248], None])
def test_a_turn_repairs_what_it_told(built: Built, family: str, wrong: list[int] | None) -> None:
    """All words, where what should only come next stands there."""
    words, then = Words(family, 3), Words(family, 4, 0xFF)
    memory = Memory(built, 5 * TILE + 9).filled(then if wrong is None else words)
    memory.words[wrong or []] = 0xDEAD
    count = memory.words.size if wrong is None else len(wrong)
    assert memory.sweep(Sweep(words, then, 0, memory.words.size)).wrong == count
    assert np.array_equal(memory.words, array(then, 0, memory.words.size))
    assert nothing(memory.verify(then))


@pytest.mark.parametrize(("descending", "first"), [(False, 0), (True, 2 * TILE)])
def test_the_order_of_the_tiles(built: Built, descending: bool, first: int) -> None:
    words = Words("constant")
    memory = Memory(built, 3 * TILE).filled(words.inverse())
    kept = np.array(blank(), np.uint64)
    given = arguments(
        Sweep(words, None, 0, memory.words.size, descending=descending), memory.words.size
    )
    built.launch("verify_constant", 1, THREADS, pointer(memory.words), pointer(kept), given)
    assert int(kept[RECORD - 3 * LISTED]) == first, "the place of what was found first"


def test_a_part_of_a_memory(built: Built) -> None:
    words = Words("random", 11)
    memory = Memory(built, 9 * TILE)
    memory.words[:] = 7
    part = Sweep(None, words, 2 * TILE, 3 * TILE + 100, -TILE)
    memory.sweep(part)
    assert np.array_equal(
        memory.words[2 * TILE : 5 * TILE + 100], array(words, TILE, 3 * TILE + 100)
    )
    assert (memory.words[: 2 * TILE] == 7).all()
    assert (memory.words[5 * TILE + 100 :] == 7).all()
    memory.words[5 * TILE + 99] = 0
    found = memory.sweep(Sweep(words, None, 2 * TILE, 3 * TILE + 100, -TILE))
    assert [(one.place, one.expected) for one in found.first] == [
        (5 * TILE + 99, words.word(4 * TILE + 99))
    ]
    assert list(found.regions) == [5]


@each("stripe", [0, 1, 3])
@each("role", [0, 1])
@each("tiles", [16, 23, 2])
@each("descending", [False, True])
def test_stripes(built: Built, stripe: int, role: int, tiles: int, descending: bool) -> None:
    words = Words("random", 12)
    memory = Memory(built, tiles * TILE + 100).filled(words)
    sweep = Sweep(
        words,
        words.inverse(),
        0,
        memory.words.size,
        stripe=stripe,
        role=role,
        descending=descending,
    )
    assert nothing(memory.sweep(sweep))
    numbers = np.arange(memory.words.size) // TILE
    whole = tiles >> stripe + 1 << stripe + 1
    visited = (numbers < whole) & ((numbers >> stripe & 1) == role)
    expected = np.where(
        visited, array(words.inverse(), 0, numbers.size), array(words, 0, numbers.size)
    )
    assert np.array_equal(memory.words, expected)
    assert sweep.words == int(visited.sum())


def test_random_words_look_random(built: Built) -> None:
    memory = Memory(built, 2 * TILE).filled(Words("random", seed_of(9)))
    memory.words[::2] = np.roll(memory.words[::2], 1)
    moved = memory.verify(Words("random", seed_of(9)))
    assert moved.wrong == TILE, "a word of another place is wrong everywhere else"
    count = 1 << 16
    one, other = (Memory(built, count).filled(Words("random", seed_of(n))).words for n in (1, 2))
    assert len(set(one[::2].tolist())) == len(set(one[1::2].tolist())) == count // 2
    for differences in (
        one,
        one[2:] ^ one[:-2],
        one[1::2] ^ one[::2],
        one ^ other,
        one[1024:] ^ one[:-1024],
    ):
        for bit in range(64):
            share = float((differences >> np.uint64(bit) & np.uint64(1)).mean())
            assert 0.48 < share < 0.52, bit


def test_spinning_ends(built: Built) -> None:
    flag = ctypes.c_uint64(0)
    built.launch("spin", 1, 1, ctypes.byref(flag), ctypes.c_uint64(1000))
    flag.value = 1
    built.launch("spin", 1, 1, ctypes.byref(flag), ctypes.c_uint64(1 << 62))


@each(
    "sweep",
    [
        Sweep(None, None, 0, 10),
        Sweep(None, WORDS[0], 1, 10),
        Sweep(None, WORDS[0], 0, 10, 1),
        Sweep(None, WORDS[0], 0, 10 * TILE + 1),
        Sweep(None, WORDS[0], 10 * TILE, 1),
        Sweep(None, WORDS[0], -TILE, 1),
        Sweep(None, WORDS[0], TILE, -1),
    ],
)
def test_a_sweep_beside_the_memory_is_refused(sweep: Sweep) -> None:
    with pytest.raises(ValueError, match="is no sweep of a memory of 20480 words"):
        arguments(sweep, 10 * TILE)


@pytest.mark.parametrize("pair", [(None, None), (Words("number"), Words("walk"))])
def test_a_sweep_has_one_family(pair: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match="one family"):
        assert Sweep(*pair, 0, 10).kernel


def test_a_record_has_its_length() -> None:
    assert nothing(record(blank()))
    with pytest.raises(ValueError, match="675 words, not 674"):
        record(blank()[:-1])
    assert RECORD == 675
