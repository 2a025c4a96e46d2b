"""An output is held against what was asked: no more, no less, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cases import each
from load_texts import printed, refusal
from wrong_results import REPEATED

from acceptance.core.parts import Gpu
from acceptance.loads import contract
from acceptance.loads.gemm.contract import COLUMNS, Ask
from acceptance.loads.miscompare import read
from acceptance.loads.protocol import KeptLog, LoadOutput, LoadTable, parse

ASK = Ask(dtypes=("f64", "f8"), seconds=2.0)
TABLES = Ask(dtypes=("f64",), seconds=2.0, table=(128,))
OWN = {"uuid": "GPU-1a"}


def output(ask: Ask = ASK, about: dict[str, Any] = OWN, **more: Any) -> LoadOutput:
    return parse(printed(ask, about, **more))


def code(
    found: LoadOutput, ask: Ask = ASK, about: dict[str, Any] = OWN, ran_s: float = 10.0
) -> str:
    return refusal(ask, found, about, ran_s)


def test_a_whole_run_is_proof() -> None:
    assert code(output()) == ""
    assert code(output(), ran_s=4.0) == ""


@each("uuid", ["GPU-1a", "1a", "gpu-1A"])
def test_a_gpu_is_the_same_with_the_drivers_prefix_and_without(uuid: str) -> None:
    assert code(output(about={"uuid": uuid})) == ""
    assert contract.same_gpu("GPU-1a", uuid)


@each(
    "one, other",
    [("GPU-1", None), (None, "GPU-1"), (None, None), ("GPU-", "GPU-"), ("", ""), (1, 1)],
)
def test_what_names_no_gpu_is_never_the_same(one: object, other: object) -> None:
    assert not contract.same_gpu(one, other)
    assert code(output(about={"uuid": one}), about={"uuid": other}) == "load_parameter"


def test_all_gpus_of_a_load_are_compared_in_their_order() -> None:
    both = {"uuids": ["GPU-1", "GPU-2"]}
    assert code(output(about={"uuids": ["1", "2"]}), about=both) == ""
    for other in (["1"], ["2", "1"], None, "12"):
        assert code(output(about={"uuids": other}), about=both) == "load_parameter"


def test_the_model_is_compared_where_the_load_says_it() -> None:
    model = {**OWN, "gpu": "NVIDIA H200"}
    assert code(output(), about=model) == ""
    assert code(output(about=model), about=model) == ""
    assert code(output(about={**OWN, "gpu": "NVIDIA H100"}), about=model) == "load_parameter"


def test_a_format_may_be_absent_and_then_takes_no_time() -> None:
    assert code(output(absent=(1,)), ran_s=2.0) == ""
    assert code(output(absent=(0, 1)), ran_s=0.0) == ""


@each(
    "about, why",
    [
        ({"without": ("gemm_f8",)}, "load_unmeasured"),
        ({"more": {("gemm_i8", Gpu(0)): "TFLOP/s"}}, "load_stray"),
        ({"more": {("gemm_f8", Gpu(1)): "TFLOP/s"}}, "load_stray"),
        ({"values": {"gemm_f8": -1.0}}, "load_unit"),
        ({"wrong": (read(REPEATED),)}, "load_uncounted"),
        ({"about": {"uuid": "GPU-2"}}, "load_parameter"),
        ({"about": {**OWN, "dtypes": ["f64"]}}, "load_parameter"),
        ({"about": {**OWN, "seconds": 1.0}}, "load_parameter"),
        ({"about": {**OWN, "table": [128]}}, "load_parameter"),
        ({"about": {**OWN, "inject": "wrong"}}, "load_fault_injected"),
    ],
)
def test_anything_else_proves_nothing(about: dict[str, Any], why: str) -> None:
    assert code(output(**about)) == why


def test_a_wrong_result_that_is_counted_is_proof() -> None:
    counted = output(wrong=(read(REPEATED),), values={"gemm_f8_miscompares": 1.0})
    assert code(counted) == ""


def test_an_early_end_proves_nothing() -> None:
    assert code(output(), ran_s=3.9) == "load_ended_early"


def test_the_output_of_another_load_or_another_unit_proves_nothing() -> None:
    assert code(replace(output(), load="gpu_copy")) == "load_of_another"
    text = printed(ASK, OWN).replace('"TFLOP/s"', '"GB/s"', 1)
    assert code(parse(text)) == "load_unit"


def test_tables_are_those_that_are_due_with_their_columns() -> None:
    sizes = LoadTable("gemm_f64_by_size", COLUMNS, ((128.0, 1.0),))
    assert code(replace(output(TABLES), tables=(sizes,)), TABLES) == ""
    assert code(output(TABLES), TABLES) == ""  # none of the sizes fit
    assert code(replace(output(), tables=(sizes,))) == "load_stray"
    other = LoadTable("gemm_f64_by_size", ("n", "GB/s"), ((128.0, 1.0),))
    assert code(replace(output(TABLES), tables=(other,)), TABLES) == "load_columns"


def test_a_log_that_is_not_due_proves_nothing() -> None:
    assert code(replace(output(), logs=(KeptLog("nccl", Gpu(0), "it went well"),))) == "load_stray"


def test_a_table_and_a_log_that_are_due_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = LoadTable("sizes", COLUMNS, ((128.0, 1.0),))
    whole = replace(output(), tables=(sizes,), logs=(KeptLog("nccl", Gpu(0), "x"),))
    first = Ask.due

    def due(ask: Ask, found: LoadOutput) -> contract.Due:
        logs = frozenset({("nccl", Gpu(0))})
        return replace(first(ask, found), tables={"sizes": COLUMNS}, logs=logs)

    monkeypatch.setattr(Ask, "due", due)
    assert code(whole) == ""
    assert code(replace(whole, tables=())) == "load_without_table"
    assert code(replace(whole, logs=())) == "load_without_log"
