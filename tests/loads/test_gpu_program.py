from __future__ import annotations

import os
import signal

import pytest
from cases import each

from acceptance.loads import program
from acceptance.loads.__main__ import main
from acceptance.loads.program import LoadError, exit_load, run_guarded


class Odd(LoadError):
    pass


@pytest.fixture(autouse=True)
def no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)


@each(
    "error, said",
    [
        (LoadError("the GPU hangs"), "load: the GPU hangs\n"),
        (RuntimeError("CUDA error: it broke\nmore of it"), "load: CUDA error: it broke\n"),
        (RuntimeError(), "load: RuntimeError\n"),
        (Odd("odd"), "load: odd\n"),
        (OSError(12, "no memory"), "load: [Errno 12] no memory\n"),
    ],
)
def test_an_error_is_one_sentence(
    error: Exception, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise error

    assert run_guarded("load", fails) == 1
    assert capsys.readouterr().err == said


TF32 = "NVIDIA_TF32_OVERRIDE"


@pytest.mark.parametrize(
    ("words", "module", "stray"),
    [
        ("gpu_gemm dtypes=f64 seconds=1", "gemm.load", TF32),
        ("burn dtypes=f64,bf16 seconds=1", "burn.load", TF32),
        ("vram seconds=1", "vram.load", "PYTORCH_CUDA_ALLOC_CONF"),
        ("train_layers dtype=bf16 seconds=8", "train.layer_load", TF32),
        ("train_step seconds=6", "train.step_load", TF32),
        ("train_digest seconds=6", "train.digest_load", TF32),
    ],
)
def test_what_cuda_says_is_told_in_one_sentence(
    words: str,
    module: str,
    stray: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails(*_: object) -> None:
        assert stray not in os.environ
        raise RuntimeError("CUDA error: uncorrectable ECC error encountered\nmore of it")

    monkeypatch.setenv(stray, "1")
    monkeypatch.setattr(f"acceptance.loads.{module}.run", fails)
    assert main(words.split()) == 1
    said = f"{words.split()[0]}: CUDA error: uncorrectable ECC error encountered\n"
    assert capsys.readouterr().err == said


def test_strays_are_gone_before_the_work_and_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAY", "1")
    monkeypatch.setenv("OTHER", "1")
    seen: list[tuple[bool, bool]] = []
    assert (
        run_guarded(
            "load",
            lambda: seen.append(("STRAY" in os.environ, "OTHER" in os.environ)),
            ["STRAY"],
        )
        == 0
    )
    assert seen == [(False, True)]


def test_a_mistake_of_our_own_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        run_guarded("load", lambda: 1 // 0)


def test_after_a_failure_the_process_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(program.os, "_exit", left.append)
    exit_load(0)
    assert left == []
    exit_load(1)
    assert left == [1]
