"""What a past is, in words."""

from __future__ import annotations

from cases import each
from drift_nights import looks, past, rule, steady

from acceptance.core.message import Message
from acceptance.core.past import Bounds, FirstNights, Past
from acceptance.wording import words
from acceptance.wording.drift import basis as basis_of
from acceptance.wording.drift import date, first_nights, nights


def basis(found: Past, unit: str = "TFLOP/s") -> str:
    return words.message(Message("note", {"text": basis_of(found, unit)}))


def test_days_are_dates_and_nights_are_counted() -> None:
    assert (date(0.0), date(20779.99), date(20780.0)) == ("1970-01-01", "2026-11-22", "2026-11-23")
    assert [words.message(nights(count)) for count in (1, 2)] == ["1 night", "2 nights"]


def test_the_basis_says_what_the_past_consists_of() -> None:
    found = past(looks(steady(30), first=20000.0), born=601.25)
    told = basis(found)
    assert "median of 28 nights 6" in told
    assert "one deviation" in told
    assert "4.5 of it allowed" in told
    assert "baseline of 2024-10-04 and 27 nights after it 6" in told
    assert "re-based" not in told


def test_the_basis_says_what_was_rebased() -> None:
    found = past(looks(steady(5)), born=700.0, rebased=True)
    assert found.first is None
    assert "re-based: the baseline was taken with another image, station or driver" in basis(
        found, "W"
    )


def test_the_basis_of_what_never_moves_names_no_deviation() -> None:
    found = past(looks([16.0] * 5), of=rule("gpu_link_width", "count"))
    assert basis(found, "count") == "median of 5 nights 16"


def test_the_basis_names_the_first_nights_where_there_is_no_baseline() -> None:
    assert "first 28 nights from 1970-04-11 on 6" in basis(past(looks(steady(60))))


def test_the_basis_counts_the_nights_after_the_baseline() -> None:
    assert "baseline of 1970-04-11 and 1 night after it 600 TFLOP/s" in basis(
        past(looks([600.0, 600.0]), born=600.0)
    )


def test_the_basis_of_a_baseline_alone_is_the_baseline() -> None:
    assert basis(past(looks([600.0]), born=600.0)) == "baseline of 1970-04-11 600 TFLOP/s"


@each("count, more", [(1, ""), (2, " and 1 night after it"), (3, " and 2 nights after it")])
def test_the_nights_after_the_baseline_are_counted(count: int, more: str) -> None:
    assert (
        words.message(
            first_nights(FirstNights(605.0, count, 20454.0, Bounds(low=570.0), baseline=True))
        )
        == f"baseline of 2026-01-01{more}"
    )


def test_the_basis_of_a_counter_is_its_source() -> None:
    found = past(looks([3.0]), of=rule("gpu_ecc_corrected_total", "count"))
    assert "mcelog" in basis(found, "count")
