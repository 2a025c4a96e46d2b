from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from reasons import require

from acceptance.core.parts import MEMORY
from acceptance.process import command as process_command
from acceptance.process.deadline import Deadline
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import stressapptest

PASS = (Path(__file__).parents[2] / "fixtures/recordings/stressapptest/pass_1.0.6.txt").read_text()
COMMAND = PASS.splitlines(keepends=True)[0]
WRONG = "Report Error: miscompare : DIMM Unknown : 1 : 0s\n"


@each("megabytes, seconds, threads", [(200, 4, 2), (3, 1, 1)])
def test_argv(megabytes: int, seconds: int, threads: int) -> None:
    due = f"sat -s {seconds} -M {megabytes} -m {threads} -W"
    found = stressapptest.argv("sat", megabytes=megabytes, seconds=seconds, threads=threads)
    assert found == tuple(due.split())


@each("megabytes, seconds, threads", [(200, 0, 2), (200, 4, 0), (5, 4, 2)])
def test_argv_refuses(megabytes: int, seconds: int, threads: int) -> None:
    with pytest.raises(ValueError, match="stressapptest needs"):
        stressapptest.argv("sat", megabytes=megabytes, seconds=seconds, threads=threads)


@each(
    "line, outcome",
    [
        ("Report Error: miscompare : DIMM Unknown : 1 : 0s", "fail"),
        (
            (
                "Hardware Error: miscompare on CPU 0(0x1) at 0x7f(0x53:DIMM Unknown): read:0x4a, "
                "reread:0x4a expected:0x4b"
            ),
            "fail",
        ),
        ("Page Error: miscompare on CPU 0(0x1) at 0x7f", "fail"),
        ("Block Error: (0x7f) pattern a instead of b, 8 bytes from offset 0x0 to 0x8", "fail"),
        ("Log: CrcCheckPage CRC mismatch 00 != 01, but no miscompares found.", "fail"),
        ("Log: Thread 1 found 1 hardware incidents", "fail"),
        ("Log: Thread 1 found 0 hardware incidents", "pass"),
        ("Process Error: Thread 16 failed with status 0 at 25713.01 seconds", "error"),
        ("Assertion failed at worker.cc:1", "error"),
        ("Log: User exiting early (17 seconds remaining)", "error"),
        ("Log: Seconds remaining: 10", "pass"),
    ],
)
def test_one_more_line(line: str, outcome: str) -> None:
    output = stressapptest.parse(f"{line}\n{PASS}")
    require(output, outcome)
    assert (output.readings != ()) == (outcome == "pass"), "nobody counted"


@each(
    "old, new, outcome, reason",
    [
        (
            "Status: PASS - please verify no corrected errors",
            "Status: FAIL - test discovered HW problems",
            "fail",
            "0 incidents",
        ),
        (
            "Status: PASS - please verify no corrected errors",
            "Status: FAIL - test encountered procedural errors",
            "error",
            "procedural",
        ),
        (COMMAND, "", "error", "'Log: Commandline' is missing"),
        (COMMAND, COMMAND.replace(" -W", " -W -F") + COMMAND, "error", "-F"),
        ("in 5.00s", "in 2.50s", "pass", ""),
        ("in 5.00s", "in 2.49s", "error", ""),
        (COMMAND, WRONG + COMMAND, "fail", f"wrong data: {WRONG.strip()!r}"),
        (COMMAND, 2 * WRONG + COMMAND, "fail", f"{WRONG.strip()!r} (and 1 more such lines)"),
        ("with 0 hardware incidents", "with 2 hardware incidents", "fail", "2 incidents"),
        ("Found 0 hardware", "Found 3 hardware", "fail", "3 incidents"),
        ("incidents, 0 errors", "incidents, 1 errors", "error", "procedural errors"),
        ("255658.00M in", "0.00M in", "error", "no data"),
        ("255658.00M at", "0.00M at", "error", "no data"),
        ("at 51131.01MB/s", "at 0.00MB/s", "error", "no data"),
        ("200M, 4 seconds", "200M, 40 seconds", "error", "it ran for 5 of 40 s"),
        ("-W\n", "-W -F\n", "error", "-F"),
        ("-W\n", "-W --force_errors\n", "error", "--force_errors"),
    ],
)
def test_one_change(old: str, new: str, outcome: str, reason: str) -> None:
    assert old in PASS
    require(stressapptest.parse(PASS.replace(old, new, 1)), outcome, reason)


@each("filled, code", [(200, None), (198, None), (197, "filled_less")])
def test_a_pass_of_less_memory_than_was_asked_for(filled: int, code: str | None) -> None:
    argv = stressapptest.argv("sat", megabytes=200, seconds=4, threads=2)
    text = PASS.replace("Starting SAT, 200M", f"Starting SAT, {filled}M")
    found = stressapptest.shortfall(argv, stressapptest.parse(text))
    assert (None if found is None else found.code) == code


@each(
    "text",
    [
        "",
        "hello",
        PASS + PASS,
        PASS + "Status: FAIL - test discovered HW problems\n",
        PASS + "Status: MAYBE\n",
        PASS.replace("51131.01MB/s", "nanMB/s"),
        PASS.replace("Starting SAT, 200M", "Starting SAT, " + "9" * 400 + "M"),
        "Log: Thread 1 found " + "9" * 400 + " hardware incidents",
    ],
)
def test_unreadable(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        stressapptest.parse(text)


@pytest.mark.tools
def test_the_real_one() -> None:
    binary = process_command.find("stressapptest", "stressapptest")
    arguments = stressapptest.argv(binary, megabytes=32, seconds=1, threads=1)
    output = stressapptest.parse(
        process_command.run(arguments, deadline=Deadline.after(60.0)).stdout
    )
    require(output, "pass")
    assert output.reading("stressapptest_copy")[MEMORY] > 0
