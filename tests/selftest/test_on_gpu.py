"""The self-test's part for a GPU machine: which faults it plays, and the interpreter that puts them
in.

The runs need a GPU.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from selftest import on_gpu
from selftest.fault import read


def test_what_a_load_makes_by_itself_is_played_and_nothing_else() -> None:
    names = {named.name for named in on_gpu.playable(read(), 1)}
    assert names >= {
        "burn-bit",
        "burn-stuck",
        "burn-repeat",
        "burn-unwritten",
        "vram-bit",
        "vram-address",
    }
    assert not names & {
        "one-gpu-of-two-repeats",
        "gemm-wrong",
        "gpu-30-below-sheet",
        "burn-beside-sibling",
    }
    assert not on_gpu.playable(read(), 0)


def test_the_interpreter_starts_that_load_with_the_fault_and_every_other_as_it_is(
    tmp_path: Path,
) -> None:
    python = on_gpu.interpreter(tmp_path / "env", "vram", "bit")

    def words(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(python), *more], capture_output=True, text=True, timeout=60)

    told = words("-c", "import sys, acceptance; print(sys.executable, *sys.argv[1:])", "a", "b c")
    assert told.stdout.split() == [str(python), "a", "b", "c"]
    # Neither has a GPU here: what is looked at is that the option came through, and to that load
    # alone.
    wrong = words("-m", "acceptance.loads.vram.load", "--seconds", "1", "--inject", "bit")
    assert "GPU" in wrong.stderr or "torch" in wrong.stderr
    assert "--seconds" in words("-m", "acceptance.loads.vram.load").stderr
    python.write_text(
        python.read_text(encoding="utf-8").replace("bit", "nothing"), encoding="utf-8"
    )
    assert (
        "invalid choice: 'nothing'"
        in words("-m", "acceptance.loads.vram.load", "--seconds", "1").stderr
    )
    assert (
        "--inject"
        not in words("-m", "acceptance.loads.copy.load", "--seconds", "x").stderr.partition(
            "error:"
        )[2]
    )


def test_where_there_is_no_gpu_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(()))
    assert on_gpu.main(["--out", str(tmp_path)]) == 2
    assert "no GPU" in capsys.readouterr().err
