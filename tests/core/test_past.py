"""What a past is: bounds, and few bytes of a plan."""

from __future__ import annotations

import math

import msgspec
from cases import each
from drift_nights import looks, past, steady

from acceptance.core.past import Bounds, FirstNights, Past


@each(
    "bounds, within, beyond",
    [
        (Bounds(low=5.0), (5.0, 1e9), (4.999, math.nan, -math.inf)),
        (Bounds(high=5.0), (5.0, -1e9), (5.001, math.nan, math.inf)),
        (Bounds(0.0, 5.0), (0.0, 5.0), (-0.1, 5.1, math.nan)),
        (Bounds(high=0.0), (0.0, -1.0), (0.1,)),
    ],
)
def test_bounds_are_allowed_values(
    bounds: Bounds, within: tuple[float, ...], beyond: tuple[float, ...]
) -> None:
    assert not any(map(bounds.beyond, within))
    assert all(map(bounds.beyond, beyond))


def test_a_past_is_small_in_the_plan_and_comes_back_whole() -> None:
    found = past(looks(steady(160), first=20000.0), born=600.0123456789)
    text = msgspec.json.encode(found)
    assert len(text) < 270
    assert msgspec.json.decode(text, type=Past) == found


@each(
    "decides, kind, why",
    [(True, "step", "too_few_nights"), (False, "changed", "worse_side_unknown")],
)
def test_beyond_too_few_nights_is_a_warning(decides: bool, kind: str, why: str) -> None:
    found = Past(decides, 3, 14, few=FirstNights(100.0, 3, 0.0, Bounds(90.0, 110.0)))
    assert found.judge("W", 95.0).findings == ()
    (warning,) = found.judge("W", 85.0).findings
    assert (warning.kind, warning.what, warning.why) == ("warn", kind, why)
