from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from reasons import why_of

from acceptance.core.parts import MEMORY
from acceptance.process import command as process_command
from acceptance.process.deadline import Deadline
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import stressapptest

PASS = (Path(__file__).parents[2] / "fixtures/recordings/stressapptest/pass_1.0.6.txt").read_text()


def test_argv() -> None:
    assert stressapptest.argv("sat", megabytes=200, seconds=4, threads=2) == (
        "sat",
        "-s",
        "4",
        "-M",
        "200",
        "-m",
        "2",
        "-W",
    )


@each("megabytes, seconds, threads", [(200, 0, 2), (200, 4, 0), (5, 4, 2)])
def test_argv_refuses(megabytes: int, seconds: int, threads: int) -> None:
    with pytest.raises(ValueError, match="stressapptest needs"):
        stressapptest.argv("sat", megabytes=megabytes, seconds=seconds, threads=threads)


def test_the_smallest_run() -> None:
    assert stressapptest.argv("sat", megabytes=3, seconds=1, threads=1)[1:] == (
        "-s",
        "1",
        "-M",
        "3",
        "-m",
        "1",
        "-W",
    )


def test_without_its_command_line_nobody_knows_what_was_checked() -> None:
    output = stressapptest.parse("".join(PASS.splitlines(keepends=True)[1:]))
    assert (output.outcome, "'Log: Commandline' is missing" in why_of(output)) == (
        "error",
        True,
    )


@pytest.mark.parametrize(("seconds", "outcome"), [("2.50", "pass"), ("2.49", "error")])
def test_how_early_a_run_may_end(seconds: str, outcome: str) -> None:
    assert stressapptest.parse(PASS.replace("in 5.00s", f"in {seconds}s")).outcome == outcome


def test_how_wrong_data_is_told() -> None:
    line = "Report Error: miscompare : DIMM Unknown : 1 : 0s"
    one, two = (stressapptest.parse(f"{line}\n" * count + PASS) for count in (1, 2))
    assert why_of(one) == f"wrong data: '{line}'"
    assert why_of(two) == f"wrong data: '{line}' (and 1 more such lines)"
    assert one.readings == (), "nobody counted"


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
    assert output.outcome == outcome, why_of(output)


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
    output = stressapptest.parse(PASS.replace(old, new, 1))
    assert (output.outcome, reason in why_of(output)) == (outcome, True), why_of(output)


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


def test_no_line_cut_or_doubled_changes_a_pass() -> None:
    whole = stressapptest.parse(PASS)
    kept = PASS.splitlines(keepends=True)
    needed = ("Commandline", "Starting SAT", "Found 0", "Completed", "Memory Copy", "Status")
    for index, line in enumerate(kept):
        cut = stressapptest.parse("".join(kept[:index] + kept[index + 1 :]))
        assert cut == whole or (cut.outcome == "error" and any(word in line for word in needed))
        try:
            doubled = stressapptest.parse("".join(kept[: index + 1] + kept[index:]))
        except UnreadableOutput:
            continue
        assert doubled == whole


def test_a_text_cut_before_its_status_is_no_pass() -> None:
    kept = PASS.splitlines(keepends=True)
    for end in range(1, kept.index("Status: PASS - please verify no corrected errors\n") + 1):
        assert stressapptest.parse("".join(kept[:end])).outcome == "error"


@given(st.permutations(PASS.splitlines()))
def test_order_changes_nothing(order: list[str]) -> None:
    assert stressapptest.parse("\n".join(order)) == stressapptest.parse(PASS)


@pytest.mark.tools
def test_the_real_one() -> None:
    binary = process_command.find("stressapptest", "stressapptest")
    arguments = stressapptest.argv(binary, megabytes=32, seconds=1, threads=1)
    output = stressapptest.parse(
        process_command.run(arguments, deadline=Deadline.after(60.0)).stdout
    )
    assert output.outcome == "pass", why_of(output)
    assert output.reading("stressapptest_copy")[MEMORY] > 0


def test_a_second_command_line_takes_nothing_back() -> None:
    command = next(line for line in PASS.splitlines(keepends=True) if "Commandline" in line)
    output = stressapptest.parse(PASS.replace(command, command.replace(" -W", " -W -F") + command))
    assert (output.outcome, "-F" in why_of(output)) == ("error", True)
