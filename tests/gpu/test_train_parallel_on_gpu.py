"""The load of parallel training over NCCL, on two GPUs and more."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from acceptance.loads import asks, contract
from acceptance.loads.contract import Unproved
from acceptance.loads.protocol import LoadOutput, parse, salvage
from acceptance.loads.train.parallel_contract import WAYS, Ask, Fault
from acceptance.loads.train.parallel_values import ParallelWay
from acceptance.process import command
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(1200)]
SHORT: dict[str, Any] = {"ways": ("ddp",), "accumulate": (1,)}


@pytest.fixture
def uuids() -> list[str]:
    import torch

    count = torch.cuda.device_count()
    if count < 2:
        pytest.skip(f"parallel training needs two GPUs, and {count} is seen: not tried")
    return [str(torch.cuda.get_device_properties(number).uuid) for number in range(count)]


def load(ask: Ask) -> ProgramResult:
    return command.start(asks.argv(sys.executable, ask), deadline=Deadline.after(900.0)).wait()


def proved(ask: Ask, done: ProgramResult, uuids: list[str]) -> LoadOutput:
    assert done.returncode == 0, done.stderr
    output = parse(done.stdout)
    contract.prove(ask, output, {"uuids": uuids}, done.seconds)
    return output


def test_the_short_form_ends_in_time_and_is_right(uuids: list[str]) -> None:
    ask = Ask(ranks=len(uuids), seconds=12.0, **SHORT)
    done = load(ask)
    output = proved(ask, done, uuids)
    assert output.miscompares == ()
    assert done.seconds < 60
    found = {one.name: one.value for one in output.readings}
    assert 0.3 < found["parallel_ddp_efficiency"] <= 1.15
    print(done.seconds, found, output.tables)


def test_the_whole_table_is_right(uuids: list[str]) -> None:
    ask = Ask(ranks=len(uuids), seconds=100.0)
    done = load(ask)
    output = proved(ask, done, uuids)
    assert output.miscompares == ()
    (_, compared) = output.tables
    for row in compared.rows:
        assert max(float(one) for one in row[8:]) < 0.5, row
    print(done.seconds, {one.name: one.value for one in output.readings}, output.tables)


def test_two_h200_reach_what_was_measured(uuids: list[str]) -> None:
    import torch

    if len(uuids) != 2 or torch.cuda.get_device_name(0) != "NVIDIA H200":
        pytest.skip("the recorded figures are of two H200s")
    ask = Ask(ranks=2, seconds=12.0, **SHORT)
    found = {one.name: one.value for one in proved(ask, load(ask), uuids).readings}
    assert found["parallel_ddp_efficiency"] == pytest.approx(0.916, abs=0.05)
    assert found["parallel_ddp_efficiency_p2p_off"] == pytest.approx(0.543, abs=0.08)


@pytest.mark.parametrize("fault", ["wrong", "drop"])
@pytest.mark.parametrize("way", WAYS)
def test_an_injected_fault_is_found(uuids: list[str], way: ParallelWay, fault: Fault) -> None:
    ask = Ask(
        ranks=len(uuids),
        seconds=1.0,
        ways=(way,),
        accumulate=(1,),
        arms=("default",),
        inject=fault,
    )
    done = load(ask)
    with pytest.raises(Unproved) as refused:
        proved(ask, done, uuids)
    assert refused.value.message.values == {"fault": fault}
    assert salvage(done.stdout)


@pytest.mark.parametrize(
    ("fault", "said"), [("die", "was ended by signal 9"), ("hang", "never arrived")]
)
def test_a_rank_that_is_lost_is_named(uuids: list[str], fault: Fault, said: str) -> None:
    done = load(Ask(ranks=len(uuids), seconds=12.0, grace=40.0, inject=fault, **SHORT))
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
    assert f"gpu{len(uuids) - 1}" in done.stderr.splitlines()[-1]
