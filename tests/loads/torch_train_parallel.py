"""Parallel training through torch over gloo, in every way: run in the image by
tests/containers/test_torch_loads.py.

No GPU is needed; what NCCL does, and mixed precision of a GPU, is not seen here.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from load_program import whole

from acceptance.core.parts import Gpu
from acceptance.loads.asks import PROGRAM
from acceptance.loads.miscompare import DifferingDigests, WrongTraining
from acceptance.loads.train import parallel_split, parallel_values
from acceptance.loads.train.model import batch, model
from acceptance.loads.train.parallel_contract import EFFICIENCIES, WAYS
from acceptance.loads.train.parallel_values import STEPS, VERIFIED
from acceptance.loads.train.shapes import TINY

SHORT = ("ways=ddp", "accumulate=1", "arms=default")


def program(*more: str, ranks: int = 2) -> subprocess.CompletedProcess[str]:
    argv = ["backend=gloo", f"ranks={ranks}", "seconds=0.5", *more]
    return subprocess.run(
        [sys.executable, *PROGRAM, "train_parallel", *argv],
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_every_way_gives_what_one_card_gives() -> None:
    """With three ranks, neither heads nor words of the vocabulary are shared evenly."""
    ranks = 3
    output = whole(program("arms=default", ranks=ranks))
    assert output.miscompares == ()
    found = {one.name: one.value for one in output.readings}
    assert found["parallel_miscompares"] == found["parallel_disagreements"] == 0
    due = {name for name in EFFICIENCIES if not name.endswith("_p2p_off")}
    assert {name for name in found if "efficiency" in name} == due
    assert all(found[name] > 0 for name in due)
    trained, compared = output.tables
    assert len(trained.rows) == 2 * (1 + len(WAYS))
    for _, way, _, steps, losses, gradients, weights, digests, *nearest in compared.rows:
        (elements,) = [parallel_values.elements(one, ranks) for one in WAYS if one == way]
        assert (steps, losses) == (STEPS, ranks * STEPS)
        assert (gradients, weights) == (STEPS * elements, elements)
        assert digests == (ranks if way == "ddp" else 0)
        # the bound has room: what it would not find is not much smaller than it
        assert max(float(one) for one in nearest) < 0.05


def test_the_small_model_has_the_parameters_that_are_said_to_be_compared() -> None:
    for shape in (VERIFIED, TINY):
        count = sum(one.numel() for one in model(shape, "cpu").parameters())
        split = parallel_values.split_parameters(shape)
        assert split + parallel_values.whole_parameters(shape) == count


@pytest.mark.parametrize("ranks", [2, 3, 16])
def test_the_parts_of_all_ranks_are_the_whole_model(ranks: int) -> None:
    parts = [
        dict(parallel_split.split(model(VERIFIED, "cpu"), rank, ranks).named_parameters())
        for rank in range(ranks)
    ]
    for name, whole_one in model(VERIFIED, "cpu").named_parameters():
        own = [
            parallel_split.own(name, whole_one, VERIFIED.layer, one, ranks) for one in range(ranks)
        ]
        for part, due in zip(parts, own, strict=True):
            assert torch.equal(part[name], due)
        if own[0].shape != whole_one.shape:
            axis = int(own[0].shape[0] == whole_one.shape[0])
            assert torch.equal(torch.cat(own, axis), whole_one)


@pytest.mark.parametrize("way", WAYS)
def test_an_error_just_above_the_bound_is_found(way: str) -> None:
    output = whole(program(f"ways={way}", *SHORT[1:], "inject=wrong"))
    assert output.injected == "wrong"
    (one,) = [one for one in output.miscompares if isinstance(one, WrongTraining)]
    assert (one.component, one.check, one.way, one.step) == (Gpu(1), "parallel_gradient", way, 1)
    assert 1.2 < float(one.difference) / one.bound < 1.3


@pytest.mark.parametrize("way", WAYS)
def test_an_exchange_that_is_left_out_is_found(way: str) -> None:
    output = whole(program(f"ways={way}", *SHORT[1:], "inject=drop"))
    assert next(one for one in output.miscompares if isinstance(one, WrongTraining)).step <= 2
    told = {one.check for one in output.miscompares if isinstance(one, WrongTraining)}
    assert "parallel_gradient" in told
    differ = any(isinstance(one, DifferingDigests) for one in output.miscompares)
    assert differ == (way == "ddp")


def test_equal_seeds_give_all_ranks_the_same_batch() -> None:
    one, other = batch(TINY, "cpu", 4, 7), batch(TINY, "cpu", 4, 7)
    assert torch.equal(one[0], other[0])
    assert torch.equal(one[0][:, 1:], one[1][:, :-1])
