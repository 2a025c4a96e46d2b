"""The load of collectives over NCCL: on two GPUs and more whole, on one what a group of one rank
shows of events, graph and log.
"""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from acceptance.core.parts import GPUS, Gpu, Pair
from acceptance.loads import asks, contract
from acceptance.loads.collective.contract import COLLECTIVE_VARIANTS, WHOLE_GROUP, Ask, rate_of
from acceptance.loads.collective.operation import OPERATIONS, Operation
from acceptance.loads.collective.pattern import ELEMENT_TYPES, Numbers, Rule, before, due
from acceptance.loads.collective.variant import VariantRank
from acceptance.loads.contract import Unproved
from acceptance.loads.miscompare import ElementType, of_variant
from acceptance.loads.protocol import LoadOutput, parse, salvage
from acceptance.process import command
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.tools.read import nccl_log

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]


def uuids() -> list[str]:
    import torch

    count = torch.cuda.device_count()
    return [str(torch.cuda.get_device_properties(number).uuid) for number in range(count)]


@pytest.fixture
def several() -> list[str]:
    found = uuids()
    if len(found) < 2:
        pytest.skip(f"collectives need two GPUs, and {len(found)} is seen: not tried")
    return found


def load(ranks: int, **more: Any) -> ProgramResult:
    ask = Ask(backend="nccl", ranks=ranks, seconds=20.0, **more)
    running = command.start(asks.argv(sys.executable, ask), deadline=Deadline.after(600.0))
    return running.wait()


def proved(done: ProgramResult, uuids: list[str]) -> LoadOutput:
    """The output, which is the whole answer to what was asked."""
    assert done.returncode == 0, done.stderr
    output, ask = parse(done.stdout), asks.of_argv(done.argv)
    assert isinstance(ask, Ask)
    contract.prove(ask, output, {"uuids": uuids}, done.seconds)
    return output


def alone(connection: Connection, folder: str, arm: Any) -> None:
    """One rank in a process of its own, as the load starts it."""
    import torch

    rank = VariantRank(0, arm, Path(folder), logged=True)
    rank.prepare()
    from acceptance.loads.collective.torch_group import TorchGroup

    group = TorchGroup("nccl", 0, 1, Path(folder))
    operation = Operation("all_reduce", 2)
    buffer = group.memory.buffer("f32", 1 << 20).fill_(3)
    took = group.run(operation, buffer, buffer)
    right = bool((buffer == 3).all())
    smallest = group.memory.buffer("i32", 2)
    smallest[:] = torch.tensor([7, 9])
    latency = group.latency(smallest, 50)
    again = group.run(operation, buffer, buffer)
    values = smallest.tolist()
    group.leave()
    connection.send((took, right, latency, again, values, group.uuid, rank.log.read_text()))


@pytest.mark.parametrize("arm", ["default", "p2p_off"])
def test_a_group_of_one_rank_shows_events_graph_and_log(tmp_path: Path, arm: str) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=alone, args=(theirs, str(tmp_path), arm))
    process.start()
    theirs.close()
    took, right, latency, again, values, uuid, text = ours.recv()
    process.join(60)
    assert process.exitcode == 0
    assert 0 < took < 10
    assert 0 < again < 10
    assert right
    assert 0 <= latency < 1e-3
    assert values == [7, 9]
    assert uuid in uuids()[0]
    log = nccl_log.parse([text])
    assert len(log.communicators) == 1
    assert len(log.communicators[0]) == 1
    assert log.transports == {}
    assert log.environment.get("NCCL_P2P_DISABLE") == ("1" if arm == "p2p_off" else None)


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_the_kernels_write_and_count_what_arrays_of_torch_have(dtype: ElementType) -> None:
    from acceptance.loads.collective.torch_group import TorchMemory

    memory, share, turn = TorchMemory("cuda:0", 8), 1_000_003, 5
    numbers = Numbers(dtype, 8)
    for name in OPERATIONS:
        operation = Operation(name, 8, 3, 2)
        count = share * operation.shares
        places = memory.places(0, count)
        rules = {due(operation, 6, share), before(operation, 6), Rule(rank=6)}
        for rule in rules - {None}:
            expected, buffer = memory.buffer(dtype, count), memory.buffer(dtype, count)
            expected[:] = numbers.by(rule, turn, places)
            assert memory.write(buffer.fill_(-1), numbers, rule, turn)
            assert bool((buffer == expected).all()), (name, rule)
            assert memory.differing(buffer, numbers, rule, turn) == 0
            for place in (0, count // 2, count - 1):
                buffer[place] = -1
            assert memory.differing(buffer, numbers, rule, turn) == 3, (name, rule)
            assert memory.differing(buffer[:1], numbers, rule, turn) == 1
            assert memory.differing(buffer[1:2], numbers, rule, turn + 1) in (0, 1)
        assert memory.differing(buffer[:0], numbers, rule, turn) == 0


def test_all_operations_are_right_on_all_gpus_and_nccl_says_its_ways(several: list[str]) -> None:
    output = proved(load(len(several)), several)
    assert output.miscompares == ()
    found = {(one.name, one.component): one.value for one in output.readings}
    for arm in COLLECTIVE_VARIANTS:
        for name in WHOLE_GROUP:
            assert found[of_variant(rate_of(name), arm), GPUS] > 1
        assert 1 < found[of_variant("collective_latency", arm), GPUS] < 1000
        logs = [one.text for one in output.logs if one.name == of_variant("nccl", arm)]
        told = nccl_log.parse(logs)
        (group,) = told.communicators
        assert len(group) == len(several)
        assert len(told.transports) == len(several) * (len(several) - 1)
        if arm == "p2p_off":
            assert {one.kind for one in told.transports.values()} == {"SHM"}
    print({f"{name} {component}": value for (name, component), value in found.items()})


def test_two_h200_reach_what_nccl_tests_reach(several: list[str]) -> None:
    import torch

    if len(several) != 2 or torch.cuda.get_device_name(0) != "NVIDIA H200":
        pytest.skip("the recorded figures are of two H200s")
    found = {(one.name, one.component): one.value for one in proved(load(2), several).readings}
    assert found["collective_all_reduce", GPUS] == pytest.approx(327, rel=0.03)
    assert found["collective_all_reduce_p2p_off", GPUS] == pytest.approx(27, rel=0.03)
    assert found["collective_latency", GPUS] <= 30


@pytest.mark.parametrize("fault", ["wrong", "order", "unwritten", "lost"])
def test_an_injected_fault_is_counted(several: list[str], fault: str) -> None:
    done = load(len(several), inject=fault, most=16777216)
    with pytest.raises(Unproved) as refused:
        proved(done, several)
    assert refused.value.message.code == "load_fault_injected"
    last = len(several) - 1
    paths = {Pair(Gpu(number), Gpu(last)) for number in range(last)}
    told = {getattr(one, "component", None) for one in salvage(done.stdout)}
    assert told & ({*paths} if fault == "lost" else {Gpu(last)})


@pytest.mark.parametrize(
    ("fault", "said"), [("die", "was ended by signal 9"), ("hang", "never arrived")]
)
def test_a_rank_that_is_lost_is_named_and_nccl_s_log_is_kept(
    several: list[str], fault: str, said: str
) -> None:
    done = load(len(several), inject=fault, grace=60.0, most=16777216)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
    assert f"gpu{len(several) - 1}" in done.stderr.splitlines()[-1]
    assert '"log": "nccl"' in done.stdout
