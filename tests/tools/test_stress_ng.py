from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from reasons import why_of

from acceptance.core import parts
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import stress_ng

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings/stress-ng"
HEALTHY = [
    (RECORDINGS / name).read_text()
    for name in (
        "cpu_0.15.06.txt",
        "matrix_vm_0.15.06.txt",
        "cpu_timestamps_times_0.15.06.txt",
        "cpu_footer_0.18.txt",
        "cpu_info_table_0.13.txt",
    )
]
CPU = HEALTHY[0]
FOOTER = HEALTHY[3]


@each(
    "arguments, expected",
    [
        (
            {"seconds": 30},
            "stress-ng --cpu 0 --cpu-method all --verify --metrics-brief --timeout 30s",
        ),
        (
            {"seconds": 1, "workers": 4, "options": {}},
            "stress-ng --cpu 4 --verify --metrics-brief --timeout 1s",
        ),
        (
            {"seconds": 5, "stressor": "vm", "options": {"vm-bytes": "64M"}, "temp_path": "/run/x"},
            (
                "stress-ng --vm 0 --vm-bytes 64M --verify --metrics-brief --timeout 5s "
                "--temp-path /run/x"
            ),
        ),
        (
            {"seconds": 5, "stressor": "matrix"},
            "stress-ng --matrix 0 --verify --metrics-brief --timeout 5s",
        ),
    ],
)
def test_argv(arguments: dict[str, object], expected: str) -> None:
    assert stress_ng.argv("stress-ng", **arguments) == tuple(expected.split())  # type: ignore[arg-type]


@each(
    "arguments",
    [
        {"seconds": 0},
        {"seconds": 5, "workers": -1},
        {"seconds": 5, "stressor": "-x"},
        {"seconds": 5, "options": {"a b": "1"}},
    ],
)
def test_argv_refuses(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="stress-ng"):
        stress_ng.argv("stress-ng", **arguments)  # type: ignore[arg-type]


@each(
    "text, seconds",
    [
        ("3.00s", 3.0),
        ("8.65 secs", 8.65),
        ("1 min", 60.0),
        ("1 min, 2.50 secs", 62.5),
        ("86400 second (1 day, 0.00 secs)", 86400.0),
        ("6352.60s (1 hour, 45 mins, 52.60 secs)", 6352.6),
        ("2 hours, 1 sec", 7201.0),
        ("0 secs", 0.0),
    ],
)
def test_duration(text: str, seconds: float) -> None:
    assert stress_ng.duration(text, text) == pytest.approx(seconds)


def line(level: str, text: str) -> str:
    return f"stress-ng: {level + ':':6} [4543] {text}\n"


@each(
    "level, text, outcome",
    [
        ("fail", "cpu: sqrt error detected on sqrt(2)", "fail"),
        ("fail", "shm-sysv: shmctl IPC_SET failed, errno=22 (Invalid argument)", "fail"),
        ("fail", "hdd: read failed, errno=5 (Input/output error)", "fail"),
        ("fail", "numa: get_mempolicy failed, errno=1 (Operation not permitted)", "error"),
        ("fail", "vm: mmap failed, errno=12 (Cannot allocate memory)", "error"),
        ("fail", "x: the system call is not implemented", "error"),
        ("fail", "metrics-check: stressor metrics corrupted, data is compromised", "error"),
        (
            "error",
            "process [7] (cpu) terminated with an error, exit status=2 (stressor failed)",
            "fail",
        ),
        (
            "error",
            "process [7] (cpu) terminated with an error, exit status=1 (stress-ng core failure)",
            "error",
        ),
        ("error", "process [7] (cpu) terminated on signal: 11 (SIGSEGV)", "fail"),
        ("error", "process [7] (cpu) terminated on signal: 9 (SIGKILL)", "error"),
        ("info", "cpu: info:  [9] stressor terminated with unexpected signal SIGILL", "fail"),
        ("warn", "cpu: WARNING: finished prematurely after just 0.54 secs", "error"),
        ("warn", "metrics-check: all bogo-op counters are zero, data may be incorrect", "error"),
        ("warn", "cpu: cannot set the scheduler", "pass"),
        ("info", "note: a setting may reduce performance", "pass"),
        ("debug", "cpu: error words in debug lines are talk", "pass"),
        ("metrc", "miscellaneous metrics:", "pass"),
        ("info", "skipped: 1: cpu (1)", "error"),
        ("info", "metrics untrustworthy: 1", "error"),
        ("info", "failed: 2: cpu (2)", "fail"),
        ("info", "passed: 1: cpu (1)", "error"),
        ("info", "passed: 2: cpu (2)", "pass"),
    ],
)
def test_one_more_line(level: str, text: str, outcome: str) -> None:
    output = stress_ng.parse(CPU + line(level, text))
    assert output.outcome == outcome, why_of(output)
    assert (output.readings != ()) == (outcome == "pass")


@each(
    "old, new, outcome, reason",
    [
        ("10611 ", "    0 ", "error", "0 bogo ops"),
        ("successful run", "unsuccessful run", "error", "does not say why"),
        ("2 cpu", "2 cpu, 1 vm", "error", "vm was started and has no metrics"),
        ("dispatching hogs: 2 cpu", "dispatching hogs:", "error", "no stressor was started"),
        ("a 3 second", "a 20 second", "error", "stopped after 3 of 20 s"),
        ("a 3 second", "an infinite", "pass", "completed"),
        (
            "cpu               10611      3.00",
            "cpu               10611      1.50",
            "error",
            "ran for 1.5 of 3 s",
        ),
    ],
)
def test_one_change(old: str, new: str, outcome: str, reason: str) -> None:
    assert old in CPU
    output = stress_ng.parse(CPU.replace(old, new))
    assert (output.outcome, reason in why_of(output)) == (outcome, True), why_of(output)


def test_a_stressor_that_failed_without_a_count() -> None:
    output = stress_ng.parse(
        CPU
        + line(
            "error",
            "process 7 (stress-ng-cpu) terminated with an error, exit status=2 (stressor failed)",
        )
    )
    assert output.outcome == "fail"
    assert "at least one" in why_of(output)


TIMES = HEALTHY[2]
INFO_TABLE = HEALTHY[4]


def test_a_line_of_unknown_form_is_not_passed_over() -> None:
    with pytest.raises(UnreadableOutput, match="a line of unknown form"):
        stress_ng.parse(CPU + "stress-ng: info:  the number of the process is gone\n")


def test_the_times_are_an_end_too() -> None:
    lost = "".join(each for each in TIMES.splitlines(keepends=True) if "successful run" not in each)
    assert stress_ng.parse(lost) == stress_ng.parse(TIMES)
    both = TIMES.replace("for a 2.01s run time", "for a 9.99s run time")
    assert stress_ng.parse(both) == stress_ng.parse(TIMES)


def test_versions_without_metrics_of_their_own_may_not_say_the_time() -> None:
    silent = "".join(
        each for each in INFO_TABLE.splitlines(keepends=True) if "setting to" not in each
    )
    assert stress_ng.parse(silent).outcome == "pass"


def test_what_is_set_off_below_the_table_ends_it() -> None:
    row = next(each for each in CPU.splitlines(keepends=True) if "10611" in each)
    other = line("metrc", "   100.00 of something else")
    assert stress_ng.parse(CPU.replace(row, row + other)) == stress_ng.parse(CPU)
    with pytest.raises(UnreadableOutput, match="stands outside it"):
        stress_ng.parse(CPU.replace(row, row + other + row.replace("cpu ", "vm ")))


def test_a_run_that_ends_a_twentieth_early_is_whole() -> None:
    text = (
        CPU.replace("a 3 second", "a 20 second")
        .replace("in 3.00s", "in 19.00s")
        .replace("     3.00 ", "    19.00 ")
    )
    assert stress_ng.parse(text).outcome == "pass"


@each(
    "texts, reason",
    [
        ([("fail", "cpu: one")], "stress-ng found a fault: 'cpu: one'"),
        (
            [("fail", "cpu: one"), ("fail", "cpu: two")],
            "stress-ng found a fault: 'cpu: one' (and 1 more like it)",
        ),
        ([("info", "failed: 2: cpu (2)")], "stress-ng counts 2 of its workers as failed: cpu (2)"),
        ([("info", "failed: 2")], "stress-ng counts 2 of its workers as failed"),
    ],
)
def test_how_a_fault_is_told(texts: list[tuple[str, str]], reason: str) -> None:
    output = stress_ng.parse(CPU + "".join(line(*each) for each in texts))
    assert (output.outcome, why_of(output)) == ("fail", reason)


def test_a_reason_names_the_skipped_stressor() -> None:
    text = line("info", "mincore: this stressor is not implemented on this system") + line(
        "info", "successful run completed in 1.00s"
    )
    text = line("info", "skipped: 0") + text
    assert why_of(stress_ng.parse(text)) == (
        "no metrics: run it with --metrics-brief ('mincore: this stressor is not implemented "
        "on this system')"
    )


@each(
    "text",
    [
        "",
        "hello\n",
        "bash: stress-ng: command not found\n",
        CPU + line("info", "successful run completed in a while"),
        CPU + line("info", "unsuccessful run completed in 3.00s"),
        CPU + line("info", "dispatching hogs: 2 cpu"),
        CPU + line("info", "dispatching hogs: many"),
        CPU + line("metrc", "cpu  1 2.00 3.00 4.00 5.00 6.00"),
        CPU.replace("10611      3.00", "10611       nan"),
        CPU.replace("10611 ", "9" * 400 + " "),
        FOOTER + FOOTER,
        FOOTER + line("info", "failed: 0"),
        "\n".join(each for each in CPU.splitlines() if "bogo ops real time" not in each),
        CPU.replace(
            "cpu               10611",
            "cpu  1 1.0 1.0 1.0 1.0 1.0\nstress-ng: metrc: [4543] cpu               10611",
        ),
    ],
)
def test_unreadable(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        stress_ng.parse(text)


def test_a_doubled_row_is_unreadable() -> None:
    row = next(each for each in CPU.splitlines(keepends=True) if "10611" in each)
    with pytest.raises(UnreadableOutput, match="two rows"):
        stress_ng.parse(CPU.replace(row, row + row))


@given(st.permutations(FOOTER.splitlines()))
def test_reordering_never_changes_a_number_of_a_pass(order: list[str]) -> None:
    try:
        output = stress_ng.parse("\n".join(order))
    except UnreadableOutput:
        return
    assert output.outcome == "error" or output.reading("stress_ng_bogo_ops") == {
        parts.CPU: 5120384.0
    }


@pytest.mark.tools
def test_the_real_one(tmp_path: Path) -> None:
    binary = command.find("stress-ng", "stress-ng")
    arguments = stress_ng.argv(binary, seconds=1, workers=1, temp_path=str(tmp_path))
    completed = command.run(arguments, deadline=Deadline.after(30.0))
    output = stress_ng.parse(completed.stdout + completed.stderr)
    assert output.outcome == "pass", why_of(output)
    assert output.reading("stress_ng_bogo_ops")[parts.CPU] > 0


@each("text", HEALTHY[:4])
@each("lost", ["dispatching hogs", "setting to a"])
def test_a_text_that_does_not_say_what_was_to_run_and_how_long_is_cut(text: str, lost: str) -> None:
    output = stress_ng.parse(
        "".join(line for line in text.splitlines(keepends=True) if lost not in line)
    )
    assert (output.outcome, f"the line '{lost}" in why_of(output)) == ("error", True), why_of(
        output
    )


def test_two_times_that_were_asked_for_are_two_runs() -> None:
    with pytest.raises(UnreadableOutput, match="two times"):
        stress_ng.parse(CPU + line("info", "setting to a 1 second run per stressor"))
