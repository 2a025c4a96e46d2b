"""Time-weighted mean and median of a GPU's reading. Pure.

Each sample counts for the time until the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, zip_longest

from acceptance.diagnosis.gpu_history import GAP_S, GpuHistory, HistoryPoint, NotMeasured

Shares = list[tuple[float, float]]  # values, each with the seconds for which it counts


def with_durations(points: Sequence[HistoryPoint]) -> list[tuple[HistoryPoint, float]]:
    """Points, each with the seconds for which it counts.

    That is its span, or the time until the next point, GAP_S at most.
    """
    found = []
    for point, following in zip_longest(points, points[1:]):
        after_s = min(GAP_S, following.began_s - point.boot_s) if following is not None else 0.0
        found.append((point, max(point.span_s or after_s, 1e-3)))
    return found


def weighted_values(
    history: GpuHistory,
    name: str,
    since_s: float,
    until_s: float,
    which: Callable[[HistoryPoint], bool] = lambda _: True,
) -> Shares:
    """The values of a reading between two moments, each with its duration.

    Only points that `which` accepts; times are seconds since boot. Raises NotMeasured where there
    are none, and as the history does.
    """
    found = []
    for point, seconds in with_durations(history.points_with(name)):
        if point.boot_s >= since_s and point.began_s <= until_s and which(point):
            within_s = min(point.boot_s, until_s) - max(point.began_s, since_s)
            found.append((point.values[name], max(within_s, 1e-3) if point.span_s else seconds))
    if not found:
        raise NotMeasured(
            "not_sampled_between",
            reading=name,
            gpu=str(history.gpu),
            since=f"{since_s:.0f}",
            until=f"{until_s:.0f}",
        )
    return found


def weighted_mean(shares: Shares) -> float:
    """The time-weighted mean."""
    return sum(value * share for value, share in shares) / sum(share for _, share in shares)


def weighted_median(shares: Shares) -> float:
    """The time-weighted median."""
    ordered = sorted(shares)
    until = list(accumulate(share for _, share in ordered))
    return next(
        value
        for (value, _), reached in zip(ordered, until, strict=True)
        if reached >= until[-1] / 2
    )
