"""What p2pBandwidthLatencyTest says of peer access beside its matrix: a line for each pair, and groups of GPUs before CUDA 8."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_PAIR = re.compile(r"^Device=(?P<row>\d{1,4}) (?P<can>CAN|CANNOT) Access Peer Device=(?P<column>\d{1,4})$")
_HEAD = re.compile(r"^P2P Cliques:?$")
_GROUP = re.compile(r"^\[(?P<gpus>\d{1,4}(?: \d{1,4})*)\]$")


@dataclass(slots=True)
class Access:
    """`pairs`: whether (row, column) has peer access. `groups`: GPUs that the first of them reaches; None where a matrix is printed."""

    pairs: dict[tuple[int, int], bool] = field(default_factory=dict)
    groups: list[set[int]] | None = None

    def take(self, line: str) -> bool:
        """Whether the line is one of these; if so it is kept."""
        if match := _PAIR.match(line):
            self.pairs[int(match["row"]), int(match["column"])] = match["can"] == "CAN"
        elif _HEAD.match(line):
            self.groups = []
        elif self.groups is not None and (match := _GROUP.match(line)):
            self.groups.append(set(map(int, match["gpus"].split())))
        else:
            return False
        return True

    def grouped(self) -> int | None:
        """How many GPUs are in the groups; None without groups, and where GPUs are missing from them."""
        gpus = set[int]().union(*self.groups or ())
        return len(gpus) if gpus and gpus == set(range(len(gpus))) else None

    def rows(self) -> list[tuple[float, ...]] | None:
        """The connectivity matrix of a text with groups, from its lines of pairs; None unless they tell of all pairs.

        The groups themselves do not say which of their members reach one another.
        """
        count = self.grouped() or 0
        gpus = range(count)
        # Counted before they are listed: a group may name ten thousand GPUs, which are a hundred million pairs.
        counted = count > 0 and len(self.pairs) == count * (count - 1)
        if not counted or self.pairs.keys() != {(row, column) for row in gpus for column in gpus if row != column}:
            return None
        return [tuple(float(row == column or self.pairs[row, column]) for column in gpus) for row in gpus]
