"""The bound of parallel training's values, how many are compared, and what fits into memory."""

from __future__ import annotations

import itertools
import math

import pytest
from cases import each

from acceptance.core.limit import GIB
from acceptance.loads.train import parallel_values
from acceptance.loads.train.memory import CHOICES, parallel_bytes, parallel_model, tensor_batch
from acceptance.loads.train.parallel_values import STEPS, UNIT, VERIFIED
from acceptance.loads.train.parallel_worker import (
    LEAST_STEPS,
    MOST_STEPS,
    Clock,
    Deviation,
    Verify,
    compare,
    steps_for,
    wrong,
)
from acceptance.loads.train.shapes import MODELS, TINY


def test_the_bound_grows_with_the_root_of_the_terms_and_with_the_step() -> None:
    places, parts = 256, 4
    layer = 9 * 256 + 1024 + 16 + 2 * 64 + 2
    forward = 2 * layer + 3 * 256 + 640 + places + parts  # 521 words in 640 rows
    assert parallel_values.terms(VERIFIED, places, parts, gradient=False) == forward
    back = 3 * forward + places + parts
    assert parallel_values.terms(VERIFIED, places, parts, gradient=True) == back
    one = parallel_values.relative(VERIFIED, places, parts, 1, gradient=True)
    assert one == pytest.approx(16 * math.sqrt(back) * 2**-24)
    third = parallel_values.relative(VERIFIED, places, parts, 3, gradient=True)
    assert third == pytest.approx(3 * one)
    assert one > parallel_values.relative(VERIFIED, places, parts, 1, gradient=False) > 2 * UNIT


def test_a_tensor_with_next_to_no_gradient_is_held_against_the_whole_model_s() -> None:
    assert parallel_values.norm_bound(1e-4, 5.0, 100, 0.01) == pytest.approx(5e-4)
    assert parallel_values.norm_bound(1e-4, 0.0, 100, 0.01) == pytest.approx(1e-4)
    assert parallel_values.weight_bound(1e-4, 8.0, STEPS) == pytest.approx(2e-4 + 6 * UNIT * 8.0)


@each("ranks", [2, 3, 5, 16])
def test_shares_are_whole_and_even(ranks: int) -> None:
    ends = [parallel_values.share(16, rank, ranks) for rank in range(ranks)]
    assert ends[0][0] == 0
    assert ends[-1][1] == 16
    assert all(one[1] == other[0] for one, other in itertools.pairwise(ends))
    assert {end - first for first, end in ends} <= {16 // ranks, 16 // ranks + 1}


def test_every_rank_holds_what_its_way_gives_it() -> None:
    split = parallel_values.split_parameters(TINY)
    whole = parallel_values.whole_parameters(TINY)
    assert split + whole == pytest.approx(TINY.parameters, rel=0.03)  # which leaves out biases
    assert parallel_values.elements("ddp", 3, TINY) == 3 * (split + whole)
    assert parallel_values.elements("tp", 3, TINY) == split + 3 * whole
    assert parallel_values.elements("zero2", 3, TINY) == split + whole
    assert parallel_values.elements("zero3", 3, TINY) == split + whole


@each(
    "difference, bound, found",
    [(1.0, 1.0, False), (1.25, 1.0, True), (math.nan, 1.0, True), (math.inf, 1.0, True)],
)
def test_what_exceeds_its_bound_or_is_no_number_is_found(
    difference: float, bound: float, found: bool
) -> None:
    assert (compare("parallel_loss", 2, "loss", difference, bound) is not None) == found


def test_a_bound_that_is_no_number_is_printed_as_0() -> None:
    found = Deviation("parallel_loss", 1, "loss", math.nan, math.nan)
    told = wrong(found, Verify("ddp", 4), "p2p_off", 1)
    assert (told.bound, told.difference, told.way, told.accumulation) == (0.0, "nan", "ddp", 4)


def test_tasks_say_what_they_are() -> None:
    assert str(Verify("zero2", 4)) == "verifying zero2 with accumulation 4"
    assert str(Clock("alone", 1, TINY, 2, 1.0, "bf16")) == "timing alone with accumulation 1"


@each(
    "seconds, one_s, count",
    [(1.0, 0.3, 4), (1.0, 2.0, LEAST_STEPS), (1e6, 1e-9, MOST_STEPS), (1.0, 0.0, MOST_STEPS)],
)
def test_steps_fill_the_time(seconds: float, one_s: float, count: int) -> None:
    assert steps_for(seconds, one_s) == count


@each(
    "gib, name, batch",
    [
        (141, "parallel", 8),
        (80, "parallel", 8),
        (48, "parallel", 4),
        (24, "gpt2", 4),
        (16, "gpt2", 2),
        (12, "gpt2", 1),
        (8, "digest", 2),
    ],
)
def test_a_card_of_8_gib_and_more_trains_the_largest_that_fits(
    gib: int, name: str, batch: int
) -> None:
    assert parallel_model(int(0.95 * (gib - 0.9) * GIB)) == (name, batch)


def test_too_little_memory_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2\.00 GiB of free memory are too little"):
        parallel_model(2 * GIB)


def test_choices_need_less_and_less() -> None:
    sizes = [parallel_bytes(MODELS[name], batch) for name, batch in CHOICES]
    assert sizes == sorted(sizes, reverse=True)
    # 1.3 G parameters at batch 8: 42 GiB by calculation, and a reserve
    assert 42 * GIB < sizes[0] < 52 * GIB


def test_tensor_parallelism_works_on_what_fits() -> None:
    shape, room = MODELS["parallel"], int(0.95 * 78 * GIB)
    assert tensor_batch(shape, 8, 2, room) == 16
    assert tensor_batch(shape, 8, 8, room) == 32
    assert tensor_batch(shape, 3, 2, GIB) == 1
    assert parallel_bytes(shape, 8, 2) < parallel_bytes(shape, 8)
