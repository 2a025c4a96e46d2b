from __future__ import annotations

import math
from dataclasses import replace

import pytest
from cases import each

from acceptance.loads.train import step_bounds
from acceptance.loads.train.memory import MOST_BATCH, step_batch, step_bytes
from acceptance.loads.train.shapes import (
    MODELS,
    TINY,
    ModelName,
    StepFormat,
    StepOption,
    first_loss,
    judged_format,
    options,
)

GIB = 1 << 30
BF16 = StepOption("bf16")
BESIDE = 400 << 20


@each("capability, told", [("7.0", "f16"), ("7.5", "f16"), ("8.0", "bf16"), ("12.0", "bf16")])
def test_the_format_that_is_judged(capability: str, told: StepFormat) -> None:
    assert judged_format(capability) == told


def test_no_format_of_a_gpu_without_a_capability() -> None:
    with pytest.raises(ValueError, match="None"):
        judged_format("None")


def test_the_options_of_the_table() -> None:
    assert [one.name for one in options("bf16")] == [
        "bfloat16",
        "bfloat16, unfused",
        "TF32",
        "float32",
        "bfloat16, 4 accumulated",
        "bfloat16, 16 accumulated",
        "bfloat16, checkpointing",
    ]
    assert "TF32" not in [one.name for one in options("f16")]
    assert len({one.name for one in options("f16")}) == 6


@each(
    "model, option, batch, gib",
    [
        ("bert", BF16, 16, 14.72),
        ("bert", StepOption("tf32"), 16, 18.61),
        ("bert", replace(BF16, checkpointed=True), 16, 7.49),
        ("gpt2", BF16, 16, 28.96),
        ("gpt2", StepOption("f32"), 8, 20.65),
        ("gpt2", replace(BF16, accumulation=16), 8, 18.12),
        ("gpt2", replace(BF16, checkpointed=True), 16, 14.87),
        ("neo", BF16, 8, 56.58),
        ("neo", replace(BF16, accumulation=16), 1, 26.98),
        ("neo", StepOption("tf32"), 4, 43.45),
    ],
)
def test_peaks_that_an_h100_showed_are_just_below_the_estimate(
    model: ModelName, option: StepOption, batch: int, gib: float
) -> None:
    assert gib < step_bytes(MODELS[model], option, batch) / GIB < 1.3 * gib


@each(
    "model, gib, checkpointed, batch",
    [
        ("gpt2", 141, False, 16),
        ("gpt2", 80, False, 16),
        ("gpt2", 24, False, 4),
        ("gpt2", 16, False, 2),
        ("gpt2", 12, False, 1),
        ("gpt2", 8, False, 1),
        ("gpt2", 7.6, True, 1),  # what cards of 8 GB show
        ("bert", 7.6, False, 1),
        ("bert", 24, False, 8),
        ("neo", 141, False, 16),
        ("neo", 40, False, 1),
        ("neo", 30, False, 1),
    ],
)
def test_the_batch_that_memory_allows(
    model: ModelName, gib: float, checkpointed: bool, batch: int
) -> None:
    beside = (128 if gib < 12 else 512) << 20  # the matrix product
    found = step_batch(MODELS[model], BF16, int(gib * GIB), beside)
    assert found is not None
    assert found == (replace(BF16, checkpointed=checkpointed), found[1])
    assert found[1] >= batch, found[1]
    assert found[1] <= MOST_BATCH


def test_a_card_on_which_nothing_fits() -> None:
    assert step_batch(MODELS["gpt2"], BF16, 6 * GIB, BESIDE) is None
    assert step_batch(MODELS["neo"], BF16, 24 * GIB, BESIDE) is None


def test_checkpointing_and_narrow_formats_need_less() -> None:
    shape = MODELS["gpt2"]
    plain = step_bytes(shape, BF16, 16)
    assert step_bytes(shape, replace(BF16, checkpointed=True), 16) < 0.8 * plain
    assert step_bytes(shape, StepOption("f32"), 16) > 1.2 * plain
    # accumulation repeats the same batch, and keeps the gradients
    accumulated = step_bytes(shape, replace(BF16, accumulation=16), 16)
    assert accumulated == plain + 4 * shape.parameters


def test_the_loss_of_new_weights() -> None:
    """What a processor found with one sample: 11.0496 before the vocabulary was padded, 10.5260."""
    for model, found in (("gpt2", 11.0496), ("bert", 10.5260)):
        due, margin = first_loss(MODELS[model], 1)
        assert abs(found - due) < 0.1 * margin
        assert abs(due - math.log(MODELS[model].words) - 0.2048) < 1e-9
        assert first_loss(MODELS[model], 16)[1] < margin < 0.35


def test_bounds_of_a_step() -> None:
    small = step_bounds.SMALL
    assert step_bounds.roundings(2) == 111
    of = {dtype: step_bounds.gradient_error(small, dtype) for dtype in step_bounds.ROUNDOFF}
    assert of["bf16"] == pytest.approx(9 * math.sqrt(111) / 256)
    assert of["f32"] < 2e-4 < of["f16"] < of["bf16"] < 0.4
    for dtype in step_bounds.ROUNDOFF:
        assert step_bounds.loss_error(small, 2, dtype) < 0.01
    of_itself, absolute = step_bounds.weight_error()
    assert 0 < of_itself < 1e-6
    assert absolute < 1e-5 * step_bounds.RATE
    assert TINY.layers == 2
