"""What proves a load of processors or RAM, and what one can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from cases import each
from load_texts import printed
from wrong_results import ARRAY, CORE_REPEATED, vram

from acceptance.core.component import Component
from acceptance.core.parts import CPU, MEMORY, Core, Pair, Socket
from acceptance.loads import contract
from acceptance.loads.__main__ import UsageError, main, parsed
from acceptance.loads.asks import AnyAsk
from acceptance.loads.contract import Unproved
from acceptance.loads.cpu.contract import Gemm, MemoryBandwidth, MemoryRandom
from acceptance.loads.miscompare import Miscompare, read
from acceptance.loads.protocol import LoadOutput, parse

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


def code(ask: AnyAsk, ran_s: float = 8.0, about: Mapping[str, Any] = {}, **more: Any) -> str:
    """Why the output proves nothing; "" where it does."""
    try:
        contract.prove(ask, parse(printed(ask, about, **more)), {}, ran_s)
    except Unproved as error:
        return error.message.code
    return ""


def due(ask: AnyAsk) -> Mapping[tuple[str, Component], str]:
    return ask.due(LoadOutput(ask.load, {}, (), (), ())).readings


def test_each_core_has_a_rate_and_a_ratio_where_its_group_has_others() -> None:
    assert due(GEMM) == {
        ("cpu_gemm_f64", CPU): "GFLOP/s",
        **{("cpu_gemm_core_f64", Core(cpu)): "GFLOP/s" for cpu in (0, 2, 4)},
        **{("cpu_gemm_core_ratio_f64", Core(cpu)): "ratio" for cpu in (0, 2)},
        ("cpu_gemm_miscompares_f64", CPU): "count",
        ("cpu_gemm_products_f64", CPU): "count",
    }
    single = Gemm(dtype="float32", seconds=1.0, cores={"all": ((7,),)})
    assert {name for name, _ in due(single)} == {
        "cpu_gemm_f32",
        "cpu_gemm_core_f32",
        "cpu_gemm_miscompares_f32",
        "cpu_gemm_products_f32",
    }


def test_each_kernel_has_a_rate_and_a_count() -> None:
    assert due(BANDWIDTH) == {
        ("memory_copy", MEMORY): "GB/s",
        ("memory_copy_miscompares", MEMORY): "count",
        ("memory_triad", MEMORY): "GB/s",
        ("memory_triad_miscompares", MEMORY): "count",
    }


def test_each_socket_reads_its_own_memory_and_that_of_each_other() -> None:
    first, second = Socket(0), Socket(1)
    assert due(RANDOM) == {
        **{("memory_random", one): "GB/s" for one in (first, second)},
        **{("memory_random_miscompares", one): "count" for one in (first, second)},
        **{
            (name, one): unit
            for one in (Pair(first, second), Pair(second, first))
            for name, unit in (
                ("memory_random_remote", "GB/s"),
                ("memory_random_remote_miscompares", "count"),
            )
        },
    }


@each("ask", EVERY)
def test_a_whole_run_is_proof_and_nothing_less(ask: AnyAsk) -> None:
    assert code(ask) == ""
    assert code(ask, 7.9) == "load_ended_early"
    for name, _ in due(ask):
        assert code(ask, without=(name,)) == "load_unmeasured"
        assert code(ask, values={name: -1.0}) == "load_unit"
    assert code(ask, more={("cpu_gemm_f16", CPU): "GFLOP/s"}) == "load_stray"


@each("ask", EVERY)
def test_wrong_results_are_counted_in_a_count_of_wrong_ones(ask: AnyAsk) -> None:
    wrong = (WRONG[ask.load],)
    assert code(ask, wrong=wrong) == "load_uncounted"
    counted = {name: 1.0 for name, _ in due(ask) if "miscompares" in name}
    assert code(ask, wrong=wrong, values=counted) == ""
    right = {name: 1.0 for name, _ in due(ask) if "products" in name}
    assert code(ask, wrong=wrong, values=right) == "load_uncounted"


@each(
    "ask, about",
    [
        *((ask, {"seconds": 4.0}) for ask in EVERY),
        *((ask, {"cores": {"all": [[0]]}}) for ask in EVERY),
        (GEMM, {"dtype": "float32"}),
        (GEMM, {"size": 64}),
        (BANDWIDTH, {"llc_bytes": 1}),
        (RANDOM, {"llc_bytes": 1}),
        (RANDOM, {"gib": 2.0}),
    ],
)
def test_another_run_is_no_proof(ask: AnyAsk, about: Mapping[str, Any]) -> None:
    assert code(ask, about=about) == "load_parameter"


@each("ask", EVERY)
def test_a_fault_on_purpose_is_no_proof(ask: AnyAsk) -> None:
    assert code(ask, about={"inject": "bitflip"}) == "load_fault_injected"


ONE = 'cores={"all": [[0]]}'
OF_SOCKET = 'cores={"socket0": [[0]]}'


def test_people_type_cores_as_json() -> None:
    cores = 'cores={"performance": [[0, 1], [2, 3]], "efficiency": [[4]]}'
    assert parsed(["cpu_gemm", "dtype=float64", "seconds=8", cores]) == GEMM


@each(
    "words",
    [
        *(
            ["cpu_gemm", "dtype=float64", "seconds=1", f"cores={one}"]
            for one in (
                "",
                "0;1",
                "{}",
                "{0}",
                '{"all": []}',
                '{"all": [[]]}',
                '{"all": [0]}',
                '{"all": [[-1]]}',
                '{"all": [[1000000]]}',
                '{"all": [["0-3"]]}',
                '{"A": [[0]]}',
                '{"": [[0]]}',
                '{"all": [[0], [0]]}',
                '{"a": [[0]], "b": [[1, 0]]}',
            )
        ),
        ["cpu_gemm", "dtype=float16", "seconds=1", ONE],
        ["cpu_gemm", "seconds=1", ONE],
        *(["cpu_gemm", "dtype=float64", f"seconds={one}", ONE] for one in ("nan", "0", "inf", "x")),
        *(
            ["cpu_gemm", "dtype=float64", "seconds=1", ONE, f"size={one}"]
            for one in ("7", "9000", "64.5")
        ),
        *(
            ["cpu_gemm", "dtype=float64", "seconds=1", ONE, f"inject={one}"]
            for one in ("slow:0", "slow:100", "fire", "bitflip,")
        ),
        *(
            ["memory_bandwidth", "seconds=1", ONE, f"llc_bytes={one}"]
            for one in ("0", "32M", "1.5", str(10**15))
        ),
        ["memory_bandwidth", "seconds=1", ONE],
        ["memory_bandwidth", "seconds=1", ONE, "llc_bytes=1", "megabytes_per_core=0"],
        ["memory_bandwidth", "seconds=1", ONE, "llc_bytes=1", "inject=nan"],
        *(
            ["memory_random", "seconds=1", OF_SOCKET, "llc_bytes=1", f"gib={one}"]
            for one in ("nan", "inf", "0", "-1")
        ),
        ["memory_random", "seconds=1", ONE, "llc_bytes=1", "gib=1"],
    ],
)
def test_a_mistake_is_one_sentence_before_anything_starts(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError):
        parsed(words)
    assert main(words) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
