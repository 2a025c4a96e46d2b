"""The burn's products on a torch device, and the proof of the first of them.

The caller provides the memory of operands and results. The proof uses arithmetic that the products
themselves do not use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from acceptance.loads.burn.shape import Shape, operand_bytes
from acceptance.loads.contract import OWN
from acceptance.loads.gemm.dtypes import DTYPES, Dtype
from acceptance.loads.gemm.product import (
    LISTED,
    Product,
    Tensor,
    drawn,
    formats,
    multiplication,
    odd,
    spoil,
    wrong_values,
)
from acceptance.loads.gemm.verification import judge_product, sampled_rows
from acceptance.loads.miscompare import ReferenceKind, WrongReference, WrongValue

_PIECE = 1 << 24  # elements drawn at a time, to keep memory use low
_DIGEST_PIECE = 1 << 22
# An odd constant of SplitMix64, as a signed number.
_WEIGHT = -7046029254386353131


@dataclass(frozen=True, slots=True)
class Operands:
    """Both operands of every shape of a format, as flat memory of the format's type."""

    dtype: Dtype
    a: Tensor
    b: Tensor

    def product(self, shape: Shape, result: Tensor) -> Callable[[], None]:
        """A function that queues one product of this shape into `result` (m x n)."""
        a, b = self.views(shape)
        return multiplication(self.dtype, a, b, result)

    def views(self, shape: Shape) -> tuple[Tensor, Tensor]:
        """The operands as matrices: m x k and k x n."""
        a = self.a[: shape.m * shape.k].view(shape.m, shape.k)
        flat = self.b[: shape.k * shape.n]
        # The libraries require the second operand of one-byte formats in column order.
        b = (
            flat.view(shape.n, shape.k).t()
            if self.dtype.operand_bytes == 1
            else flat.view(shape.k, shape.n)
        )
        return a, b

    def digests(self) -> tuple[str, str]:
        """A digest of 64 bits for each operand, over its bits and their places."""
        return digest(self.a), digest(self.b)


def operands(
    dtype: Dtype, shapes: tuple[Shape, ...], kind: str, take: Callable[[int], Tensor]
) -> Operands:
    """Operands of this `kind` (normal or whole).

    `take` allocates their memory, by number of bytes.
    """
    taken, _ = formats(dtype)
    parts = [take(size).view(taken) for size in operand_bytes(dtype, shapes)]
    deepest = max(shape.k for shape in shapes)
    for order, part in enumerate(parts):
        seed = 1000 * list(DTYPES).index(dtype.short) + order + (500 if kind == "whole" else 0)
        random = torch.Generator(part.device).manual_seed(seed)
        for begin in range(0, part.numel(), _PIECE):
            piece = part[begin : begin + _PIECE]
            piece.copy_(_draw(dtype, kind, piece.numel(), deepest, random))
    return Operands(dtype, parts[0], parts[1])


def _draw(dtype: Dtype, kind: str, count: int, deepest: int, random: Any) -> Tensor:
    if kind == "whole":
        largest = dtype.largest(deepest)
        return torch.randint(
            -largest, largest + 1, (count,), device=random.device, generator=random
        )
    return drawn(dtype, (count,), random)


def digest(memory: Tensor) -> str:
    """A digest of 64 bits of a whole buffer.

    The sum of its 64-bit words, each times an odd weight of its place, so a change of one word
    always changes it. The buffer's size is a multiple of eight bytes.
    """
    flat = memory.view(-1).view(torch.uint8).view(torch.int64)
    total = torch.zeros((), dtype=torch.int64, device=flat.device)
    for begin in range(0, flat.numel(), _DIGEST_PIECE):
        piece = flat[begin : begin + _DIGEST_PIECE]
        places = torch.arange(begin, begin + piece.numel(), dtype=torch.int64, device=flat.device)
        weights = places.mul(_WEIGHT).bitwise_xor_(places >> 7).bitwise_or_(1)
        total += piece.mul(weights).sum()
    return f"{int(total) & (2**64 - 1):016x}"


# Time for the float64 products of one result, after those of the sampled rows: enough for all rows
# where float64 is fast. A GeForce has time for the sampled ones and a few blocks.
REFERENCE_S = 0.5
_ROWS = 256

ProofResult = tuple[WrongReference | None, str]


def first_proof(
    operands: Operands, shape: Shape, kind: ReferenceKind, result: Tensor, make: Any
) -> ProofResult:
    """Make a product into `result` by `make()` and check it.

    Returns a finding, or None where the product is right, and a sentence. `kind` is normal or
    whole.
    """
    spoil(result)
    make()
    dtype = operands.dtype
    if dtype.short == "f64" or dtype.exact_sums(kind):
        a, b = operands.views(shape)
        return judge_product(Product(dtype, a, b, result, lambda: None), kind)
    return _by_float64(operands, shape, kind, result)


def _by_float64(
    operands: Operands, shape: Shape, kind: ReferenceKind, result: Tensor
) -> ProofResult:
    a, b = operands.views(shape)
    wide = b.to(torch.float64)
    own, share = operands.dtype.bound(shape.k)
    if kind == "whole":
        # a library may round parts before it adds them, which rounds once more
        own, share = 2 * own, 0.0
    squares = wide.square() if share else None
    blocks = [list(range(row, min(row + _ROWS, shape.m))) for row in range(0, shape.m, _ROWS)]
    done: set[int] = set()
    elements = 0
    largest = worst = 0.0
    listed: list[WrongValue] = []
    # First a row of each of 64 bands, so that no band goes unseen where time is short.
    left = [sampled_rows(shape.m), *blocks]
    began: float | None = None
    while left:
        before_s = time.monotonic()
        rows = left.pop(0)
        part = _in_float64(a, rows)
        exact = part @ wide
        allowed = exact.abs().mul_(own)
        if squares is not None:
            allowed += (part.square() @ squares).sqrt_().mul_(share)
        got = _in_float64(result, rows)
        error = (got - exact).abs_()
        wrong = ~(error <= allowed)  # also true where the error is NaN
        here = int(wrong.sum())
        if here:  # those of a row that was looked at before are counted
            wrong[[place for place, row in enumerate(rows) if row in done]] = False
            here = int(wrong.sum())
        elements += here
        done.update(rows)
        largest = max(largest, float(error.max()))
        if share or own:
            worst = max(worst, float((error / allowed.clamp_(min=1e-300)).max()))
        if here:
            listed += wrong_values(wrong, exact, got, LISTED - len(listed), rows)
        now_s = time.monotonic()
        # The sampled rows are not counted: they come first, while the library initializes.
        spent_s = now_s - began if began is not None else 0.0
        room = int((REFERENCE_S - spent_s) / (now_s - before_s)) if spent_s else len(left)
        began = now_s if began is None else began
        # Where time is short, as many blocks as fit into it, spread evenly over the rest.
        if room < len(left):
            left = (
                [left[(2 * n + 1) * len(left) // (2 * room)] for n in range(room)]
                if room > 0
                else []
            )
    strange = odd(result)
    text = f"{len(done)} of {shape.m} rows in float64, largest error {largest:.3g}"
    text += f", at most {worst:.3g} of what is allowed" if share or own else ", none is allowed"
    if not elements and not any(strange.values()):
        return None, text
    finding = WrongReference(
        component=OWN,
        dtype=operands.dtype.short,
        check=kind,
        rows=len(done),
        elements=elements,
        **strange,
        first=tuple(listed),
    )
    return finding, text


def _in_float64(matrix: Tensor, rows: list[int]) -> Tensor:
    """These rows; one by one where they do not follow each other, as one byte has no gathering."""
    if rows[-1] - rows[0] + 1 == len(rows):
        return matrix[rows[0] : rows[-1] + 1].to(torch.float64)
    return torch.stack([matrix[row].to(torch.float64) for row in rows])
