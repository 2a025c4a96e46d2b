from __future__ import annotations

import pytest
from card_of_tests import FakeCard
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.loads.card import take, times_for
from acceptance.loads.gemm.worker import settled_rate, sustain


def test_a_piece_of_work_is_timed_by_the_cards_clock() -> None:
    card = FakeCard(lambda _: 0.25)
    assert take(card, card.work, 4) == 1.0
    assert card.done == 4


@each(
    "seconds, one_s, times",
    [(0.1, 0.01, 10), (0.1, 0.03, 4), (0.1, 5.0, 1), (0.1, 0.0, 10000), (10.0, 1e-5, 10000)],
)
def test_how_often_fills_a_time(seconds: float, one_s: float, times: int) -> None:
    assert times_for(seconds, one_s) == times


def test_the_card_is_kept_at_it_for_the_time() -> None:
    card = FakeCard()
    told: list[float] = []
    marks = sustain(card, card.work, 1.0, 0.001, told.append)
    assert marks[0] == (0.0, 0)
    assert marks[-1] == (pytest.approx(card.now), card.done)
    assert 1.0 <= card.now < 1.1
    assert told == [seconds for seconds, _ in marks[1:]]
    assert [done for _, done in marks] == list(range(0, card.done + 1, 20))
    assert settled_rate(marks) == pytest.approx(1000)


@given(st.floats(1e-4, 0.3), st.floats(0.3, 3.0), st.floats(0.05, 2.0))
def test_whatever_one_product_was_thought_to_take(
    real_s: float, wrong_by: float, seconds: float
) -> None:
    card = FakeCard(lambda _: real_s)
    marks = sustain(card, card.work, seconds, real_s * wrong_by, lambda _: None)
    assert card.now >= seconds
    assert card.done == marks[-1][1]
    assert settled_rate(marks) == pytest.approx(1 / real_s)


def test_slow_work_is_not_given_far_beyond_the_time() -> None:
    card = FakeCard(lambda _: 4.0)
    assert sustain(card, card.work, 6.0, 4.0, lambda _: None) == [(0.0, 0), (4.0, 1), (8.0, 2)]


def test_only_the_last_half_counts() -> None:
    card = FakeCard(lambda now: 0.001 if now < 2 else 0.002)
    marks = sustain(card, card.work, 6.0, 0.001, lambda _: None)
    assert settled_rate(marks) == pytest.approx(500)
    assert settled_rate([(0.0, 0), (4.0, 1)]) == 0.25
    assert settled_rate([(0.0, 0), (4.0, 1), (9.0, 2)]) == 0.2
    assert settled_rate([(0.0, 0), (4.0, 1), (7.9, 2)]) == 2 / 7.9
