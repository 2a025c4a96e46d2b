from __future__ import annotations

import pytest
from cases import each
from reasons import why_of

from acceptance.core.parts import CPU
from acceptance.tools import cpuburn


@each(
    "binary, threads, expected",
    [
        ("/usr/bin/burnP6", None, ("/usr/bin/burnP6",)),
        ("/usr/bin/burnP6", 1, ("/usr/bin/burnP6",)),
        ("cpuburn", None, ("cpuburn",)),
        ("cpuburn", 4, ("cpuburn", "-n", "4")),
        ("cpuburn", 1, ("cpuburn", "-n", "1")),
    ],
)
def test_argv(binary: str, threads: int | None, expected: tuple[str, ...]) -> None:
    assert cpuburn.argv(binary, threads=threads) == expected


@pytest.mark.parametrize(("binary", "threads"), [("burnK7", 2), ("cpuburn", 0)])
def test_argv_refuses(binary: str, threads: int) -> None:
    with pytest.raises(ValueError, match="one process for each CPU"):
        cpuburn.argv(binary, threads=threads)


@each(
    "binary, returncode, timed_out, outcome, words",
    [
        ("cpuburn", -15, True, "pass", "checks nothing itself"),
        ("burnP6", -15, True, "pass", "found no error"),
        ("burnP6", 254, False, "fail", "integer or memory error"),
        ("burnMMX", 255, False, "fail", "floating point"),
        ("cpuburn", 254, False, "error", "exit code 254"),
        ("cpuburn", 0, False, "error", "exit code 0"),
        ("burnP6", 1, False, "error", "exit code 1"),
        ("cpuburn", -4, False, "fail", "SIGILL"),
        ("cpuburn", -9, False, "error", "signal 9"),
    ],
)
def test_judge(binary: str, returncode: int, timed_out: bool, outcome: str, words: str) -> None:
    output = cpuburn.judge(binary, returncode=returncode, timed_out=timed_out, seconds=12.5)
    assert (output.outcome, words in why_of(output)) == (outcome, True), why_of(output)
    assert [dict(reading.values) for reading in output.readings] == (
        [{CPU: 12.5}] if outcome == "pass" else []
    )
