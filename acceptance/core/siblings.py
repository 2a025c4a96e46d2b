"""Compare equal GPUs with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acceptance.core.usual import median


def ratios(values: Mapping[str, float], siblings: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Each value divided by the median of its siblings; `siblings` are the GPUs by model.

    A GPU is absent where it has no value, no sibling has one, or the siblings' median is not above
    0.
    """
    found = ((name, ratio(name, values, names)) for names in siblings.values() for name in names)
    return {name: one for name, one in found if one is not None}


def ratio(name: str, values: Mapping[str, float], among: Sequence[str]) -> float | None:
    """One value divided by the median of its siblings; None where `ratios` leaves it out."""
    others = [values[other] for other in among if other != name and other in values]
    if name not in values or not others or not (middle := median(others)) > 0:
        return None
    return values[name] / middle


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
                middle = median(others)
                found[name] = (values[name] - middle, middle)
    return found
