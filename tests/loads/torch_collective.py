"""The load of collectives over gloo, and its numbers on tensors: run in the image by
tests/containers/test_torch_loads.py.

No GPU is needed; what NCCL does is not seen here.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from load_program import whole

from acceptance.core.parts import GPUS, Gpu
from acceptance.loads import asks
from acceptance.loads.collective import pattern
from acceptance.loads.collective.contract import COLLECTIVES, WHOLE_GROUP, Ask
from acceptance.loads.collective.pattern import (
    ELEMENT_TYPES,
    SPOILED,
    Numbers,
    Operation,
    before,
    due,
    fault,
)
from acceptance.loads.collective.torch_group import TorchMemory
from acceptance.loads.miscompare import CollectiveCheck, ElementType

RANKS = 3


def program(**more: Any) -> subprocess.CompletedProcess[str]:
    given: dict[str, Any] = {"backend": "gloo", "ranks": RANKS, "seconds": 5.0, "turns": 1}
    return subprocess.run(
        asks.argv(sys.executable, Ask(**{**given, **more})),
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_tensors_hold_the_numbers_of_arrays(name: CollectiveCheck, dtype: ElementType) -> None:
    memory, operation, numbers = TorchMemory("cpu", 4), Operation(name, 4), Numbers(dtype, 4)
    places = memory.places(5, 1000)
    arrays = np.arange(5, 1005, dtype=np.int64)
    rule, was = due(operation, 2, 300), before(operation, 2)
    expected = numbers.by(rule, 7, places)
    old = numbers.by(was, 7, places) if was is not None else SPOILED
    assert (expected.numpy() == numbers.by(rule, 7, arrays)).all()
    got = memory.buffer(dtype, 1000)
    got[:] = expected
    assert fault(places, expected, old, got) is None
    got[30] = SPOILED
    found = fault(places, expected, old, got)
    assert found is not None
    assert (found.elements, found.first[0].index) == (1, (35,))
    got[:] = old
    nothing = fault(places, expected, old, got)
    assert nothing is not None
    assert nothing.elements == nothing.unwritten == 1000


def test_a_tensor_and_an_array_have_one_digest() -> None:
    memory, words = TorchMemory("cpu", 2), np.arange(-500, 500, dtype=np.float32)
    of_tensor = pattern.part(memory.places(0, 1000), memory.words(torch.from_numpy(words)))
    of_array = pattern.part(np.arange(1000), words.view(np.int32).astype(np.int64))
    assert of_tensor == of_array


def test_all_operations_are_right_over_gloo_and_all_ranks_hold_the_same_bits() -> None:
    output = whole(program(most=32768))
    assert output.miscompares == ()
    found = {(one.name, one.component): one.value for one in output.readings}
    for name in WHOLE_GROUP:
        assert found[f"collective_{name}", GPUS] > 0
    for rank in range(RANKS):
        assert found["collective_miscompares", Gpu(rank)] == 0
    assert found["collective_disagreements_p2p_off", GPUS] == 0
    # a busy machine has slow paths, of which another table says
    (table,) = [one for one in output.tables if one.name == COLLECTIVES]
    assert {row[4] for row in table.rows if row[1] == "broadcast"} == {8 << 3 * k for k in range(5)}


@pytest.mark.parametrize(
    ("fault_", "said"),
    [
        ("hang", "gpu2 never arrived at all_reduce of 4096 bytes"),
        ("die", "the worker on gpu2 was ended by signal 9"),
    ],
)
def test_a_rank_that_does_not_arrive_is_named(fault_: str, said: str) -> None:
    # A rank that died is noticed at once, one that hangs after the grace. With less, workers that
    # start on a loaded machine would not answer in time.
    grace = 45.0 if fault_ == "hang" else 90.0
    done = program(most=4096, grace=grace, inject=fault_)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
