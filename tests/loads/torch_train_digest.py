"""The training run whose bits are compared, on the processor: run in the image by
tests/containers/test_torch_loads.py.

No GPU is needed; whether a GPU's operations give the same bits each time is not seen here.
"""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
import torch

from acceptance.loads.asks import PROGRAM
from acceptance.loads.collective import pattern
from acceptance.loads.miscompare import DigestFormat
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import LoadOutput, parse
from acceptance.loads.train import digest_log, digest_training
from acceptance.loads.train.digest_log import Stamp, difference, from_numbers
from acceptance.loads.train.digest_training import DigestTraining, Stamper, flip
from acceptance.loads.train.digest_trials import trials
from acceptance.loads.train.digest_worker import FAULT_KINDS, Fault, draw
from acceptance.loads.train.shapes import MODELS, TINY

FORMATS: tuple[DigestFormat, ...] = ("bf16", "tf32")
STEPS = 4  # enough for a moment's bit to reach the weights


@pytest.fixture(scope="module")
def training() -> DigestTraining:
    torch.set_num_threads(1)
    digest_training.strict()
    return DigestTraining(TINY, "cpu", 2, STEPS)


def of(training: DigestTraining, dtype: DigestFormat, fault: Fault | None) -> digest_log.RunDigests:
    return from_numbers(training.tensors, STEPS, training.run(dtype, fault))


def program(*more: str) -> LoadOutput:
    done = subprocess.run(
        [sys.executable, *PROGRAM, "train_digest", "device=cpu", "seconds=1", *more],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return parse(done.stdout)


def test_a_stamp_is_the_digest_of_the_bits_the_sum_and_what_is_not_finite() -> None:
    tensors = [torch.randn(5, 7), torch.randn(3), torch.randn(35), torch.randn(3)]
    tensors[0][1, 2], tensors[3][0] = float("inf"), float("nan")
    stamper = Stamper([one.numel() for one in tensors], "cpu")
    written = torch.zeros(4, 3, dtype=torch.int64)
    stamper.write(tensors, written)
    numbers = written.tolist()
    for tensor, place in zip(tensors, stamper.order, strict=True):
        words = tensor.flatten().view(torch.int32).long()
        places = torch.arange(len(words))
        due = pattern.part(places, words), int(words.sum()) % (1 << 64)
        assert Stamp.of(numbers[place]) == (*due, int((~tensor.isfinite()).sum()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_flip_changes_one_bit_of_one_element(dtype: torch.dtype) -> None:
    width = 8 * torch.empty(0, dtype=dtype).element_size()
    words = torch.int32 if width == 32 else torch.int16
    for number in range(64):
        tensor = torch.randn(4, 5).to(dtype)
        before = tensor.clone()
        flip(tensor, number % 20, number)
        changed = (tensor.view(words) ^ before.view(words)).flatten()
        assert int((changed != 0).sum()) == 1
        assert int(changed[number % 20]) == 1 << (width // 4 + number % (width // 2))


@pytest.mark.parametrize("dtype", ["bf16", "f16", "tf32", "f32"])
def test_a_run_ends_in_the_same_bits(training: DigestTraining, dtype: DigestFormat) -> None:
    one = of(training, dtype, None)
    training.remember()
    assert difference(one, of(training, dtype, None)) is None
    assert training.as_remembered()
    assert not any(stamp.not_finite for row in one.rows for stamp in row.stamps)
    losses = [row.stamps[0].digest for row in one.rows if row.part == "loss"]
    assert len(set(losses)) == STEPS


def test_formats_end_in_other_bits(training: DigestTraining) -> None:
    ends = {of(training, dtype, None).summaries for dtype in ("bf16", "f16", "f32")}
    assert len(ends) == 3


@pytest.mark.parametrize("dtype", FORMATS)
def test_every_fault_that_leaves_a_trace_is_found(
    training: DigestTraining, dtype: DigestFormat
) -> None:
    found = trials([dtype], training, 25, 11)
    assert [one.kind for one in found] == list(FAULT_KINDS)
    for one in found:
        assert (one.tried, one.missed) == (25, 0), one
        assert one.found >= 23, one  # a low bit may be rounded away
        if one.kind == "gradient":
            assert one.found == one.named == 25


@pytest.mark.parametrize("kind", ["gradient", "weight", "optimizer", "activation"])
def test_a_fault_is_found_where_it_was_made(training: DigestTraining, kind: str) -> None:
    right = of(training, "tf32", None)
    for seed in range(6):
        fault = draw(kind, STEPS, random.Random(seed))  # type: ignore[arg-type]
        found = difference(right, of(training, "tf32", fault))
        if found is None:
            continue
        after = kind in ("weight", "optimizer") and fault.step < STEPS - 1
        assert found.step >= fault.step + after
        if kind == "gradient":
            assert (found.step, found.part, found.kind) == (fault.step, "gradient", "bit")
        if kind == "weight" and fault.step == STEPS - 1:
            assert (found.part, found.kind) == ("weight", "bit")


def test_the_program_repeats_and_agrees() -> None:
    output = program()
    assert (output.miscompares, output.injected) == ((), None)
    ((name, value),) = [(one.name, one.value) for one in output.readings]
    assert (name, value) == ("digest_repeats_differ", 0)
    rows = output.tables[0].rows
    assert [row[0] for row in rows] == ["bf16", "tf32"]
    assert all(row[2] >= 2 for row in rows if isinstance(row[2], float))
    for one, row in zip(output.logs, rows, strict=True):
        assert digest_log.parse(one.text).summaries == row[3:6]


def test_another_process_has_the_same_bits_and_a_persistent_fault_others() -> None:
    sound, faulty = program(), program("inject=persistent", "inject_seed=2")
    assert sound.logs == program().logs
    assert faulty.miscompares == ()
    assert faulty.injected == "persistent"
    differing = [
        difference(digest_log.parse(one.text), digest_log.parse(other.text))
        for one, other in zip(sound.logs, faulty.logs, strict=True)
    ]
    (found,) = [one for one in differing if one is not None]
    assert (found.part, found.kind) == ("gradient", "bit")


def test_too_little_memory_is_said_with_its_cure(
    training: DigestTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_asked: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(digest_training, "model", full)
    monkeypatch.setattr(training, "_shape", MODELS["digest"])
    monkeypatch.setattr(training, "_size", 4)
    with pytest.raises(LoadError, match=r"needs about 7 GiB .*: end what else uses it"):
        training.run("bf16", None)
