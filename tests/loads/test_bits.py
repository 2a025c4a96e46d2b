from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.loads import bits
from acceptance.loads.miscompare import WrongPlace

DTYPES = ["float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_bits_are_the_same_and_equal_values_are_not_enough(dtype: str) -> None:
    zero, minus = np.zeros(8, dtype=dtype), -np.zeros(8, dtype=dtype)
    assert bits.same_bits(zero, zero.copy())
    assert not bits.same_bits(zero, minus)
    nan = np.full(8, np.nan, dtype=dtype)
    assert bits.same_bits(nan, nan.copy())


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.integers(0, 9999), st.integers(0, 31))
def test_one_bit_anywhere_is_found_and_located(dtype: str, index: int, bit: int) -> None:
    one = np.ones((100, 100), dtype=dtype)
    other = one.copy()
    bits.flip(other, index, bit)
    assert not bits.same_bits(one, other)
    found = bits.difference(one, other)
    assert found["elements"] == 1
    assert found["first"][0].index == (index // 100, index % 100)
    assert int(found["first"][0].xor, 16) == 1 << bit


def test_nan_is_counted_apart_and_every_place_is_counted() -> None:
    one = np.ones(10, dtype=np.float64)
    other = one * 2
    other[3] = np.nan
    found = bits.difference(one, other)
    assert (found["elements"], found["nan"], len(found["first"])) == (10, 1, 4)
    assert found["first"][0] == WrongPlace(
        index=(0,),
        expected="3ff0000000000000",
        got="4000000000000000",
        xor="7ff0000000000000",
    )


@each("other", [np.zeros(4), np.zeros((4, 4)).T[:, :], np.zeros((4, 8))[:, ::2]])
def test_parts_of_buffers_are_refused(other: Any) -> None:
    with pytest.raises(ValueError, match="only whole buffers of equal size"):
        bits.same_bits(np.zeros((4, 4)), other)


def test_sixty_one_turns_spoil_everything_and_every_turn_spoils_every_few_rows() -> None:
    buffer = np.ones((122, 100))
    bits.spoil(buffer, 7)
    assert ((buffer == bits.SPOILED).sum(axis=1) >= 1).all()
    for turn in range(bits.STRIDE):
        bits.spoil(buffer, turn)
    assert (buffer == bits.SPOILED).all()
