from __future__ import annotations

import os
import signal

import pytest
from cases import each

from acceptance.loads import program
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
