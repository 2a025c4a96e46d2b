"""The exit code of a verb whose output cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import journals
import pytest
from test_command_line import record

from acceptance.core.parts import Gpu

RIGPROOF = [sys.executable, "-m", "acceptance"]
STREAMS = ("full", "closed", "left")
PLAN = journals.plan(journals.check("link.copy", journals.due("copy_h2d", Gpu(0))))
CODES = {"PASS": 0, "FAIL": 1, "UNJUDGED": 3}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each verdict."""
    folder = tmp_path_factory.mktemp("runs")
    bodies = {
        "PASS": journals.bodies(PLAN, {("copy_h2d", Gpu(0)): 120.0}),
        "FAIL": journals.bodies(PLAN, {("copy_h2d", Gpu(0)): 1.0}),
        "UNJUDGED": journals.bodies(journals.plan(gaps=["nobody looks"])),
    }
    return {word: record(folder / word, told) for word, told in bodies.items()}


def code(arguments: Sequence[str | Path], stream: str, number: int = 1) -> int:
    """The exit code where this standard stream cannot be written; nothing else may be said."""
    reader, out = os.pipe()
    os.close(reader)
    if stream == "full":
        os.close(out)
        out = os.open("/dev/full", os.O_WRONLY)

    def child() -> None:
        if stream == "closed":
            os.close(number)
        else:
            os.dup2(out, number)

    other = {{1: "stdout", 2: "stderr"}[3 - number]: subprocess.PIPE}
    done = subprocess.run(
        [*RIGPROOF, *arguments], preexec_fn=child, check=False, text=True, **other
    )
    os.close(out)
    assert "Traceback" not in f"{done.stdout}{done.stderr}"
    assert "Exception ignored" not in f"{done.stdout}{done.stderr}"
    assert (done.stderr or "").count("\n") <= 1
    return done.returncode


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("word", CODES)
def test_a_verdict_that_nobody_can_read(runs: dict[str, Path], word: str, stream: str) -> None:
    """The page and the files hold what `report` says; of `judge` nothing would be left."""
    assert code(["judge", runs[word]], stream) == (CODES[word] or 3)
    assert code(["report", runs[word]], stream) == CODES[word]


@pytest.mark.parametrize("stream", STREAMS)
def test_a_fault_stays_a_fault(runs: dict[str, Path], tmp_path: Path, stream: str) -> None:
    text = tmp_path / "burn.txt"
    text.write_text("Tested 1 GPUs:\n\tGPU 0: FAULTY\n")
    assert code(["read", "gpu-burn", text], stream) == 1
    assert code(["replay", runs["FAIL"], "--speed", "max"], stream) == 1
    assert code(["compare", runs["PASS"], runs["FAIL"]], stream) == 1


@pytest.mark.parametrize("stream", STREAMS)
def test_help_that_nobody_can_read(stream: str) -> None:
    assert code(["--help"], stream) == 3
    assert code(["--nonsense"], stream) == 2


@pytest.mark.parametrize("stream", STREAMS)
def test_errors_that_nobody_can_read(runs: dict[str, Path], tmp_path: Path, stream: str) -> None:
    assert code(["judge", runs["PASS"]], stream, number=2) == 0
    assert code(["judge", tmp_path / "none"], stream, number=2) == 2
    assert code(["--nonsense"], stream, number=2) == 2
