from __future__ import annotations

import io
from typing import Any

import pytest
from cases import each
from wrong_results import REPEATED

from acceptance.core.dtype import GEMM_READINGS
from acceptance.core.message import Message
from acceptance.loads.gemm.load import arguments
from acceptance.loads.miscompare import read
from acceptance.loads.protocol import Output
from acceptance.process.command import ProgramResult
from acceptance.tools.load_output import LoadFailed, gpu_gemm_argv, read_gpu_gemm

ASKED: dict[str, Any] = {"dtypes": ["f64", "f8"], "seconds": 2.0}


def test_the_command_line_is_what_the_load_reads() -> None:
    argv = gpu_gemm_argv(
        "python3", dtypes=["f64", "bf16"], seconds=6, size=4096, table=[128, 512], inject="slow"
    )
    assert argv[:3] == ("python3", "-m", "acceptance.loads.gemm.load")
    options = arguments().parse_args(argv[3:])
    assert [dtype.short for dtype in options.dtypes] == ["f64", "bf16"]
    assert (options.seconds, options.size, options.table, options.inject) == (
        6.0,
        4096,
        (128, 512),
        "slow",
    )
    options = arguments().parse_args(gpu_gemm_argv("python3", dtypes=["i8"], seconds=0.5)[3:])
    assert (options.seconds, options.size, options.table, options.inject) == (0.5, 8192, (), None)


def printed(
    measured: tuple[str, ...] = ("f64", "f8"), absent: tuple[str, ...] = (), **parameters: Any
) -> str:
    stream = io.StringIO()
    output = Output(stream)
    output.hello("gpu_gemm", {**ASKED, "table": [], "uuid": "GPU-1", **parameters})
    output.miscompare(read(REPEATED))
    for dtype in absent:
        for name in GEMM_READINGS:
            output.absent(name.format(dtype), "gpu0", Message("peer_out_of_reach"))
    for dtype in measured:
        for name in GEMM_READINGS:
            output.reading(name.format(dtype), "count" if "mis" in name else "TFLOP/s", "gpu0", 1.0)
    output.end()
    return stream.getvalue()


def completed(stdout: str, seconds: float = 10.0, returncode: int = 0) -> ProgramResult:
    return ProgramResult(
        ("load",), returncode, stdout, "", seconds, timed_out=False, truncated=False
    )


def test_a_whole_run_is_read() -> None:
    output = read_gpu_gemm(completed(printed()), **ASKED, also={"uuid": "GPU-1"})
    assert {reading.name for reading in output.readings} >= {"gemm_f64_short", "gemm_f8"}


def test_a_load_that_lasts_just_as_long_as_its_formats_take_is_enough() -> None:
    assert read_gpu_gemm(completed(printed(), seconds=4.0), **ASKED).load == "gpu_gemm"


@each("uuid", ["GPU-1a", "1a", "gpu-1A"])
def test_a_gpu_is_the_same_with_the_drivers_prefix_and_without(uuid: str) -> None:
    read_gpu_gemm(completed(printed(uuid=uuid)), **ASKED, also={"uuid": "GPU-1a"})


@each(
    "told, wanted",
    [("GPU-1", None), (None, "GPU-1"), (None, None), ("GPU-", "GPU-"), ("", ""), (1, 1)],
)
def test_what_names_no_gpu_is_never_the_same(told: object, wanted: object) -> None:
    with pytest.raises(LoadFailed, match="ran with uuid"):
        read_gpu_gemm(completed(printed(uuid=told)), **ASKED, also={"uuid": wanted})


def test_a_format_may_be_absent_and_then_takes_no_time() -> None:
    output = read_gpu_gemm(completed(printed(("f64",), ("f8",)), 2.5), **ASKED)
    assert {absence.name for absence in output.absences} == {
        "gemm_f8",
        "gemm_f8_short",
        "gemm_f8_miscompares",
    }
    assert read_gpu_gemm(completed(printed((), ("f64", "f8")), 0.1), **ASKED).readings == ()


@each(
    "what, said",
    [
        (
            completed(printed(("f64",))),
            "neither measured f8 whole nor said that the GPU does not have it",
        ),
        (
            completed(printed(("f64", "f8", "i8"))),
            "measured what it was not asked for: gemm_i8, gemm_i8_miscompares",
        ),
        (completed(printed(("f64", "f8"), ("i8",))), "not asked for"),
        (completed(printed(), 3.9), "ended after 3.9 s and was to work for 4 s"),
        (completed(printed(uuid="GPU-2")), "ran with uuid = 'GPU-2', and 'GPU-1' was asked for"),
        (completed(printed(dtypes=["f64"])), "ran with dtypes"),
        (completed(printed(seconds=1.0)), "ran with seconds"),
        (completed(printed(table=[128])), "ran with table"),
        (completed(printed(inject="wrong")), "a fault injected on purpose"),
        (completed(printed(), returncode=1), "ended with exit code 1"),
        (completed(printed()[:-30]), "ended, but"),
    ],
)
def test_anything_less_is_a_failed_load_that_keeps_its_miscompares(
    what: ProgramResult, said: str
) -> None:
    with pytest.raises(LoadFailed, match=f"(?s)^the load gpu_gemm .*{said}") as caught:
        read_gpu_gemm(what, **ASKED, also={"uuid": "GPU-1"})
    assert caught.value.miscompares == (read(REPEATED),)
