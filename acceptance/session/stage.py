"""A stage: programs that load the machine together, each in its time on one clock.

The clock begins with the stage. Each program is a part of its own, which fails without the others:
the burn of the whole machine is a part for each GPU, one for the processors and one for the RAM.
Processes that are all needed for one result are the ranks of one program (`loads.ranks`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from acceptance.core.parts import Component


@dataclass(frozen=True, slots=True)
class Part:
    """One program of a stage, and its time on the stage's clock.

    `component` is what it loads: `gpu0`, `cpu`, `memory`; None for a program that loads none. `env`
    is added to the session's own environment. It begins at `begin_s`, and is ended `seconds` later
    where it has not ended by then; None leaves it the time of its check. With `after`, the position
    of another part, it begins no sooner than that part has said a line, or ended.

    Raises ValueError for a time that is negative or no number.
    """

    component: Component | None
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    begin_s: float = 0.0
    seconds: float | None = None
    after: int | None = None

    def __post_init__(self) -> None:
        for time_s in (self.begin_s, self.seconds):
            if time_s is not None and not 0.0 <= time_s < math.inf:
                raise ValueError(f"{time_s!r} is no time on the clock of a stage")

    @property
    def end_s(self) -> float:
        """When it is ended; infinite where it ends by itself."""
        return math.inf if self.seconds is None else self.begin_s + self.seconds


def pulses(part: Part, *, pause_s: float, count: int) -> tuple[Part, ...]:
    """The part so many times, each as long as the first, with this pause in between.

    Raises ValueError for a part without `seconds`, and for a time that is negative or no number.
    """
    if part.seconds is None:
        raise ValueError("a part that pulses has a time to end")
    every_s = part.seconds + pause_s
    return tuple(replace(part, begin_s=part.begin_s + turn * every_s) for turn in range(count))
