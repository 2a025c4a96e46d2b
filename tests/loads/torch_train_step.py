"""The training steps on a processor, in small: run in the image by
tests/containers/test_torch_loads.py.

No GPU is needed; its kernels, and what it has of memory, are not seen here.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections import defaultdict

import pytest
import torch

from acceptance.loads.program import OutOfMemory
from acceptance.loads.protocol import LoadOutput, parse
from acceptance.loads.train.shapes import TINY, StepFormat, StepOption, first_loss, options
from acceptance.loads.train.step_contract import STEP_CHECKS, STEP_LOSSES, STEP_TABLE
from acceptance.loads.train.step_trial import SmallStep, TorchMatmul, TorchTrial

FORMATS: tuple[StepFormat, ...] = ("f32", "bf16", "f16")


def ran(*more: str, seconds: float = 1.0) -> LoadOutput:
    argv = ["-m", "acceptance.loads", "train_step", "device=cpu", f"seconds={seconds}"]
    done = subprocess.run(
        [sys.executable, *argv, *more], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return parse(done.stdout)


@pytest.mark.parametrize("dtype", FORMATS)
def test_a_step_is_within_its_bounds_and_well_inside(dtype: StepFormat) -> None:
    """The headroom that `step_bounds` tells of."""
    worst: dict[str, float] = defaultdict(float)
    numbers: dict[str, int] = defaultdict(int)
    for one in SmallStep("cpu").check(dtype):
        assert not one.wrong, one
        worst[one.what] = max(worst[one.what], one.share)
        numbers[one.what] += one.numbers
    assert numbers["gradients"] == numbers["weights"] > 1_800_000
    assert worst["loss"] < 0.2
    assert 0.001 < worst["gradients"] < 0.35
    assert worst["weights"] < 0.4


def test_a_lost_update_is_found_where_it_is() -> None:
    (wrong,) = [one for one in SmallStep("cpu").check("bf16", falsify=True) if one.wrong]
    assert (wrong.what, wrong.name, wrong.wrong) == ("weights", "tokens.weight", 1)
    assert wrong.first[0].index == (0, 7)


@pytest.mark.parametrize("dtype", FORMATS)
def test_one_wrong_gradient_is_found(dtype: StepFormat) -> None:
    """One that is off by twice the size of its row."""
    small = SmallStep("cpu")
    weight = small._reference.blocks[1].feed_forward.up.weight
    weight.grad[5, 6] += 2 * weight.grad[5].square().mean().sqrt()
    (wrong,) = [one for one in small.check(dtype) if one.wrong]
    assert (wrong.what, wrong.name) == ("gradients", "blocks.1.feed_forward.up.weight")
    assert (wrong.wrong, wrong.first[0].index) == (1, (5, 6))


@pytest.mark.parametrize("dtype", FORMATS)
def test_a_forward_pass_repeats_bit_for_bit_with_checkpointing_too(dtype: StepFormat) -> None:
    trial = TorchTrial(TINY, StepOption(dtype), 4, "cpu")
    losses = [trial.loss(checkpointed=mode) for mode in (False, False, True)]
    losses.append(trial.step())
    first, *others = trial.values(losses)
    assert others == [first] * 3
    due, margin = first_loss(TINY, 4)
    assert abs(first - due) < margin
    later = trial.values([trial.step() for _ in range(20)])
    assert later[-1] < later[0] < first
    assert trial.peak_bytes() > 0
    trial.spoil()
    assert math.isnan(trial.values([trial.step()])[0])
    trial.release()
    with pytest.raises(RuntimeError, match="released"):
        trial.step()


def test_accumulated_batches_make_the_step_of_one() -> None:
    """The same batch over and over has the same mean gradient, and so the same update."""
    once, often = (
        TorchTrial(TINY, StepOption("f32", accumulation=count), 4, "cpu") for count in (1, 4)
    )
    for _ in range(3):
        (one, other) = (trial.values([trial.step()])[0] for trial in (once, often))
        assert one == pytest.approx(other, abs=1e-5)


def test_unfused_and_fused_optimizers_agree() -> None:
    fused, plain = (
        TorchTrial(TINY, StepOption("f32", fused=one), 4, "cpu") for one in (True, False)
    )
    for _ in range(3):
        (one, other) = (trial.values([trial.step()])[0] for trial in (fused, plain))
        assert one == pytest.approx(other, abs=1e-5)


def test_out_of_memory_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = TorchTrial(TINY, StepOption("bf16"), 4, "cpu")

    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nmore")

    monkeypatch.setattr(torch.nn.functional, "linear", full)
    with pytest.raises(OutOfMemory, match=r"^a step ran out of memory: CUDA out of memory"):
        trial.step()
    with pytest.raises(OutOfMemory):
        trial.loss(checkpointed=True)


def test_a_product_that_changes_is_told() -> None:
    product = TorchMatmul("bf16", 128, "cpu")
    assert product.compare().wrong == 0
    product._product.a[3, 3] += 8
    found = product.compare()
    assert found.wrong > 0
    assert found.first[0].index[0] == 3


def test_the_load_runs_whole_and_finds_nothing() -> None:
    output = ran()
    found = {one.name: one.value for one in output.readings}
    assert found["step_miscompares"] == 0
    assert found["step_gpt2"] > 0
    assert found["step_gpt2_share"] == pytest.approx(found["step_gpt2"] / found["step_matmul"])
    (table,) = [one for one in output.tables if one.name == STEP_TABLE]
    assert len(table.rows) == 1
    (checks,) = [one for one in output.tables if one.name == STEP_CHECKS]
    assert {row[2] for row in checks.rows if row[0] == "GPT-2 medium"} == set(STEP_LOSSES)


def test_the_table_runs_whole_and_finds_nothing() -> None:
    """How many rows there is time for is the processor's; the others are named."""
    output = ran("table=true", seconds=30.0)
    (table,) = [one for one in output.tables if one.name == STEP_TABLE]
    rows = [f"{row[0]} ({row[1]})" for row in table.rows]
    early = "there was no time or memory for "
    told = [one.removeprefix(early) for one in output.notes if one.startswith(early)]
    left_out = [name for one in told for name in one.split("; ")]
    models = ("GPT-2 medium", "BERT-large", "GPT-Neo-1.3B")
    due = [f"{name} ({option.name})" for name in models for option in options("bf16")]
    assert sorted([*rows, *left_out]) == sorted(due)
    assert {"BERT-large (bfloat16)", "GPT-Neo-1.3B (bfloat16)"} <= set(rows)
    assert output.miscompares == ()
