"""The load of collectives as the program it is, on a group of arrays and files."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cases import each
from load_program import ROOT, forked, whole
from load_texts import values

from acceptance.core.limit import GIB
from acceptance.core.parts import GPUS, Component, Gpu, Pair
from acceptance.loads.collective.contract import COLUMNS, WHOLE_GROUP, Ask
from acceptance.loads.collective.load import (
    LARGE,
    SMALL,
    CollectiveRun,
    slow_paths,
)
from acceptance.loads.collective.pattern import (
    ELEMENT_TYPES,
    ITEMSIZE,
    OPERATIONS,
    SIZES,
    Operation,
    pairs,
)
from acceptance.loads.collective.worker import VariantRank
from acceptance.loads.miscompare import DifferingDigests, ElementType, WrongCollective
from acceptance.loads.protocol import LoadOutput, LoadReading, Note, Output, decode, salvage
from acceptance.loads.ranks import Ranks

HERE = Path(__file__).parent
# A rank reports eight wrong results at most: those of two operations.
FEW_SIZES = {"most": 64, "turns": 1}

SHORT = {"backend": "gloo", "ranks": 3, "seconds": 5, "most": 4096, "turns": 2}


def words(**more: str | float) -> list[str]:
    return ["collective", *(f"{name}={value}" for name, value in {**SHORT, **more}.items())]


def program(spoil: str = "", **more: str | float) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "FAKE_GROUP": spoil}
    return forked("-m", "collective_program", *words(**more), environ=environ)


def test_sound_ranks_give_all_readings_of_both_arms_and_no_wrong_element() -> None:
    argv = [sys.executable, str(HERE / "collective_program.py"), *words()]
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{HERE}"},
    )
    output = whole(done)
    found, ranks = values(output), range(3)
    assert output.miscompares == ()
    assert output.parameters["arms"] == ["default", "p2p_off"]
    due: dict[tuple[str, Component], float] = {}
    for end in ("", "_p2p_off"):
        for name, factor in (
            ("all_reduce", 4 / 3),
            ("all_gather", 2 / 3),
            ("reduce_scatter", 2 / 3),
            ("all_to_all", 2 / 3),
            ("broadcast", 1.0),
        ):
            moved = 4096 if name in ("all_reduce", "broadcast") else 3 * 1360
            # the slowest rank counts: the last one takes 3 ms
            due[f"collective_{name}{end}", GPUS] = pytest.approx(moved / 3e-3 / 1e9 * factor)
        for source, other in pairs(3):
            pair, slower = Pair(Gpu(source), Gpu(other)), 1e-3 * (1 + max(source, other))
            due[f"collective_send_receive{end}", pair] = pytest.approx(4096 / slower / 1e9)
            due[f"collective_send_receive_miscompares{end}", pair] = 0
        for rank in ranks:
            due[f"collective_miscompares{end}", Gpu(rank)] = 0
        due[f"collective_disagreements{end}", GPUS] = 0
    assert found == due
    (table,) = output.tables
    assert table.columns == COLUMNS
    assert output.logs == ()
    assert output.parameters["uuids"] == ["GPU-0", "GPU-1", "GPU-2"]
    moments = 1 + 2  # one turn to warm up
    for _, name, _, dtype, size, _, compared, *_ in table.rows:
        operation = Operation(next(one for one in OPERATIONS if one == name), 3)
        itemsize = ITEMSIZE[next(one for one in ELEMENT_TYPES if one == dtype)]
        assert isinstance(size, float)
        share = size / operation.shares / itemsize
        arrived = sum(operation.receives(rank, int(share)) for rank in ranks)
        assert compared == moments * arrived > 0
    # 2 sums x 3 formats, 6 pairs, and 4 sizes of 5 operations, in each arm
    assert len(table.rows) == 2 * (6 + 6 + 4 * 5)
    assert {row[4] for row in table.rows if row[1] == "all_reduce"} == {8, 64, 512, 4096}


class Timed(CollectiveRun):
    """A variant whose turns take no time and find nothing."""

    def measure(
        self,
        operation: Operation,
        dtype: ElementType,
        size: int,
        component: Component = GPUS,
    ) -> float:
        self.rows.append((operation.name, dtype, size))
        return float(size)


def timed(
    ranks: int, left_s: float = 100.0, kind: type[Timed] = Timed
) -> tuple[Timed, io.StringIO]:
    """One of 100 seconds, of which so many are left."""
    told = io.StringIO()
    ask = Ask(backend="gloo", ranks=ranks, seconds=100.0)
    members: Ranks[VariantRank] = Ranks((), lambda rank, connection: None)
    every = (VariantRank(0, "default", Path("/")),)
    began = time.monotonic() - 100.0 + left_s
    return kind(every, members, Output(told), 1.0, 100.0, began=began, ask=ask), told


@each("left_s, sizes", [(-1.0, (GIB,)), (90.0, SIZES)])
def test_sizes_besides_the_one_of_the_readings_need_time(
    left_s: float, sizes: tuple[int, ...]
) -> None:
    arm, told = timed(2, left_s)
    arm.ladder(SIZES)
    for name in WHOLE_GROUP:
        assert sorted(row[2] for row in arm.rows if row[0] == name) == list(sizes)
    lines = [decode(line) for line in told.getvalue().splitlines()]
    readings = [one for one in lines if isinstance(one, LoadReading)]
    assert [one.value for one in readings] == [GIB] * len(WHOLE_GROUP)
    notes = [one.text for one in lines if isinstance(one, Note)]
    left = ", ".join(
        f"{name} of {size} bytes" for size in SIZES if size != GIB for name in WHOLE_GROUP
    )
    assert notes == ([] if sizes == SIZES else [f"default: no time was left for {left}"])


@each("stale", [False, True])
def test_gpus_have_a_latency_in_a_graph_and_a_log_of_each_rank(stale: bool) -> None:
    output = whole(program(arms="p2p_off", spoil=f"graph:{'stale' * stale}"))
    found = values(output)
    assert found["collective_latency_p2p_off", GPUS] == pytest.approx(3e3)  # the slowest counts
    assert [(one.name, one.component, one.text) for one in output.logs] == [
        ("nccl_p2p_off", Gpu(rank), f"log of rank {rank}\n") for rank in range(3)
    ]
    wrong = [(one.check, one.format, one.size, one.elements) for one in wrong_of(output)]
    assert wrong == [("all_reduce", "i32", 8, 1)] * stale
    assert found["collective_miscompares_p2p_off", Gpu(1)] == stale


def test_nothing_is_said_before_the_first_line_however_late_the_ranks_join() -> None:
    output = whole(program(arms="default", spoil="late:1.5", **FEW_SIZES))
    assert values(output)["collective_disagreements", GPUS] == 0


def test_the_arm_with_multicast_verifies_all_but_send_receives_and_runs_where_asked() -> None:
    output = whole(program(arms="multicast", inject="wrong"))
    assert output.parameters["arms"] == ["multicast"]
    assert [one.arm for one in wrong_of(output)] == ["multicast"]
    found = values(output)
    assert {name for name, _ in found} == {
        *(f"collective_{name}_multicast" for name in WHOLE_GROUP),
        "collective_miscompares_multicast",
        "collective_disagreements_multicast",
    }
    assert found["collective_miscompares_multicast", Gpu(2)] == 1
    (table,) = output.tables
    assert {row[1] for row in table.rows} == set(WHOLE_GROUP)


def test_a_path_slower_than_the_others_is_tried_again_with_the_best_partners_of_its_ends() -> None:
    rates = {(a, b): 100.0 + a + b for a, b in pairs(4)} | {(0, 1): 80.0, (2, 3): 70.0}
    assert list(slow_paths(rates).items()) == [
        ((2, 3), ((2, 3), (2, 1), (1, 3))),
        ((0, 1), ((0, 1), (0, 3), (3, 1))),
    ]
    assert slow_paths({(0, 1): 10.0, (1, 0): 8.0}) == {(1, 0): ((1, 0),)}
    assert slow_paths(dict.fromkeys(pairs(3), 5.0)) == {}


class Slow(Timed):
    """A variant in which one path is slow the first time."""

    def path(self, ends: tuple[int, int], size: int) -> float:
        first = (ends, size) not in self.wrong
        self.wrong[ends, size] = 0  # type: ignore[index]
        return 10.0 if ends == (0, 1) and first else 100.0


def test_the_second_trial_of_a_slow_path_counts_and_both_are_told() -> None:
    arm, told = timed(3, kind=Slow)
    arm.paths(SMALL)
    found = [decode(line) for line in told.getvalue().splitlines()]
    readings = [
        one
        for one in found
        if isinstance(one, LoadReading) and one.name == "collective_send_receive"
    ]
    assert {one.value for one in readings} == {100.0}
    assert arm.slow == [
        ("default", "gpu0->gpu1", "gpu0->gpu1", 10.0, 100.0),
        ("default", "gpu0->gpu1", "gpu0->gpu2", 100.0, 100.0),
        ("default", "gpu0->gpu1", "gpu2->gpu1", 100.0, 100.0),
    ]


def test_a_format_without_exact_sums_of_so_many_ranks_is_left_out_and_said() -> None:
    arm, told = timed(12, 90.0)
    arm.sums(LARGE)
    assert {row[1] for row in arm.rows} == {"f16", "i32"}
    assert {row[2] for row in arm.rows} == {SMALL, LARGE}
    assert "bf16 has no exact sums of 12 ranks" in told.getvalue()


def wrong_of(output: LoadOutput) -> list[WrongCollective]:
    return [one for one in output.miscompares if isinstance(one, WrongCollective)]


@each(
    "fault, elements, unwritten",
    [("wrong", 1, range(1)), ("unwritten", 2048, range(2048, 2049)), ("order", 2048, range(200))],
)
def test_an_injected_fault_is_found_and_named(fault: str, elements: int, unwritten: range) -> None:
    """In the second turn, a sum in bfloat16: at the last rank, or by it at all ranks."""
    output = whole(program(inject=fault, arms="default"))
    assert output.injected == fault
    told = wrong_of(output)
    counts = values(output)
    at = range(3) if fault == "order" else [2]
    assert sorted(str(one.component) for one in told) == [f"gpu{rank}" for rank in at]
    for rank in range(3):
        assert counts["collective_miscompares", Gpu(rank)] == (elements if rank in at else 0)
    for one in told:
        assert (one.check, one.format, one.turn, one.size) == ("all_reduce", "bf16", 1, 4096)
        assert one.elements == elements
        assert one.unwritten in unwritten
        assert one.first[0].expected != one.first[0].got
    if fault == "wrong":
        assert (told[0].first[0].index, told[0].first[0].got) == ((1024,), "-1.0")


LOST = {Pair(Gpu(0), Gpu(2)), Pair(Gpu(1), Gpu(2))}


@each(
    "more, checks, at, unwritten",
    [
        *(
            (
                {**FEW_SIZES, "arms": "p2p_off", "spoil": f"{one}:lost {other}:lost"},
                {one, other},
                {Gpu(2)},
                True,
            )
            for one, other in (("all_gather", "reduce_scatter"), ("all_to_all", "broadcast"))
        ),
        # a path that writes nowhere, in each turn
        ({"arms": "default", "inject": "lost"}, {"send_receive"}, LOST, True),
        # blocks of wrong ranks
        (
            {**FEW_SIZES, "arms": "default", "spoil": "all_gather:swapped all_to_all:swapped"},
            {"all_gather", "all_to_all"},
            {Gpu(2)},
            False,
        ),
    ],
)
def test_what_was_written_nowhere_or_is_of_wrong_ranks_is_found_in_every_element(
    more: dict[str, Any], checks: set[str], at: set[Component], unwritten: bool
) -> None:
    output = whole(program(**more))
    told = wrong_of(output)
    assert {one.check for one in told} == checks
    assert {(one.component, one.arm) for one in told} == {(where, more["arms"]) for where in at}
    for one in told:
        assert one.unwritten == (one.elements if unwritten else 0)
        assert unwritten or 4 * one.elements == one.size
        assert not unwritten or one.first[0].got.startswith("-1")  # type: ignore[union-attr]
    if at == LOST:
        name = "collective_send_receive_miscompares"
        counts = values(output)
        assert {pair for (one, pair), count in counts.items() if one == name and count} == LOST
        assert counts["collective_miscompares", Gpu(2)] == 0


def test_ranks_that_hold_other_bits_of_a_random_sum_are_told_apart() -> None:
    output = whole(program(arms="default", spoil="random:bit"))
    assert values(output)["collective_disagreements", GPUS] == 3
    for one in output.miscompares:
        assert isinstance(one, DifferingDigests)
        assert sorted(one.digests.values()) == [(Gpu(0), Gpu(1)), (Gpu(2),)]
    assert len(output.miscompares) == 3


@each(
    "more, said",
    [
        (
            {"inject": "hang", "grace": 4},
            "gpu0, gpu1, gpu2 has not answered within 4 s and was killed: gpu2 never arrived at "
            "all_reduce of 4096 bytes",
        ),
        ({"inject": "die"}, "gpu2 was ended by signal 9"),
    ],
)
def test_a_rank_that_is_lost_is_named_and_all_are_ended(more: dict[str, Any], said: str) -> None:
    done = program(**more)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"collective: the worker on {said}")
    assert '"end"' not in done.stdout
    assert salvage(done.stdout) == ()


def test_an_arm_sets_its_own_variables_of_nccl_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nccl() -> dict[str, Any]:
        return {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}

    for name in nccl():
        monkeypatch.delenv(name)
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "1")
    monkeypatch.setenv("NCCL_P2P_LEVEL", "SYS")
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    own = {
        "NCCL_NVLS_ENABLE": "0",
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,P2P,SHM,NET,NVLS,TUNING",
        "NCCL_DEBUG_FILE": "/folder/nccl-1.log",
    }
    VariantRank(1, "default", Path("/folder"), logged=True).prepare()
    assert nccl() == own
    VariantRank(1, "p2p_off", Path("/folder"), logged=True).prepare()
    assert nccl() == {**own, "NCCL_P2P_DISABLE": "1"}
    VariantRank(1, "multicast", Path("/folder"), logged=True).prepare()
    assert nccl() == {**own, "NCCL_NVLS_ENABLE": "1"}
