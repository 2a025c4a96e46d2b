"""The contracts of the two loads of collectives: `load` between all GPUs, `pair` between two nodes.

They say what is asked, and what the whole output holds; the modules say what is measured and what
not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Annotated, ClassVar, Literal, get_args

from msgspec import Meta

from acceptance.core.limit import MIB
from acceptance.core.message import Listed, english
from acceptance.core.parts import GPUS, Component, Gpu, Pair
from acceptance.loads import contract
from acceptance.loads.collective.pattern import (
    ELEMENT_TYPES,
    ITEMSIZE,
    MOST_RANKS,
    SIZES,
    Numbers,
    Operation,
    pairs,
)
from acceptance.loads.contract import Due, ReadingKey, Seconds, Unproved
from acceptance.loads.miscompare import (
    COLLECTIVE_MISCOMPARES,
    DISAGREEMENTS,
    PATH_MISCOMPARES,
    CollectiveCheck,
    CollectiveVariant,
    of_variant,
)
from acceptance.loads.protocol import LoadOutput

# Operations of all ranks, and those in every format besides float32 that has exact sums of so many.
WHOLE_GROUP: tuple[CollectiveCheck, ...] = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
)
SUMS: tuple[CollectiveCheck, ...] = ("all_reduce", "reduce_scatter")
# Between two nodes, besides a send-receive each way.
PAIR_OPERATIONS: tuple[CollectiveCheck, ...] = ("all_reduce", "all_gather")
NODES = 2
LATENCY = "collective_latency"
# The variants of every run; a machine file may ask for the third one.
COLLECTIVE_VARIANTS: tuple[CollectiveVariant, ...] = ("default", "p2p_off")
WITH_MULTICAST: tuple[CollectiveVariant, ...] = get_args(CollectiveVariant)
COLLECTIVES = "collectives"
COLUMNS = ("arm", "operation", "component", "format", "bytes", "turns", "compared", "us", "GB/s")
SLOW_PATHS = "collective_slow_paths"
SLOW_PATH_COLUMNS = ("arm", "slow path", "tried", "GB/s", "again GB/s")
NCCL_LOG = "nccl"  # the log of each rank, in each variant

Backend = Annotated[
    Literal["nccl", "gloo"], Meta(description="nccl between GPUs, gloo between processors")
]
Ranks = Annotated[int, Meta(ge=2, le=MOST_RANKS, description="one for each GPU")]
Size = Annotated[
    int, Meta(description=f"the largest size in bytes, of {', '.join(map(str, SIZES))}")
]
Turns = Annotated[
    int, Meta(ge=1, le=999, description="that count, of each size, besides one to warm up")
]
Grace = Annotated[Seconds, Meta(description="seconds that a rank may be late before it is hung")]
Fault = Literal["wrong", "order", "unwritten", "lost", "die", "hang"]
Row = Sequence[float | str]
_RowKey = tuple[str, str, str, str]  # variant, operation, component and format


def rate_of(operation: CollectiveCheck) -> str:
    """The name of an operation's reading."""
    return f"collective_{operation}"


def path_of(ends: tuple[int, int]) -> Pair:
    """The path from one rank to another."""
    return Pair(Gpu(ends[0]), Gpu(ends[1]))


def _require_size(most: int) -> None:
    if most not in SIZES:
        raise ValueError(f"most is {most}, which is none of {', '.join(map(str, SIZES))}")


class Ask(contract.Ask, tag="collective", frozen=True, kw_only=True):
    """Collective operations between all GPUs, each timed, every element verified."""

    backend: Backend
    ranks: Ranks
    seconds: Annotated[Seconds, Meta(description="of each arm, for sizes besides 1 GiB")]
    most: Size = SIZES[-1]
    turns: Turns = 5
    arms: Annotated[
        tuple[CollectiveVariant, ...],
        Meta(
            min_length=1,
            description=f"one after the other; default {','.join(COLLECTIVE_VARIANTS)}",
        ),
    ] = COLLECTIVE_VARIANTS
    grace: Grace = 60.0
    inject: Fault | None = None

    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"grace"})

    def __post_init__(self) -> None:
        _require_size(self.most)
        contract.require_each_once("arms", self.arms)

    def due(self, output: LoadOutput) -> Due:
        """In each variant the rates and counts of all, each rank and path; of GPUs NCCL's logs."""
        gpus = tuple(map(Gpu, range(self.ranks)))
        on_gpus = self.backend == "nccl"
        readings: dict[ReadingKey, str] = {}
        for variant in self.arms:
            units: dict[tuple[str, Component], str] = {
                **{(rate_of(name), GPUS): "GB/s" for name in WHOLE_GROUP},
                **({(LATENCY, GPUS): "us"} if on_gpus else {}),
                (DISAGREEMENTS, GPUS): "count",
                **{(COLLECTIVE_MISCOMPARES, gpu): "count" for gpu in gpus},
            }
            for path in map(path_of, pairs(self.ranks) if variant != "multicast" else ()):
                units |= {
                    (rate_of("send_receive"), path): "GB/s",
                    (PATH_MISCOMPARES, path): "count",
                }
            readings |= {
                (of_variant(name, variant), where): unit for (name, where), unit in units.items()
            }
        return Due(
            readings,
            tables={COLLECTIVES: COLUMNS},
            more_tables={SLOW_PATHS: SLOW_PATH_COLUMNS},
            logs=frozenset(
                (of_variant(NCCL_LOG, variant), gpu)
                for variant in self.arms
                for gpu in gpus
                if on_gpus
            ),
        )

    def prove(self, output: LoadOutput) -> None:
        """Raise Unproved for a rate that is not in the table, and for an element not compared."""
        _require_rates(output, self.arms)
        _require_compared(output, dict(self._operations()), range(self.ranks))

    def _operations(self) -> Iterator[tuple[_RowKey, Operation]]:
        """The operations that are due in the table."""
        for variant in self.arms:
            for name in WHOLE_GROUP:
                yield (variant, name, str(GPUS), "f32"), Operation(name, self.ranks)
            for name, dtype in product(SUMS, ELEMENT_TYPES):
                with suppress(ValueError):  # no exact sums of so many ranks
                    Numbers(dtype, self.ranks)
                    yield (variant, name, str(GPUS), dtype), Operation(name, self.ranks)
            for ends in pairs(self.ranks) if variant != "multicast" else ():
                sent = Operation("send_receive", self.ranks, *ends)
                yield (variant, "send_receive", str(path_of(ends)), "f32"), sent


class PairAsk(contract.Ask, tag="collective_pair", frozen=True, kw_only=True):
    """Collective operations between two nodes, every element verified; it runs on each of them."""

    backend: Backend
    rank: Annotated[int, Meta(ge=0, le=NODES - 1, description="of this node")]
    test: Annotated[
        str, Meta(min_length=1, description="the names of both nodes, and what no other test has")
    ]
    address: Annotated[str, Meta(min_length=1, description="name or address of the node of rank 0")]
    within: Annotated[Seconds, Meta(description="seconds after which this program ends itself")]
    port: Annotated[int, Meta(ge=1, le=65535, description="of rank 0")] = 29500  # as torch has it
    gpu: Annotated[int, Meta(ge=0, description="the GPU's number")] = 0
    most: Size = 16 * MIB
    turns: Turns = 5
    grace: Annotated[Seconds, Meta(description="seconds that the other node may be late")] = 30.0
    inject: Annotated[Fault | None, Meta(description="on this rank")] = None

    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"address", "port", "within", "grace"})

    def __post_init__(self) -> None:
        _require_size(self.most)

    @property
    def ranks(self) -> int:
        """One of each node."""
        return NODES

    @property
    def seconds(self) -> float:
        """The time of all turns."""
        return self.within

    def due(self, output: LoadOutput) -> Due:
        """The rates of both ways; the counts of this rank, of GPUs its log."""
        own = Gpu(self.rank)
        ways = tuple(map(path_of, pairs(NODES)))
        return Due(
            {
                **{(rate_of(name), GPUS): "GB/s" for name in PAIR_OPERATIONS},
                **{(rate_of("send_receive"), way): "GB/s" for way in ways},
                **{(PATH_MISCOMPARES, way): "count" for way in ways if way.second == own},
                (COLLECTIVE_MISCOMPARES, own): "count",
            },
            tables={COLLECTIVES: COLUMNS},
            logs=frozenset({(NCCL_LOG, own)} if self.backend == "nccl" else ()),
        )

    def prove(self, output: LoadOutput) -> None:
        """Raise Unproved for an unnamed host, a rate of 0 or of no row, an element not compared."""
        if not output.parameters.get("host") or not isinstance(output.parameters["host"], str):
            raise Unproved(english("load_without_host", "does not say on which host it ran"))
        for one in output.readings:
            if one.unit == "GB/s" and not one.value:
                raise Unproved(
                    english("load_rate_none", "{name} is 0, so nothing was done in its time"),
                    name=one.name,
                )
        _require_rates(output, ("default",))
        due: dict[_RowKey, Operation] = {
            ("default", name, str(GPUS), "f32"): Operation(name, NODES) for name in PAIR_OPERATIONS
        }
        for ends in pairs(NODES):
            key = ("default", "send_receive", str(path_of(ends)), "f32")
            due[key] = Operation("send_receive", NODES, *ends)
        _require_compared(output, due, (self.rank,))


def _require_rates(output: LoadOutput, variants: Sequence[CollectiveVariant]) -> None:
    """Raise Unproved unless each rate stands in its variant's rows of the table."""
    rows = contract.table(output, COLLECTIVES).rows
    printed = {
        (of_variant(f"collective_{operation}", variant), component, value)
        for variant in variants
        for of_row, operation, component, dtype, *_, value in rows
        if (of_row, dtype) == (variant, "f32")
    }
    for one in output.readings:
        component = str(one.component)
        if one.unit == "GB/s" and (one.name, component, round(one.value, 3)) not in printed:
            raise Unproved(
                english("load_rate_untold", "{name} of {component} is not in its table {table}"),
                name=one.name,
                component=component,
                table=COLLECTIVES,
            )


def _require_compared(
    output: LoadOutput, due: Mapping[_RowKey, Operation], at: Sequence[int]
) -> None:
    """Raise Unproved unless each operation has its row, and each row is of one and compared whole.

    `at` are the ranks whose destinations this program compared.
    """
    whole: set[_RowKey] = set()
    short: set[_RowKey] = set()
    for row in contract.table(output, COLLECTIVES).rows:
        variant, name, component, dtype = map(str, row[:4])
        key = variant, name, component, dtype
        (whole if key in due and _is_whole(row, due[key], at) else short).add(key)
    if lacking := sorted(due.keys() - whole | short):
        names = dict.fromkeys(f"{name} {dtype} ({variant})" for variant, name, _, dtype in lacking)
        raise Unproved(
            english("load_uncompared", "did not show that every element of {names} was compared"),
            names=Listed(tuple(names)),
        )


def _is_whole(row: Row, operation: Operation, at: Sequence[int]) -> bool:
    """Whether what arrived at these ranks was compared in all turns, the first among them."""
    dtype, size, turns, compared = row[3:7]
    itemsize = next(ITEMSIZE[one] for one in ELEMENT_TYPES if one == dtype)
    if isinstance(size, str) or isinstance(turns, str) or turns < 1:
        return False
    share = int(size) // (operation.shares * itemsize)
    arrived = sum(operation.receives(rank, share) for rank in at)
    return share > 0 and compared == int(1 + turns) * arrived
