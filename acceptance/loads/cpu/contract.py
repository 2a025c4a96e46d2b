"""The contracts of the loads of processors and RAM; their modules say what they measure and what
not.

Each works on cores, which are asked for by group: cores of different groups are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from acceptance.core.dtype import CpuDtype
from acceptance.core.parts import CPU, MEMORY, Component, Core, Pair, parse
from acceptance.loads import contract
from acceptance.loads.contract import Due, ReadingKey, Seconds, Unproved
from acceptance.loads.miscompare import ARRAY_MISCOMPARES, CORE_MISCOMPARES, RAM_MISCOMPARES
from acceptance.loads.protocol import LoadOutput

# Of each number format: how many products were wrong, the rates of all cores and of each, each
# core's ratio to the others, and how many products were right.
GEMM: Mapping[CpuDtype, tuple[str, str, str, str, str]] = {
    "float64": (
        CORE_MISCOMPARES["float64"],
        "cpu_gemm_f64",
        "cpu_gemm_core_f64",
        "cpu_gemm_core_ratio_f64",
        "cpu_gemm_products_f64",
    ),
    "float32": (
        CORE_MISCOMPARES["float32"],
        "cpu_gemm_f32",
        "cpu_gemm_core_f32",
        "cpu_gemm_core_ratio_f32",
        "cpu_gemm_products_f32",
    ),
}
# Of each kernel: the rate, and the wrong results.
BANDWIDTH = {
    "copy": ("memory_copy", ARRAY_MISCOMPARES["copy"]),
    "triad": ("memory_triad", ARRAY_MISCOMPARES["triad"]),
}
# The rate and the wrong results: of a socket's own memory, and of another socket's.
RANDOM_OWN = ("memory_random", RAM_MISCOMPARES[0])
RANDOM_REMOTE = ("memory_random_remote", RAM_MISCOMPARES[1])

SIZE = 1536  # rows and columns of the matrices

Cpu = Annotated[int, Meta(ge=0, lt=10**6)]
Cores = Annotated[tuple[Annotated[tuple[Cpu, ...], Meta(min_length=1)], ...], Meta(min_length=1)]
# Group -> its cores -> the logical CPUs (hardware threads) of each.
Groups = Mapping[str, tuple[tuple[int, ...], ...]]
Kinds = Annotated[
    Mapping[Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_-]*$")], Cores],
    Meta(
        min_length=1,
        description='groups of cores with their logical CPUs: {"all": [[0, 1], [2, 3]]} are two '
        "cores, of which 0 and 2 are used",
    ),
]
Sockets = Annotated[
    Mapping[Annotated[str, Meta(pattern=r"^socket\d{1,6}$")], Cores],
    Meta(
        min_length=1,
        description='cores with their logical CPUs by socket: {"socket0": [[0]], "socket1": [[1]]}',
    ),
]
Amount = Annotated[int, Meta(ge=1, lt=10**15)]
Caches = Annotated[
    Amount, Meta(description="bytes of all last-level caches of the machine together")
]
GemmFault = Annotated[str, Meta(pattern=r"^(bitflip|stuck|nan|die|hang|slow:[1-9][0-9]?)$")]
_LATE = Meta(description="seconds a worker may be late before it counts as hung")


class _OnCores(contract.Ask, frozen=True, kw_only=True):
    """What all three are asked."""

    seconds: Annotated[Seconds, Meta(description="how long the cores work, warm-up not counted")]
    cores: Kinds

    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"grace"})

    def __post_init__(self) -> None:
        contract.require_each_once(
            "cores", [cpu for cores in self.cores.values() for core in cores for cpu in core]
        )

    def least_s(self, output: LoadOutput) -> float:
        """The time for which the cores work."""
        return self.seconds


class Gemm(_OnCores, tag="cpu_gemm", frozen=True, kw_only=True):
    """Multiply matrices on all cores at once, and verify every result."""

    dtype: CpuDtype
    size: Annotated[int, Meta(ge=8, le=8192, description="rows and columns of the matrices")] = SIZE
    grace: Annotated[Seconds, _LATE] = 60.0
    inject: Annotated[
        GemmFault | None,
        Meta(description="of the last core: bitflip, stuck, nan, die, hang or slow:PERCENT"),
    ] = None

    def due(self, output: LoadOutput) -> Due:
        """Rates of all cores and of each, ratios of those that have others beside them, counts."""
        miscompares, whole, of_core, of_others, products = GEMM[self.dtype]
        units: dict[ReadingKey, str] = {(whole, CPU): "GFLOP/s"}
        units |= {(miscompares, CPU): "count", (products, CPU): "count"}
        for cores in self.cores.values():
            for core in cores:
                units[of_core, Core(core[0])] = "GFLOP/s"
                if len(cores) > 1:
                    units[of_others, Core(core[0])] = "ratio"
        return Due(readings=units)

    def prove(self, output: LoadOutput) -> None:
        """Raise Unproved for wrong products that are not counted; the right ones are counted."""
        miscompares, *_ = GEMM[self.dtype]
        counted = sum(one.value for one in output.readings if one.name == miscompares)
        if output.miscompares and not counted:
            raise Unproved("load_uncounted")


class MemoryBandwidth(_OnCores, tag="memory_bandwidth", frozen=True, kw_only=True):
    """Copy and add arrays on all cores at once, and verify every result."""

    llc_bytes: Caches
    megabytes_per_core: Annotated[
        Amount | None, Meta(description="of all three arrays; by default as the caches demand")
    ] = None
    grace: Annotated[Seconds, _LATE] = 120.0
    inject: Literal["bitflip", "die"] | None = None

    # The first line has the size of an array instead.
    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"grace", "megabytes_per_core"})

    def due(self, output: LoadOutput) -> Due:
        """The rate and the wrong results of each kernel."""
        return Due(readings=_figures((MEMORY, names) for names in BANDWIDTH.values()))


class MemoryRandom(_OnCores, tag="memory_random", frozen=True, kw_only=True):
    """Gather words from all over the RAM on all cores, and verify them."""

    cores: Sockets
    llc_bytes: Caches
    gib: Annotated[
        float, Meta(gt=0, le=10**6, description="memory to fill, in all; less where less is free")
    ]
    grace: Annotated[Seconds, _LATE] = 600.0
    inject: Literal["bitflip", "die"] | None = None

    def due(self, output: LoadOutput) -> Due:
        """The rate and the wrong results of each socket, in each socket's memory."""
        ways = (component_of(*ends) for ends in product(self.cores, repeat=2))
        return Due(readings=_figures((one, random_names(one)) for one in ways))


def component_of(reader: str, owner: str) -> Component:
    """`socket0` for its own memory, `socket0->socket1` for that of another one."""
    own = parse(reader)
    return own if reader == owner else Pair(own, parse(owner))


def random_names(component: Component) -> tuple[str, str]:
    """The rate and the wrong results of a socket, or of a socket in another one's memory."""
    return RANDOM_REMOTE if isinstance(component, Pair) else RANDOM_OWN


def _figures(named: Iterator[tuple[Component, tuple[str, str]]]) -> dict[ReadingKey, str]:
    return {
        (name, component): unit
        for component, names in named
        for name, unit in zip(names, ("GB/s", "count"), strict=True)
    }
