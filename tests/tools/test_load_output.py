from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest
from cases import each
from wrong_results import ARRAY

import acceptance
from acceptance.loads.cpu.cores import by_group, parse_cores
from acceptance.loads.cpu.gemm import arguments as gemm_arguments
from acceptance.loads.cpu.memory_bandwidth import arguments as memory_arguments
from acceptance.loads.miscompare import read as read_miscompare
from acceptance.process import command
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.tools.load_output import (
    LoadFailed,
    cores_argument,
    cpu_argv,
    read,
)

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


GROUPS = {"performance": [[0, 1], [2, 3]], "efficiency": [[4]]}


def test_command_lines_are_what_the_loads_read() -> None:
    assert by_group(parse_cores(cores_argument(GROUPS))) == GROUPS
    argv = cpu_argv(
        "python3",
        "cpu_gemm",
        seconds=60,
        groups=GROUPS,
        dtype="float32",
        size=512,
        inject="slow:30",
    )
    assert argv[:3] == ("python3", "-m", "acceptance.loads.cpu.gemm")
    options = gemm_arguments().parse_args(argv[3:])
    assert (options.dtype, options.seconds, options.size, options.inject) == (
        "float32",
        60.0,
        512,
        "slow:30",
    )
    assert by_group(options.cores) == GROUPS
    argv = cpu_argv("python3", "cpu_gemm", seconds=0.5, groups={"all": [[0]]}, inject=None)
    assert argv[3:] == ("--seconds", "0.5", "--cores", "all=0")

    argv = cpu_argv(
        "python3",
        "memory_bandwidth",
        seconds=10,
        groups=GROUPS,
        llc_bytes=33554432,
        megabytes_per_core=500,
        inject="die",
    )
    assert argv[:3] == ("python3", "-m", "acceptance.loads.cpu.memory_bandwidth")
    options = memory_arguments().parse_args(argv[3:])
    assert (options.seconds, options.llc_bytes, options.megabytes_per_core, options.inject) == (
        10.0,
        33554432,
        500,
        "die",
    )


def test_a_long_time_is_passed_on_exactly() -> None:
    argv = cpu_argv(
        "python3", "cpu_gemm", seconds=1234567.5, groups={"all": [[0]]}, dtype="float64"
    )
    assert gemm_arguments().parse_args(argv[3:]).seconds == 1234567.5


def test_a_real_load_is_run_and_read() -> None:
    import os

    cpu = min(os.sched_getaffinity(0))
    argv = cpu_argv(
        sys.executable,
        "cpu_gemm",
        seconds=0.02,
        groups={"all": [[cpu]]},
        dtype="float64",
        size=32,
    )
    root = Path(acceptance.__file__).resolve().parent.parent
    output = read(
        command.run(argv, deadline=Deadline.after(60), cwd=root),
        "cpu_gemm",
        {"dtype": "float64", "seconds": 0.02},
    )
    assert {reading.name for reading in output.readings} == {
        "cpu_gemm_f64",
        "cpu_gemm_core_f64",
        "cpu_gemm_miscompares_f64",
        "cpu_gemm_products_f64",
    }
