"""The arithmetic of a basis, such as "0.58 x 82.6 (dense peak)". Pure.

A basis is a sentence for people. If it holds a product with a share, or begins with one, that must
give the floor. One without a product is a note.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from acceptance.core.limit import number
from acceptance.core.message import UserError

_NUMBER = r"\d+(?:[.,]\d+)*"
_UNIT = r"(?: ?(?:T(?:FL)?OP/s|GFLOP/s|GB/s|MB/s|MHz|W))?"
_PER_CENT = r" ?(?:%|per ?cent\b)"
_FACTOR = rf"{_NUMBER}(?:{_PER_CENT})?{_UNIT}"
_TIMES = r" ?(?:x|X|\u00d7|\u00b7|\*|times|of) ?"
_PRODUCT = re.compile(rf"(?<![\w.,]){_FACTOR}(?:{_TIMES}{_FACTOR})+(?![\w])")
_FACTORS = re.compile(rf"({_NUMBER})({_PER_CENT})?")


class Product(NamedTuple):
    """A product in a basis: its text and its factors."""

    text: str
    factors: tuple[float, ...]

    @property
    def value(self) -> float:
        """What it gives."""
        return math.prod(self.factors)


def product(basis: str) -> Product | None:
    """The product that a basis says its floor comes from, or None.

    Sizes such as 8192 x 8192 are none. Raises UserError for a number with a comma.
    """
    for match in _PRODUCT.finditer(basis):
        text = match[0].strip()
        if " of " in text and not re.search(_PER_CENT, text) and not _begins_with_a_share(match):
            continue  # "52 of 82.6" compares two figures
        if "," in text:
            told = "write its numbers with a point, and no comma"
            raise UserError(f"{text!r} cannot be calculated: {told}")
        factors = [
            float(one) / 100 if per_cent else float(one) for one, per_cent in _FACTORS.findall(text)
        ]
        begins = match.start() == 0 and "." in text
        if begins or min(factors) < 1:
            return Product(text, tuple(factors))
    return None


def _begins_with_a_share(match: re.Match[str]) -> bool:
    return match.start() == 0 and match[0].startswith("0.")


def check(basis: str, low: float, digits: int) -> None:
    """Hold the product of a basis against the floor, to so many digits.

    Raises UserError where it gives another value.
    """
    found = product(basis)
    if found is None:
        return
    step = 10.0 ** (math.floor(math.log10(low)) + 1 - digits)
    if not abs(found.value - low) < step * (1 + 1e-9):
        told = f"{found.text} is {number(found.value)}, and low is {number(low)}"
        raise UserError(f"{told}: correct the one that is wrong")
