"""Values over nights as one line of letters: each stands for some nights that follow each other,
by their median.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

_DRAWN = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_PLAIN = "_.-=+*#@"


def line(values: Sequence[float], width: int, *, plain: bool) -> str:
    """As many letters as there are values, at most `width`, from the least value's to the
    largest's; of equal values a line in the middle.

    `plain` is for a terminal that draws no blocks.
    """
    letters = _PLAIN if plain else _DRAWN
    count = min(len(values), width)
    parts = (
        values[len(values) * n // count : len(values) * (n + 1) // count] for n in range(count)
    )
    cells = [
        statistics.median_low(part) / 2 for part in parts
    ]  # halved, so that no difference is beyond all numbers
    low, high = min(cells, default=0.0), max(cells, default=0.0)
    if low == high:
        return letters[3] * count
    return "".join(letters[min(7, int(8 * ((cell - low) / (high - low))))] for cell in cells)
