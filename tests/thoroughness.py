"""How many examples a property is tried on: those that a test names in `make test-all`, at most ten in `make test`."""

from __future__ import annotations

import os

ALL = os.environ.get("RIGPROOF_TESTS") == "all"
FEW = 10


def examples(n: int) -> int:
    """`max_examples` for a test that names its own number."""
    return n if ALL else min(n, FEW)
