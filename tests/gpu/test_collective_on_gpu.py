"""What the load of collectives needs of a GPU: events, graph and log of a group of one rank over
NCCL, and our kernels. `make selftest-gpu` and scripts/prove-two-gpus run it whole.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from acceptance.loads.collective.pattern import (
    ELEMENT_TYPES,
    OPERATIONS,
    Numbers,
    Operation,
    Rule,
    before,
    due,
)
from acceptance.loads.collective.worker import VariantRank
from acceptance.loads.miscompare import ElementType
from acceptance.tools.read import nccl_log

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]


def uuids() -> list[str]:
    import torch

    count = torch.cuda.device_count()
    return [str(torch.cuda.get_device_properties(number).uuid) for number in range(count)]


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
