"""Matrix products whose true result is known exactly, and a check that needs no BLAS.

The operands hold whole numbers other than 0 between -m and m, where m is the largest for which n *
m * m stays below 2**p (p = 24 for float32, 53 for float64: the bits of the significand). Every
product and every partial sum is then a whole number below 2**p and so exact, whatever the order and
blocking, with or without fused multiply-add. The true result is a whole number, and every right
result has the same bits. There is no -0, because no operand is 0 and sums that cancel round to +0.
(Strassen's multiplication would leave these bounds; the BLAS libraries do not use it.)

The check (`faults`) uses integer arithmetic modulo 2**64 throughout, for which numpy has loops of
its own and no BLAS:

1. every element is finite, whole, and at most n * m * m in size, so it converts to an integer
   exactly;
2. Freivalds: C @ r == A @ (B @ r) for four vectors r of random odd 64-bit numbers, in O(n**2);
3. two rows and two columns, chosen at random, are multiplied out.

What step 2 can miss. Let D = A @ B - C, whose elements are below 2**(p + 1) in size. A row of D
with one wrong element d gives d * r. As r is odd, that is 0 modulo 2**64 only if d is: such a row
is always found. For a row with several wrong elements, fix all of r but one entry, r = 2 s + 1 with
s uniform below 2**63, whose d = 2**v * odd has v <= p. Then 2 * d * s = t modulo 2**64 holds for at
most 2**v of the 2**63 values of s. So one vector misses with a probability of at most 2**(p - 63),
and four independent ones with at most 2**-40 for float64 and 2**-156 for float32. That is the worst
case, where every error is a multiple of 2**p; for an odd error it is 2**-252.
"""

from __future__ import annotations

import math
import os
from typing import Any, Required, TypedDict

import numpy as np
from numpy.typing import NDArray

from acceptance.loads.miscompare import WrongValue

Matrix = NDArray[Any]  # float32 or float64, square, in C order
Whole = NDArray[np.uint64]  # whole numbers modulo 2**64

SIGNIFICAND_BITS = {"float32": 24, "float64": 53}
VECTORS = 4
SAMPLES = 2
_BLOCK = 32  # rows converted at a time, to keep memory use low
_LISTED = 4  # wrong elements listed in a report; all are counted


def largest(size: int, dtype: str) -> int:
    """The largest operand m for which size * m * m < 2**p.

    At size 1024 it is 127 for float32 and 2,965,820 for float64.
    """
    return math.isqrt((2 ** SIGNIFICAND_BITS[dtype] - 1) // size)


def spread(count: int, start: int) -> Whole:
    """`count` well-spread 64-bit numbers, those at `start`, `start` + 1, ... of a fixed sequence.

    They are the same on every machine and with every numpy. The sequence is SplitMix64 (Steele,
    Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
    """
    return mixed(np.arange(count, dtype=np.uint64) + np.uint64(start))


def mixed(places: Whole) -> Whole:
    """The numbers at these places of the sequence of `spread`."""
    x = places * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def operand(size: int, dtype: str, seed: int) -> Matrix:
    """A size x size matrix of whole numbers from -m to m without 0, fixed by the arguments."""
    bound = largest(size, dtype)
    matrix = np.empty((size, size), dtype=dtype)
    for row in range(0, size, _BLOCK):
        rows = matrix[row : row + _BLOCK]
        drawn = spread(rows.size, (seed << 40) + row * size)
        magnitude = (drawn >> np.uint64(1)) % np.uint64(bound) + np.uint64(1)
        signed = np.where(drawn & np.uint64(1), magnitude.view(np.int64), -magnitude.view(np.int64))
        rows[...] = signed.reshape(rows.shape)
    return matrix


def whole_numbers(matrix: Matrix) -> Whole:
    """Whole numbers in floating point, as integers modulo 2**64."""
    return matrix.astype(np.int64).view(np.uint64)


def multiply_exact(matrix: Matrix, right: Whole) -> Whole:
    """matrix @ right in integers modulo 2**64.

    `matrix` is n x n, of whole numbers in floating point; `right` is n x k.
    """
    return np.concatenate(
        [whole_numbers(matrix[row : row + _BLOCK]) @ right for row in range(0, len(matrix), _BLOCK)]
    )


class ExactFault(TypedDict, total=False):
    """What is wrong with a `WrongFirstProduct`."""

    found: Required[str]
    elements: int
    rows: int
    nan: int
    first: tuple[WrongValue | int, ...]


def faults(a: Matrix, b: Matrix, c: Matrix) -> ExactFault | None:
    """What is wrong with c as the product of a and b; None when it is right.

    a and b come from `operand`. The module's docstring derives the probability of a miss.
    """
    size = len(a)
    bound = size * largest(size, str(a.dtype)) ** 2
    sound = np.isfinite(c) & (np.abs(c) <= bound) & (c == np.rint(c))
    if not sound.all():
        wrong = np.argwhere(~sound)
        return {
            "found": "elements that no sum of these products can be",
            "elements": len(wrong),
            "nan": int(np.isnan(c).sum()),
            "first": tuple(
                WrongValue(index=(int(i), int(j)), got=repr(c[i, j].item()))
                for i, j in wrong[:_LISTED]
            ),
        }
    vectors = np.frombuffer(os.urandom(8 * size * VECTORS), dtype=np.uint64).reshape(
        size, VECTORS
    ) | np.uint64(1)
    rows = np.flatnonzero(
        (multiply_exact(c, vectors) != multiply_exact(a, multiply_exact(b, vectors))).any(axis=1)
    )
    if rows.size:
        return {
            "found": "rows that fail the integer check",
            "rows": rows.size,
            "first": tuple(int(i) for i in rows[:_LISTED]),
        }
    sample = np.frombuffer(os.urandom(8 * SAMPLES), dtype=np.uint64) % np.uint64(size)
    by_rows = whole_numbers(c[sample]) != multiply_exact(b.T, whole_numbers(a[sample]).T).T
    by_columns = whole_numbers(c[:, sample]) != multiply_exact(a, whole_numbers(b[:, sample]))
    if by_rows.any() or by_columns.any():
        return {
            "found": "elements that differ from the integer product",
            "elements": int(by_rows.sum() + by_columns.sum()),
        }
    return None
