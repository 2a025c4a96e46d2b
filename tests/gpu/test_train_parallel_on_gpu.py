"""The load of parallel training over NCCL, on two GPUs and more."""

from __future__ import annotations

import sys

import pytest

from acceptance.loads.train.names import PARALLEL_ACCUMULATIONS, PARALLEL_WAYS, ParallelWay
from acceptance.process import command
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.tools import train_output
from acceptance.tools.load_output import LoadFailed

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(1200)]
SHORT: tuple[tuple[ParallelWay, ...], tuple[int, ...]] = (("ddp",), (1,))


@pytest.fixture
def uuids() -> list[str]:
    import torch

    count = torch.cuda.device_count()
    if count < 2:
        pytest.skip(f"parallel training needs two GPUs, and {count} is seen: not tried")
    return [str(torch.cuda.get_device_properties(number).uuid) for number in range(count)]


def load(
    ranks: int,
    ways: tuple[ParallelWay, ...],
    accumulate: tuple[int, ...],
    *more: str,
    seconds: float = 12.0,
    inject: str | None = None,
) -> ProgramResult:
    argv = train_output.train_parallel_argv(
        sys.executable,
        ranks=ranks,
        seconds=seconds,
        ways=ways,
        accumulate=accumulate,
        inject=inject,
    )
    return command.start((*argv, *more), deadline=Deadline.after(900.0)).wait()


def test_the_short_form_ends_in_time_and_is_right(uuids: list[str]) -> None:
    done = load(len(uuids), *SHORT)
    assert done.returncode == 0, done.stderr
    output = train_output.read_train_parallel(
        done, uuids=uuids, seconds=12.0, ways=SHORT[0], accumulate=SHORT[1]
    )
    assert output.miscompares == ()
    assert done.seconds < 60
    found = {one.name: one.value for one in output.readings}
    assert 0.3 < found["parallel_ddp_efficiency"] <= 1.15
    print(done.seconds, found, output.tables)


def test_the_whole_table_is_right(uuids: list[str]) -> None:
    done = load(len(uuids), PARALLEL_WAYS, PARALLEL_ACCUMULATIONS, seconds=100.0)
    assert done.returncode == 0, done.stderr
    output = train_output.read_train_parallel(
        done,
        uuids=uuids,
        seconds=100.0,
        ways=PARALLEL_WAYS,
        accumulate=PARALLEL_ACCUMULATIONS,
    )
    assert output.miscompares == ()
    (_, compared) = output.tables
    for row in compared.rows:
        assert max(float(one) for one in row[8:]) < 0.5, row
    print(done.seconds, {one.name: one.value for one in output.readings}, output.tables)


def test_two_h200_reach_what_was_measured(uuids: list[str]) -> None:
    import torch

    if len(uuids) != 2 or torch.cuda.get_device_name(0) != "NVIDIA H200":
        pytest.skip("the recorded figures are of two H200s")
    output = train_output.read_train_parallel(
        load(2, *SHORT), uuids=uuids, seconds=12.0, ways=SHORT[0], accumulate=SHORT[1]
    )
    found = {one.name: one.value for one in output.readings}
    assert found["parallel_ddp_efficiency"] == pytest.approx(0.916, abs=0.05)
    assert found["parallel_ddp_efficiency_p2p_off"] == pytest.approx(0.543, abs=0.08)


@pytest.mark.parametrize("fault", ["wrong", "drop"])
@pytest.mark.parametrize("way", PARALLEL_WAYS)
def test_an_injected_fault_is_found(uuids: list[str], way: ParallelWay, fault: str) -> None:
    done = load(len(uuids), (way,), (1,), "--arm", "default", seconds=1.0, inject=fault)
    assert done.returncode == 0, done.stderr
    with pytest.raises(LoadFailed, match=fault) as refused:
        train_output.read_train_parallel(
            done, uuids=uuids, seconds=1.0, ways=(way,), accumulate=(1,)
        )
    assert refused.value.miscompares


@pytest.mark.parametrize(
    ("fault", "said"), [("die", "was ended by signal 9"), ("hang", "never arrived")]
)
def test_a_rank_that_is_lost_is_named(uuids: list[str], fault: str, said: str) -> None:
    done = load(len(uuids), *SHORT, "--grace", "40", inject=fault)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
    assert f"gpu{len(uuids) - 1}" in done.stderr.splitlines()[-1]
