"""Values weighed by the time for which they stand: single samples until the
next one, spans for themselves.
"""

from __future__ import annotations

import pytest

from acceptance.diagnosis.gpu_history import GAP_S, GpuHistory, HistoryPoint
from acceptance.diagnosis.steady_state import (
    weighted_mean,
    weighted_median,
    weighted_values,
    with_durations,
)

# Three samples, silence, a span of 10 s that ends at 130, and one more.
POINTS = (
    HistoryPoint(100.0, {"x": 1.0}),
    HistoryPoint(100.2, {"x": 2.0}),
    HistoryPoint(101.2, {"x": 3.0}),
    HistoryPoint(130.0, {"x": 4.0}, 10.0),
    HistoryPoint(131.0, {"x": 5.0}),
)
HISTORY = GpuHistory("gpu0", POINTS)


def test_how_long_each_stands() -> None:
    assert [seconds for _, seconds in with_durations(POINTS)] == pytest.approx(
        [0.2, 1.0, GAP_S, 10.0, 0.001]
    )


def test_what_was_sampled_between_two_moments() -> None:
    assert weighted_values(HISTORY, "x", 100.1, 101.2) == [(2.0, pytest.approx(1.0)), (3.0, GAP_S)]
    assert weighted_values(HISTORY, "x", 122.0, 126.0) == [(4.0, 4.0)], (
        "of a span, what lies between them"
    )
    assert weighted_values(HISTORY, "x", 100.2, 100.5) == [(2.0, pytest.approx(1.0))], (
        "a sample of the first moment counts"
    )
    assert weighted_values(HISTORY, "x", 130.0, 130.5) == [(4.0, 0.001)], (
        "a span that ends as it begins counts for a moment"
    )
    assert weighted_values(HISTORY, "x", 90.0, 140.0, lambda point: point.span_s > 0) == [
        (4.0, 10.0)
    ]


def test_what_was_not_sampled() -> None:
    with pytest.raises(ValueError, match="x of gpu0 was not sampled from 105 to 110 s after boot"):
        weighted_values(HISTORY, "x", 105.0, 110.0)
    with pytest.raises(ValueError, match="y of gpu0 was never sampled"):
        weighted_values(HISTORY, "y", 100.0, 140.0)


def test_means_and_medians_are_by_time() -> None:
    assert weighted_mean([(1.0, 3.0), (5.0, 1.0)]) == 2.0
    assert weighted_median([(5.0, 1.0), (1.0, 3.0)]) == 1.0
    assert weighted_median([(5.0, 3.0), (1.0, 1.0), (9.0, 1.0)]) == 5.0
    assert weighted_median([(7.0, 0.001)]) == 7.0
    assert weighted_median([(1.0, 2.0), (5.0, 2.0)]) == 1.0, "below 5 for half of the time"
    assert weighted_median([(1.0, 1.4), (5.0, 2.0)]) == 5.0, "above 1 for more than half of it"
