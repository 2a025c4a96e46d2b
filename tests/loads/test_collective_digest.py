from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import examples

from acceptance.core.parts import Gpu
from acceptance.loads.collective.pattern import differing, digest, part

words = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=2, max_size=50)


def of(values: list[int], cut: int = 0) -> str:
    array, places = np.array(values, np.int64), np.arange(len(values), dtype=np.int64)
    return digest([part(places[at], array[at]) for at in (slice(cut), slice(cut, None))])


@given(values=words, place=st.integers(0, 49), bit=st.integers(0, 30), cut=st.integers(0, 49))
@settings(max_examples=examples(200))
def test_one_bit_changes_the_digest_and_the_pieces_do_not(
    values: list[int], place: int, bit: int, cut: int
) -> None:
    changed = list(values)
    changed[place % len(values)] ^= 1 << bit
    assert of(changed) != of(values) == of(values, cut)


@given(values=words)
@settings(max_examples=examples(100))
def test_two_words_that_changed_places_change_the_digest(values: list[int]) -> None:
    assert (of([values[1], values[0], *values[2:]]) == of(values)) == (values[0] == values[1])


def test_ranks_with_another_digest_are_told_apart() -> None:
    first, second, third = Gpu(0), Gpu(1), Gpu(2)
    assert differing({first: "a", second: "a"}) == {}
    assert differing({first: "a", second: "b", third: "a"}) == {
        "a": (first, third),
        "b": (second,),
    }
