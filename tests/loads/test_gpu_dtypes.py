from __future__ import annotations

import math

import pytest
from cases import each
from worded import worded

from acceptance.loads.gemm.dtypes import DTYPES, LIKELY
from acceptance.loads.miscompare import ReferenceKind


def test_the_short_names_are_those_of_the_measurements() -> None:
    assert list(DTYPES) == ["f64", "f32", "tf32", "f16", "bf16", "f8", "i8"]
    assert all(dtype.short == short for short, dtype in DTYPES.items())


@each(
    "capability, offered",
    [
        ((7, 0), ["f64", "f32", "f16"]),
        ((7, 5), ["f64", "f32", "f16", "i8"]),
        ((8, 0), ["f64", "f32", "tf32", "f16", "bf16", "i8"]),
        ((8, 6), ["f64", "f32", "tf32", "f16", "bf16", "i8"]),
        ((8, 9), list(DTYPES)),
        ((9, 0), list(DTYPES)),
        ((12, 0), list(DTYPES)),
    ],
)
def test_what_is_emulated_is_not_offered(capability: tuple[int, int], offered: list[str]) -> None:
    assert [
        short for short, dtype in DTYPES.items() if dtype.missing(capability) is None
    ] == offered


def test_why_a_format_is_missing_is_said() -> None:
    assert (
        worded(DTYPES["bf16"].missing((7, 5)))
        == "bfloat16 is not native before compute capability 8.0, and this GPU has 7.5"
    )


def test_the_bounds_are_those_of_the_text() -> None:
    spread = math.sqrt(8192)  # Q of normal-random operands
    bounds = {
        short: (own, share * spread)
        for short, dtype in DTYPES.items()
        for own, share in [dtype.bound(8192)]
    }
    assert bounds["f64"] == (0.0, pytest.approx(1.5e-9, rel=0.05))
    assert bounds["f32"] == (0.0, pytest.approx(0.40, rel=0.05))
    assert bounds["tf32"] == (0.0, pytest.approx(1.9, rel=0.05))
    assert bounds["f16"] == (2.0**-11, pytest.approx(0.28, rel=0.05))
    assert bounds["bf16"] == (2.0**-8, pytest.approx(0.28, rel=0.05))
    assert bounds["f8"] == (2.0**-8, pytest.approx(106, rel=0.05))
    assert bounds["i8"] == (0.0, 0.0)


@each("size", [64, 8192, 16384, 32768])
@each("short, bits", [("f64", 53), ("f32", 24), ("tf32", 24), ("f16", 24), ("bf16", 24)])
def test_sums_of_whole_numbers_are_exact_whatever_the_order(
    short: str, bits: int, size: int
) -> None:
    assert size * DTYPES[short].largest(size) ** 2 < 2**bits


@each("size", [64, 8192, 16384, 32768])
def test_sums_of_whole_numbers_stay_within_what_narrow_formats_hold(size: int) -> None:
    for short, most in (
        ("f8", 2**13),
        ("f16", 65504),
    ):  # the sums of FP8 where they keep 14 bits; float16's largest result
        largest = DTYPES[short].largest(size)
        mean_square = largest * (largest + 1) / 3
        assert LIKELY * math.sqrt(size) * mean_square < most


def test_whole_numbers_are_exact_in_the_format_itself() -> None:
    bits = {"tf32": 11, "f16": 11, "bf16": 8, "f8": 4, "i8": 8}
    assert all(DTYPES[short].largest(8192) < 2 ** bits[short] for short in bits)


def test_matrices_that_leave_no_whole_numbers() -> None:
    with pytest.raises(
        ValueError, match="no whole numbers keep sums of 33554432 products exact in float32"
    ):
        DTYPES["f32"].largest(2**25)


def test_memory_of_a_product() -> None:
    assert DTYPES["f8"].bytes_needed(1024) == 4 * 2**20
    assert DTYPES["f64"].bytes_needed(1024) == 24 * 2**20


def test_a_right_product_is_known_to_the_last_bit_where_its_sums_and_its_result_are_exact() -> None:
    kinds: tuple[ReferenceKind, ...] = ("normal", "whole")
    exact = {
        kind: {short for short, one in DTYPES.items() if one.exact_sums(kind)} for kind in kinds
    }
    assert exact == {"normal": {"i8"}, "whole": {"f64", "f32", "tf32", "i8"}}
