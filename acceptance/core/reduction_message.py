"""What a run does less of than its profile, as messages."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.core.message import Listed, Message
from acceptance.core.plan import Reduction

MOST_LOADS = 3


def of(reduction: Reduction) -> Message:
    """One load that is less than the profile's own."""
    values = {
        "load": reduction.load,
        "planned": f"{round(reduction.planned, 2):g}",
        "own": f"{round(reduction.own, 2):g}",
        "unit": reduction.unit,
    }
    return Message("load_shortened", values)


def of_all(reductions: Sequence[Reduction]) -> Message:
    """All of them in a list: the first few, and how many more."""
    told = tuple(map(of, reductions[:MOST_LOADS]))
    loads = Listed(told, len(reductions) - len(told))
    return Message("loads_shortened", {"loads": loads})
