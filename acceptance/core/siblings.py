"""Compare equal GPUs with each other."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence


def ratios(values: Mapping[str, float], siblings: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Each value divided by the median of its siblings; `siblings` are the GPUs by model.

    A GPU is absent where it has no value, no sibling has one, or the siblings' median is not above
    0.
    """
    found = {}
    for names in siblings.values():
        for name in names:
            others = [values[other] for other in names if other != name and other in values]
            if name in values and others and (middle := statistics.median(others)) > 0:
                found[name] = values[name] / middle
    return found


def spreads(
    values: Mapping[str, float], siblings: Mapping[str, Sequence[str]]
) -> dict[str, tuple[float, float]]:
    """Each value minus the median of its siblings, and that median.

    A GPU is absent where it has no value or no sibling has one.
    """
    found = {}
    for names in siblings.values():
        for name in names:
            others = [values[other] for other in names if other != name and other in values]
            if name in values and others:
                middle = statistics.median(others)
                found[name] = (values[name] - middle, middle)
    return found
