from __future__ import annotations

import time

import pytest

from acceptance.process.deadline import Deadline


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock, to be moved by hand."""
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return clock


def test_it_comes_nearer_and_stays_passed(now: list[float]) -> None:
    deadline = Deadline.after(5)
    assert (deadline.remaining(), deadline.passed()) == (5.0, False)
    now[0] += 4.5
    assert (deadline.remaining(), deadline.passed()) == (0.5, False)
    now[0] += 0.5
    assert (deadline.remaining(), deadline.passed()) == (0.0, True)
    now[0] += 100
    assert (deadline.remaining(), deadline.passed()) == (0.0, True)


def test_one_that_is_passed_down_never_grows(now: list[float]) -> None:
    deadline = Deadline.after(5)
    assert deadline.sooner(2) == Deadline(102.0)
    assert deadline.sooner(60) == deadline
    now[0] += 4
    assert deadline.sooner(2) == deadline
