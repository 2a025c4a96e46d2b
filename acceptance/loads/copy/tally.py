"""The loop around a timed copy: spoil, copy, compare, and again, until the time is over.

Standard library only.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

Report = Callable[[dict[str, Any]], None]

COUNTED = 3  # timed copies at least
REPORTED = 8  # wrong copies told in detail, of one path; all are counted
_INJECTED_TURN = 1  # the first that counts


class Transfer(Protocol):
    """One path of data, as it is measured; `counted` is how many bytes one copy counts for."""

    name: str
    component: str
    counted: int

    def ready(self) -> None:
        """Make the destination wrong, and the source right."""

    def timed(self, times: int) -> float:
        """Copy so many times; the seconds that it took."""

    def fault(self) -> dict[str, Any] | None:
        """Compare all of the destination; None where it is right."""

    def corrupt(self) -> None:
        """Change one byte of the destination (for `--inject wrong`)."""


@dataclass(slots=True)
class CopyTally:
    """What the copies of one path gave: GB/s of each that counts, how many were compared, and
    how many of those were wrong.
    """

    rates: list[float] = field(default_factory=list)
    compared: int = 0
    wrong: int = 0

    @property
    def median(self) -> float:
        """GB/s."""
        return statistics.median(self.rates)

    def summary(self, name: str) -> str:
        """A sentence for people."""
        rates = (
            f"best {max(self.rates):.2f}, median {self.median:.2f}, worst "
            f"{min(self.rates):.2f} "
            "GB/s"
        )
        return (
            f"{name}: {rates} of {len(self.rates)} copies; {self.compared} compared whole, "
            f"{self.wrong} wrong"
        )


def measure_copies(
    transfer: Transfer,
    seconds: float,
    report: Report,
    inject: str | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> CopyTally:
    """One copy to warm up, then copies until `seconds` are over, three at least; each is timed
    alone, and compared whole afterwards.

    `inject`: "wrong" changes one byte of one destination before it is compared, "slow" copies twice
    and counts once.
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
                    {"component": transfer.component, "check": transfer.name, "copy": turn, **found}
                )
    return tally
