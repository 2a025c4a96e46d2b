"""The rate of square matrix products by size, as builders publish it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acceptance.loads.card import Card, take, times_for
from acceptance.loads.gemm.dtypes import Dtype

_ROW_S = 0.05
_TOO_LONG_S = 3.0  # a size is left out when its warm-up and one timed product take longer

Prepare = Callable[[Dtype, int], Callable[[], None]]


def operations(size: int) -> int:
    """Multiplications and additions of one square product."""
    return 2 * size**3


def rows(
    card: Card, dtype: Dtype, wanted: Sequence[int], prepare: Prepare
) -> tuple[list[tuple[float, float]], list[str]]:
    """(n, TFLOP/s) for each size that fits, and one sentence for each that was left out.

    A product is warmed up once, then timed over a twentieth of a second, or once where it takes
    longer. `prepare` returns the function that makes the product.
    """
    found: list[tuple[float, float]] = []
    left_out = []
    for size in wanted:
        needed, free = dtype.bytes_needed(size), card.free_bytes()
        if needed > free:
            left_out.append(
                f"{size} needs {needed / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are free"
            )
            continue
        fastest = max((rate for _, rate in found), default=0.0)
        about_s = 2 * operations(size) / (fastest * 1e12) if found else 0.0
        if about_s > _TOO_LONG_S:
            left_out.append(f"{size} would take about {about_s:.0f} s")
            continue
        found.append((float(size), _rate(card, prepare(dtype, size), size)))
    return found, left_out


def _rate(card: Card, multiply: Callable[[], None], size: int) -> float:
    """TFLOP/s at one size."""
    take(card, multiply, 1)
    one_s = take(card, multiply, 1)
    count = times_for(_ROW_S, one_s)
    spent_s = one_s if count == 1 else take(card, multiply, count)
    return operations(size) * count / spent_s / 1e12
