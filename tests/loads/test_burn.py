from __future__ import annotations

import os
import signal

import pytest
from cases import each

from acceptance.loads.__main__ import main, parsed
from acceptance.loads.burn import load
from acceptance.loads.burn.contract import Ask
from acceptance.loads.burn.fault import slowness
from acceptance.loads.card import wait
from acceptance.loads.program import LoadError

TYPED = ["burn", "dtypes=f64,bf16", "seconds=1"]
KINDS = ("bit", "stuck", "ulp17", "nan", "inf", "repeat", "unwritten", "input", "hang", "lost")


def test_what_people_type() -> None:
    ask = parsed([*TYPED, "peers=3", "plain=true", "inject=slow:10"])
    assert ask == Ask(dtypes=("f64", "bf16"), seconds=1.0, peers=3, plain=True, inject="slow:10")
    bare = {"dtypes": ["f64", "bf16"], "seconds": 1.0, "peers": 0}
    assert (parsed(TYPED).parameters(), parsed(TYPED).plain) == (bare, False)
    assert (slowness("slow:10"), slowness(None)) == (0.10, 0.0)
    for kind in KINDS:
        assert parsed([*TYPED, f"inject={kind}"]).inject == kind
        assert slowness(kind) == 0.0
    for word in ("peers=0", "peers=31", "inject=slow:1", "inject=slow:90"):
        assert parsed(["burn", "dtypes=i8", "seconds=1", word])


@each(
    "words",
    [
        *([*TYPED, f"peers={one}"] for one in ("-1", "32", "1.5", "")),
        *([*TYPED, f"inject={one}"] for one in ("fire", "slow", "slow:0", "slow:91", "bit ")),
        [*TYPED, "plain=perhaps"],
        [*TYPED, "laps=3"],
        ["burn", "dtypes=f64,f64", "seconds=1"],
        ["burn", "dtypes=[]", "seconds=1"],
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_the_help_names_every_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["burn", "--help"]) == 0
    (line,) = (one for one in capsys.readouterr().out.splitlines() if one.startswith("inject: "))
    assert all(kind in line for kind in (*KINDS, "slow:PERCENT"))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            RuntimeError("CUDA error: unspecified launch failure\nmore"),
            "burn: CUDA error: unspecified launch failure\n",
        ),
        (LoadError("the GPU hangs"), "burn: the GPU hangs\n"),
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
    assert main(TYPED) == 1
    assert capsys.readouterr().err == said


def test_a_gpu_that_does_not_come_back_is_told_and_not_waited_for() -> None:
    with pytest.raises(
        LoadError, match=r"has not finished what it was given within 0\.02 s: it hangs"
    ):
        wait(lambda: False, 0.02)
    asked: list[int] = []
    paused: list[float] = []
    wait(lambda: len(asked) == 20 or asked.append(1) is not None, 60.0, paused.append)
    assert len(paused) == 20
    assert max(paused) == 0.002, "it looks often enough that the GPU is never left without work"
