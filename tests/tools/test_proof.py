from __future__ import annotations

from typing import Any

import pytest
from cases import each

from acceptance.process.command import ProgramResult
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools.proof import ToolError, option, prove
from acceptance.tools.reading import ToolOutput

PASS = ToolOutput("tool", "pass", "all is well")


def ran(
    stdout: str = "pass", stderr: str = "", returncode: int = 0, seconds: float = 10.0, **more: Any
) -> ProgramResult:
    return ProgramResult(("tool",), returncode, stdout, stderr, seconds, **more)


def parse(text: str) -> ToolOutput:
    """Says what the text says, of both outputs."""
    for outcome in ("fail", "error", "pass"):
        if outcome in text.split():
            return ToolOutput("tool", outcome, f"the text says {outcome}")  # type: ignore[arg-type]
    raise UnreadableOutput("tool", text, "the text holds no line of it")


@each("seconds", [0.0, 9.5, 10.0, 10.5])
def test_a_whole_run_proves_what_its_text_says(seconds: float) -> None:
    assert prove("tool", ran(), parse, seconds) == ToolOutput("tool", "pass", "the text says pass")


def test_a_program_that_ends_a_twentieth_early_proves_what_its_text_says() -> None:
    assert prove("tool", ran(seconds=9.5), parse, 10.0).outcome == "pass"


@each(
    "done",
    [
        ran("fail"),
        ran("pass", "fail"),
        ran("fail", returncode=7),
        ran("fail", returncode=-11),
        ran("fail", timed_out=True, returncode=-15),
        ran("fail", truncated=True),
        ran("fail", seconds=0.1),
    ],
)
def test_a_fault_stays_a_fault_however_the_run_ended(done: ProgramResult) -> None:
    assert prove("tool", done, parse, 10.0).outcome == "fail"


@each(
    "done, told",
    [
        (ran(returncode=7), "tool ended with exit code 7 after 10.0 s; it last said: pass"),
        (ran(returncode=-11), "tool was ended by signal 11 after 10.0 s; it last said: pass"),
        (
            ran(timed_out=True),
            "tool did not end within its time and was stopped after 10 s; it last said: pass",
        ),
        (
            ran(seconds=9.4),
            "tool ended after 9.4 s and was to load the machine for 10 s; it last said: pass",
        ),
        (
            ran(truncated=True),
            (
                "tool printed more than is kept, or its output was not read to the end; it last "
                "said: pass"
            ),
        ),
        (ran("error"), "the text says error; it last said: error"),
        (
            ran("error", returncode=1),
            "tool ended with exit code 1 after 10.0 s; the text says error; it last said: error",
        ),
        (ran(""), "tool: the text holds no line of it"),
        (
            ran("", returncode=1),
            "tool ended with exit code 1 after 10.0 s; tool: the text holds no line of it",
        ),
    ],
)
def test_what_proves_nothing_says_all_that_is_wrong(done: ProgramResult, told: str) -> None:
    with pytest.raises(ToolError) as caught:
        prove("tool", done, parse, 10.0)
    assert str(caught.value) == told


def test_a_silent_run_that_is_called_a_pass_and_ended_badly() -> None:
    with pytest.raises(ToolError, match=r"exit code 1 after 10\.0 s; it printed nothing$"):
        prove("tool", ran("", returncode=1), lambda _: PASS, 10.0)


def test_a_cuda_error_beside_a_healthy_text_proves_nothing() -> None:
    with pytest.raises(
        ToolError, match=r"^tool: CUDA reported an error: 'CUDA error: an illegal memory access'"
    ):
        prove("tool", ran(stderr="\nCUDA error: an illegal memory access\n"), parse, 10.0)


@each(
    "argv, found",
    [
        (("tool", "-s", "36", "-m", "2"), 36),
        (("tool", "-m", "2", "-s", "36s"), 36),
        (("tool", "-m", "2"), None),
        (("tool", "-s"), None),
        (("tool", "-s", "soon"), None),
        (("tool", "-s", "-36"), None),
        ((), None),
    ],
)
def test_what_a_command_line_asked(argv: tuple[str, ...], found: int | None) -> None:
    if found is not None:
        assert option(argv, "-s") == found
    else:
        with pytest.raises(ToolError) as error:
            option(argv, "-s")
        assert error.value.message.code == "command_line_lacks"
