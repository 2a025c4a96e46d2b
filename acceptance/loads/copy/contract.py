"""The contract of the copy load of one GPU; `load` says what it measures and what not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, get_args

from msgspec import Meta

from acceptance.core.message import Listed, english
from acceptance.core.parts import Gpu, Pair
from acceptance.loads import contract
from acceptance.loads.contract import OWN, Due, Seconds, Unproved
from acceptance.loads.miscompare import (
    OWN_COPY_MISCOMPARES,
    OWN_PEER_MISCOMPARES,
    VECTOR_MISCOMPARES,
    TransferCheck,
)
from acceptance.loads.protocol import LoadOutput

# The paths to, from and inside a GPU; the last one of all goes to a peer.
PATHS: tuple[TransferCheck, ...] = get_args(TransferCheck)[:-1]
PEER_PATH: TransferCheck = get_args(TransferCheck)[-1]
READINGS: Mapping[str, str] = {
    **dict.fromkeys(PATHS, "GB/s"),
    OWN_COPY_MISCOMPARES: "count",
    VECTOR_MISCOMPARES: "count",
}
PEER_READINGS: Mapping[str, str] = {PEER_PATH: "GB/s", OWN_PEER_MISCOMPARES: "count"}
PRODUCTS = "elementwise"
PRODUCT_COLUMNS = ("elements", "MiB", "GB/s")
ELEMENTS = tuple(65536 * 4**power for power in range(6))  # of the products, a row each
PAIR_S = 0.1  # minimum time of a path to a peer: several copies, also of a slow pair


class Ask(contract.Ask, tag="gpu_copy", frozen=True, kw_only=True):
    """Copy to, from and inside one GPU and to its peers, and compare every byte."""

    seconds: Annotated[
        Seconds, Meta(description="of each path; those to the peers share the time of one")
    ]
    peers: Annotated[
        int, Meta(ge=0, le=255, description="number of GPUs that it sees beside its own")
    ] = 0
    mib: Annotated[int, Meta(ge=1, le=16384, description="MiB of each buffer")] = 512
    turns: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="folder in which loads that run at once take turns, with link"),
    ] = None
    link: Annotated[
        Annotated[str, Meta(pattern=r"^[a-z0-9]{1,32}\Z")] | None,
        Meta(description="name of the GPUs that share their way to the host, such as gpu0"),
    ] = None
    inject: Literal["wrong", "slow"] | None = None

    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"peers", "turns"})

    def __post_init__(self) -> None:
        if (self.turns is None) != (self.link is None):
            raise ValueError("turns and link go together: give both, or neither")

    def due(self, output: LoadOutput) -> Due:
        """Its readings and the table of products; of each peer, or that it is out of reach."""
        return Due(
            readings={(name, OWN): unit for name, unit in READINGS.items()},
            choices=[
                {(name, Pair(OWN, Gpu(peer))): unit for name, unit in PEER_READINGS.items()}
                for peer in range(1, self.peers + 1)
            ],
            tables={PRODUCTS: PRODUCT_COLUMNS},
        )

    def least_s(self, output: LoadOutput) -> float:
        """The time of every path that was copied."""
        reached = len(self.due(output).measured(output))
        return len(PATHS) * self.seconds + reached * pair_seconds(self.seconds, reached)

    def prove(self, output: LoadOutput) -> None:
        """Raise Unproved unless the table has products of each size."""
        rows = contract.table(output, PRODUCTS).rows
        if tuple(row[0] for row in rows) != ELEMENTS:
            due = Listed(tuple(map(str, ELEMENTS)))
            raise Unproved(
                english("load_rows", "its table {table} has other rows than {rows}"),
                table=PRODUCTS,
                rows=due,
            )


def pair_seconds(seconds: float, peers: int) -> float:
    """The time of each path to a peer: all together take `seconds`, but each a minimum.

    So eight GPUs do not take 56 times `seconds`. One peer has the whole time.
    """
    return min(seconds, max(PAIR_S, seconds / max(1, peers)))
