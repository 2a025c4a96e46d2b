"""What is reckoned in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rig import wait_for

from selftest.side_process import Beside, BesideError

ROOT = Path(__file__).resolve().parents[2]


def test_it_is_another_process_and_its_result_comes_here() -> None:
    assert Beside("reckoning", lambda: (os.getpid(), "found")).result() != (os.getpid(), "found")
    assert Beside("reckoning", lambda: (1, "found")).result() == (1, "found")


def test_what_goes_wrong_is_one_sentence_and_its_traceback_is_printed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def reckon() -> int:
        return 1 // 0

    with pytest.raises(
        BesideError, match=r"^reckoning ended without a result: its traceback stands above"
    ):
        Beside("reckoning", reckon).result()
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_one_that_is_killed_has_no_result() -> None:
    with pytest.raises(BesideError, match="ended without a result"):
        Beside("reckoning", lambda: os.kill(os.getpid(), signal.SIGKILL)).result()


def test_ctrl_c_is_for_the_one_that_made_it() -> None:
    def reckon() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return "found"

    assert Beside("reckoning", reckon).result() == "found"


def test_it_ends_with_the_one_that_made_it(tmp_path: Path) -> None:
    """Also when that is killed: what was forked holds its files, the machine's lock among them."""
    program = (
        "import os, signal, sys, time\n"
        "from selftest.side_process import Beside\n"
        "made = Beside('reckoning', lambda: time.sleep(100))\n"
        "print(made._process.pid, flush=True)\n"
        "time.sleep(0.3)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60.0
    )
    assert done.returncode == -signal.SIGKILL
    place = Path("/proc", done.stdout.strip())
    wait_for(
        lambda: (
            not place.exists() or "Z" in (place / "stat").read_text().rpartition(")")[2].split()[0]
        )
    )
