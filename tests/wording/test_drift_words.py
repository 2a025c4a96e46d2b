"""What a past is, in words."""

from __future__ import annotations

from cases import each
from drift_nights import looks, past, rule, steady

from acceptance.core.message import Message
from acceptance.core.past import Bounds, FirstNights, Past
from acceptance.wording import words
from acceptance.wording.drift import basis as basis_of
from acceptance.wording.drift import date, first_nights


def basis(found: Past, unit: str = "TFLOP/s") -> str:
    return words.message(Message("note", {"text": basis_of(found, unit)}))


@each(
    "found, unit, parts",
    [
        (
            past(looks(steady(30), first=20000.0), born=601.25),
            "TFLOP/s",
            (
                "median of 28 nights 6",
                "one deviation",
                "4.5 of it allowed",
                "baseline of 2024-10-04 and 27 nights after it 6",
            ),
        ),
        (past(looks(steady(60))), "TFLOP/s", ("first 28 nights from 1970-04-11 on 6",)),
        (
            past(looks([600.0, 600.0]), born=600.0),
            "TFLOP/s",
            ("baseline of 1970-04-11 and 1 night after it 600 TFLOP/s",),
        ),
        (past(looks([3.0]), of=rule("gpu_ecc_corrected_total", "count")), "count", ("mcelog",)),
    ],
    told=[
        "a median, its deviation and the baseline",
        "the first nights where there is no baseline",
        "the nights after the baseline are counted",
        "that of a counter is its source",
    ],
)
def test_the_basis_says_what_the_past_consists_of(
    found: Past, unit: str, parts: tuple[str, ...]
) -> None:
    told = basis(found, unit)
    assert [part for part in parts if part not in told] == []
    assert "re-based" not in told


@each(
    "found, unit, told",
    [
        (
            past(looks([16.0] * 5), of=rule("gpu_link_width", "count")),
            "count",
            "median of 5 nights 16",
        ),
        (past(looks([600.0]), born=600.0), "TFLOP/s", "baseline of 1970-04-11 600 TFLOP/s"),
    ],
    told=["what never moves names no deviation", "a baseline alone is the baseline"],
)
def test_the_whole_basis(found: Past, unit: str, told: str) -> None:
    assert basis(found, unit) == told
    rebased = past(looks(steady(5)), born=700.0, rebased=True)
    assert rebased.first is None
    assert "re-based: the baseline was taken with another image" in basis(rebased, "W")


@each("count, more", [(1, ""), (2, " and 1 night after it"), (3, " and 2 nights after it")])
def test_days_are_dates_and_the_nights_after_the_baseline_are_counted(
    count: int, more: str
) -> None:
    first = FirstNights(605.0, count, 20454.0, Bounds(low=570.0), baseline=True)
    assert words.message(first_nights(first)) == f"baseline of 2026-01-01{more}"
    days = (date(0.0), date(20779.99), date(20780.0))
    assert days == ("1970-01-01", "2026-11-22", "2026-11-23")
