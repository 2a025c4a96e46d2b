from __future__ import annotations

import os
import signal

import pytest
from cases import each
from load_program import run

from acceptance.loads.burn import load
from acceptance.loads.burn.card import wait
from acceptance.loads.burn.fault import KINDS, slowness
from acceptance.loads.burn.load import arguments
from acceptance.loads.card import CardError

LOAD = ("--dtypes", "f64,bf16", "--seconds", "1")


def test_what_is_asked() -> None:
    options = arguments().parse_args([*LOAD, "--peers", "3", "--plain", "--inject", "slow:10"])
    assert [dtype.short for dtype in options.dtypes] == ["f64", "bf16"]
    assert (options.seconds, options.peers, options.plain, slowness(options.inject)) == (
        1.0,
        3,
        True,
        0.10,
    )
    bare = arguments().parse_args(LOAD)
    assert (bare.peers, bare.plain, bare.inject, slowness(bare.inject)) == (0, False, None, 0.0)
    for kind in KINDS:
        assert slowness(arguments().parse_args([*LOAD, "--inject", kind]).inject) == 0.0


@each(
    "extra, said",
    [
        (
            ("--dtypes", "f64,f64"),
            "'f64,f64' is not a list of f64,f32,tf32,f16,bf16,f8,i8, each at most once",
        ),
        (("--seconds", "nan"), "is not a number of seconds"),
        (("--peers", "-1"), "'-1' is not a number of peers from 0 to 31"),
        (("--peers", "32"), "'32' is not a number of peers"),
        (
            ("--inject", "fire"),
            (
                "'fire' is not one of bit, stuck, ulp17, nan, inf, repeat, unwritten, input, "
                "hang, lost and slow:PERCENT"
            ),
        ),
        (("--inject", "slow:0"), "is not one of"),
        (("--inject", "slow:91"), "is not one of"),
        (("--inject", "slow:"), "is not one of"),
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
    done = run("-m", "acceptance.loads.burn.load", *LOAD)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("burn: torch ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            RuntimeError("CUDA error: unspecified launch failure\nmore"),
            "burn: CUDA error: unspecified launch failure\n",
        ),
        (CardError("the GPU hangs"), "burn: the GPU hangs\n"),
        (RuntimeError(), "burn: RuntimeError\n"),
    ],
)
def test_what_cuda_says_is_told_in_one_sentence(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        assert "NVIDIA_TF32_OVERRIDE" not in os.environ
        raise error

    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(load, "run", fails)
    assert load.main(LOAD) == 1
    assert capsys.readouterr().err == said


def test_neither_the_command_line_nor_its_course_loads_torch_or_numpy() -> None:
    done = run(
        "-c", "import sys, acceptance.loads.burn; print({'torch', 'numpy'} & sys.modules.keys())"
    )
    assert done.stdout == "set()\n", done.stderr


def test_a_gpu_that_does_not_come_back_is_told_and_not_waited_for() -> None:
    with pytest.raises(
        CardError, match=r"has not finished what it was given within 0\.02 s: it hangs"
    ):
        wait(lambda: False, 0.02)
    asked: list[int] = []
    paused: list[float] = []
    wait(lambda: len(asked) == 20 or asked.append(1) is not None, 60.0, paused.append)
    assert len(paused) == 20
    assert max(paused) == 0.002, "it looks often enough that the GPU is never left without work"
