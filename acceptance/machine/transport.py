"""A transport: how NCCL carries data from one GPU to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# "P2P": straight into the other GPU's memory; "indirect": so, through a third GPU's memory; "SHM":
# through host memory; "NET": through a network card.
TransportKind = Literal["P2P", "indirect", "SHM", "NET"]


@dataclass(frozen=True, slots=True)
class Transport:
    """The transport from one GPU to another.

    `ways` are NCCL's own words for it, without the kind, each once and sorted: "CUMEM",
    "direct pointer/read", "direct/direct", "Socket/0". Connections of one pair may differ in them.
    """

    kind: TransportKind
    ways: tuple[str, ...]
