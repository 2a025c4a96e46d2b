"""The rates of one path or kernel, repeat by repeat, and how many results were wrong."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from acceptance.core.parts import Component
from acceptance.loads.protocol import Output


@dataclass(slots=True)
class RateTally:
    """GB/s of each repeat that counts, and the wrong results of all."""

    rates: list[float] = field(default_factory=list)
    wrong: int = 0

    @property
    def median(self) -> float:
        """Median in GB/s."""
        return statistics.median(self.rates)

    def spread(self, digits: int = 2) -> str:
        """The rates, for people."""
        best, median, worst = (
            f"{one:.{digits}f}" for one in (max(self.rates), self.median, min(self.rates))
        )
        return f"best {best}, median {median}, worst {worst} GB/s of {len(self.rates)}"

    def report(self, output: Output, names: tuple[str, str], component: Component) -> None:
        """Write the median and the count of wrong results; `names` are those of both readings."""
        output.reading(names[0], "GB/s", component, self.median)
        output.reading(names[1], "count", component, self.wrong)
