"""`rigproof replay`: what it prints, its exit code, and that it leaves the run alone."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from cases import each
from command import Call, printed
from known import known
from runs import unpacked

RUNS = Path(__file__).resolve().parents[2] / "fixtures/recordings/h200/runs"
PASSED, UNJUDGED = "1xh200-host-accept", "2xh200-host-burn-shared"


def files(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file with its digest and the time of its last change."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@each("name, code, speed", [(PASSED, 0, "max"), (UNJUDGED, 3, "0")])
def test_it_ends_as_judge_does_and_writes_nothing(
    tmp_path: Path,
    call: Call,
    name: str,
    code: int,
    speed: str,
) -> None:
    run = unpacked(RUNS / name, tmp_path / speed / name)
    before = files(run)
    found, out, err = call("replay", str(run), "--speed", speed)
    judged = call("judge", str(run))
    assert (found, err) == (code, "")
    assert found == judged[0]
    assert out.endswith(judged[1])
    assert out.startswith("replay of 2026-")
    assert "together.burn" in out or "burn.gpu_burn[double]" in out
    assert "\x1b" not in out
    assert files(run) == before
    assert "重放" in call("replay", str(run), "--speed", speed, "--lang", "zh-CN")[1]


def test_a_run_that_was_cut_off_is_played_to_where_it_ended(tmp_path: Path, call: Call) -> None:
    run = unpacked(RUNS / PASSED, tmp_path / "run")
    own = run / "journal.jsonl"
    lines = own.read_bytes().splitlines(keepends=True)
    own.write_bytes(b"".join(lines[:-4]) + lines[-4][:40])
    gpu = run / "telemetry-gpu.jsonl"
    gpu.write_bytes(gpu.read_bytes()[:20_000] + b"\n{}\n")
    out = printed(call("replay", str(run), "--speed", "max"), 3)
    assert "journal.jsonl" in out
    assert "telemetry-gpu.jsonl" in out
    assert out.splitlines()[-1].startswith("UNJUDGED")


@each("speed", ["-1", "fast", "1e9", "2000000", "nan", "", "1.2.3"])
def test_what_is_no_speed(call: Call, speed: str) -> None:
    code, out, err = call("replay", "run", f"--speed={speed}")
    assert (code, out) == (2, "")
    assert "is no speed: give a number, such as 8" in err


def test_a_folder_without_a_run(tmp_path: Path, call: Call) -> None:
    code, _, err = call("replay", str(tmp_path))
    assert code == 2
    assert str(tmp_path) in err


@each("how", ["interrupt", "close"])
def test_it_ends_at_once_where_it_is_stopped_or_nobody_reads(tmp_path: Path, how: str) -> None:
    run = unpacked(RUNS / PASSED, tmp_path / how)
    with subprocess.Popen(
        [sys.executable, "-m", "acceptance", "replay", str(run), "--speed", "30"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        text=True,
    ) as program:
        assert known(program.stdout).readline().startswith("replay of ")
        began = time.monotonic()
        if how == "interrupt":
            program.send_signal(signal.SIGINT)
            assert known(program.stderr).read() == "rigproof: stopped\n"
        else:
            known(program.stdout).close()
        assert program.wait(60) == 3
        assert time.monotonic() - began < 10.0
