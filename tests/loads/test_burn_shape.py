from __future__ import annotations

from cases import each

from acceptance.loads.burn.shape import (
    DEPTH,
    FAST_FLOAT64,
    division,
    divisor_for,
    operand_bytes,
    result_bytes,
    shapes,
)
from acceptance.loads.gemm.dtypes import DTYPES, Dtype

every = each("dtype", DTYPES.values())


@every
@each("divisor", [1, 2, 4, 8, 128])
def test_three_shapes_whose_results_have_one_size(dtype: Dtype, divisor: int) -> None:
    square, tall, wide = found = shapes(dtype, divisor)
    assert len({shape.elements for shape in found}) == 1
    assert len({shape.operations for shape in found}) == 1
    assert (square.m, tall.m, wide.m) == (8192 // divisor, 16384 // divisor, 4096 // divisor)
    assert all(shape.k == DEPTH[dtype.short] // max(1, divisor // 8) for shape in found)
    assert all(side % 16 == 0 for shape in found for side in (shape.m, shape.n, shape.k))
    a, b = operand_bytes(dtype, found)
    assert a == tall.m * tall.k * dtype.operand_bytes
    assert b == wide.k * wide.n * dtype.operand_bytes
    assert result_bytes(dtype, found) == square.m * square.n * dtype.result_bytes
    assert str(tall) == f"{tall.m}x{tall.n}x{tall.k}"


@every
def test_every_format_is_deep_enough_that_reading_the_results_costs_little(dtype: Dtype) -> None:
    """Nine eighths of a result at 4.2 TB/s, beside the product at the rate that
    an H200 sustains.
    """
    sustained = {"f64": 53, "f32": 51, "tf32": 344, "f16": 650, "bf16": 670, "f8": 1250, "i8": 900}[
        dtype.short
    ]
    product_s = shapes(dtype)[0].operations / (sustained * 1e12)
    compare_s = 9 / 8 * result_bytes(dtype, shapes(dtype)) / 4.2e12
    assert compare_s / (product_s + compare_s) < 0.02


@every
def test_sums_of_whole_numbers_stay_exact_at_that_depth(dtype: Dtype) -> None:
    deepest = DEPTH[dtype.short]
    largest = dtype.largest(deepest)
    bits = {"f64": 53, "f32": 24, "tf32": 24, "i8": 31}.get(dtype.short)
    if bits is not None:
        assert deepest * largest**2 < 2**bits


CARDS = [  # compute capability, GiB of memory
    ((9, 0), 139.8),
    ((10, 0), 178.0),
    ((8, 0), 79.3),
    ((8, 0), 39.4),
    ((7, 0), 15.8),
    ((7, 5), 14.6),
    ((8, 6), 7.6),
    ((8, 6), 9.6),
    ((8, 6), 11.6),
    ((8, 9), 7.6),
    ((8, 9), 11.6),
    ((8, 9), 15.6),
    ((8, 9), 23.5),
    ((12, 0), 31.3),
]


@every
@each("capability, gib", CARDS)
def test_results_fill_every_card(dtype: Dtype, capability: tuple[int, int], gib: float) -> None:
    """Half a GiB is taken by contexts, 640 MiB are kept; with that seven tenths
    of what is free are results.
    """
    whole = int(gib * 2**30)
    divisor = divisor_for(dtype, capability, whole)
    found = shapes(dtype, divisor)
    free = whole - (512 << 20)
    left = free - (640 << 20) - sum(operand_bytes(dtype, found)) - 3 * result_bytes(dtype, found)
    group, groups = division(left // result_bytes(dtype, found), 8, 3)
    assert group * groups * result_bytes(dtype, found) / free > 0.7
    wide = 0 if dtype.short == "f64" else 16 * operand_bytes(dtype, found)[1] // dtype.operand_bytes
    assert sum(operand_bytes(dtype, found)) + wide + result_bytes(dtype, found) < 0.75 * free
    if dtype.short == "f64":
        assert (divisor == 1) == (capability in FAST_FLOAT64 and gib > 30), (
            "float64 of GeForce is slow, and made small"
        )


def test_big_cards_have_the_widest_matrices() -> None:
    assert {divisor_for(dtype, (9, 0), 140 << 30) for dtype in DTYPES.values()} == {1}
