from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from cases import each
from known import known

from acceptance.loads.copy import pattern
from acceptance.loads.copy.pattern import SPOILED, fault, first_number, first_of, place, write
from acceptance.loads.exact_product import spread


def made(count: int, seed: int) -> pattern.Words:
    words = np.empty(count, np.uint64)
    write(words, first_number(seed))
    return words


def test_words_depend_on_place_and_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern, "_BLOCK", 7)
    assert (made(100, 3) == spread(100, 3 << 40)).all()
    assert (made(20, 3) == made(100, 3)[:20]).all()


def test_no_word_occurs_twice() -> None:
    every = np.concatenate([made(10_000, seed) for seed in (1, 2, 3, 255)])
    assert len(np.unique(every)) == every.size


def test_the_spoiled_word_is_in_no_buffer() -> None:
    # The sequence is one to one, and its number 0, which no seed reaches, is the word 0.
    assert spread(1, 0)[0] == SPOILED
    assert first_number(1) > 0


def test_the_words_of_one_seed_end_before_the_next() -> None:
    assert first_number(255) - first_number(254) == 1 << 40
    assert first_number(255) + (1 << 40) <= 1 << 48


def test_each_pair_and_turn_has_words_of_its_own() -> None:
    pairs = [("GPU-a", "GPU-b"), ("GPU-b", "GPU-a"), ("GPU-a", "GPU-c"), ("GPU-a", "GPU-a")]
    numbers = sorted(first_of(*pair, turn) for pair in pairs for turn in range(1000))
    assert all(after - before >= 1 << 31 for before, after in pairwise(numbers)), (
        "no two windows meet"
    )
    assert numbers[0] >= 1 << 63 > first_number(255) + (1 << 40)
    assert numbers[-1] + (1 << 31) <= 1 << 64
    assert first_of("GPU-a", "GPU-b", 7) == first_of("GPU-a", "GPU-b", 7 + (1 << 32))


def test_the_words_of_a_pair_are_the_same_in_every_run() -> None:
    assert f"{first_of('GPU-a', 'GPU-b', 0):x}" == "a7a2e0e200000000"


@each("seed", [0, -1, 256])
def test_other_seeds_are_refused(seed: int) -> None:
    with pytest.raises(ValueError, match=f"{seed} is no seed"):
        first_number(seed)


def test_a_right_copy_has_no_fault() -> None:
    assert fault(made(1000, 1), made(1000, 1)) is None


@each("index", [0, 499, 999])
@each("bit", [0, 31, 63])
def test_one_bit_is_found_and_located(index: int, bit: int) -> None:
    expected, got = made(1000, 1), made(1000, 1)
    got[index] ^= np.uint64(1 << bit)
    found = known(fault(expected, got))
    assert found["words"] == 1
    assert found["first"] == (place(index, int(expected[index]), int(got[index])),)
    assert int(found["first"][0].xor, 16) == 1 << bit


def test_words_that_changed_places_are_found() -> None:
    expected, got = made(1000, 1), made(1000, 1)
    got[[3, 700]] = got[[700, 3]]
    found = known(fault(expected, got))
    assert [found["words"], *(wrong.index for wrong in found["first"])] == [2, 3, 700]


def test_a_copy_that_was_not_made_is_wrong_in_every_word() -> None:
    found = known(fault(made(1000, 1), np.full(1000, SPOILED, np.uint64)))
    assert (found["words"], found["unwritten"], len(found["first"])) == (1000, 1000, 4)
