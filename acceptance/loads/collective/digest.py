"""A digest of the bits of a buffer, and which ranks hold others. Pure.

The words of a buffer, each times an odd number of its place, are added modulo 2**64. One changed
word always changes the digest, as an odd number has an inverse; of several changed words one in
2**64 goes unseen. Words are arrays of int64, of numpy or torch alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from acceptance.core.parts import Component
from acceptance.loads.collective.pattern import Array, mixed
from acceptance.loads.miscompare import DifferingDigests
from acceptance.loads.protocol import Output

_MODULUS = 1 << 64


def part(places: Array, words: Array) -> int:
    """The sum over these places; a digest is the sum of those of all places."""
    return int(((mixed(places) | 1) * words).sum()) % _MODULUS


def digest(parts: list[int]) -> str:
    """The digest of a buffer, from those of its pieces, in hexadecimal digits."""
    return f"{sum(parts) % _MODULUS:016x}"


def differing(digests: Mapping[Component, str]) -> dict[str, tuple[Component, ...]]:
    """The components by digest where not all have the same one; else empty."""
    found: dict[str, tuple[Component, ...]] = {}
    for component, one in digests.items():
        found[one] = (*found.get(one, ()), component)
    return found if len(found) > 1 else {}


def report_differing(
    output: Output, digests: Mapping[Component, str], found: str
) -> dict[str, tuple[Component, ...]]:
    """Report components with different digests of what must be the same; `found` says what.

    Returns them by digest; empty where all have the same one.
    """
    groups = differing(digests)
    if groups:
        output.miscompare(DifferingDigests(check="digest", found=found, digests=groups))
    return groups
