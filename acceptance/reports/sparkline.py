"""Values over nights as one line of letters, each the median of some consecutive nights."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

_DRAWN = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_PLAIN = "_.-=+*#@"


def line(values: Sequence[float], width: int, *, plain: bool) -> str:
    """One letter per value, at most `width`, scaled from the least value to the largest.

    Equal values give a line in the middle. `plain` is for a terminal that cannot draw blocks.
    """
    letters = _PLAIN if plain else _DRAWN
    count = min(len(values), width)
    parts = (
        values[len(values) * n // count : len(values) * (n + 1) // count] for n in range(count)
    )
    # halved, so that no difference overflows
    cells = [statistics.median_low(part) / 2 for part in parts]
    low, high = min(cells, default=0.0), max(cells, default=0.0)
    if low == high:
        return letters[3] * count
    return "".join(letters[min(7, int(8 * ((cell - low) / (high - low))))] for cell in cells)
