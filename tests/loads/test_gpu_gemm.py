from __future__ import annotations

import io
import os
import signal
from types import SimpleNamespace

import pytest
from card_of_tests import FakeCard
from cases import each
from load_program import run

from acceptance.loads.gemm import load, product
from acceptance.loads.gemm.load import arguments
from acceptance.loads.gemm.worker import GemmOptions
from acceptance.loads.protocol import Output, parse

LOAD = ("--dtypes", "f64,bf16", "--seconds", "1")


def test_one_format_or_several() -> None:
    assert [dtype.short for dtype in arguments().parse_args(LOAD).dtypes] == ["f64", "bf16"]
    assert [
        dtype.short for dtype in arguments().parse_args(["--dtype", "i8", "--seconds", "1"]).dtypes
    ] == ["i8"]


@each(
    "extra, said",
    [
        (
            ("--dtypes", "f64,f64"),
            "'f64,f64' is not a list of f64,f32,tf32,f16,bf16,f8,i8, each at most once",
        ),
        (("--dtypes", "float64"), "'float64' is not a list"),
        (("--dtypes", ""), "'' is not a list"),
        (("--seconds", "0"), "is not a number of seconds"),
        (("--size", "32"), "'32' is not a multiple of 16 from 64 to 32768"),
        (("--size", "8190"), "is not a multiple of 16"),
        (("--size", "1e3"), "is not a multiple of 16"),
        (("--size", "65536"), "is not a multiple of 16"),
        (("--table", "512,128"), "each once, rising"),
        (("--inject", "fire"), "invalid choice"),
    ],
)
def test_bad_arguments_get_one_sentence(
    extra: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        arguments().parse_args([*LOAD, *extra])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_without_torch_or_a_gpu_it_says_so_and_prints_nothing() -> None:
    done = run("-m", "acceptance.loads.gemm.load", *LOAD)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("gpu_gemm: torch ")
    assert len(done.stderr.splitlines()) == 1


def test_what_cuda_says_is_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        assert "NVIDIA_TF32_OVERRIDE" not in os.environ
        raise RuntimeError(
            "CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be "
            "asynchronous"
        )

    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(load, "run", fails)
    assert load.main(LOAD) == 1
    assert capsys.readouterr().err == "gpu_gemm: CUDA error: uncorrectable ECC error encountered\n"


@pytest.mark.parametrize(("gib", "size", "notes"), [(140, 8192, 0), (4, 4096, 1)])
def test_the_size_that_is_judged_is_told(
    monkeypatch: pytest.MonkeyPatch, gib: int, size: int, notes: int
) -> None:
    orders: list[GemmOptions] = []

    class Small(FakeCard):
        def whole_bytes(self) -> int:
            return gib << 30

    def worker(order: GemmOptions, *_: object) -> SimpleNamespace:
        orders.append(order)
        return SimpleNamespace(run=lambda: None)

    monkeypatch.setattr(load, "gpu_identity", lambda: {"gpu": "a GPU", "capability": "8.9"})
    monkeypatch.setattr(load, "CudaCard", Small)
    monkeypatch.setattr(load, "GemmWorker", worker)
    monkeypatch.setattr(product, "settings", lambda: None)
    stream = io.StringIO()
    load.run(arguments().parse_args(LOAD), Output(stream))
    output = parse(stream.getvalue())
    assert output.parameters["size"] == size
    assert [order.size for order in orders] == [size]
    told = ("4096 is judged, not 8192: the GPU's memory is too small for one format of that size",)
    assert output.notes == told[:notes]


def test_neither_the_command_line_nor_the_reader_loads_torch_or_numpy() -> None:
    done = run(
        "-c",
        "import sys, acceptance.loads.gemm.load, acceptance.tools.load_output;"
        "print({'torch', 'numpy'} & sys.modules.keys())",
    )
    assert done.stdout == "set()\n", done.stderr
