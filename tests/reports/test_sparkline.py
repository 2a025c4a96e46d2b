"""Values over nights as one line."""

from __future__ import annotations

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.reports import report_terminal


@each(
    "values, drawn",
    [
        ([], ""),
        ([5.0], "\u2584"),
        ([5.0, 5.0], "\u2584\u2584"),
        ([0.0, 1.0], "\u2581\u2588"),
        (
            [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
            "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588",
        ),
        ([-1e308, 1e308], "\u2581\u2588"),
    ],
)
def test_from_the_least_to_the_largest(values: list[float], drawn: str) -> None:
    assert report_terminal.sparkline(values, 20, plain=False) == drawn


def test_more_values_than_letters_are_taken_together_by_their_median() -> None:
    assert report_terminal.sparkline([0.0, 9.0, 0.0, 8.0, 8.0, 1.0], 2, plain=True) == "_@"
    assert report_terminal.sparkline([1.0] * 1000 + [2.0] * 1000, 10, plain=True) == "_____@@@@@"


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=60),
    st.integers(1, 40),
    st.booleans(),
)
def test_any_values_fit(values: list[float], width: int, plain: bool) -> None:
    found = report_terminal.sparkline(values, width, plain=plain)
    assert len(found) == min(len(values), width)
    assert set(found) <= set(
        "_.-=+*#@" if plain else "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
    )
