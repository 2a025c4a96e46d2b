"""The course of the training load, with models that are numbers; `torch_train_step.py` tries it on
tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import written
from card_of_tests import FakeCard
from cases import each
from load_texts import by_name

from acceptance.loads.miscompare import WrongStep, WrongValue
from acceptance.loads.program import LoadError, OutOfMemory
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.train.shapes import MODELS, ModelShape, StepFormat, StepOption, first_loss
from acceptance.loads.train.step_contract import (
    STEP_CHECKS,
    STEP_LOAD_COLUMNS,
    STEP_LOSSES,
    STEP_REFERENCED,
    STEP_TABLE,
)
from acceptance.loads.train.step_worker import (
    GIB,
    LEAST,
    Checked,
    StepOrder,
    StepWorker,
    settled,
    timed_steps,
)

GPU_TFLOPS = 100.0
STEP_SHARE = 0.5  # of that, in a step
MATMUL_S = 2 * 8192**3 / GPU_TFLOPS / 1e12
RIGHT_PRODUCT = Checked("repeated product", "product", 64, 0, 0.0)


@dataclass
class Machine:
    """A GPU, and models whose loss falls a little with each step; what is wrong with them."""

    card: FakeCard
    whole_bytes: int = 141 * GIB
    room: Callable[[ModelShape, StepOption, int], bool] = lambda _shape, _option, _batch: True
    fall: float = 0.01
    start: float = 0.0  # beside the due one
    unequal: tuple[int, ...] = ()  # forward passes whose loss has other bits
    nan_from: int = 10**9
    late_memory: bool = False
    small: list[tuple[StepFormat, bool]] = field(default_factory=list)
    worst: float = 0.2
    product: Checked = RIGHT_PRODUCT
    began: list[tuple[str, str, int]] = field(default_factory=list)
    released: int = 0
    forwards: int = 0

    def run_for(self, seconds: float) -> None:
        self.card.now += seconds


class Trial:
    def __init__(self, box: Machine, shape: ModelShape, option: StepOption, batch: int) -> None:
        self._box, self._shape, self._option, self._batch = box, shape, option, batch
        if not box.room(shape, option, batch) and not box.late_memory:
            raise OutOfMemory("no room")
        box.began.append((shape.name, option.name, batch))
        self._steps, self._spoiled = 0, False
        self._flop = batch * shape.sample_flop(checkpointed=option.checkpointed)

    def _loss(self) -> float:
        if self._spoiled or self._steps >= self._box.nan_from:
            return math.nan
        due, _ = first_loss(self._shape, self._batch)
        return due + self._box.start - self._box.fall * self._steps

    def step(self) -> float:
        if not self._box.room(self._shape, self._option, self._batch):
            raise OutOfMemory("no room")
        many = self._option.accumulation
        self._box.run_for(many * self._flop / STEP_SHARE / GPU_TFLOPS / 1e12)
        found = self._loss()
        self._steps += 1
        return found

    def loss(self, *, checkpointed: bool) -> float:
        assert checkpointed or not self._option.checkpointed
        self._box.forwards += 1
        off = 1e-6 if self._box.forwards in self._box.unequal else 0.0
        return self._loss() + off

    def values(self, losses: list[Any]) -> list[float]:
        return list(losses)

    def spoil(self) -> None:
        self._spoiled = True

    def peak_bytes(self) -> int:
        return 29 * GIB

    def release(self) -> None:
        self._box.released += 1


class Small:
    def __init__(self, box: Machine) -> None:
        self._box = box

    def check(self, dtype: StepFormat, *, falsify: bool = False) -> list[Checked]:
        self._box.small.append((dtype, falsify))
        wrong = (WrongValue(index=(0, 7), expected="1.0", got="2.0"),) if falsify else ()
        return [
            Checked(what, "tokens.weight", 10, len(wrong) * (what == "weights"), self._box.worst,
                    wrong)
            for what in STEP_REFERENCED
        ]  # fmt: skip


class Matmul:
    flop = 2 * 8192**3
    bytes = 400 << 20

    def __init__(self, box: Machine) -> None:
        self._box = box

    def multiply(self) -> None:
        self._box.run_for(MATMUL_S)

    def compare(self) -> Checked:
        return self._box.product


def ran(
    box: Machine,
    *,
    seconds: float = 6.0,
    table: bool = False,
    judged: StepFormat = "bf16",
    inject: str | None = None,
) -> LoadOutput:
    order = StepOrder(
        seconds=seconds,
        table=table,
        judged=judged,
        models={"gpt2": MODELS["gpt2"], "bert": MODELS["bert"], "neo": MODELS["neo"]},
        whole_bytes=box.whole_bytes,
        inject=inject,
    )
    return written.ran(
        "train_step",
        lambda output: StepWorker(
            order,
            box.card,
            output,
            Small(box),
            Matmul(box),
            lambda shape, option, batch: Trial(box, shape, option, batch),
            clock=lambda: box.card.now,
        ).run(),
    )


def box(**more: Any) -> Machine:
    return Machine(FakeCard(), **more)


def rows(output: LoadOutput, name: str = STEP_TABLE) -> list[tuple[str | float, ...]]:
    (found,) = [one for one in output.tables if one.name == name]
    return list(found.rows)


def wrong(output: LoadOutput) -> list[WrongStep]:
    found = [one for one in output.miscompares if isinstance(one, WrongStep)]
    assert by_name(output)["step_miscompares"] == len(found) == len(output.miscompares)
    return found


def test_one_model_beside_its_products() -> None:
    machine = box()
    output = ran(machine)
    found = by_name(output)
    assert found["step_gpt2"] == pytest.approx(STEP_SHARE * GPU_TFLOPS)
    assert found["step_matmul"] == pytest.approx(GPU_TFLOPS)
    assert found["step_gpt2_share"] == pytest.approx(STEP_SHARE)
    assert wrong(output) == []
    assert machine.began == [("GPT-2 medium", "bfloat16", 16)]
    assert machine.small == [("f32", False), ("bf16", False)] * 2
    assert machine.released == 1
    (row,) = rows(output)
    cells = dict(zip(STEP_LOAD_COLUMNS, row, strict=True))
    step_s = 16 * MODELS["gpt2"].sample_flop() / (STEP_SHARE * GPU_TFLOPS * 1e12)
    assert cells["ms"] == cells["ms p5"] == cells["ms p95"] == round(1e3 * step_s, 3)
    assert cells["samples/s"] == round(16 / step_s, 3)
    assert cells["ktokens/s"] == round(16 * 1.024 / step_s, 3)
    assert (cells["batch"], cells["accumulation"], cells["GiB"]) == (16.0, 1.0, 29.0)
    assert cells["TFLOP/s"] == 50.0
    assert output.notes[-1].startswith("matrix products before and after each turn of steps: 100.0")


def test_all_that_was_compared_is_in_a_table() -> None:
    machine = box()
    found = {row[:3]: row[3:] for row in rows(ran(machine, seconds=20.0), STEP_CHECKS)}
    assert 20.0 <= machine.card.now < 30.0
    infinite = {row[:3]: row[4] for row in rows(ran(box(worst=math.inf)), STEP_CHECKS)}
    assert infinite["small model", "float32", "loss"] == 1e9, "what is not finite is large"
    for what in STEP_REFERENCED:
        assert found["small model", "float32", what] == (20.0, 0.2)
        assert found["small model", "bfloat16", what] == (20.0, 0.2)
    assert {what for model, _, what in found if model == "GPT-2 medium"} == set(STEP_LOSSES)
    assert found["matmul", "bfloat16", "repeated product"] == (64.0, 0.0)
    # plain, again, with checkpointing, the step's own; and twice at the end
    assert found["GPT-2 medium", "bfloat16", "repeated losses"] == (4.0, 0.0)


# --- the table ---


@each(
    "more, judged, lacking, there",
    [
        ({}, "f16", ("TF32", "bfloat16"), "float16, 16 accumulated"),
        # what does not fit is left out
        (
            {"room": lambda _shape, option, _batch: option.format != "f32"},
            "bf16",
            ("float32",),
            "TF32",
        ),
        # where float32 only fits with checkpointing it has that name; and bfloat16's stays one
        (
            {"room": lambda _shape, option, _batch: option.checkpointed},
            "bf16",
            ("float32",),
            "float32, checkpointing",
        ),
    ],
)
def test_the_options_that_a_card_has_stand_there_once(
    more: dict[str, Any], judged: StepFormat, lacking: Sequence[str], there: str
) -> None:
    names = [row[:2] for row in rows(ran(box(**more), judged=judged, table=True, seconds=1500.0))]
    assert len(names) == len(set(names))
    assert not {option for _, option in names} & {*lacking}
    assert ("GPT-2 medium", there) in names


def test_every_model_in_every_option() -> None:
    machine = box()
    output = ran(machine, table=True, seconds=1500.0)
    names = {row[:2] for row in rows(output)}
    assert len(rows(output)) == len(names) == 21
    found = by_name(output)
    assert found.keys() == {
        "step_bert", "step_bert_share", "step_neo", "step_neo_share", "step_matmul",
        "step_miscompares",
    }  # fmt: skip
    assert found["step_neo"] == pytest.approx(STEP_SHARE * GPU_TFLOPS)
    assert wrong(output) == []
    assert not any("there was no time" in note for note in output.notes)
    assert machine.released == 21


def test_options_without_time_are_named_and_long_ones_have_a_smaller_batch() -> None:
    machine = box()
    output = ran(machine, table=True, seconds=150.0)
    (told,) = [note for note in output.notes if note.startswith("there was no time or memory")]
    assert "GPT-Neo-1.3B (bfloat16, 16 accumulated)" in told
    measured = {row[:2]: row[2] for row in rows(output)}
    assert measured["GPT-2 medium", "bfloat16, 4 accumulated"] < 16
    assert machine.card.now < 450.0
    names = {f"{model} ({option})" for model, option in measured}
    assert not names & set(told.removeprefix("there was no time or memory for ").split("; "))


def test_the_largest_model_is_absent_on_small_gpus() -> None:
    assert ran(box(whole_bytes=30 * GIB), table=True, seconds=300.0).absences == ()
    output = ran(box(whole_bytes=30 * GIB - 1), table=True, seconds=300.0)
    assert {one.name for one in output.absences} == {"step_neo", "step_neo_share"}
    assert {row[0] for row in rows(output)} == {"GPT-2 medium", "BERT-large"}
    assert "step_bert" in by_name(output)


# --- memory ---


@each("late", [False, True])
def test_a_batch_that_does_not_fit_is_halved_and_said(late: bool) -> None:
    machine = box(room=lambda _shape, _option, batch: batch <= 4, late_memory=late)
    output = ran(machine)
    assert rows(output)[0][2] == 4.0
    assert output.notes[:2] == (
        "GPT-2 medium, bfloat16: the GPU's memory did not suffice for a batch of 16; 8 is tried",
        "GPT-2 medium, bfloat16: the GPU's memory did not suffice for a batch of 8; 4 is tried",
    )
    assert wrong(output) == []


def test_checkpointing_where_not_one_sample_fits() -> None:
    output = ran(box(room=lambda _shape, option, _batch: option.checkpointed))
    assert rows(output)[0][1:3] == ("bfloat16, checkpointing", 1.0)
    assert "a batch of 1; checkpointing is tried" in output.notes[-2]
    estimated = ran(box(whole_bytes=int(7.8 * GIB)))
    assert estimated.notes[0].startswith("GPT-2 medium: not even one sample fits")
    assert rows(estimated)[0][1] == "bfloat16, checkpointing"


@each("whole_gib, room", [(141, False), (6, True)])
def test_too_little_memory_is_one_sentence_with_a_cure(whole_gib: int, room: bool) -> None:
    machine = box(whole_bytes=whole_gib * GIB, room=lambda _shape, _option, _batch: room)
    said = (
        rf"^GPT-2 medium needs about \d\.\d GiB of the GPU's memory for one sample with "
        rf"checkpointing, and the GPU has {whole_gib}\.0 GiB: end what else uses it; on a smaller "
        "card leave this check out with --only$"
    )
    with pytest.raises(LoadError, match=said):
        ran(machine)


# --- faults ---


DUE, _ = first_loss(MODELS["gpt2"], 16)
OTHER = WrongValue(index=(0, 0), expected="00", got="01")
SMALL_CHECKS = [("f32", False), ("bf16", False)]


@each(
    "more, inject, told, first",
    [
        # a lost update, on the hot card
        (
            {},
            "wrong",
            {
                **{"check": "step_reference", "model": "small model", "option": "bfloat16"},
                **{"tensor": "tokens.weight", "elements": 1, "of": 10},
            },
            {},
        ),
        ({}, "nan", {"check": "step_finite"}, {"got": "nan"}),
        ({"nan_from": 10}, None, {"check": "step_finite"}, {"index": (10,)}),
        *(  # a loss with other bits when repeated
            ({"unequal": (number,)}, None, {"check": "step_repeat"}, {"index": (place,)})
            for number, place in ((2, 1), (3, 2), (5, 1))
        ),
        ({"fall": -0.01}, None, {"check": "step_falls"}, {"expected": f"< {DUE!r}"}),
        (
            {"product": Checked("repeated product", "product", 64, 1, 1.0, (OTHER,))},
            None,
            {"check": "step_repeat", "model": "matmul", "tensor": "product"},
            {"got": "01"},
        ),
    ],
)
def test_a_fault_is_found_once(
    more: dict[str, Any], inject: str | None, told: dict[str, Any], first: dict[str, Any]
) -> None:
    machine = box(**more)
    (found,) = wrong(ran(machine, inject=inject))
    assert {name: getattr(found, name) for name in told} == told
    assert {name: getattr(found.first[0], name) for name in first} == first
    assert inject != "nan" or found.first[0].index[0] > 3
    assert len(found.first) <= 4
    assert machine.small == [*SMALL_CHECKS, ("f32", False), ("bf16", inject == "wrong")]


def test_a_slow_gpu_is_slow() -> None:
    output = ran(box(), inject="slow")
    assert by_name(output)["step_gpt2"] == pytest.approx(STEP_SHARE * GPU_TFLOPS / 2)
    assert by_name(output)["step_gpt2_share"] == pytest.approx(STEP_SHARE / 2)


@each("off", [5.0, -5.0, math.nan])
def test_a_first_loss_that_is_not_that_of_new_weights(off: float) -> None:
    found = wrong(ran(box(start=off)))
    assert "step_start" in [one.check for one in found]
    (one,) = [one for one in found if one.check == "step_start"]
    assert one.first[0].expected is not None
    assert one.first[0].expected.startswith("11.030")


# --- times ---


@each(
    "cost, seconds, least, due",
    [
        (lambda now_s: 0.125 if now_s < 1.0 else 0.25, 2.0, 3, [0.125] * 8 + [0.25] * 4),
        (lambda _now_s: 5.0, 1.0, 4, [5.0] * 4),  # a long step is made at least so often
    ],
)
def test_steps_are_timed_one_by_one(
    cost: Callable[[float], float], seconds: float, least: int, due: list[float]
) -> None:
    card = FakeCard(cost)
    assert timed_steps(card, card.work, seconds, least, due[0]) == pytest.approx(due)
    assert card.done == len(due)


@each(
    "seconds, durations, kept",
    [
        (0.0, [3.0, 1.0, 1.0, 1.0], 3),
        (0.25, [0.125] * 10, 7),
        (0.3, [1.0] * 10, 9),
        (9.0, [1.0] * 5, LEAST),
        (9.0, [1.0, 1.0], 1),
    ],
)
def test_what_counts_of_a_turn(seconds: float, durations: list[float], kept: int) -> None:
    assert settled(durations, seconds) == durations[len(durations) - kept :]
