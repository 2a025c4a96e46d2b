"""Names of memory slots that occur once on a machine, whatever its firmware calls them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence


def unique(names: Sequence[str], banks: Sequence[str | None]) -> list[str]:
    """Slot names that occur once: as they are, else behind their bank, else numbered in table order."""
    count = Counter(names)
    named = [f"{bank} {name}" if count[name] > 1 and bank else name for name, bank in zip(names, banks, strict=True)]
    count = Counter(named)
    taken, unique = {name for name in named if count[name] == 1}, list[str]()
    # Each name counts on from its last number: from 1 again for every slot, thousands of one name would take hours.
    numbers = {name: itertools.count(1) for name in count}
    for name in named:
        if count[name] > 1:
            numbered = (f"{name} #{number}" for number in numbers[name])
            name = next(candidate for candidate in numbered if candidate not in taken)  # noqa: PLW2901
            taken.add(name)
        unique.append(name)
    return unique
