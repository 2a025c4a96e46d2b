from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from known import known
from thoroughness import examples

from acceptance.loads import exact_product
from acceptance.loads.exact_product import SIGNIFICAND_BITS, faults, largest, operand, spread
from acceptance.loads.miscompare import WrongValue

DTYPES = ["float32", "float64"]
SIZE = 96


def product(size: int, dtype: str) -> tuple[Any, Any, Any]:
    a, b = operand(size, dtype, 1), operand(size, dtype, 2)
    return a, b, a @ b


@each(
    "size, dtype, bound",
    [(1024, "float32", 127), (1024, "float64", 2965820), (1536, "float32", 104)],
)
def test_the_bound_is_the_largest_that_keeps_sums_exact(size: int, dtype: str, bound: int) -> None:
    assert largest(size, dtype) == bound
    assert size * bound**2 < 2 ** SIGNIFICAND_BITS[dtype] <= size * (bound + 1) ** 2


@each("dtype", DTYPES)
@each("size", [8, 61, 200])
def test_operands_are_whole_bounded_and_never_0(size: int, dtype: str) -> None:
    matrix = operand(size, dtype, 1)
    assert matrix.shape == (size, size)
    assert str(matrix.dtype) == dtype
    assert np.array_equal(matrix, np.rint(matrix))
    assert np.abs(matrix).min() >= 1
    assert np.abs(matrix).max() <= largest(size, dtype)
    assert 0.2 < (matrix < 0).mean() < 0.8
    assert not np.array_equal(matrix, operand(size, dtype, 2))


def test_the_operands_are_the_same_everywhere() -> None:
    # SplitMix64 from state 0: the first outputs that its authors' reference code gives; ours starts
    # one step earlier.
    assert [hex(value) for value in spread(3, 1).tolist()] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]
    assert spread(4, 3)[1] == spread(1, 4)[0]


@each("dtype", DTYPES)
@each("size", [8, 61, 150])
def test_a_right_product_passes(size: int, dtype: str) -> None:
    a, b, c = product(size, dtype)
    assert faults(a, b, c) is None
    expected = a.astype(np.int64).astype(object) @ b.astype(np.int64).astype(object)
    assert np.array_equal(c.astype(np.int64).astype(object), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=examples(40))
@given(
    row=st.integers(0, SIZE - 1),
    column=st.integers(0, SIZE - 1),
    bit=st.integers(0, 30),
    down=st.booleans(),
)
def test_one_wrong_element_is_always_found(
    dtype: str, row: int, column: int, bit: int, down: bool
) -> None:
    a, b, c = product(SIZE, dtype)
    step = 2.0 ** (bit if dtype == "float64" else bit % 16)
    c[row, column] += -step if down else step
    found = known(faults(a, b, c))
    assert found["first"] in (
        (row,),
        (WrongValue(index=(row, column), got=repr(c[row, column].item())),),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_wrong_elements_that_cancel_in_plain_sums_are_found(dtype: str) -> None:
    a, b, c = product(SIZE, dtype)
    c[5, 10] += 1
    c[5, 11] -= 1
    c[9] = c[8]
    found = faults(a, b, c)
    assert found == {"found": "rows that fail the integer check", "rows": 2, "first": (5, 9)}


@each("dtype", DTYPES)
@each("value", [math.nan, math.inf, -math.inf, 0.5, 2.0**60])
def test_what_is_no_sum_of_products_is_found(dtype: str, value: float) -> None:
    a, b, c = product(SIZE, dtype)
    c[3, 4] = value
    found = known(faults(a, b, c))
    assert (found["elements"], found["nan"]) == (1, int(math.isnan(value)))
    assert found["first"][0].index == (3, 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_buffer_that_was_never_written_is_found(dtype: str) -> None:
    a, b, c = product(SIZE, dtype)
    c[...] = 0
    assert faults(a, b, c) is not None
    c[...] = 0.5
    assert faults(a, b, c) is not None


def test_the_sampled_rows_and_columns_see_what_the_vectors_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b, c = product(8, "float64")
    c += 1  # every row and column is wrong

    def blind(count: int) -> bytes:
        return bytes(count)

    right = exact_product.multiply_exact
    calls = 0

    def deaf(matrix: Any, vectors: Any) -> Any:
        nonlocal calls
        calls += 1
        return np.zeros_like(vectors) if calls <= 3 else right(matrix, vectors)

    monkeypatch.setattr(exact_product.os, "urandom", blind)
    monkeypatch.setattr(exact_product, "multiply_exact", deaf)
    assert faults(a, b, c) == {
        "found": "elements that differ from the integer product",
        "elements": 32,
    }
