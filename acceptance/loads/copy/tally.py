"""The loop around a timed copy: spoil, copy, compare, and repeat until the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from acceptance.loads.copy.transfers import UnidirectionalTransfer
from acceptance.loads.miscompare import WrongTransfer
from acceptance.loads.rate_tally import RateTally

Report = Callable[[WrongTransfer], None]

COUNTED = 3  # minimum number of timed copies
REPORTED = 8  # wrong copies of one path reported in detail; all are counted
_INJECTED_TURN = 1  # the first turn that is timed


@dataclass(slots=True)
class CopyTally(RateTally):
    """The results of one path's copies: of all copies that were compared, some are timed."""

    compared: int = 0

    def summary(self, name: str) -> str:
        """A sentence for people."""
        counts = f"{self.compared} compared whole, {self.wrong} wrong"
        return f"{name}: {self.spread()} copies; {counts}"


def measure_copies(
    transfer: UnidirectionalTransfer,
    seconds: float,
    report: Report,
    inject: str | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> CopyTally:
    """Copy once to warm up, then until `seconds` are over, at least three times.

    Each copy is timed alone, and compared whole afterwards. `inject`: "wrong" changes one byte of
    one destination before it is compared, "slow" copies twice and counts once.
    """
    tally = CopyTally()
    times = 2 if inject == "slow" else 1
    until = clock() + seconds
    while len(tally.rates) < COUNTED or clock() < until:
        turn = tally.compared
        transfer.ready()
        took = transfer.timed(times)
        if inject == "wrong" and turn == _INJECTED_TURN:
            transfer.corrupt()
        found = transfer.fault()
        if turn:
            tally.rates.append(transfer.counted / took / 1e9)
        tally.compared += 1
        if found is not None:
            tally.wrong += 1
            if tally.wrong <= REPORTED:
                report(
                    WrongTransfer(
                        component=transfer.component, check=transfer.name, copy=turn, **found
                    )
                )
    return tally
