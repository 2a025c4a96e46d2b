"""The output of the training steps is that of the requested run, whole, and everything in it was
compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import train_step_texts
from cases import each

from acceptance.loads.protocol import LoadOutput
from acceptance.process.command import ProgramResult
from acceptance.tools.load_output import LoadFailed
from acceptance.tools.train_output import read_train_step, train_step_argv

ABOUT = {"gpu": "NVIDIA H200", "uuid": "GPU-1", "capability": "9.0", "library": "torch 2.11"}
Told = list[dict[str, Any]]


def told(table: bool = False, **more: Any) -> Told:
    return train_step_texts.lines(ABOUT, seconds=6.0, table=table, **more)


def read(
    lines: Told,
    *,
    table: bool = False,
    neo: bool = True,
    ran_s: float = 20.0,
    seconds: float | None = 6.0,
) -> LoadOutput:
    done = ProgramResult(("python",), 0, train_step_texts.printed(lines), "", ran_s)
    return read_train_step(done, seconds=seconds, table=table, neo=neo, also={"uuid": "1"})


def test_command_lines() -> None:
    module = ("python", "-m", "acceptance.loads.train.step_load", "--device", "cuda")
    assert train_step_argv("python", seconds=6) == (*module, "--seconds", "6.0")
    asked = train_step_argv("python", seconds=9.5, table=True, inject="nan")
    assert asked == (*module, "--seconds", "9.5", "--table", "--inject", "nan")


@each("table, neo", [(False, True), (False, False), (True, True), (True, False)])
def test_a_whole_output(table: bool, neo: bool) -> None:
    output = read(told(table, neo=neo), table=table, neo=neo)
    names = {one.name for one in output.readings}
    assert ("step_neo" in names) == (table and neo)
    assert ("step_gpt2" in names) == (not table)
    assert {one.name for one in output.tables} == {"train_steps", "train_step_checks"}


def test_wrong_results_that_are_counted_are_read() -> None:
    output = read(told(wrong=[train_step_texts.WRONG]))
    assert [one.value for one in output.readings if one.name == "step_miscompares"] == [1.0]
    assert len(output.miscompares) == 1


def test_a_loss_that_is_not_finite_cannot_fall() -> None:
    lines = told(wrong=[train_step_texts.WRONG])
    (table,) = [one for one in lines if one.get("table") == "train_step_checks"]
    table["rows"] = [row for row in table["rows"] if row[2] != "trained loss"]
    read(lines)
    table["rows"] = [row for row in table["rows"] if row[2] != "finite losses"]
    with pytest.raises(LoadFailed, match="every element of finite losses of GPT-2 medium"):
        read(lines)


def test_the_time_of_a_table_is_not_asked() -> None:
    read(told(True), table=True, ran_s=1.0)
    read(told(), ran_s=1.0, seconds=None)
    with pytest.raises(LoadFailed, match="ended after 1"):
        read(told(), ran_s=1.0)


def test_older_gpus_have_their_own_format() -> None:
    older = {**ABOUT, "capability": "7.5"}
    lines = train_step_texts.lines(older, seconds=6.0)
    assert lines[0]["parameters"]["format"] == "f16"
    read(lines)


def row(lines: Told, table: str, first: str, place: int, value: Any) -> None:
    (found,) = [one for one in lines if one.get("table") == table]
    for one in found["rows"]:
        if one[0] == first:
            one[place] = value


def reading(lines: Told, name: str) -> dict[str, Any]:
    (found,) = [one for one in lines if one.get("reading") == name]
    return found


def without(lines: Told, key: str, name: str) -> None:
    lines[:] = [one for one in lines if one.get(key) != name]
    lines[-1]["readings"] = len(lines) - 2


def parameter(name: str, value: Any) -> Callable[[Told], None]:
    return lambda lines: lines[0]["parameters"].__setitem__(name, value)


@each(
    "spoil, said",
    [
        (parameter("device", "cpu"), "device"),
        (parameter("seconds", 5.0), "seconds"),
        (parameter("table", True), "table"),
        (parameter("uuid", "GPU-2"), "uuid"),
        (parameter("format", "f16"), "format"),
        (parameter("capability", "7.5"), "format"),
        (parameter("capability", None), "format"),
        (lambda lines: lines[0].__setitem__("load", "burn"), "burn"),
        (lambda lines: without(lines, "reading", "step_gpt2_share"), "step_gpt2_share"),
        (lambda lines: without(lines, "reading", "step_matmul"), "step_matmul"),
        (lambda lines: without(lines, "table", "train_steps"), "train_steps"),
        (lambda lines: without(lines, "table", "train_step_checks"), "train_step_checks"),
        (lambda lines: reading(lines, "step_gpt2").__setitem__("reading", "step_bert"), "step_"),
        (lambda lines: reading(lines, "step_gpt2").__setitem__("unit", "GB/s"), "GB/s"),
        (lambda lines: reading(lines, "step_gpt2").__setitem__("value", -1.0), "-1"),
        (
            lambda lines: reading(lines, "step_gpt2").__setitem__("value", 400.0),
            "step_gpt2 of gpu0 is not in its table train_steps",
        ),
        (
            lambda lines: reading(lines, "step_miscompares").__setitem__("value", 1.0),
            "told of wrong results",
        ),
        (lambda lines: row(lines, "train_steps", "GPT-2 medium", 2, 0.0), "without figures"),
        (lambda lines: row(lines, "train_steps", "GPT-2 medium", 7, "-"), "without figures"),
        (
            lambda lines: row(lines, "train_step_checks", "small model", 3, 0.0),
            "every element of loss of small model",
        ),
        (
            lambda lines: row(lines, "train_step_checks", "matmul", 3, "none"),
            "every element of repeated product of matmul",
        ),
        (
            lambda lines: row(lines, "train_step_checks", "small model", 3, 2.0),
            "every element of gradients of small model",
        ),
        (parameter("size", 256), "size = 256"),
        (lambda lines: reading(lines, "step_gpt2_share").__setitem__("value", 0.0), "is 0"),
        (
            lambda lines: reading(lines, "step_gpt2_share").__setitem__("value", 0.9),
            r"step_gpt2_share is 0\.9, which is not .* / 658",
        ),
        (
            lambda lines: row(lines, "train_steps", "GPT-2 medium", 1, "TF32"),
            "no model and option of this run, or repeated: GPT-2 medium, TF32",
        ),
        (
            lambda lines: row(lines, "train_steps", "GPT-2 medium", 0, "BERT-large"),
            "no model and option of this run, or repeated: BERT-large, bfloat16",
        ),
        (lambda lines: row(lines, "train_step_checks", "matmul", 4, 1.5), "counted none"),
        (lambda lines: row(lines, "train_step_checks", "matmul", 4, "-"), "counted none"),
        (lambda lines: lines.pop(), "without its end line"),
    ],
)
def test_what_is_not_as_it_must_be(spoil: Callable[[Told], object], said: str) -> None:
    lines = told()
    spoil(lines)
    with pytest.raises(LoadFailed, match=said):
        read(lines)


def table_of(lines: Told, name: str) -> dict[str, Any]:
    (found,) = [one for one in lines if one.get("table") == name]
    return found


def test_every_row_of_the_table_was_compared_and_stands_there_once() -> None:
    lines = told(True)
    checks = table_of(lines, "train_step_checks")
    checks["rows"] = [row for row in checks["rows"] if row[:2] != ["GPT-2 medium", "TF32"]]
    with pytest.raises(LoadFailed, match=r"first loss of GPT-2 medium \(TF32\)"):
        read(lines, table=True)
    lines = told(True)
    rows = table_of(lines, "train_steps")["rows"]
    rows.append(rows[-1])
    with pytest.raises(LoadFailed, match=r"or repeated: GPT-Neo-1\.3B, bfloat16, checkpointing"):
        read(lines, table=True)


def test_the_shares_of_a_table_are_of_products_around_the_mean_one() -> None:
    lines = told(True)
    for name, share in (("step_bert", 0.9), ("step_neo", 1.1)):
        reading(lines, f"{name}_share")["value"] *= share
    read(lines, table=True)
    reading(lines, "step_matmul")["value"] = 900.0
    with pytest.raises(LoadFailed, match=r"step_neo_share is .* which is not .* / 900"):
        read(lines, table=True)


def test_a_judged_rate_is_that_of_the_judged_option() -> None:
    lines = told(True)
    for one in table_of(lines, "train_steps")["rows"]:
        if one[:2] == ["BERT-large", "bfloat16"]:
            one[6] = 1.0
    with pytest.raises(LoadFailed, match="step_bert of gpu0 is not in its table"):
        read(lines, table=True)


def test_a_small_product_has_fewer_numbers() -> None:
    lines = told()
    lines[0]["parameters"]["size"] = 4096
    row(lines, "train_step_checks", "matmul", 3, 4096.0**2)
    read(lines)


def test_wrong_results_that_are_not_counted() -> None:
    lines = told(wrong=[train_step_texts.WRONG])
    reading(lines, "step_miscompares")["value"] = 0.0
    with pytest.raises(LoadFailed, match="told of wrong results") as caught:
        read(lines)
    assert len(caught.value.miscompares) == 1


def test_the_largest_model_is_absent_exactly_where_memory_is_small() -> None:
    with pytest.raises(LoadFailed, match="step_neo"):
        read(told(True, neo=False), table=True, neo=True)
    with pytest.raises(LoadFailed, match=r"absent exactly what .*step_neo"):
        read(told(True), table=True, neo=False)
    lines = told(True, neo=False)
    without(lines, "absent", "step_neo_share")
    with pytest.raises(LoadFailed, match=r"absent exactly what .*step_neo_share"):
        read(lines, table=True, neo=False)


def test_a_load_that_says_why_it_could_not_train_is_an_error_with_its_cure() -> None:
    text = train_step_texts.printed(told()[:1])
    done = ProgramResult(("python",), 1, text, f"train_step: {train_step_texts.TOO_LARGE}\n", 5.0)
    with pytest.raises(LoadFailed, match=r"6\.1 GiB .* end what else uses it"):
        read_train_step(done, seconds=6.0, table=False, neo=True)
