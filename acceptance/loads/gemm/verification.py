"""Verification of products: the first against the processor's arithmetic, later ones against it.

Needs torch. The processor computes one random row of each of 64 equal bands of rows again, in
float64, from the operands as they are read back. An error that spans a band of 128 rows (of 8192)
in any column is found; single wrong elements outside the sampled rows are not. The whole result is
searched for NaN and infinite elements. Later products are compared with the first whole, bit for
bit, by the GPU. `dtypes` derives the allowed error of a sampled element.

Between its turns a format holds no memory: only the digest of its first product is kept. In its
next turn the operands are made again from the same seed and the product is made again. Its digest
must equal that of the first; then it takes the place of the first in bitwise comparisons.
"""

from __future__ import annotations

import itertools
import secrets
from dataclasses import dataclass
from typing import Any

from acceptance.loads.gemm.dtypes import Dtype
from acceptance.loads.gemm.product import (
    OddCounts,
    Product,
    ProductDifference,
    Tensor,
    difference,
    digest,
    normal,
    odd,
    spoil,
    whole_product,
    words,
)
from acceptance.loads.miscompare import ReferenceKind, WrongReference, WrongValue
from acceptance.loads.names import OWN

BANDS = 64
_BLOCK = 1024
_LISTED = 4


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """The findings on the first products, one entry a product, and notes about them."""

    findings: tuple[WrongReference, ...]
    notes: tuple[str, ...]


def sampled_rows(size: int) -> list[int]:
    """One random row of each of 64 bands; all rows where there are fewer."""
    edges = [band * size // BANDS for band in range(BANDS + 1)]
    return [
        low + secrets.randbelow(high - low) for low, high in itertools.pairwise(edges) if high > low
    ]


def reference(product: Product, rows: list[int]) -> tuple[Tensor, Tensor]:
    """These rows of the product in float64 on the processor, and of the product of the squares.

    The latter is Q**2 in `dtypes`.
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


def judge_product(product: Product, kind: ReferenceKind) -> tuple[WrongReference | None, str]:
    """A finding on the product in its buffer, and a sentence on its error.

    The finding is None where the product is right.
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
    wrong = ~(error <= allowed)  # also true where the error is NaN
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
    listed = tuple(
        WrongValue(
            index=(rows[i], j),
            expected=repr(float(exact[i, j])),
            got=repr(float(got[i, j])),
        )
        for i, j in wrong.nonzero()[:_LISTED].tolist()
    )
    found = WrongReference(
        component=OWN,
        dtype=product.dtype.short,
        check=kind,
        rows=len(rows),
        elements=int(wrong.sum()),
        **strange,
        first=listed,
    )
    return found, text


class RemadeDigest(OddCounts):
    """The digest of a first product, and that of the same product made again, with its oddities."""

    expected: str
    got: str


class FormatTrial:
    """One format under test: its product, the digest of the first one, and comparisons with it."""

    def __init__(self, dtype: Dtype, size: int, device: str) -> None:
        self._dtype, self._size, self._device = dtype, size, device
        self._product: Any = normal(dtype, size, device)  # None between turns, like `_first`
        self._first: Tensor = None
        self._digest = ""

    def multiply(self) -> None:
        """Queue one product."""
        self._product.multiply()

    def verify(self) -> VerificationResult:
        """Make the first product, keep it, and check it; then check one of whole numbers.

        The second is left out where the first was of whole numbers (int8).
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
        """Free the memory; call `remake` before the next product."""
        self._product = self._first = None

    def remake(self) -> RemadeDigest | None:
        """Make operands and first product again, after `release`.

        Returns how the digest differs from that of the first; None where it does not.
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
        """Overwrite the result, so that the next comparison is of a later product."""
        spoil(self._product.result)

    def compare(self, *, falsify: bool = False) -> ProductDifference | None:
        """How the result in the buffer differs from the first product; None where it does not.

        The comparison is bitwise. `falsify` inverts one bit of the result first.
        """
        if falsify:
            middle = self._size // 2
            bits = words(self._product.result)
            bits[middle, middle] = bits[middle, middle] ^ 1
        return difference(self._first, self._product.result)
