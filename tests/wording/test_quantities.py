"""Values and bounds with their units."""

from __future__ import annotations

from cases import each

from acceptance.core.limit import Limit
from acceptance.wording.words import limit_text, quantity


@each(
    "limit, text",
    [
        (Limit("GB/s", "b", low=100.0), ">= 100 GB/s"),
        (Limit("GB/s", "b", high=0.0), "<= 0 GB/s"),
        (Limit("count", "b", high=0.0), "<= 0"),
        (Limit("ratio", "b", low=0.9), ">= 0.9"),
        (Limit("count", "b", low=8.0, high=8.0), "= 8"),
        (Limit("degC", "b", low=5.0, high=100.0, warn_high=95.0), "5 .. 100 degC"),
    ],
)
def test_a_limit_as_text(limit: Limit, text: str) -> None:
    assert limit_text(limit) == text


def test_counts_and_ratios_are_bare_and_the_rest_carry_their_unit() -> None:
    assert (quantity(3, "count"), quantity(0.95, "ratio"), quantity(3, "W")) == ("3", "0.95", "3 W")
