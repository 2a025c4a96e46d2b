"""Verification of products: the first against other arithmetic, later ones against it.

Needs torch. Where every sum is exact, every row is checked in integers modulo 2**64
(`judge_in_integers`). Else one random row of each of 64 equal bands of rows is computed again in
float64, for which the GPU has other units than for the other formats; a product that is float64
itself is computed by the processor, from the operands as they are read back. Of such a product an
error that spans a band of 128 rows (of 8192) in any column is found; single wrong elements outside
the sampled rows are not. The whole result is searched for NaN and infinite elements. Later products
are compared with the first whole, bit for bit, by the GPU. `dtypes` derives the allowed error of a
sampled element.

Between its turns a format holds no memory: only the digest of its first product is kept. In its
next turn the operands are made again from the same seed and the product is made again. Its digest
must equal that of the first; then it takes the place of the first in bitwise comparisons.
"""

from __future__ import annotations

import itertools
import secrets
from typing import Any

from acceptance.loads.contract import OWN
from acceptance.loads.gemm.dtypes import Dtype
from acceptance.loads.gemm.product import (
    LISTED,
    Product,
    Tensor,
    difference,
    digest,
    normal,
    odd,
    spoil,
    whole_product,
    words,
    wrong_values,
)
from acceptance.loads.gemm.worker import VerificationResult
from acceptance.loads.miscompare import ReferenceKind, WrongReference, WrongValue
from acceptance.loads.mismatch import ProductDifference, RemadeDigest

BANDS = 64
_BLOCK = 1024
_ROWS = 256
_VECTORS = 4


def sampled_rows(size: int) -> list[int]:
    """One random row of each of 64 bands; all rows where there are fewer."""
    edges = [band * size // BANDS for band in range(BANDS + 1)]
    return [
        low + secrets.randbelow(high - low) for low, high in itertools.pairwise(edges) if high > low
    ]


def reference(product: Product, rows: list[int]) -> tuple[Tensor, Tensor]:
    """These rows of the product in float64, and of the product of the squares (Q**2 in `dtypes`).

    The product's own device computes them, but of a float64 product the processor: the device's
    float64 is what is to be verified.
    """
    import torch

    device = "cpu" if product.dtype.short == "f64" else product.a.device
    left = torch.stack([product.a[row].to(device).to(torch.float64) for row in rows])
    exact = torch.zeros(len(rows), product.b.shape[1], dtype=torch.float64, device=device)
    squares = torch.zeros_like(exact)
    # A GPU gives its memory to pinned host memory some ten times as fast as to other.
    room = None
    if device == "cpu" and product.b.is_cuda:
        room = torch.empty((_BLOCK, product.b.shape[1]), dtype=product.b.dtype, pin_memory=True)
    for begin in range(0, len(product.b), _BLOCK):
        block = product.b[begin : begin + _BLOCK]
        block = block.to(device) if room is None else room[: len(block)].copy_(block)
        right = block.to(torch.float64)
        part = left[:, begin : begin + _BLOCK]
        exact.addmm_(part, right)
        squares.addmm_(part.square(), right.square())
    return exact, squares


def judge_product(product: Product, kind: ReferenceKind) -> tuple[WrongReference | None, str]:
    """A finding on the product in its buffer, and a sentence on its error.

    The finding is None where the product is right.
    """
    import torch

    if product.dtype.exact_sums(kind):
        return judge_in_integers(product.dtype, product.a, product.b, product.result, kind)
    rows = sampled_rows(len(product.result))
    exact, squares = reference(product, rows)
    got = torch.stack([product.result[row].to(exact.device).to(torch.float64) for row in rows])
    own, share = product.dtype.bound(len(product.b))
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
    found = WrongReference(
        component=OWN,
        dtype=product.dtype.short,
        check=kind,
        rows=len(rows),
        elements=int(wrong.sum()),
        **strange,
        first=wrong_values(wrong, exact, got, rows=rows),
    )
    return found, text


def judge_in_integers(
    dtype: Dtype, a: Tensor, b: Tensor, result: Tensor, kind: ReferenceKind
) -> tuple[WrongReference | None, str]:
    """A finding on a product (m x k by k x n) of whole numbers, and a sentence, by Freivalds.

    The sums are exact, and so is each row times a random vector in integers modulo 2**64: all m
    rows are checked, with _VECTORS vectors each. Of wrong rows the first 64 are computed again, to
    name the elements. The finding is None where the product is right.
    Source: R. Freivalds, "Probabilistic machines can use less running time", 1977.
    """
    import torch

    rows, deep = a.shape
    bound = float(deep) * dtype.largest(deep) ** 2
    unsound = torch.cat(
        [(~_sound(result[row : row + _ROWS], bound)).sum(dim=1) for row in range(0, rows, _ROWS)]
    )
    wrong = set(unsound.nonzero().flatten().tolist())
    for _ in range(0 if wrong else _VECTORS):
        # Random anew each time, seeded by the operating system: an error that a fixed vector would
        # always miss is found by another.
        random = torch.Generator(result.device)
        random.seed()
        r = torch.randint(
            -(2**63),
            2**63 - 1,
            (1, result.shape[1]),
            device=result.device,
            generator=random,
            dtype=torch.int64,
        )
        r |= 1
        right = _times(b, r)
        differ = _times(result, r) != _times(a, right.view(1, -1))
        wrong.update(differ.nonzero().flatten().tolist())
    text = f"all {rows} rows in integers"
    if not wrong:
        return None, text
    looked = sorted(wrong)[:BANDS]
    exact, _ = reference(Product(dtype, a, b, result, lambda: None), looked)
    got = torch.stack([result[row].to(exact.device).to(torch.float64) for row in looked])
    differ = exact != got
    # The other arithmetic may not say which elements: then the rows alone are named.
    listed = wrong_values(differ, exact, got, rows=looked) or tuple(
        WrongValue(index=(row,)) for row in looked[:LISTED]
    )
    finding = WrongReference(
        component=OWN,
        dtype=dtype.short,
        check=kind,
        rows=rows,
        elements=max(len(wrong), int(differ.sum()), int(unsound.sum())),
        **odd(result),
        first=listed,
    )
    return finding, text


def _sound(part: Tensor, bound: float) -> Tensor:
    """Where the elements are whole numbers that a sum can reach; False for NaN."""
    whole = part == part.trunc() if part.is_floating_point() else True
    return (part.abs() <= bound) & whole


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    """matrix @ vector in integers modulo 2**64.

    torch has no integer matrix product on a GPU.
    """
    import torch

    return torch.cat(
        [
            (matrix[row : row + _ROWS].to(torch.int64) * vector).sum(dim=1)
            for row in range(0, len(matrix), _ROWS)
        ]
    )


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
