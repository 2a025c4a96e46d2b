"""A GPU as the power load uses it: products in groups, and waves that follow its own clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from acceptance.core.dtype import DtypeName
from acceptance.loads.pulse.clocks import Alignment

GROUP = 8  # most products that are queued at once


@dataclass(frozen=True, slots=True)
class Compared:
    """Products or chunks of work that have ended, each compared bit for bit with the first one.

    `seconds` is how long they took by the GPU's clock, their comparison included; `wrong` the
    wrong elements of each wrong one; `waves` those in which the GPU worked.
    """

    right: int
    wrong: tuple[int, ...]
    seconds: float = 0.0
    waves: int = 0


class Device(Protocol):
    """One GPU. Nothing but `compared`, for a limited time, and `align` waits for it."""

    about: dict[str, Any]  # its name, UUID and library
    dtype: DtypeName  # of the products

    def start(self, count: int) -> Any:
        """Queue `count` products, at most GROUP, and their comparison; a ticket for `compared`."""

    def compared(self, ticket: Any) -> Compared:
        """Wait for what was queued. Raises LoadError where the GPU hangs or compared nothing."""

    def waves(self, begin_s: float, half_s: float, count: int) -> Any:
        """Queue waves, the first at this moment of the monotonic clock; a ticket as of `start`."""

    def align(self) -> Alignment:
        """Hold its clock against the monotonic one: waves that are queued from here on follow it.

        Nothing may be queued.
        """


# Makes the device in its own process; a second call is never made there.
Make = Callable[[], Device]
