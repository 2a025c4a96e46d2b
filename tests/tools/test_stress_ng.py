from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from reasons import require, why_of

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
    require(output, outcome)
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
    require(stress_ng.parse(CPU.replace(old, new)), outcome, reason)


def without(text: str, lost: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if lost not in line)


TIMES, INFO_TABLE = HEALTHY[2], HEALTHY[4]
ROW = next(each for each in CPU.splitlines(keepends=True) if "10611" in each)
OTHER = line("metrc", "   100.00 of something else")
ENDED = "process 7 (stress-ng-cpu) terminated with an error, exit status=2 (stressor failed)"


@each(
    "text, outcome, reason",
    [
        (CPU + line("error", ENDED), "fail", "at least one"),
        (without(INFO_TABLE, "setting to"), "pass", ""),
        *(  # ended a twentieth early
            (
                CPU.replace("a 3 second", "a 20 second")
                .replace("in 3.00s", f"in {seconds}s")
                .replace("     3.00 ", f"    {seconds} "),
                outcome,
                "",
            )
            for seconds, outcome in (("19.00", "pass"), ("18.99", "error"))
        ),
        *(
            (without(text, lost), "error", f"the line '{lost}")
            for text in HEALTHY[:4]
            for lost in ("dispatching hogs", "setting to a")
        ),
        (
            line("info", "skipped: 0")
            + line("info", "mincore: this stressor is not implemented on this system")
            + line("info", "successful run completed in 1.00s"),
            "error",
            "no metrics: run it with --metrics-brief ('mincore: this stressor is not implemented "
            "on this system')",
        ),
    ],
)
def test_what_a_text_is_worth(text: str, outcome: str, reason: str) -> None:
    require(stress_ng.parse(text), outcome, reason)


@each(
    "text, same",
    [
        (without(TIMES, "successful run"), TIMES),  # the times are an end too
        (TIMES.replace("for a 2.01s run time", "for a 9.99s run time"), TIMES),
        (CPU.replace(ROW, ROW + OTHER), CPU),  # what is set off below the table ends it
    ],
)
def test_what_changes_nothing(text: str, same: str) -> None:
    assert stress_ng.parse(text) == stress_ng.parse(same)


@each(
    "text, why",
    [
        (CPU + "stress-ng: info:  the number of the process is gone\n", "a line of unknown form"),
        (CPU.replace(ROW, ROW + OTHER + ROW.replace("cpu ", "vm ")), "stands outside it"),
        (CPU.replace(ROW, ROW + ROW), "two rows"),
        (CPU + line("info", "setting to a 1 second run per stressor"), "two times"),
    ],
)
def test_why_a_text_is_unreadable(text: str, why: str) -> None:
    with pytest.raises(UnreadableOutput, match=why):
        stress_ng.parse(text)


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


@pytest.mark.tools
def test_the_real_one(tmp_path: Path) -> None:
    binary = command.find("stress-ng", "stress-ng")
    arguments = stress_ng.argv(binary, seconds=1, workers=1, temp_path=str(tmp_path))
    completed = command.run(arguments, deadline=Deadline.after(30.0))
    output = stress_ng.parse(completed.stdout + completed.stderr)
    require(output, "pass")
    assert output.reading("stress_ng_bogo_ops")[parts.CPU] > 0
