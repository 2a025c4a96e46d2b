"""Ranks that reduce a sum over NCCL, one for each GPU; and the burn's stage, where one GPU's load
dies and the others go on.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import journals
import pytest
from reduce_program import gone, reduce

from acceptance.core.evidence import PartBegan
from acceptance.core.parts import Gpu
from acceptance.core.record import Body
from acceptance.loads import asks
from acceptance.loads.burn.contract import Ask
from acceptance.session import loads
from acceptance.session.loads import LoadFailed, Place
from acceptance.session.programs import Programs
from acceptance.session.stage import Part

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.fixture
def count() -> int:
    import torch

    found = int(torch.cuda.device_count())
    if found < 2:
        pytest.skip(f"a group needs two GPUs, and {found} is seen: not tried")
    return found


def test_ranks_on_all_gpus_agree_on_a_sum(count: int) -> None:
    done = reduce("nccl", count)
    assert done.returncode == 0, done.stderr
    assert done.sums == {f"gpu{number}": float(sum(range(count))) for number in range(count)}
    assert gone(done)


@pytest.mark.parametrize(
    ("fault", "said"), [("die", "was ended by signal 9"), ("hang", "has not answered within 6 s")]
)
def test_a_gpu_that_does_not_join_ends_them_all(count: int, fault: str, said: str) -> None:
    """The kernels of the others wait for it on their GPUs; they are killed all the same."""
    done = reduce("nccl", count, fault)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
    assert done.sums == {}
    assert gone(done)


def test_a_burn_that_dies_costs_no_other_gpu_its_result(count: int, tmp_path: Path) -> None:
    written: list[Body] = []
    (tmp_path / "logs").mkdir()
    programs = Programs(
        journals.check("together.burn", seconds=300.0), tmp_path / "logs", written.append
    )
    argv = asks.argv(sys.executable, Ask(dtypes=("f32",), seconds=10.0))
    dying = ("sh", "-c", 'exec timeout -s KILL 5 "$@"', "sh", *argv)
    ended = programs.run_stage(
        [
            Part(
                Gpu(number),
                dying if number == 0 else argv,
                {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(number)},
            )
            for number in range(count)
        ]
    )
    with pytest.raises(LoadFailed, match="the load burn"):
        loads.read(replace(ended[0], argv=argv), Place(Gpu(0)))
    for number, one in enumerate(ended[1:], 1):
        assert loads.read(one, Place(Gpu(number))).miscompares == ()
    begun = [body.component for body in written if isinstance(body, PartBegan)]
    assert begun == [Gpu(number) for number in range(count)]
