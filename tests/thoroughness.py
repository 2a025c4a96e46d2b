"""How many examples a property is tried on, and how many cases of a table: those that a test names,
or all, in `make test-all`, and few in
`make test`. `make test-rest` runs what `make test` left out: the sweeps, and again all tests of a
module that tries fewer cases there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import ModuleType
from typing import TypeVar

ALL = os.environ.get("RIGPROOF_TESTS") == "all"
FEW = 10
T = TypeVar("T")


def examples(n: int) -> int:
    """`max_examples` for a test that names its own number."""
    return n if ALL else min(n, FEW)


def some(places: Sequence[T], n: int = FEW) -> Sequence[T]:
    """All of these in `make test-all`; else `n` of them, as far apart as they can be, the first and
    the last among them.
    """
    if ALL or len(places) <= n:
        return places
    return [places[number * (len(places) - 1) // (n - 1)] for number in range(n)]


def tries_more(module: ModuleType) -> bool:
    """Whether a module of tests takes anything from here, so that it tries more in `make test-all`
    than in `make test`.
    """
    own = globals()
    return any(vars(module).get(name) is own[name] for name in ("ALL", "examples", "some"))
