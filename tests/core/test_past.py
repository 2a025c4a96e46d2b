"""What a past is, in bounds and words."""

from __future__ import annotations

import math

import msgspec
from cases import each
from drift_nights import looks, past, rule, steady

from acceptance.core.past import (
    Bounds,
    FirstNights,
    Past,
    date,
    describe_first_nights,
    nights,
)


@each(
    "bounds, within, beyond, words",
    [
        (Bounds(low=5.0), (5.0, 1e9), (4.999, math.nan, -math.inf), ">= 5 W"),
        (Bounds(high=5.0), (5.0, -1e9), (5.001, math.nan, math.inf), "<= 5 W"),
        (Bounds(0.0, 5.0), (0.0, 5.0), (-0.1, 5.1, math.nan), "0 .. 5 W"),
        (Bounds(high=0.0), (0.0, -1.0), (0.1,), "<= 0 W"),
    ],
)
def test_bounds_are_allowed_values(
    bounds: Bounds, within: tuple[float, ...], beyond: tuple[float, ...], words: str
) -> None:
    assert not any(map(bounds.beyond, within))
    assert all(map(bounds.beyond, beyond))
    assert bounds.words("W") == words


def test_days_are_dates_and_nights_are_counted() -> None:
    assert (date(0.0), date(20779.99), date(20780.0)) == ("1970-01-01", "2026-11-22", "2026-11-23")
    assert (nights(1), nights(2)) == ("1 night", "2 nights")


def test_the_basis_says_what_the_past_consists_of() -> None:
    found = past(looks(steady(30), first=20000.0), born=601.25)
    told = found.basis("TFLOP/s")
    assert "median of 28 nights 6" in told
    assert "one deviation" in told
    assert "4.5 of it allowed" in told
    assert "baseline of 2024-10-04 and 27 nights after it 6" in told
    assert "re-based" not in told


def test_the_basis_says_what_was_rebased() -> None:
    found = past(looks(steady(5)), born=700.0, rebased=True)
    assert found.first is None
    assert "re-based: the baseline was taken with another image, station or driver" in found.basis(
        "W"
    )


def test_the_basis_of_what_never_moves_names_no_deviation() -> None:
    found = past(looks([16.0] * 5), of=rule("gpu_link_width", "count"))
    assert found.basis("count") == "median of 5 nights 16"


def test_the_basis_names_the_first_nights_where_there_is_no_baseline() -> None:
    assert "first 28 nights from 1970-04-11 on 6" in past(looks(steady(60))).basis("TFLOP/s")


def test_the_basis_counts_the_nights_after_the_baseline() -> None:
    assert "baseline of 1970-04-11 and 1 night after it 600 TFLOP/s" in past(
        looks([600.0, 600.0]), born=600.0
    ).basis("TFLOP/s")


def test_the_basis_of_a_baseline_alone_is_the_baseline() -> None:
    assert past(looks([600.0]), born=600.0).basis("TFLOP/s") == "baseline of 1970-04-11 600 TFLOP/s"


@each("count, words", [(1, ""), (2, " and 1 night after it"), (3, " and 2 nights after it")])
def test_the_nights_after_the_baseline_are_counted(count: int, words: str) -> None:
    assert (
        describe_first_nights(FirstNights(605.0, count, 20454.0, Bounds(low=570.0), baseline=True))
        == f"baseline of 2026-01-01{words}"
    )


def test_the_basis_of_a_counter_is_its_source() -> None:
    found = past(looks([3.0]), of=rule("gpu_ecc_corrected_total", "count"))
    assert "mcelog" in found.basis("count")


def test_a_past_is_small_in_the_plan_and_comes_back_whole() -> None:
    found = past(looks(steady(160), first=20000.0), born=600.0123456789)
    text = msgspec.json.encode(found)
    assert len(text) < 270
    assert msgspec.json.decode(text, type=Past) == found
