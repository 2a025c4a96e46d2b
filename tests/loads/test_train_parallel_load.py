"""The load of parallel training as the program it is, with a trainer of files."""

from __future__ import annotations

import dataclasses
import os
import subprocess

import pytest
from cases import each
from load_program import forked, whole
from load_texts import by_name
from msgspec import json
from msgspec.structs import replace

from acceptance.core.parts import Gpu
from acceptance.loads.miscompare import DifferingDigests, WrongTraining
from acceptance.loads.protocol import LoadOutput, salvage
from acceptance.loads.train import parallel_load, parallel_values
from acceptance.loads.train.parallel_contract import (
    COLUMNS,
    EFFICIENCIES,
    VALUE_COLUMNS,
    WAYS,
    Ask,
    Fault,
    efficiency,
)
from acceptance.loads.train.parallel_worker import TrainerJoined
from acceptance.loads.train.shapes import MODELS, TINY

BASE = Ask(backend="gloo", ranks=2, seconds=1.0)
SHORT = replace(BASE, ways=("ddp",), accumulate=(1,))
DEFAULT = replace(SHORT, arms=("default",))


def program(ask: Ask, spoil: str = "") -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "FAKE_TRAINER": spoil, "NCCL_STRAY": "1"}
    return forked("-m", "parallel_program", json.encode(ask).decode(), environ=environ)


def test_sound_ranks_give_all_readings_of_both_arms() -> None:
    output = whole(program(BASE))
    assert output.miscompares == ()
    found = by_name(output)
    counts = {"parallel_miscompares": 0.0, "parallel_disagreements": 0.0}
    assert found.keys() == {"parallel_ddp", *EFFICIENCIES, *counts}
    assert counts.items() <= found.items()
    # two cards alone need 0.1 and 0.11 s a batch, together the slower and what is exchanged
    alone = 2 * 32 / 0.1 + 2 * 32 / 0.11
    for way in WAYS:
        for count, arm, more in ((1, "default", 0.02), (4, "default", 0.02), (4, "p2p_off", 0.1)):
            rate = 2 * 2 * 32 * count / (0.11 * count + more)
            name = efficiency(way, arm, accumulated=count > 1)
            assert found[name] == pytest.approx(rate / alone, abs=1e-4), name
    assert found["parallel_ddp"] == pytest.approx(2 * 2 * 32 / 0.13 / 1e6, abs=1e-6)
    trained, compared = output.tables
    assert trained.columns == COLUMNS
    assert [row[:3] for row in trained.rows] == [
        (arm, way, count)
        for arm in ("default", "p2p_off")
        for count in (1, 4)
        for way in ("alone", *WAYS)
    ]
    rows = {row[:3]: row for row in trained.rows}
    assert rows["default", "alone", 1][6:] == (1.0, 1.0, 110.0, 0.9, 0.0, 0.1)
    *_, gib, step_ms, compute, communication, optimizer = rows["default", "ddp", 1]
    assert (gib, step_ms) == (3.0, 130.0)
    assert compute == pytest.approx(0.099 / 0.13, abs=1e-4)
    assert optimizer == pytest.approx(0.01 / 0.13, abs=1e-4)
    assert communication == pytest.approx(1 - 0.109 / 0.13, abs=1e-4)
    flop = TINY.sample_flop() / 32
    assert rows["default", "ddp", 1][5] == pytest.approx(2 * 2 * 32 / 0.13 * flop / 1e12, abs=1e-3)
    assert rows["p2p_off", "tp", 4][3] == 4
    assert compared.columns == VALUE_COLUMNS
    steps, elements = parallel_values.STEPS, parallel_values.elements("ddp", 2)
    assert compared.rows[0] == (
        *("default", "ddp", 1, steps, 2 * steps, steps * elements, elements, 2),
        *(0.0, 0.5, 0.5),
    )
    assert {row[1]: row[7] for row in compared.rows} == {"ddp": 2, "zero2": 0, "zero3": 0, "tp": 0}


def test_the_first_line_says_what_was_trained() -> None:
    told = whole(program(SHORT)).parameters
    assert told == {
        "backend": "gloo",
        "ranks": 2,
        "seconds": 1.0,
        "ways": ["ddp"],
        "accumulate": [1],
        "arms": ["default", "p2p_off"],
        "model": "tiny",
        "batch": 2,
        "tensor_batch": 4,
        "format": "bf16",
        "uuids": ["GPU-0", "GPU-1"],
        "library": "files",
    }


def test_between_gpus_the_memory_chooses_the_model() -> None:
    told = whole(program(replace(SHORT, backend="nccl", arms=("p2p_off",))))
    assert (told.parameters["model"], told.parameters["batch"]) == ("parallel", 8)
    assert told.parameters["arms"] == ["p2p_off"]
    assert by_name(told).keys() == {
        *("parallel_ddp_efficiency_p2p_off", "parallel_miscompares", "parallel_disagreements")
    }
    flop = MODELS["parallel"].sample_flop()
    (row,) = [one for one in told.tables[0].rows if one[1] == "ddp"]
    assert row[5] == pytest.approx(2 * 8 * flop / 0.21 / 1e12, rel=1e-4)


def wrong_of(output: LoadOutput) -> list[WrongTraining]:
    return [one for one in output.miscompares if isinstance(one, WrongTraining)]


TENSOR = replace(BASE, ways=("tp",), accumulate=(4,), arms=("default",))


@each(
    "ask, spoil, told, count",
    [
        # the mean of all ranks is not one card's
        (
            DEFAULT,
            "loss:wrong",
            [(Gpu(rank), "parallel_loss", 2, "0.05", "ddp") for rank in (0, 1)],
            2,
        ),
        (
            DEFAULT,
            "loss:nan",
            [(Gpu(rank), "parallel_loss", 2, "nan", "ddp") for rank in (0, 1)],
            2,
        ),
        # of tensor parallelism it is every rank's own
        (TENSOR, "loss:wrong", [(Gpu(1), "parallel_loss", 2, "0.1", "tp")], 1),
        (DEFAULT, "clock:infinite", [(Gpu(1), "parallel_finite", None, "nan", "ddp")], 3),
        # all are counted and the first reported
        (
            DEFAULT,
            "deviation:12",
            [(Gpu(1), "parallel_gradient", 1, "2", "ddp")] * 8,
            12,
        ),
        # an injected fault is made once, in the first arm
        (
            replace(BASE, inject="wrong"),
            "",
            [(Gpu(1), "parallel_weights", parallel_values.STEPS, "1.25", "ddp")],
            1,
        ),
    ],
)
def test_what_is_wrong_is_told_and_counted(
    ask: Ask, spoil: str, told: list[tuple[object, ...]], count: int
) -> None:
    output = whole(program(ask, spoil=spoil))
    found = wrong_of(output)
    assert output.injected == ask.inject
    assert [(one.component, one.check, one.difference, one.way) for one in found] == [
        (where, check, difference, way) for where, check, _, difference, way in told
    ]
    assert all(one.step == due[2] for one, due in zip(found, told, strict=True) if due[2])
    assert {(one.arm, one.accumulation) for one in found} == {("default", ask.accumulate[0])}
    assert by_name(output)["parallel_miscompares"] == count
    assert spoil != "loss:wrong" or float(output.tables[1].rows[0][8]) > 1


@each(
    "spoil, when",
    [
        ("digest:other", "after verifying ddp with accumulation 1 (default)"),
        ("clock:other", "after timing ddp with accumulation 1 (default)"),
    ],
)
def test_other_weights_at_one_rank_are_found(spoil: str, when: str) -> None:
    output = whole(program(DEFAULT, spoil=spoil))
    (one,) = output.miscompares
    assert isinstance(one, DifferingDigests)
    assert when in one.found
    assert one.digests == {"a" * 16: (Gpu(0),), "b" * 16: (Gpu(1),)}
    assert by_name(output)["parallel_disagreements"] == 1
    assert by_name(output)["parallel_miscompares"] == 0


def test_communication_is_never_negative_and_a_note_says_by_how_much() -> None:
    output = whole(program(SHORT, spoil="fast:"))
    (row,) = [one for one in output.tables[0].rows if one[:2] == ("default", "ddp")]
    assert row[10] == 0.0
    assert float(row[9]) > 1
    assert any("longer than the step; communication is said to be 0" in one for one in output.notes)


@each(
    "fault, said",
    [
        (None, "the variants have other GPUs than each other"),
        ("die", "the worker on gpu1 was ended by signal 9"),
        ("hang", "gpu1 never arrived at verifying ddp with accumulation 1"),
    ],
)
def test_a_rank_that_is_lost_is_named_and_other_gpus_are_refused(
    fault: Fault | None, said: str
) -> None:
    grace = {} if fault is None else {"grace": 1.0}
    done = program(replace(SHORT, inject=fault, **grace), spoil="" if fault else "uuid:other")
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
    assert salvage(done.stdout) == ()
    assert '"end"' not in done.stdout


def test_nothing_is_said_before_the_first_line_however_late_the_ranks_join() -> None:
    assert whole(program(DEFAULT, spoil="late:1.5")).miscompares == ()


def test_one_format_for_all_ranks() -> None:
    """float16, where one of the cards has no bfloat16: they exchange what they multiply."""
    nccl = replace(BASE, backend="nccl")
    rank = TrainerJoined(80 << 30, "library", "GPU-1", "bf16")
    assert parallel_load.work_for(nccl, [rank, rank]).dtype == "bf16"
    assert (
        parallel_load.work_for(nccl, [rank, dataclasses.replace(rank, dtype="f16")]).dtype == "f16"
    )
