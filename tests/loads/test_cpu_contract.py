"""What proves a load of processors or RAM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cases import each
from load_texts import printed, refusal
from wrong_results import ARRAY, CORE_REPEATED, vram

from acceptance.core.parts import CPU, MEMORY, Component, Core, Pair, Socket
from acceptance.loads.asks import AnyAsk
from acceptance.loads.cpu.contract import Gemm, MemoryBandwidth, MemoryRandom
from acceptance.loads.miscompare import Miscompare, read
from acceptance.loads.protocol import LoadOutput

GROUPS = {"performance": ((0, 1), (2, 3)), "efficiency": ((4,),)}
SOCKETS = {"socket0": ((0,), (1,)), "socket1": ((2,),)}
GEMM = Gemm(dtype="float64", seconds=8.0, cores=GROUPS)
BANDWIDTH = MemoryBandwidth(seconds=8.0, cores=GROUPS, llc_bytes=33554432)
RANDOM = MemoryRandom(seconds=8.0, cores=SOCKETS, llc_bytes=33554432, gib=4.0)
EVERY: tuple[AnyAsk, ...] = (GEMM, BANDWIDTH, RANDOM)
WRONG: Mapping[str, Miscompare] = {
    "cpu_gemm": read(CORE_REPEATED),
    "memory_bandwidth": read(ARRAY),
    "memory_random": read({**vram([(64, 0, 4)]), "check": "ram", "component": "socket0"}),
}


def code(ask: AnyAsk, **more: Any) -> str:
    return refusal(ask, printed(ask, **more), {}, 8.0)


def due(ask: AnyAsk) -> Mapping[tuple[str, Component], str]:
    return ask.due(LoadOutput(ask.load, {}, (), (), ())).readings


FIRST, SECOND = Socket(0), Socket(1)
REMOTE = {"memory_random_remote": "GB/s", "memory_random_remote_miscompares": "count"}


@each(
    "ask, readings",
    [
        (  # a ratio where its group has others
            GEMM,
            {
                ("cpu_gemm_f64", CPU): "GFLOP/s",
                **{("cpu_gemm_core_f64", Core(cpu)): "GFLOP/s" for cpu in (0, 2, 4)},
                **{("cpu_gemm_core_ratio_f64", Core(cpu)): "ratio" for cpu in (0, 2)},
                ("cpu_gemm_miscompares_f64", CPU): "count",
                ("cpu_gemm_products_f64", CPU): "count",
            },
        ),
        (
            Gemm(dtype="float32", seconds=1.0, cores={"all": ((7,),)}),
            {
                ("cpu_gemm_f32", CPU): "GFLOP/s",
                ("cpu_gemm_core_f32", Core(7)): "GFLOP/s",
                ("cpu_gemm_miscompares_f32", CPU): "count",
                ("cpu_gemm_products_f32", CPU): "count",
            },
        ),
        (
            BANDWIDTH,
            {
                ("memory_copy", MEMORY): "GB/s",
                ("memory_copy_miscompares", MEMORY): "count",
                ("memory_triad", MEMORY): "GB/s",
                ("memory_triad_miscompares", MEMORY): "count",
            },
        ),
        (  # each socket reads its own memory and that of each other
            RANDOM,
            {
                **{("memory_random", one): "GB/s" for one in (FIRST, SECOND)},
                **{("memory_random_miscompares", one): "count" for one in (FIRST, SECOND)},
                **{
                    (name, one): unit
                    for one in (Pair(FIRST, SECOND), Pair(SECOND, FIRST))
                    for name, unit in REMOTE.items()
                },
            },
        ),
    ],
)
def test_what_is_due(ask: AnyAsk, readings: Mapping[tuple[str, Component], str]) -> None:
    assert due(ask) == readings


@each("ask", EVERY)
def test_wrong_results_are_counted_in_a_count_of_wrong_ones(ask: AnyAsk) -> None:
    wrong = (WRONG[ask.load],)
    assert code(ask, wrong=wrong) == "load_uncounted"
    counted = {name: 1.0 for name, _ in due(ask) if "miscompares" in name}
    assert code(ask, wrong=wrong, values=counted) == ""
    right = {name: 1.0 for name, _ in due(ask) if "products" in name}
    assert code(ask, wrong=wrong, values=right) == "load_uncounted"
