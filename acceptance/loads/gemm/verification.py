"""Whether products are right: the first against the processor's own arithmetic, later ones against
the first.

Needs torch.

One row at random of each of 64 equal bands of rows is computed again on the processor, in float64,
from the operands as they are read back: whatever spoils a band of 128 rows (of 8192) in any column
is seen, and single wrong elements outside the sampled rows are not. Elements that are no number or
infinite are looked for in the whole result. Later products are compared with the first whole, bit
for bit, by the GPU. How much a sampled element may differ is derived in `dtypes`.

Between its turns a format holds no memory. Of its first product the digest is kept; in its next
turn the operands are made again from the same seed, the product is made again, and its digest must
be that of the first. Then it stands for the first in comparisons bit for bit.
"""

from __future__ import annotations

import itertools
import secrets
from dataclasses import dataclass
from typing import Any

from acceptance.loads.gemm.dtypes import Dtype
from acceptance.loads.gemm.product import (
    Product,
    Tensor,
    difference,
    digest,
    normal,
    odd,
    spoil,
    whole_product,
    words,
)

BANDS = 64
_BLOCK = 1024
_LISTED = 4


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """What was found wrong with the first products, one entry a product, and
    what to tell of them.
    """

    findings: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]


def sampled_rows(size: int) -> list[int]:
    """A row at random of each of 64 bands; all rows where there are fewer."""
    edges = [band * size // BANDS for band in range(BANDS + 1)]
    return [
        low + secrets.randbelow(high - low) for low, high in itertools.pairwise(edges) if high > low
    ]


def reference(product: Product, rows: list[int]) -> tuple[Tensor, Tensor]:
    """These rows of the product in float64 on the processor, and of the product of the squares
    (Q**2 in `dtypes`).
    """
    import torch

    left = torch.stack([product.a[row].cpu().to(torch.float64) for row in rows])
    exact = torch.zeros(len(rows), product.b.shape[1], dtype=torch.float64)
    squares = torch.zeros_like(exact)
    for begin in range(0, len(product.b), _BLOCK):
        right = product.b[begin : begin + _BLOCK].cpu().to(torch.float64)
        part = left[:, begin : begin + _BLOCK]
        exact.addmm_(part, right)
        squares.addmm_(part.square(), right.square())
    return exact, squares


def judge_product(product: Product, kind: str) -> tuple[dict[str, Any] | None, str]:
    """What is wrong with a product as it stands in its buffer, and a sentence on how far it is
    from right; `kind` is normal or whole.
    """
    import torch

    rows = sampled_rows(len(product.result))
    exact, squares = reference(product, rows)
    got = torch.stack([product.result[row].cpu().to(torch.float64) for row in rows])
    own, share = product.dtype.bound(len(product.a))
    allowed = (
        2 * own * exact.abs() if kind == "whole" else own * exact.abs() + share * squares.sqrt()
    )
    error = (got - exact).abs()
    wrong = ~(error <= allowed)  # also where the error is no number
    strange = odd(product.result)
    text = f"largest error {float(error.max()):.3g}"
    if bool((allowed > 0).any()):
        text += (
            f", at most {float(torch.where(error > 0, error / allowed, 0.0).max()):.3g} of "
            "what "
            "is allowed"
        )
    else:
        text += ", none is allowed"
    if not wrong.any() and not any(strange.values()):
        return None, text
    listed = [
        {"index": [rows[i], j], "expected": repr(float(exact[i, j])), "got": repr(float(got[i, j]))}
        for i, j in wrong.nonzero()[:_LISTED].tolist()
    ]
    found = {
        "check": kind,
        "rows": len(rows),
        "elements": int(wrong.sum()),
        **strange,
        "first": listed,
    }
    return found, text


class FormatTrial:
    """One format under test: its judged product while it has its turn, what is known of it, and
    the comparison of every later one.
    """

    def __init__(self, dtype: Dtype, size: int, device: str) -> None:
        self._dtype, self._size, self._device = dtype, size, device
        self._product: Any = normal(dtype, size, device)  # None between turns, as the first is
        self._first: Tensor = None
        self._digest = ""

    def multiply(self) -> None:
        """Give the device one product to make."""
        self._product.multiply()

    def verify(self) -> VerificationResult:
        """Make the first product, keep it, and check it; then one of whole numbers, unless the
        first was of such (int8).
        """
        self._keep()
        self._digest = digest(self._first)
        found, text = judge_product(self._product, "normal")
        findings = [found]
        notes = [f"normal-random operands: {text}; digest of the result {self._digest}"]
        if not self._dtype.exact:
            second = whole_product(self._dtype, self._size, self._device)
            spoil(second.result)
            second.multiply()
            found, text = judge_product(second, "whole")
            findings.append(found)
            notes.append(f"whole numbers up to {self._dtype.largest(self._size)}: {text}")
        return VerificationResult(tuple(one for one in findings if one is not None), tuple(notes))

    def release(self) -> None:
        """Give the memory back; `remake` comes before the next product."""
        self._product = self._first = None

    def remake(self) -> dict[str, Any] | None:
        """Make operands and first product again, after `release`; how its digest differs from
        that of the first, None when it does not.
        """
        self._product = normal(self._dtype, self._size, self._device)
        self._keep()
        got = digest(self._first)
        return (
            None
            if got == self._digest
            else {"expected": self._digest, "got": got, **odd(self._first)}
        )

    def _keep(self) -> None:
        """Make a product over a spoiled buffer, and keep it as the first."""
        spoil(self._product.result)
        self._product.multiply()
        self._first = self._product.result.clone()

    def spoil(self) -> None:
        """Overwrite the result, so that the next comparison is of a product made after this."""
        spoil(self._product.result)

    def compare(self, *, falsify: bool = False) -> dict[str, Any] | None:
        """How the result in the buffer differs from the first product; None when it has the same
        bits.

        `falsify` changes a bit before.
        """
        if falsify:
            middle = self._size // 2
            bits = words(self._product.result)
            bits[middle, middle] = bits[middle, middle] ^ 1
        return difference(self._first, self._product.result)
