"""Ranks that reduce a sum together with torch.distributed on the processor: run in the image by
tests/containers/test_torch_loads.py.

No GPU is needed; tests/gpu has the same over NCCL.
"""

from __future__ import annotations

import pytest
from reduce_program import gone, reduce

from acceptance.core.parts import Gpu

COUNT = 3


def test_ranks_agree_on_a_sum_and_one_stream_tells_of_all() -> None:
    done = reduce("gloo", COUNT)
    assert done.returncode == 0, done.stderr
    assert done.sums == {Gpu(number): float(sum(range(COUNT))) for number in range(COUNT)}
    assert gone(done)


@pytest.mark.parametrize(
    ("fault", "said"),
    [("die", "was ended by signal 9"), ("hang", "has not answered within 6 s and was killed")],
)
def test_a_rank_that_does_not_join_ends_them_all(fault: str, said: str) -> None:
    """The others wait for it in the library, and would for half an hour."""
    done = reduce("gloo", COUNT, fault)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("collective: the worker on gpu")
    assert said in done.stderr
    assert done.sums == {}
    assert gone(done)
