"""What is reckoned in a process of its own."""

from __future__ import annotations

import os
import signal

import pytest

from selftest.beside import Beside, BesideError


def test_it_is_another_process_and_its_result_comes_here() -> None:
    assert Beside("reckoning", lambda: (os.getpid(), "found")).result() != (os.getpid(), "found")
    assert Beside("reckoning", lambda: (1, "found")).result() == (1, "found")


def test_what_goes_wrong_is_one_sentence_and_its_traceback_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    def reckon() -> int:
        return 1 // 0

    with pytest.raises(BesideError, match=r"^reckoning ended without a result: its traceback stands above"):
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
