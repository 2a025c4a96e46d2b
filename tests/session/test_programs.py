from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

import journals
import pytest
from raising import raising
from runs import until
from thoroughness import ALL

from acceptance.core.evidence import ToolRan
from acceptance.core.message import Message
from acceptance.core.record import Body, Note, Stopped
from acceptance.process import command, orphans
from acceptance.process.deadline import Deadline
from acceptance.session import programs
from acceptance.session.loads import Part
from acceptance.session.programs import Programs
from acceptance.wording import words


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "GRACE_S", 0.3)


class Bench:
    def __init__(self, logs: Path, *, name: str = "cpu.gemm[f64]", seconds: float = 100.0) -> None:
        self.logs = logs
        self.logs.mkdir(exist_ok=True)
        self.written: list[Body] = []
        self.programs = Programs(journals.check(name, seconds=seconds), logs, self.written.append)


def shells(*scripts: str) -> list[Part]:
    """A part for each script; none of them names what it loads."""
    return [Part(None, ("sh", "-c", script)) for script in scripts]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "logs")


def test_a_program_is_run_logged_and_journalled(bench: Bench) -> None:
    done = bench.programs.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert bench.programs.run(["true"]).returncode == 0
    assert bench.written == [
        ToolRan("cpu.gemm[f64]", done.argv, 3, done.seconds, "logs/cpu.gemm-f64--1.log"),
        ToolRan(
            "cpu.gemm[f64]", ("true",), 0, bench.written[1].seconds, "logs/cpu.gemm-f64--2.log"
        ),  # type: ignore[union-attr]
    ]
    assert (bench.logs / "cpu.gemm-f64--1.log").read_text() == "out\n"
    assert (bench.logs / "cpu.gemm-f64--1.log.err").read_text() == "err\n"


def test_a_program_gets_what_is_set_for_it_beside_the_rest(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    monkeypatch.setenv("OF_THE_USER", "kept")
    show = ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES $OF_THE_USER"]
    assert bench.programs.run(show, env={"CUDA_VISIBLE_DEVICES": "GPU-1"}).stdout == "GPU-1 kept\n"
    both = bench.programs.run_stage(
        [
            Part(None, tuple(show), {"CUDA_VISIBLE_DEVICES": ""}),
            Part(None, tuple(show), {"CUDA_VISIBLE_DEVICES": "GPU-2"}),
        ]
    )
    assert [done.stdout for done in both] == ["kept\n", "GPU-2 kept\n"]
    assert bench.programs.run(show).stdout == "7 kept\n"


def test_one_that_cannot_be_started_stops_the_others(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = secrets.token_hex(8)
    monkeypatch.setenv("RIGPROOF_RUN", run_id)
    with pytest.raises(command.CommandError, match="could not be started"):
        bench.programs.run_stage([*shells("sleep 600"), Part(None, ("a\0b",))])
    until(lambda: not orphans.find(run_id), "the other is gone")


def test_all_programs_of_a_check_share_its_time(tmp_path: Path) -> None:
    # Less than nothing is expected, so that what a slow machine is allowed runs out within a
    # second.
    bench = Bench(tmp_path / "logs", seconds=(0.7 - 30.0) / 1.25)
    assert bench.programs.deadline is bench.programs.deadline
    assert bench.programs.run(["sleep", "600"]).timed_out
    assert [body.returncode != 0 for body in bench.written if isinstance(body, ToolRan)] == [True]
    with pytest.raises(command.CommandError, match="its time was over before it began"):
        bench.programs.run(["true"])


def test_a_program_whose_time_is_over_is_told_to_end_on_the_record(bench: Bench) -> None:
    bench.programs.run(["sleep", "60"], deadline=Deadline.after(0.3))
    assert [type(one) for one in bench.written] == [Stopped, ToolRan]
    assert bench.written[0] == Stopped("cpu.gemm[f64]")


@pytest.mark.parametrize(
    ("script", "recorded"),
    [
        *((f"kill -{name} $$", True) for name in ("KILL", "TERM", "INT", "HUP")),
        ("kill -SEGV $$", False),
        ("false", False),
    ],
)
def test_a_signal_of_somebody_else_is_recorded(bench: Bench, script: str, recorded: bool) -> None:
    bench.programs.run(["sh", "-c", script])
    stops = [one for one in bench.written if isinstance(one, Stopped)]
    assert stops == [Stopped("cpu.gemm[f64]", ended=True)] * recorded


def test_a_sooner_deadline_goes_first_and_a_later_one_does_not(bench: Bench) -> None:
    assert bench.programs.run(["sleep", "600"], deadline=Deadline.after(0.2)).timed_out
    assert bench.programs.run(["true"], deadline=Deadline.after(1e9)).returncode == 0
    (running,) = [body for body in bench.written if isinstance(body, ToolRan) and body.returncode]
    assert running.seconds < bench.programs.deadline.remaining()


def test_a_log_that_was_not_kept_is_told(bench: Bench) -> None:
    bench.logs.rmdir()
    assert bench.programs.run(["echo", "x"]).stdout == "x\n"
    note = bench.written[1]
    assert isinstance(note, Note)
    assert not note.trouble
    assert f"{bench.logs}/cpu.gemm-f64--1.log: No such file" in words.text(note.text)


def test_a_program_that_is_not_installed_skips_the_check(bench: Bench) -> None:
    with pytest.raises(pytest.skip.Exception, match="sudo apt install tools"):
        bench.programs.find("no-such-tool", "tools")
    assert Path(bench.programs.find("sh")).name == "sh"


# --- what programs say while they run ---


class Ear:
    """Remembers what it is told, with the moment; `then` is done at each line."""

    def __init__(self, then: Callable[[str], None] = lambda _line: None) -> None:
        self.lines: list[tuple[int, str]] = []
        self._then = then

    def __call__(self, index: int, line: str) -> None:
        assert threading.current_thread() is threading.main_thread()
        self.lines.append((index, line))
        self._then(line)


def test_lines_are_heard_while_the_program_runs(bench: Bench, tmp_path: Path) -> None:
    """The program goes on only when its line was heard, so a line that comes
    late would hang the test.
    """
    answer = tmp_path / "answer"
    ear = Ear(lambda line: answer.touch() if line == "ask" else None)
    script = f"echo ask; while ! test -e {answer}; do sleep 0.01; done; printf 'bye'"
    (done,) = bench.programs.run_stage(shells(script), on_line=ear)
    assert (done.returncode, done.stdout) == (0, "ask\nbye")
    assert ear.lines == [(0, "ask"), (0, "bye")]


def test_several_programs_are_heard_each_by_its_place(bench: Bench, tmp_path: Path) -> None:
    """The second ends only after the first has been heard, and the first after the second."""
    first, second = tmp_path / "first", tmp_path / "second"
    ear = Ear(lambda line: (tmp_path / line).touch() if line in ("first", "second") else None)
    wait = "echo {}; while ! test -e {}; do sleep 0.01; done; echo over; echo not heard >&2"
    both = shells(wait.format("first", second), wait.format("second", first))
    done = bench.programs.run_stage(both, on_line=ear)
    assert [one.stderr for one in done] == ["not heard\n"] * 2
    assert sorted(ear.lines) == [(0, "first"), (0, "over"), (1, "over"), (1, "second")]
    assert [type(body) for body in bench.written] == [ToolRan, ToolRan]


def test_a_flood_is_heard_as_far_as_it_can_be(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It neither blocks the program nor fills the memory; what was missed is counted, and the
    last lines are heard.
    """
    monkeypatch.setattr(programs, "WAITING", 4)
    ear = Ear(lambda _line: time.sleep(0.001))
    lines = 200_000 if ALL else 20_000
    (done,) = bench.programs.run_stage(shells(f"seq 1 {lines}; sleep 0.5; echo last"), on_line=ear)
    assert len(done.stdout.splitlines()) == lines + 1
    assert ear.lines[0] == (0, "1")
    assert (0, "last") in ear.lines
    (note,) = [body for body in bench.written if isinstance(body, Note)]
    assert isinstance(note.text, Message)
    missed = note.text.values["n"]
    assert isinstance(missed, int)
    assert missed + len(ear.lines) == lines + 1
    assert not note.trouble


def test_what_is_over_its_time_was_heard(bench: Bench) -> None:
    ear = Ear()
    ended = bench.programs.run_stage(
        [Part(None, ("sh", "-c", "echo early; exec sleep 600"), seconds=0.4), *shells("true")],
        on_line=ear,
    )
    assert [one.timed_out for one in ended] == [True, False]
    assert ear.lines == [(0, "early")]


def test_listening_costs_no_time_of_the_processor(bench: Bench) -> None:
    began = time.process_time()
    bench.programs.run_stage(shells("exec sleep 0.5"), on_line=Ear())
    assert time.process_time() - began < 0.15


def test_a_listener_that_fails_leaves_nothing_running(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = secrets.token_hex(8)
    monkeypatch.setenv("RIGPROOF_RUN", run_id)

    with pytest.raises(KeyError):
        bench.programs.run_stage(
            shells("echo x; exec sleep 600", "exec sleep 600"),
            on_line=raising(KeyError("of its own")),
        )
    until(lambda: not orphans.find(run_id), "they are gone")


def test_a_program_that_says_nothing_or_cannot_be_executed(bench: Bench) -> None:
    ear = Ear()
    done = bench.programs.run_stage(
        [*shells("true"), Part(None, ("no-such-program",))], on_line=ear
    )
    assert ([one.returncode for one in done], ear.lines) == ([0, 127], [])


@pytest.mark.parametrize("on_line", [None, lambda _index, _line: None])
def test_each_of_several_tells_its_own_time(
    bench: Bench, on_line: Callable[[int, str], None] | None
) -> None:
    """One that ended long before the others were waited for must not look as if
    it had worked as long as they.
    """
    short, long = bench.programs.run_stage(shells("true", "exec sleep 0.5"), on_line=on_line)
    assert short.seconds < 0.45 <= 0.5 <= long.seconds
