"""The output of the training run whose bits are compared is read strictly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import train_digest_texts
from cases import each
from train_digest_texts import Wrong

from acceptance.loads.train.names import DIGEST_STEPS
from acceptance.process.command import ProgramResult
from acceptance.tools import train_output
from acceptance.tools.load_output import LoadFailed
from acceptance.tools.train_output import read_train_digest, training_runs

ABOUT = {"uuid": "GPU-1", "gpu": "NVIDIA H200", "capability": "9.0"}
Spoil = Callable[[list[dict[str, Any]]], object]


def result(
    spoil: Spoil = lambda _told: None, seconds: float = 20.0, ran_s: float = 28.0, **more: Any
) -> ProgramResult:
    told = train_digest_texts.lines({**ABOUT, **more.pop("about", {})}, seconds=seconds, **more)
    spoil(told)
    argv = train_output.train_digest_argv("python", seconds=seconds)
    return ProgramResult(argv, 0, train_digest_texts.printed(told), "", ran_s)


def test_the_command_line() -> None:
    assert train_output.train_digest_argv("python", seconds=20) == (
        *("python", "-m", "acceptance.loads.train.digest_load"),
        *("--device", "cuda", "--seconds", "20.0"),
    )
    assert train_output.train_digest_argv("p", seconds=1, inject="weight")[-2:] == (
        "--inject",
        "weight",
    )


def test_a_sound_output() -> None:
    output = read_train_digest(result(), seconds=20.0, also={"uuid": "GPU-1"})
    runs = training_runs(output)
    assert (runs.versions.gpu, runs.versions.multiprocessors) == ("NVIDIA H200", 132)
    assert (runs.versions.cublas, runs.versions.recipe) == ("12.8.4", 1)
    assert (runs.repeats, runs.differing) == (12, ())
    assert set(runs.first) == {"bf16", "tf32"}
    assert {one.steps for one in runs.first.values()} == {DIGEST_STEPS}
    assert read_train_digest(result(ran_s=0.1), seconds=None) == output
    old = read_train_digest(result(about={"capability": "7.5"}), seconds=20.0)
    assert set(training_runs(old).first) == {"f16", "f32"}


def test_repeats_that_differ_are_counted_by_format() -> None:
    wrong = Wrong()
    found = [("bf16", 1, wrong), ("bf16", 2, wrong), ("tf32", 11, wrong)]
    runs = training_runs(read_train_digest(result(differing=found), seconds=20.0))
    assert (runs.differing_in("bf16"), runs.differing_in("tf32")) == (2, 1)


def of(told: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return [line for line in told if key in line]


def parameter(name: str, value: object) -> Spoil:
    return lambda told: told[0]["parameters"].update({name: value})


def cell(place: int, value: object, row: int = 0) -> Spoil:
    def spoil(told: list[dict[str, Any]]) -> None:
        of(told, "table")[0]["rows"][row][place] = value

    return spoil


def both(place: int, value: object) -> Spoil:
    def spoil(told: list[dict[str, Any]]) -> None:
        for row in range(2):
            cell(place, value, row)(told)

    return spoil


def log(old: str, new: str) -> Spoil:
    def spoil(told: list[dict[str, Any]]) -> None:
        one = of(told, "log")[0]
        assert old in one["text"]
        one["text"] = one["text"].replace(old, new, 1)

    return spoil


def fewer_layers(told: list[dict[str, Any]]) -> None:
    """A run of a smaller model, whose row agrees with it."""
    run = train_digest_texts.run("bf16")
    tensors = run.tensors[:-1]
    rows = tuple(
        row if row.part == "loss" else row._replace(stamps=row.stamps[:-1]) for row in run.rows
    )
    small = type(run)(tensors, rows)
    of(told, "log")[0]["text"] = small.text()
    of(told, "table")[0]["rows"][0][3:6] = small.summaries


def dropped(key: str) -> Spoil:
    def spoil(told: list[dict[str, Any]]) -> None:
        told.remove(of(told, key)[0])
        told[-1]["readings"] -= 1

    return spoil


def counted(value: float) -> Spoil:
    return lambda told: of(told, "reading")[0].update(value=value)


ROWS = "not of the same runs"


@each(
    "spoil, said",
    [
        (parameter("device", "cpu"), "device"),
        (parameter("steps", 10), "steps"),
        (parameter("batch", 1), "batch"),
        (parameter("recipe", 2), "recipe"),
        (parameter("sequence", 32), "sequence"),
        (parameter("model", "tiny"), "model"),
        (parameter("seconds", 1.0), "seconds"),
        (parameter("formats", ["f16", "tf32"]), "formats"),
        (parameter("formats", ["bf16"]), "formats"),
        (parameter("formats", None), "formats"),
        (parameter("capability", "new"), "formats"),
        (parameter("capability", None), "formats"),
        (parameter("library", ""), "with which library"),
        (parameter("library", None), "with which library"),
        (parameter("cublas", None), "with which library"),
        (parameter("multiprocessors", 0), "with which library"),
        (parameter("multiprocessors", "132"), "with which library"),
        (cell(0, "f16"), ROWS),
        (cell(1, 19), ROWS),
        (cell(2, 11), ROWS),
        (both(2, 1), "at least 2 are due"),
        (both(2, 2.5), "at least 2 are due"),
        (both(2, "2"), "at least 2 are due"),
        (cell(3, "0" * 16), ROWS),
        (cell(4, "0" * 16), ROWS),
        (cell(5, "0" * 16), ROWS),
        (cell(6, 0.0), ROWS),
        (cell(6, -1.0), ROWS),
        (cell(6, "-"), ROWS),
        (log("tensors", "names"), "cannot be read: no names"),
        (log("0 loss ", "0 loss f"), "cannot be read: no stamp"),
        (log("norm.weight", "norm.wait"), ROWS),
        (fewer_layers, ROWS),
        (dropped("log"), ROWS),
        (dropped("table"), "train_digests"),
        (dropped("reading"), "digest_repeats_differ"),
        (counted(1), "counted none"),
    ],
)
def test_what_is_not_the_run_that_was_asked_for_proves_nothing(spoil: Spoil, said: str) -> None:
    with pytest.raises(LoadFailed, match=said):
        read_train_digest(result(spoil), seconds=20.0)


@each(
    "differing, spoil, said",
    [
        ([("bf16", 1, Wrong())], counted(0), "counted none"),
        ([("bf16", 1, Wrong())] * 2, counted(2), "counted none"),
        ([("bf16", 12, Wrong())], counted(1), ROWS),
        ([("f16", 1, Wrong())], counted(1), ROWS),
    ],
)
def test_wrong_repeats_and_their_count_must_agree(
    differing: list[tuple[str, int, Wrong]], spoil: Spoil, said: str
) -> None:
    with pytest.raises(LoadFailed, match=said):
        read_train_digest(result(spoil, differing=differing), seconds=20.0)


def test_one_that_ended_early_proves_nothing() -> None:
    with pytest.raises(LoadFailed, match=r"19\.9 s"):
        read_train_digest(result(ran_s=19.9), seconds=20.0)


def test_another_gpu_proves_nothing() -> None:
    with pytest.raises(LoadFailed, match="GPU-2"):
        read_train_digest(result(), seconds=20.0, also={"uuid": "GPU-2"})


def test_a_log_of_another_component_is_refused() -> None:
    def spoil(told: list[dict[str, Any]]) -> None:
        of(told, "log")[0]["component"] = "gpu1"

    with pytest.raises(LoadFailed, match=ROWS):
        read_train_digest(result(spoil), seconds=20.0)
