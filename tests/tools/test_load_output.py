from __future__ import annotations

import dataclasses
import json

import pytest
from cases import each
from wrong_results import ARRAY

from acceptance.loads.miscompare import read as read_miscompare
from acceptance.process.command import ProgramResult
from acceptance.tools.load_output import LoadFailed, read

HELLO = '{"rigproof_load": 1, "load": "cpu_gemm", "parameters": {"seconds": 1.0}}\n'
MISCOMPARE = json.dumps({"miscompare": ARRAY}) + "\n"
ASKED = {"seconds": 1.0}
TROUBLE = json.dumps(
    {"trouble": {"is": "message", "code": "kept_unknown", "values": {"file": "sealed"}}}
)
END = '{"end": true, "readings": 0}\n'


def completed(
    stdout: str,
    returncode: int = 0,
    stderr: str = "",
    *,
    timed_out: bool = False,
    truncated: bool = False,
) -> ProgramResult:
    return ProgramResult(
        ("load",), returncode, stdout, stderr, 1.0, timed_out=timed_out, truncated=truncated
    )


def test_a_whole_run_is_read() -> None:
    output = read(completed(HELLO + MISCOMPARE + END), "cpu_gemm", ASKED)
    assert output.load == "cpu_gemm"
    assert output.miscompares == (read_miscompare(ARRAY),)


def test_a_cuda_error_beside_a_whole_output_is_a_failed_load() -> None:
    said = completed(HELLO + END, stderr="CUDA error: an illegal memory access was encountered\n")
    with pytest.raises(
        LoadFailed, match=r"ended with exit code 0, but CUDA reported an error: .*illegal memory"
    ):
        read(said, "cpu_gemm", ASKED)


def test_the_model_of_the_gpu_is_compared_where_the_load_says_it() -> None:
    asked = {**ASKED, "gpu": "NVIDIA H200"}
    assert read(completed(HELLO + END), "cpu_gemm", asked).load == "cpu_gemm"
    named = HELLO.replace("1.0", '1.0, "gpu": "{}"')
    assert (
        read(completed(named.replace("{}", "NVIDIA H200") + END), "cpu_gemm", asked).load
        == "cpu_gemm"
    )
    with pytest.raises(
        LoadFailed, match="ran with gpu = 'Tesla T4', and 'NVIDIA H200' was asked for"
    ):
        read(completed(named.replace("{}", "Tesla T4") + END), "cpu_gemm", asked)


@each(
    "what, said",
    [
        (completed(HELLO + END, -9, timed_out=True), "did not end within its time and was stopped"),
        (completed(HELLO + END, 0, timed_out=True), "did not end within its time"),
        (completed(HELLO + END, 0, truncated=True), "printed more than is kept"),
        (completed(HELLO + END, 1, "worker lost"), "ended with exit code 1 .*\nworker lost"),
        (
            completed(HELLO + TROUBLE, 1, "it"),
            "could not go on: sealed is no sealed file.*\nit",
        ),
        (completed(HELLO + TROUBLE, 1, timed_out=True), "did not end within its time"),
        (completed(HELLO + TROUBLE), "ended, but .*could not go on: sealed is no sealed file"),
        (completed(HELLO + END, -11), "was ended by signal 11"),
        (completed(HELLO), "ended, but the load's output ends without its end line"),
        (completed(""), "printed nothing.*it printed nothing"),
        (completed("rubbish\n"), "not one whole JSON object: 'rubbish'"),
        (completed(HELLO.replace("cpu_gemm", "burn") + END), "the output is that of 'burn'"),
        (
            completed(HELLO.replace("1.0", "2.0") + END),
            "ran with seconds = 2.0, and 1.0 was asked for",
        ),
        (
            completed(HELLO.replace("1.0", '1.0, "inject": "nan"') + END),
            r"a fault injected on purpose \(nan\)",
        ),
        (
            dataclasses.replace(completed(HELLO + END), seconds=0.4),
            "ended after 0.4 s and was to work for 1 s",
        ),
    ],
)
def test_anything_less_is_a_failed_load(what: ProgramResult, said: str) -> None:
    with pytest.raises(LoadFailed, match=f"(?s)^the load cpu_gemm .*{said}") as caught:
        read(what, "cpu_gemm", ASKED)
    assert caught.value.miscompares == ()


@each("returncode", [0, 1, -9])
def test_a_wrong_result_outlives_the_load_that_found_it(returncode: int) -> None:
    with pytest.raises(LoadFailed) as caught:
        read(completed(HELLO + MISCOMPARE, returncode), "cpu_gemm", ASKED)
    assert caught.value.miscompares == (read_miscompare(ARRAY),)
