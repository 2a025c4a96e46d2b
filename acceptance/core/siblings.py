"""Compare equal GPUs with each other."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence


def ratios(values: Mapping[str, float], siblings: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Each value by the median of the other GPUs of its model, `siblings` being the GPUs by model.

    Absent for a GPU that has no value, no sibling with one, or siblings whose median is not above
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
    """Each value less the median of the other GPUs of its model, and that median; absent where
    it or all others have none.
    """
    found = {}
    for names in siblings.values():
        for name in names:
            others = [values[other] for other in names if other != name and other in values]
            if name in values and others:
                middle = statistics.median(others)
                found[name] = (values[name] - middle, middle)
    return found
