from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from collective_model import received
from collective_program import NumpyMemory

from acceptance.core.parts import Gpu, Pair
from acceptance.loads.collective import worker
from acceptance.loads.collective.pattern import ELEMENT_TYPES, OPERATIONS, SPOILED, Operation
from acceptance.loads.collective.worker import Step
from acceptance.loads.miscompare import CollectiveCheck

RANKS, SHARE = 3, 20


def destinations(step: Step) -> list[Any]:
    memory = NumpyMemory()
    filled = [worker._fill(memory, step, rank, rank) for rank in range(RANKS)]
    sources = [source for source, _ in filled]
    for rank, (source, destination) in enumerate(filled):
        assert (source is destination) == step.operation.in_place
        if not step.operation.in_place:
            assert (destination == SPOILED).all()
            assert len(source) == step.operation.sends(rank, SHARE)
    return [
        received(step.operation, step.dtype, sources, SHARE, rank)
        for rank in range(RANKS)
        if step.operation.receives(rank, SHARE)
    ]


@pytest.mark.parametrize("name", OPERATIONS)
def test_buffers_are_filled_and_verified_whole_in_pieces(
    name: CollectiveCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CHUNK", 7)
    for dtype in ELEMENT_TYPES:
        step = Step(Operation(name, RANKS, 1, 0), dtype, SHARE, 5)
        got = destinations(step)[0]
        assert worker._verify(NumpyMemory(), step, 0, got) == (None, len(got))
        for place in range(len(got)):
            wrong = got.copy()
            wrong[place] = SPOILED
            found, _ = worker._verify(NumpyMemory(), step, 0, wrong)
            assert found is not None
            assert (found.elements, found.first[0].index) == (1, (place,))
        nothing, compared = worker._verify(NumpyMemory(), step, 0, got * 0)
        assert nothing is not None
        assert nothing.elements == compared == len(got)


def test_a_rank_that_receives_nothing_has_nothing_to_verify() -> None:
    step = Step(Operation("send_receive", RANKS, 1, 0), "f32", SHARE, 5)
    _, destination = worker._fill(NumpyMemory(), step, 1, 1)
    assert worker._verify(NumpyMemory(), step, 1, destination) == (None, 0)


def test_random_numbers_have_other_sums_in_another_order_and_one_digest_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = Step(Operation("all_reduce", RANKS), "f32", 1000, 2, random=True)
    memory = NumpyMemory()
    first, second, third = (worker._fill(memory, step, rank, rank)[0] for rank in range(RANKS))
    one, other = (first + second) + third, first + (second + third)
    assert 100 < np.count_nonzero(one != other) < 900
    assert np.isfinite(one).all()
    whole = worker._digest(memory, one)
    monkeypatch.setattr(worker, "CHUNK", 7)
    assert worker._digest(memory, one) == whole != worker._digest(memory, other)
    assert (worker._fill(memory, step, 0, 0)[0] == first).all()


def test_a_wrong_element_belongs_to_its_gpu_or_to_its_path() -> None:
    assert Step(Operation("broadcast", 3), "f32", 1, 0).component(2) == Gpu(2)
    path = Operation("send_receive", 3, 1, 2)
    assert Step(path, "f32", 1, 0).component(2) == Pair(Gpu(1), Gpu(2))
