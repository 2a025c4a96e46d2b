"""Parts of a stage on one clock: when each begins and ends, and what becomes of the others when
one dies, hangs or is late.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import journals
import pytest
from runs import until

from acceptance.core.evidence import PartBegan, ToolRan
from acceptance.core.record import Body
from acceptance.process import command, orphans
from acceptance.process.command import CommandError
from acceptance.process.deadline import Deadline
from acceptance.session.loads import Part, pulses
from acceptance.session.programs import Programs


class Bench:
    def __init__(self, logs: Path, seconds: float = 100.0) -> None:
        self.written: list[Body] = []
        logs.mkdir()
        self.programs = Programs(
            journals.check("together.burn", seconds=seconds), logs, self.written.append
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "logs")


@pytest.fixture(autouse=True)
def run_id(monkeypatch: pytest.MonkeyPatch) -> str:
    """The id by which what a stage leaves behind would be found."""
    monkeypatch.setattr(command, "GRACE_S", 0.3)
    marked = secrets.token_hex(8)
    monkeypatch.setenv("RIGPROOF_RUN", marked)
    return marked


def shell(
    script: str, component: str = "cpu", begin_s: float = 0.0, seconds: float | None = None
) -> Part:
    return Part(component, ("sh", "-c", script), begin_s=begin_s, seconds=seconds)


# --- the description ---


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf])
def test_a_time_that_is_none_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="no time on the clock of a stage"):
        shell("true", begin_s=wrong)
    with pytest.raises(ValueError, match="no time on the clock of a stage"):
        shell("true", seconds=wrong)


def test_pulses_follow_each_other_with_a_pause() -> None:
    three = pulses(shell("true", begin_s=1.0, seconds=4.0), pause_s=2.0, count=3)
    assert [(one.begin_s, one.end_s) for one in three] == [(1.0, 5.0), (7.0, 11.0), (13.0, 17.0)]
    assert {one.argv for one in three} == {("sh", "-c", "true")}
    assert shell("true").end_s == math.inf
    with pytest.raises(ValueError, match="has a time to end"):
        pulses(shell("true"), pause_s=1.0, count=2)


# --- the clock ---


def test_pulses_beside_a_load_keep_the_clock(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load all the while, and a program that works and pauses three times beside it."""
    starts: list[tuple[float, float]] = []
    start = command.start

    def timed(argv: Sequence[str], *, deadline: Deadline, **more: Any) -> command.RunningProgram:
        starts.append((time.monotonic(), deadline.at))
        return start(argv, deadline=deadline, **more)

    monkeypatch.setattr(command, "start", timed)
    pulse = shell("exec sleep 600", "gpu0", begin_s=0.3, seconds=0.3)
    zero = time.monotonic()
    load, *worked = bench.programs.run_stage(
        [shell("exec sleep 1.8"), *pulses(pulse, pause_s=0.2, count=3)]
    )
    assert (load.timed_out, load.seconds >= 1.8) == (False, True)
    assert [one.timed_out for one in worked] == [True] * 3
    begins, ends = zip(*starts[1:], strict=True)
    assert all(begin - zero >= due for begin, due in zip(begins, (0.3, 0.8, 1.3), strict=True))
    # A late start of one shifts neither its own end nor the next.
    assert [end - ends[0] for end in ends] == pytest.approx([0.0, 0.5, 1.0])


def test_a_pause_of_all_parts_is_waited_out(bench: Bench) -> None:
    began = time.monotonic()
    late = bench.programs.run_stage([shell("true", begin_s=0.4)])
    assert time.monotonic() - began >= 0.4
    assert late[0].returncode == 0


def test_parts_begin_in_the_order_of_the_clock_and_come_back_in_their_own(bench: Bench) -> None:
    heard: list[tuple[int, str]] = []
    ended = bench.programs.run_stage(
        [shell("echo second", begin_s=0.3), shell("echo first", "gpu0")],
        on_line=lambda index, line: heard.append((index, line)),
    )
    assert [one.stdout for one in ended] == ["second\n", "first\n"]
    assert heard == [(1, "first"), (0, "second")]


def test_a_part_that_waits_for_another_begins_with_its_first_line(bench: Bench) -> None:
    slow = shell("sleep 0.4; echo ready; exec sleep 0.4", "gpu0")
    beside = replace(shell("date +%s.%N", "cpu"), after=0)
    heard: list[int] = []
    zero = time.time()
    done = bench.programs.run_stage([slow, beside], on_line=lambda at, _: heard.append(at))
    assert 0.4 <= float(done[1].stdout) - zero < 0.4 + done[0].seconds / 2
    assert heard == [0, 1]
    assert [str(one.component) for one in bench.written if isinstance(one, PartBegan)] == [
        "gpu0",
        "cpu",
    ]


@pytest.mark.parametrize("script", ["exit 3", "echo ready"])
def test_without_a_line_it_begins_with_the_end(bench: Bench, script: str) -> None:
    begin = replace(shell("true"), after=1)
    heard, _ = bench.programs.run_stage([begin, shell(f"sleep 0.2; {script}")])
    assert heard.returncode == 0


# --- one that waits for another ends with it ---


def whole(done: command.ProgramResult) -> bool:
    return done.returncode == 0 and "whole" in done.stdout


@pytest.mark.parametrize("script", ["exit 3", "echo stopped", "kill -9 $$"])
def test_parts_that_waited_for_one_that_did_not_run_whole_end_with_it(
    bench: Bench, script: str, run_id: str
) -> None:
    load = shell(f"echo ready; sleep 0.2; {script}", "gpu0")
    waits = replace(shell("trap 'echo found; exit 0' TERM; sleep 600 & wait", "cpu"), after=0)
    dies = replace(shell("echo wrong; exit 2", "memory"), after=0)
    began = time.monotonic()
    _, own, ended, died = bench.programs.run_stage(
        [load, shell("sleep 0.7; echo alone", "gpu1"), waits, dies],
        on_line=lambda *_: None,
        whole=whole,
    )
    assert time.monotonic() - began < 30
    assert (own.stdout, own.timed_out) == ("alone\n", False)
    assert (ended.stdout, ended.timed_out) == ("found\n", True)
    assert (died.returncode, died.timed_out) == (2, False)
    until(lambda: not orphans.find(run_id), "nothing is left")


def test_one_that_never_said_a_line_takes_those_that_wait_for_it_with_it(bench: Bench) -> None:
    waits = replace(shell("exec sleep 600", "cpu"), after=0)
    began = time.monotonic()
    _, ended = bench.programs.run_stage([shell("exit 1", "gpu0"), waits], whole=whole)
    assert time.monotonic() - began < 30
    assert ended.timed_out


def test_beside_one_that_ran_whole_they_have_their_own_time(bench: Bench) -> None:
    waits = replace(shell("sleep 0.4; echo all", "cpu"), after=0)
    _, ended = bench.programs.run_stage(
        [shell("echo whole", "gpu0"), waits], on_line=lambda *_: None, whole=whole
    )
    assert (ended.stdout, ended.timed_out) == ("all\n", False)


# --- the journal ---


def test_begin_and_end_of_each_part_are_journalled(bench: Bench, tmp_path: Path) -> None:
    """The begin at once: the machine may not survive the load."""
    seen = tmp_path / "seen"
    write = bench.written.append

    def journal(body: Body) -> None:
        write(body)
        if isinstance(body, PartBegan) and body.component == "memory":
            seen.touch()

    programs = Programs(journals.check("together.burn"), tmp_path / "logs", journal)
    programs.run_stage(
        [
            shell(f"while ! test -e {seen}; do sleep 0.01; done", "gpu0"),
            shell("true", "memory", begin_s=0.2),
        ]
    )
    first, second = "logs/together.burn-1.log", "logs/together.burn-2.log"
    assert bench.written[:2] == [
        PartBegan("together.burn", "gpu0", first),
        PartBegan("together.burn", "memory", second),
    ]
    ends = [body for body in bench.written[2:] if isinstance(body, ToolRan)]
    assert [one.log for one in ends] == [first, second]
    assert len(bench.written) == 4


def test_all_that_begin_together_are_started_before_the_journal_waits_for_the_disk(
    tmp_path: Path,
) -> None:
    """The first record returns only when the last part is there."""
    last = tmp_path / "last"

    def journal(body: Body) -> None:
        if isinstance(body, PartBegan):
            until(last.exists, "the last part runs")

    (tmp_path / "logs").mkdir()
    programs = Programs(journals.check("together.burn"), tmp_path / "logs", journal)
    ended = programs.run_stage([shell("true", "gpu0"), shell(f"touch {last}", "gpu1")])
    assert [one.returncode for one in ended] == [0, 0]


# --- what goes wrong ---


def test_a_part_that_dies_costs_the_others_nothing(bench: Bench, run_id: str) -> None:
    ended = bench.programs.run_stage(
        [
            shell("echo found; kill -9 $$", "gpu0"),
            shell("sleep 0.5; echo whole", "gpu1"),
            shell("echo later", begin_s=0.3),
        ]
    )
    assert [(one.returncode, one.stdout) for one in ended] == [
        (-9, "found\n"),
        (0, "whole\n"),
        (0, "later\n"),
    ]
    until(lambda: not orphans.find(run_id), "nothing is left")


def test_a_part_that_will_not_end_delays_no_other(
    bench: Bench, tmp_path: Path, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ignores its end, and lives while the second part begins, until it is killed."""
    monkeypatch.setattr(command, "GRACE_S", 2.0)
    alive = tmp_path / "alive"
    stubborn = f"trap '' TERM; echo $$ > {alive}; while :; do sleep 0.05; done"
    ended = bench.programs.run_stage(
        [
            shell(stubborn, "gpu0", seconds=0.5),
            shell(f"kill -0 $(cat {alive}) && echo there", begin_s=0.8),
        ]
    )
    assert [(one.timed_out, one.stdout) for one in ended] == [(True, ""), (False, "there\n")]
    until(lambda: not orphans.find(run_id), "nothing is left")


def test_the_time_of_the_check_ends_all_parts(tmp_path: Path, run_id: str) -> None:
    bench = Bench(tmp_path / "logs", seconds=(0.7 - 30.0) / 1.25)
    ended = bench.programs.run_stage(
        [shell("exec sleep 600", "gpu0"), shell("exec sleep 600", seconds=500.0)]
    )
    assert [one.timed_out for one in ended] == [True, True]
    until(lambda: not orphans.find(run_id), "nothing is left")


def test_a_part_that_would_begin_after_the_time_of_the_check_ends_the_stage(
    tmp_path: Path, run_id: str
) -> None:
    bench = Bench(tmp_path / "logs", seconds=(0.7 - 30.0) / 1.25)
    with pytest.raises(CommandError, match="its time was over before it began"):
        bench.programs.run_stage([shell("exec sleep 600", "gpu0"), shell("true", begin_s=300.0)])
    until(lambda: not orphans.find(run_id), "nothing is left")
