"""The exit code of a verb whose output cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import journals
import pytest
from cases import each
from forks import Forks
from test_command_line import RECORDINGS, record

from acceptance.core.parts import Gpu

RIGPROOF = [sys.executable, "-m", "acceptance"]
STREAMS = ("full", "closed", "left")
PLAN = journals.plan(journals.check("link.copy", journals.due("copy_h2d", Gpu(0))))
SOUND = RECORDINGS / "h200/deviceQuery.txt"


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


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    verbs = ("judge", "report", "replay", "compare", "read")
    found = Forks([f"acceptance.cli.{verb}" for verb in verbs], os.environ)
    yield found
    found.end()


def lost(stream: str) -> int:
    """A stream that takes nothing: of a full disk, or of a reader that has left."""
    if stream == "full":
        return os.open("/dev/full", os.O_WRONLY)
    reader, out = os.pipe()
    os.close(reader)
    return out


def code(forks: Forks, arguments: Sequence[str], stream: str, number: int) -> int:
    """The exit code where this standard stream cannot be written; nothing else may be said."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as other:
        files = {0: os.open(os.devnull, os.O_RDONLY), 3 - number: other.fileno()}
        if stream == "closed":
            done = subprocess.run(
                [*RIGPROOF, *arguments],
                preexec_fn=lambda: os.close(number),
                check=False,
                **{{1: "stdout", 2: "stderr"}[3 - number]: other},
            )
            returncode = done.returncode
        else:
            files[number] = lost(stream)
            given = (files[0], files[1], files[2])
            pid = forks.start("acceptance.__main__:main", given, os.environ, list(arguments))
            returncode = forks.wait(pid)
            os.close(files[number])
        os.close(files[0])
        other.seek(0)
        told = other.read()
    assert "Traceback" not in told
    assert "Exception ignored" not in told
    assert number == 2 or told.count("\n") <= 1
    return returncode


# What is typed, NAME for the run of a verdict; the stream that is lost, and the exit code.
LOST: list[tuple[str, str, int, int]] = [
    *(("--help", stream, 1, 3) for stream in STREAMS),
    # The page and the files hold what `report` says; of `judge` nothing would be left.
    *(("judge PASS", stream, 1, 3) for stream in STREAMS),
    *(("report FAIL", stream, 1, 1) for stream in STREAMS),
    *(("judge PASS", stream, 2, 0) for stream in STREAMS),
    *((typed, "full", 1, 1) for typed in ("judge FAIL", "replay FAIL --speed max")),
    *((f"{verb} UNJUDGED", "full", 1, 3) for verb in ("judge", "report")),
    ("report PASS", "full", 1, 0),
    ("compare PASS FAIL", "left", 1, 1),
    ("read gpu-burn FAULTY", "closed", 1, 1),
    ("read deviceQuery SOUND", "full", 1, 3),
    *(("--nonsense", "full", number, 2) for number in (1, 2)),
    ("judge NONE", "left", 2, 2),
]


@each("typed, stream, number, due", LOST)
def test_no_lost_output_looks_like_another_verdict(
    forks: Forks,
    runs: dict[str, Path],
    tmp_path: Path,
    typed: str,
    stream: str,
    number: int,
    due: int,
) -> None:
    text = tmp_path / "burn.txt"
    text.write_text("Tested 1 GPUs:\n\tGPU 0: FAULTY\n")
    named = {**runs, "FAULTY": text, "SOUND": SOUND, "NONE": tmp_path / "none"}
    assert (
        code(forks, [str(named.get(word, word)) for word in typed.split()], stream, number) == due
    )
