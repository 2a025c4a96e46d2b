"""The comparison of a burn's results by plain torch operations, on any device.

It is the reference for our kernel, and in its place where there is no GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acceptance.loads.burn.shape import Counts
from acceptance.loads.gemm.product import Tensor, words


class TorchComparator:
    """The reference: plain torch operations, on any device."""

    def start(self, expected: Tensor, results: Sequence[Tensor], kind: int) -> Any:
        """Implements `KernelComparator`."""
        found = []
        for one in results:
            differs = words(one) != words(expected)
            odd = (one[differs].isnan().sum(), one[differs].isinf().sum()) if kind else (0, 0)
            found.append((int(differs.sum()), int(odd[0]), int(odd[1])))
        return found

    def counts(self, ticket: Any) -> list[Counts]:
        """Implements `KernelComparator`."""
        found: list[Counts] = ticket
        return found
