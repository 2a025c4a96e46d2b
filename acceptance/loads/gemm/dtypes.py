"""The seven number formats of the matrix products, and the error bounds of a right product.

Operands are normal-random in their format; int8 holds normal-random numbers of standard deviation
32, rounded. Let c be one element of the product of n x n matrices, c = sum of n products p = a * b,
and Q = sqrt(sum of p * p), which the check computes exactly. The signs of the operands are random
and independent of their sizes, so by Hoeffding's inequality any sum of some of the p exceeds LIKELY
* Q with a probability of at most 2 * exp(-LIKELY**2 / 2) = 5e-18: among the 4e9 partial sums of the
sampled elements less than once in ten million products. Then a right element differs from c by at
most

    result_error * |c|
        the result is rounded to its format
    + LIKELY * operand_error * Q
        operands that the hardware rounds first (TF32: both to 10 bits, cut off): the error of
        each p has a random sign, so Hoeffding's inequality holds for their sum too
    + n / step * sum_error * LIKELY * Q
        each addition to the sum rounds it, at worst always to the same side; tensor cores add
        `step` products at a time and cut off
    + sqrt(n) * sum_error * LIKELY**2 * Q
        tensor cores align the products of a step to the largest number in it and cut off the
        rest: errors of random sign and at most sum_error * LIKELY * Q each (Azuma's inequality)

The reference is the same sum in float64 (`verification`). Where the product is float64 itself, its
own error is counted as well; where the operands are int8, both are exact and the bound is 0. For n
= 8192 and |c| around 90 the bound is: float64 1.5e-9, float32 0.40, TF32 1.9, float16 and bfloat16
0.28 beside the rounding of the result. The sums of FP8 keep about 14 bits on Hopper (DeepSeek-V3
technical report, section 3.3.2), so its bound is 106: that finds misplaced tiles, not wrong bits.

Hence there is a second product, of whole numbers so small that all sums are exact in the
accumulator whatever their order: at most `whole`, or for float64, float32 and TF32 the largest for
which n * m * m is exact (the TF32 format holds 11 bits of each). The true result is known exactly,
and a right one differs from it only by the rounding of the result to its format. Twice that
rounding is allowed (2 * result_error * |c|), because a library may add parts that it has rounded
already. Where the result has the format of the sums, no difference is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from acceptance.core.dtype import FIRST_CAPABILITY, DtypeName
from acceptance.core.message import Message, english
from acceptance.loads.miscompare import ReferenceKind

LIKELY = 9.0
_ACCUMULATOR_BITS = {"f64": 53, "f32": 24, "tf32": 24}


@dataclass(frozen=True, slots=True)
class Dtype:
    """One number format.

    `short` is its name in code and readings. Sizes are bytes an element; errors are relative to the
    rounded value.
    """

    short: DtypeName
    name: str
    operand_bytes: int
    result_bytes: int
    step: int
    sum_error: float
    aligned: bool = False
    operand_error: float = 0.0
    result_error: float = 0.0
    whole: int | None = None  # None: the largest that keeps the sums exact
    exact: bool = False  # all of its products are exact

    def largest(self, size: int) -> int:
        """The largest whole number in the operands of the second product.

        Raises ValueError where matrices of this size are too large for any.
        """
        bits = _ACCUMULATOR_BITS.get(self.short)
        bound = self.whole if bits is None else math.isqrt((2**bits - 1) // size)
        if not bound:
            raise ValueError(f"no whole numbers keep sums of {size} products exact in {self.name}")
        return bound

    def bound(self, size: int) -> tuple[float, float]:
        """The allowed error of an element, as a share of its own size and as a share of Q."""
        if self.exact:
            return 0.0, 0.0
        share = LIKELY * self.operand_error + size / self.step * self.sum_error * LIKELY
        if self.aligned:
            share += math.sqrt(size) * self.sum_error * LIKELY**2
        return self.result_error, share + size * 2.0**-53 * LIKELY

    def exact_sums(self, kind: ReferenceKind) -> bool:
        """Whether a right product of operands of this kind is known to the last bit."""
        return self.exact or (kind == "whole" and not self.result_error)

    def bytes_needed(self, size: int) -> int:
        """Bytes of two operands and one result."""
        return (2 * self.operand_bytes + self.result_bytes) * size**2

    def missing(self, capability: tuple[int, int]) -> Message | None:
        """Why a GPU of this compute capability lacks the format; None where it has it."""
        since = FIRST_CAPABILITY[self.short]
        if capability >= since:
            return None
        has, needs = (".".join(map(str, version)) for version in (capability, since))
        return Message(
            english(
                "format_not_native",
                "{format} is not native before compute capability {needs}, and this GPU has {has}",
            ),
            {"format": self.name, "needs": needs, "has": has},
        )


_CUT = 2.0**-23  # tensor cores truncate sums in float32
DTYPES: dict[str, Dtype] = {
    one.short: one
    for one in (
        Dtype("f64", "float64", 8, 8, step=1, sum_error=2.0**-53),
        Dtype("f32", "float32", 4, 4, step=1, sum_error=2.0**-24),
        Dtype("tf32", "TF32", 4, 4, step=4, sum_error=_CUT, aligned=True,
              operand_error=2.0**-9),
        Dtype("f16", "float16", 2, 2, step=4, sum_error=_CUT, aligned=True,
              result_error=2.0**-11, whole=7),
        Dtype("bf16", "bfloat16", 2, 2, step=4, sum_error=_CUT, aligned=True,
              result_error=2.0**-8, whole=7),
        Dtype("f8", "FP8 e4m3", 1, 2, step=32, sum_error=2.0**-13, aligned=True,
              result_error=2.0**-8, whole=2),
        Dtype("i8", "int8", 1, 4, step=1, sum_error=0.0, whole=127, exact=True),
    )
}  # fmt: skip
