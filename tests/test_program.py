from __future__ import annotations

import secrets
from pathlib import Path

import journals
import msgspec
import pytest
from runs import until

from acceptance import command, program, strays
from acceptance.deadline import Deadline
from acceptance.judge.record import Body, Note, ToolRan
from acceptance.program import Programs


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "GRACE_S", 0.3)


class Bench:
    def __init__(self, logs: Path, *, name: str = "cpu.gemm[f64]", seconds: float = 100.0) -> None:
        self.logs = logs
        self.logs.mkdir(exist_ok=True)
        self.written: list[Body] = []
        self.programs = Programs(journals.check(name, seconds=seconds), logs, self.written.append)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "logs")


def test_a_program_is_run_logged_and_journalled(bench: Bench) -> None:
    done = bench.programs.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert bench.programs.run(["true"]).returncode == 0
    assert bench.written == [
        ToolRan("cpu.gemm[f64]", done.argv, 3, done.seconds, "logs/cpu.gemm-f64--1.log"),
        ToolRan("cpu.gemm[f64]", ("true",), 0, bench.written[1].seconds, "logs/cpu.gemm-f64--2.log"),  # type: ignore[union-attr]
    ]
    assert (bench.logs / "cpu.gemm-f64--1.log").read_text() == "out\n"
    assert (bench.logs / "cpu.gemm-f64--1.log.err").read_text() == "err\n"


def test_a_program_gets_what_is_set_for_it_beside_the_rest(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    monkeypatch.setenv("OF_THE_USER", "kept")
    show = ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES $OF_THE_USER"]
    assert bench.programs.run(show, env={"CUDA_VISIBLE_DEVICES": "GPU-1"}).stdout == "GPU-1 kept\n"
    both = bench.programs.run_together(
        [show, show], envs=[{"CUDA_VISIBLE_DEVICES": ""}, {"CUDA_VISIBLE_DEVICES": "GPU-2"}]
    )
    assert [done.stdout for done in both] == ["kept\n", "GPU-2 kept\n"]
    assert bench.programs.run(show).stdout == "7 kept\n"


def test_several_run_side_by_side(bench: Bench, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    meet = "touch {}; while ! test -e {}; do sleep 0.01; done; echo {}"
    argvs = [
        ["sh", "-c", meet.format(first, second, "one")],
        ["sh", "-c", meet.format(second, first, "two")],
    ]
    assert [done.stdout for done in bench.programs.run_together(argvs)] == ["one\n", "two\n"]
    assert [body.log for body in bench.written if isinstance(body, ToolRan)] == [
        "logs/cpu.gemm-f64--1.log",
        "logs/cpu.gemm-f64--2.log",
    ]


def test_one_that_cannot_be_started_stops_the_others(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = secrets.token_hex(8)
    monkeypatch.setenv("RIGPROOF_RUN", run_id)
    with pytest.raises(command.CommandError, match="could not be started"):
        bench.programs.run_together([["sleep", "600"], ["a\0b"]])
    until(lambda: not strays.find(run_id), "the other is gone")


def test_all_programs_of_a_check_share_its_time(tmp_path: Path) -> None:
    planned = journals.check(seconds=100.0)
    assert program.allowed_s(planned) == 155.0
    assert program.allowed_s(msgspec.structs.replace(planned, slack_s=120.0)) == 275.0
    # Less than nothing is expected, so that what a slow machine is allowed runs out within a second.
    bench = Bench(tmp_path / "logs", seconds=(0.7 - 30.0) / 1.25)
    assert bench.programs.deadline is bench.programs.deadline
    assert bench.programs.run(["sleep", "600"]).timed_out
    assert [body.returncode != 0 for body in bench.written if isinstance(body, ToolRan)] == [True]
    with pytest.raises(command.CommandError, match="its time was over before it began"):
        bench.programs.run(["true"])


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
    assert note.text.startswith(
        f"cpu.gemm[f64]: a log was not kept whole: {bench.logs}/cpu.gemm-f64--1.log: No such file"
    )


def test_a_program_that_is_not_installed_skips_the_check(bench: Bench) -> None:
    with pytest.raises(
        pytest.skip.Exception, match="no-such-tool is not installed: install it with `sudo apt install tools`"
    ):
        bench.programs.find("no-such-tool", "tools")
    assert Path(bench.programs.find("sh")).name == "sh"
