from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from acceptance.loads.copy.pattern import TransferFault
from acceptance.loads.copy.tally import REPORTED, CopyTally, measure_copies
from acceptance.loads.miscompare import WrongTransfer

FAULT: TransferFault = {"words": 1, "unwritten": 0, "first": ()}


class Fake:
    """A path of 10 GB: one second a copy, and wrong on the copies named."""

    name, component, counted = "copy_own_h2d", "gpu0", 10 * 10**9

    def __init__(self, wrong: frozenset[int] = frozenset()) -> None:
        self.wrong, self.copies, self.spoiled, self.corrupted = wrong, 0, False, False

    def ready(self) -> None:
        self.spoiled, self.corrupted = True, False

    def timed(self, times: int) -> float:
        assert self.spoiled
        self.spoiled = False
        self.copies += 1
        return 1.0 * times

    def corrupt(self) -> None:
        self.corrupted = True

    def fault(self) -> TransferFault | None:
        return FAULT if self.corrupted or self.copies - 1 in self.wrong else None


def clock(step: float) -> Callable[[], float]:
    ticks: Iterator[int] = count()
    return lambda: next(ticks) * step


def nothing(wrong: WrongTransfer) -> None:
    raise AssertionError(wrong)


def test_three_copies_at_least_and_the_first_does_not_count() -> None:
    tally = measure_copies(Fake(), 0.001, nothing, clock=clock(1.0))
    assert tally == CopyTally([10.0, 10.0, 10.0], compared=4)
    assert tally.median == 10.0
    assert (
        tally.summary("x")
        == "x: best 10.00, median 10.00, worst 10.00 GB/s of 3 copies; 4 compared whole, 0 wrong"
    )


def test_copies_go_on_until_the_time_is_over() -> None:
    # The clock is not asked before three copies count.
    assert len(measure_copies(Fake(), 10.5, nothing, clock=clock(1.0)).rates) == 3 + 10


def test_slow_halves_the_rate() -> None:
    assert measure_copies(Fake(), 0.001, nothing, "slow", clock(1.0)).median == 5.0


def test_wrong_is_found_once() -> None:
    said: list[WrongTransfer] = []
    tally = measure_copies(Fake(), 0.001, said.append, "wrong", clock(1.0))
    assert (tally.compared, tally.wrong) == (4, 1)
    assert said == [WrongTransfer(component="gpu0", check="copy_own_h2d", copy=1, **FAULT)]


def test_the_copy_that_warms_up_is_compared_as_well() -> None:
    said: list[WrongTransfer] = []
    assert measure_copies(Fake(frozenset({0})), 0.001, said.append, clock=clock(1.0)).wrong == 1
    assert said[0].copy == 0


def test_all_wrong_copies_are_counted_and_the_first_told() -> None:
    said: list[WrongTransfer] = []
    tally = measure_copies(Fake(frozenset(range(100))), 30.0, said.append, clock=clock(1.0))
    assert tally.wrong == tally.compared > REPORTED
    assert len(said) == REPORTED


def test_no_rate_is_ever_made_of_no_time() -> None:
    class Instant(Fake):
        def timed(self, times: int) -> float:
            return 0.0

    with pytest.raises(ZeroDivisionError):
        measure_copies(Instant(), 0.001, nothing, clock=clock(1.0))
