"""The supervisor with sessions that are not pytest: whatever a session does, the run gets a
verdict, and never an unearned one.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import journals
import msgspec
import pytest
from worded import worded

from acceptance.core.evidence import Sample, Scratch
from acceptance.core.message import UserError
from acceptance.core.past import Bounds, Level, Past
from acceptance.core.plan import Plan
from acceptance.core.record import (
    CheckStarted,
    Entry,
    Event,
    Note,
    Postponed,
    RunEnded,
    SessionEnded,
    Stopped,
)
from acceptance.journal import reader
from acceptance.machine.inventory import Inventory
from acceptance.machine.machine_file import DeclaredScratch
from acceptance.observe import filesystem
from acceptance.observe.inventory import observe
from acceptance.process import command, reaper
from acceptance.process.command import CommandError, ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.run import scratch, signals, supervisor
from acceptance.run.live_feed import View
from acceptance.run.planning import PreparedRun
from acceptance.run.signals import UserInterrupt, interruptible, stoppable
from acceptance.run.supervisor import Supervisor, outcome_of
from acceptance.session import context as session_context
from acceptance.station.options import Options
from acceptance.watch import host


@pytest.fixture(scope="module")
def inventory() -> Inventory:
    return observe()


class Fake:
    """A station whose session is a Python program, which is given the path of its context."""

    name = "fake"

    def __init__(self, program: str) -> None:
        self.program = program
        self.provenance: dict[str, str] = {"engine": "a fake one"}
        self.notes: tuple[Note, ...] = ()

    def inside(self, run_dir: Path) -> Path:
        return run_dir

    def start(
        self, context: Path, run_id: str, deadline: Deadline, log: Path
    ) -> command.RunningProgram | Forked:
        return Forked(self.program, context, deadline)


class Real(Fake):
    """The same as a program of its own."""

    def start(
        self, context: Path, run_id: str, deadline: Deadline, log: Path
    ) -> command.RunningProgram | Forked:
        argv = [sys.executable, "-c", self.program, str(context)]
        return command.start(
            argv, deadline=deadline, log=log, env={"RIGPROOF_RUN": run_id}, cwd=context.parent
        )


class Forked:
    """A session that is a fork of the tests' own process, which has imported everything already."""

    container_id = None

    def __init__(self, program: str, context: Path, deadline: Deadline) -> None:
        self.deadline = deadline
        self._began, self._status = time.monotonic(), None
        self._log = context.with_name("forked.err")
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # Python 3.12 warns of threads: the child starts none of ours
            self._pid = os.fork()
        if self._pid == 0:
            become(program, context, self._log)

    def poll(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is not None

    def stop(self) -> None:
        if not self.poll():
            os.kill(self._pid, signal.SIGTERM)

    def wait(self) -> ProgramResult:
        while not self.poll():
            time.sleep(0.005)
        assert self._status is not None
        code = os.waitstatus_to_exitcode(self._status)
        return ProgramResult(
            ("fork",), code, "", self._log.read_text(), time.monotonic() - self._began
        )


def become(program: str, context: Path, log: Path) -> NoReturn:
    """Be a session's program, in a process that was just forked."""
    code = 1
    try:
        gc.freeze()  # what the tests hold is looked through by nobody here
        reaper.prctl(reaper.PR_SET_PDEATHSIG, signal.SIGKILL)
        reaper.defaults()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT, 0o600), 2)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        sys.stdout, sys.stderr = open(1, "w"), open(2, "w")  # noqa: SIM115
        sys.argv = ["-c", str(context)]
        os.chdir(context.parent)
        exec(program, {"__name__": "__main__"})
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            os.write(2, end.code.encode())
    except BaseException:  # noqa: BLE001 - nothing of a session may come back into the tests
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


# What an honest session would do, in a few lines: journal its share, every value as the limit wants
# it.
HONEST = """
import sys, pathlib
import msgspec
from acceptance.journal import segment
from acceptance.session import context as session
from acceptance.core.record import CheckEnded, CheckStarted, Measured, SessionStarted
context = session.read(pathlib.Path(sys.argv[1]))
share = context.share()
with segment.Writer(pathlib.Path(context.run_dir) / f"journal-{context.session}.jsonl") as writer:
    writer.write(SessionStarted(context.session, context.plan.digest, tuple(check.id for check in share)))
    for check in share:
        writer.write(CheckStarted(check.id))
        BEFORE
        for due in check.due:
            writer.write(Measured(check.id, due.measurement, due.component, due.unit, 200.0))
        writer.write(CheckEnded(check.id, "pass", "", 0.1))
        AFTER
"""  # noqa: E501


# On the nights before it was 150: at the first look it is less, at the second as it was.
STRAYED = HONEST.replace("200.0", "200.0 if context.session == 'load-again' else 140.0")
PAST = Past(
    decides=True,
    off_fails=3,
    off_of=14,
    level=Level(150.0, 10, 1.0, 5.0, Bounds(low=145.0)),
)


def honest(before: str = "pass", after: str = "pass") -> str:
    return HONEST.replace("BEFORE", before).replace("AFTER", after)


class Runs:
    """Runs the supervisor over a plan with one fake station, and keeps what it was shown."""

    def __init__(self, folder: Path, inventory: Inventory) -> None:
        self.folder = folder
        self.inventory = inventory
        self.options = Options()
        self.seen: list[Entry] = []
        self.scratches: tuple[Scratch, ...] = ()

    def run(
        self,
        program: str | Fake,
        plan: Plan | None = None,
        view: View | None = None,
        give_way: Callable[[tuple[str, ...]], Postponed] | None = None,
    ) -> dict[str, object]:
        prepared = PreparedRun(
            self.options,
            None,
            self.inventory,
            plan or journals.plan(),
            "a summary",
            scratches=self.scratches,
        )
        self.dir = supervisor.new_run_dir(self.folder)
        station = Fake(program) if isinstance(program, str) else program
        Supervisor(prepared, station, self.dir, view or self.seen.append, give_way=give_way).run()
        found: dict[str, object] = json.loads((self.dir / "verdict.json").read_bytes())
        return found

    def bodies(self, kind: type) -> list[object]:
        return [
            entry.body for entry in reader.read(self.dir).entries if isinstance(entry.body, kind)
        ]


@pytest.fixture
def runs(tmp_path: Path, inventory: Inventory) -> Runs:
    return Runs(tmp_path, inventory)


def test_folders_for_the_storage_tests_are_there_while_it_runs(runs: Runs, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    runs.scratches = scratch.find(
        [DeclaredScratch(str(data), allow=(filesystem.read(data).kind,))], "nightly", data
    )
    seen = """
from acceptance.machine import scratch_place
for place in context.scratches:
    (pathlib.Path(scratch_place.run_folder(place.path, context.run_id)) / "file").touch()
(pathlib.Path(context.run_dir) / f"seen{len(context.scratches)}").touch()
""".strip()
    seen = seen.replace("\n", "\n        ")
    assert runs.run(honest(seen))["verdict"] == "PASS"
    assert (runs.dir / "seen1").is_file()
    assert list(data.iterdir()) == []
    runs.scratches = (msgspec.structs.replace(runs.scratches[0], mount="/elsewhere"),)
    assert runs.run(honest())["verdict"] == "UNJUDGED"
    (note,) = [one for one in runs.bodies(Note) if "could be made" in worded(one).text]
    assert "was on /elsewhere when the run was planned" in worded(note).text


# What the watch over the GPUs would write, had this machine one.
SOMEBODY = """
from acceptance.core.record import ForeignProcess
with segment.Writer(pathlib.Path(context.run_dir) / "journal-gpu.jsonl") as watch:
        watch.write(ForeignProcess("gpu0", 1e9, 42, "train", None))
import time; time.sleep(SECONDS)
""".strip().replace("\n", "\n        ")


@pytest.mark.parametrize("seconds", ["30.0", "0.0"])
def test_a_night_gives_way_to_whom_the_watch_sees(
    runs: Runs, seconds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "USERS_PERIOD_S", 0.1)
    verdict = runs.run(
        honest(SOMEBODY.replace("SECONDS", seconds)), give_way=lambda users: Postponed(users, 1, 7)
    )
    assert (verdict["verdict"], len(runs.bodies(Postponed))) == ("UNJUDGED", 1)
    assert "the machine is in use, so the night was given up after " in texts(verdict)
    assert "gpu0: train (process 42), from second " in texts(verdict)
    assert worded(runs.bodies(RunEnded)) == [RunEnded(False, "the machine is in use")]


def test_an_acceptance_gives_way_to_nobody(runs: Runs) -> None:
    runs.run(honest(SOMEBODY.replace("SECONDS", "0.0")))
    assert worded(runs.bodies(RunEnded)) == [RunEnded(True, "every session of the plan was run")]
    assert runs.bodies(Postponed) == []


def rows(verdict: dict[str, object], name: str) -> list[dict[str, str]]:
    found = verdict[name]
    assert isinstance(found, list)
    return found


def texts(verdict: dict[str, object]) -> str:
    rows = verdict["unjudged"]
    assert isinstance(rows, list)
    return "\n".join(f"{row['check']}: {row['text']}" for row in rows)


def test_an_honest_session_passes(runs: Runs) -> None:
    assert runs.run(Real(honest()))["verdict"] == "PASS"
    records = [
        type(entry.body).__name__
        for entry in runs.seen
        if not isinstance(entry.body, Sample | Event)
    ]
    assert records == [
        "SessionStarted",
        "CheckStarted",
        "Measured",
        "CheckEnded",
    ]
    assert worded(runs.bodies(RunEnded)) == [RunEnded(True, "every session of the plan was run")]


def test_what_the_watch_sees_is_shown_too(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "PERIOD_S", 0.05)
    assert runs.run(honest(before="import time; time.sleep(0.3)"))["verdict"] == "PASS"
    samples = [entry.body for entry in runs.seen if isinstance(entry.body, Sample)]
    assert [one.component for one in samples] == [None] * len(samples)
    assert any("load_1m" in one.values for one in samples)


def test_a_view_that_fails_does_not_end_the_run(runs: Runs) -> None:
    shown: list[Entry] = []

    def view(entry: Entry) -> None:
        shown.append(entry)
        raise UnicodeEncodeError("ascii", "\u2026", 0, 1, "nobody can read it")

    verdict = runs.run(honest(), view=view)
    assert verdict["verdict"] == "PASS"
    assert len(shown) == 1, "a view that failed once is shown nothing more"
    assert "the view of the run failed (UnicodeEncodeError: " in str(verdict["notes"])


def test_what_there_is_to_know_of_the_station_is_in_the_reports(runs: Runs) -> None:
    station = Fake(honest())
    station.notes = (Note("STATION: host, because"),)
    verdict = runs.run(station)
    assert verdict["verdict"] == "PASS"
    assert "STATION: host, because" in str(verdict["notes"])
    assert "a fake one" in str(verdict["provenance"])
    station.notes = (Note("another image", trouble=True),)
    verdict = runs.run(station)
    assert verdict["verdict"] == "UNJUDGED"
    assert "run: another image" in texts(verdict)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("pass", "run: session load began 0 and ended 1 times"),
        ("raise SystemExit(1)", "link.copy: never ran"),
        ("raise SystemExit(64)", "run: session load ended with exit code 64"),
        ("import os; os.kill(os.getpid(), 9)", "run: session load was ended by signal 9"),
        (honest(before="sys.exit('it broke')"), "link.copy: did not finish"),
        (honest(after="sys.exit(70)"), "run: session load ended with exit code 70"),
    ],
)
def test_a_session_that_does_not_do_its_part_is_unjudged(
    runs: Runs, program: str, said: str
) -> None:
    verdict = runs.run(program)
    assert verdict["verdict"] == "UNJUDGED"
    assert said in texts(verdict)
    assert worded(runs.bodies(RunEnded)) == [RunEnded(True, "every session of the plan was run")]


def test_a_session_that_cannot_be_started_is_unjudged(runs: Runs) -> None:
    class Broken(Fake):
        def start(
            self, context: Path, run_id: str, deadline: Deadline, log: Path
        ) -> command.RunningProgram | Forked:
            raise CommandError("no more processes")

    verdict = runs.run(Broken(""))
    assert verdict["verdict"] == "UNJUDGED"
    assert "run: session load could not be started: no more processes" in texts(verdict)


def test_a_gate_ends_the_run(runs: Runs) -> None:
    plan = journals.plan(journals.check("gpu.present", gate=True), journals.check("link.copy"))
    # pytest ends with 2 when a gate stops it.
    program = honest(before="pass").replace('"pass", ""', '"error", "not set up"')
    assert runs.run(program + "sys.exit(2)\n", plan)["verdict"] == "UNJUDGED"
    assert worded(runs.bodies(RunEnded)) == [
        RunEnded(False, "gpu.present did not pass, so nothing after it was run")
    ]
    assert [
        body.complete for body in runs.bodies(SessionEnded) if isinstance(body, SessionEnded)
    ] == [True]


def test_a_gate_that_fails_ends_the_run_only_if_it_shall_fail_fast(runs: Runs) -> None:
    plan = journals.plan(journals.check("gpu.present", gate=True), journals.check("link.copy"))
    program = honest(before="pass").replace('"pass", ""', '"fail", "missing"')
    program = program.replace("200.0", "1.0")
    assert runs.run(program, plan)["verdict"] == "FAIL"
    assert worded(runs.bodies(RunEnded)) == [RunEnded(True, "every session of the plan was run")]
    runs.options = Options(fail_fast=True)
    assert runs.run(program + "sys.exit(2)\n", plan)["verdict"] == "FAIL"
    assert worded(runs.bodies(RunEnded)) == [
        RunEnded(False, "gpu.present did not pass, so nothing after it was run")
    ]


# Two sessions of one phase, and one after them.
SIDES = journals.plan(
    journals.check("gpu.granted", session="gpu-load", gate=True),
    journals.check("gpu.two", session="gpu-load"),
    journals.check("host.one", session="host-load"),
    journals.check("link.copy"),
)
MET = """
import time
mark = pathlib.Path(context.run_dir) / "began-"
if context.session.endswith("-load"):
    pathlib.Path(f"{mark}{context.session}").touch()
    other = {"gpu-load": "host-load", "host-load": "gpu-load"}[context.session]
    end = time.monotonic() + 20.0
    while not pathlib.Path(f"{mark}{other}").exists():
        assert time.monotonic() < end, "the other session has not begun"
        time.sleep(0.01)
""".strip().replace("\n", "\n        ")
WAITS = """
if context.session == "host-load":
    import time; time.sleep(60.0)
""".strip().replace("\n", "\n        ")


def sessions(runs: Runs) -> list[tuple[str, bool]]:
    ended = [one for one in runs.bodies(SessionEnded) if isinstance(one, SessionEnded)]
    return [(one.session, one.complete) for one in ended]


def test_the_sessions_of_a_phase_run_side_by_side(runs: Runs) -> None:
    assert runs.run(honest(before=MET), SIDES)["verdict"] == "PASS"
    *both, last = sessions(runs)
    assert sorted(both) == [("gpu-load", True), ("host-load", True)]
    assert last == ("load", True)
    nice = {
        name: session_context.read(runs.dir / f"session-{name}.json").niceness
        for name in ("gpu-load", "host-load", "load")
    }
    assert nice == {"gpu-load": 0, "host-load": 10, "load": 0}


def test_only_one_of_them_has_checks(runs: Runs) -> None:
    plan = journals.plan(journals.check("host.one", session="host-load"))
    assert runs.run(honest(), plan)["verdict"] == "PASS"
    assert sessions(runs) == [("host-load", True)]
    # No load of a GPU is there to give way to.
    assert session_context.read(runs.dir / "session-host-load.json").niceness == 0


@pytest.mark.parametrize("fatal", ["sys.exit(7)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_one_that_dies_leaves_the_other_to_its_end(runs: Runs, fatal: str) -> None:
    died = f"import os, signal\nif context.session == 'gpu-load': {fatal}".replace(
        "\n", "\n        "
    )
    verdict = runs.run(honest(before=f"{MET}\n        {died}"), SIDES)
    assert verdict["verdict"] == "UNJUDGED"
    *both, last = sessions(runs)
    assert sorted(both) == [("gpu-load", False), ("host-load", True)]
    assert last == ("load", True)
    assert "gpu.granted: did not finish" in texts(verdict)
    assert "host.one" not in texts(verdict)


def test_a_gate_of_one_stops_the_other(runs: Runs) -> None:
    program = honest(before=f"{MET}\n        {WAITS}", after="if check.gate: sys.exit(2)").replace(
        '"pass", ""', '*(("error", "not set up") if check.gate else ("pass", ""))'
    )
    verdict = runs.run(Real(program), SIDES)
    assert verdict["verdict"] == "UNJUDGED"
    assert sorted(sessions(runs)) == [("gpu-load", True), ("host-load", False)]
    assert worded(runs.bodies(RunEnded)) == [
        RunEnded(False, "gpu.granted did not pass, so nothing after it was run")
    ]
    found = {row["id"]: row["outcome"] for row in rows(verdict, "checks")}
    assert "pass" not in found.values()
    assert found["host.one"] == "error"  # it was cut off


def test_a_stop_ends_both(runs: Runs) -> None:
    ask = f"""
import os, signal
if context.session == "gpu-load":
    os.kill({os.getpid()}, signal.SIGTERM)
time.sleep(60)""".replace("\n", "\n        ")
    verdict = runs.run(Real(honest(before=f"{MET}{ask}")), SIDES)
    assert verdict["verdict"] == "UNJUDGED"
    assert sorted(sessions(runs)) == [("gpu-load", False), ("host-load", False)]
    assert worded(runs.bodies(RunEnded)) == [RunEnded(False, "stopped by SIGTERM")]
    assert {one.session for one in runs.bodies(Stopped)} == {"gpu-load", "host-load"}
    for check in ("gpu.granted", "host.one"):
        assert f"{check}: did not finish: stopped by SIGTERM" in texts(verdict)


def test_the_second_look_repeats_what_both_loaded_alone(runs: Runs) -> None:
    plan = journals.plan(
        journals.check("gpu.one", journals.due().against(PAST), session="gpu-load"),
        journals.check("host.one", journals.due().against(PAST), session="host-load"),
    )
    program = STRAYED.replace("BEFORE", "pass").replace("AFTER", "pass")
    assert runs.run(program, plan)["verdict"] == "PASS"
    assert sessions(runs)[-1] == ("load-again", True)
    again = [one.check for one in runs.bodies(CheckStarted) if isinstance(one, CheckStarted)]
    assert again[2:] == ["gpu.one", "host.one"]


def test_a_stop_is_asked_once_and_obeyed(runs: Runs) -> None:
    ask = f"import os, signal, time; os.kill({os.getpid()}, signal.SIGTERM); time.sleep(60)"
    verdict = runs.run(Real(honest(before=ask)))
    assert verdict["verdict"] == "UNJUDGED"
    assert "link.copy: did not finish: stopped by SIGTERM" in texts(verdict)
    assert worded(runs.bodies(RunEnded)) == [RunEnded(False, "stopped by SIGTERM")]


def test_what_a_session_leaves_behind_is_killed_and_said(runs: Runs) -> None:
    """Under the reaper a session's family dies with it; a station that is no child of ours has
    only the run id to be found by.
    """

    class Loose(Fake):
        def start(
            self, context: Path, run_id: str, deadline: Deadline, log: Path
        ) -> command.RunningProgram | Forked:
            environment = {**os.environ, "RIGPROOF_RUN": run_id}
            self.child = subprocess.Popen(["sleep", "600"], env=environment)
            return super().start(context, run_id, deadline, log)

    station = Loose(honest())
    assert runs.run(station)["verdict"] == "PASS"
    assert station.child.wait(10) == -signal.SIGKILL
    notes = [body.text for body in runs.bodies(Note) if isinstance(body, Note)]
    assert any(
        "a process outlived its check and was killed: sleep 600" in worded(text) for text in notes
    )


@pytest.mark.parametrize(
    ("returncode", "timed_out", "gate", "stopped", "whole", "said"),
    [
        (0, False, False, False, True, "exit code 0"),
        (1, False, False, False, True, "exit code 1"),
        (1, False, False, True, True, "exit code 1"),
        (2, False, True, False, True, "exit code 2"),
        (2, False, False, False, False, "it last said: last words"),
        (-9, False, True, False, False, "signal 9"),
        (-15, False, False, True, False, "was stopped"),
        (0, True, False, False, False, "did not end within its time"),
    ],
)
def test_how_a_session_ended(
    returncode: int, timed_out: bool, gate: bool, stopped: bool, whole: bool, said: str
) -> None:
    done = ProgramResult(("x",), returncode, "last words\n", "", 1.0, timed_out)
    complete, detail = outcome_of(done, begun=True, gate=gate, stopped=stopped)
    assert complete is whole
    assert said in worded(detail)


def test_a_session_that_never_began_is_not_whole_whatever_its_exit_code() -> None:
    done = ProgramResult(("x",), 1, "exec python: no such file\n", "", 0.1)
    complete, detail = outcome_of(done, begun=False, gate=False, stopped=False)
    assert not complete
    assert "exec python: no such file" in worded(detail)


def test_a_session_that_said_nothing() -> None:
    assert (
        worded(
            outcome_of(
                ProgramResult(("x",), 70, "", "", 1.0), begun=True, gate=False, stopped=False
            )[1]
        )
        == "ended with exit code 70 after 1.0 s"
    )


@pytest.mark.parametrize("number", signals.STOP_SIGNALS)
def test_signals_are_handled_and_given_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stoppable() as stop:
        assert stop.reason is None
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGTERM)
        assert worded(stop.reason) == f"stopped by {number.name}"
    assert signal.getsignal(number) == before
    with pytest.raises(UserInterrupt, match=f"stopped by {number.name}"), interruptible():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) == before


def test_a_lost_terminal_ends_nothing() -> None:
    before = signal.getsignal(signal.SIGHUP)
    with interruptible():
        os.kill(os.getpid(), signal.SIGHUP)
        with stoppable() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert stop.reason is None
    assert signal.getsignal(signal.SIGHUP) == before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """`nohup rigproof accept &`: the run goes on when the terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable() as stop, interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
            assert stop.reason is None
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_run_has_a_folder_of_its_own(tmp_path: Path) -> None:
    first, second = (
        supervisor.new_run_dir(tmp_path / "a/b"),
        supervisor.new_run_dir(tmp_path / "a/b"),
    )
    assert first != second
    assert (first / "logs").is_dir()
    with pytest.raises(
        UserError,
        match=r"no run can be written there \(.*\): give another folder with --out",
    ):
        supervisor.new_run_dir(Path("/proc/x"))


def test_what_lies_outside_is_looked_at_again_within_the_run(runs: Runs) -> None:
    strays = journals.check("a.one", journals.due().against(PAST))
    verdict = runs.run(
        STRAYED.replace("BEFORE", "pass").replace("AFTER", "pass"),
        journals.plan(strays, journals.check("b.two")),
    )
    assert verdict["verdict"] == "PASS"
    assert [
        (one.session, one.complete)
        for one in runs.bodies(SessionEnded)
        if isinstance(one, SessionEnded)
    ] == [
        ("load", True),
        ("load-again", True),
    ]
    assert [one.check for one in runs.bodies(CheckStarted) if isinstance(one, CheckStarted)] == [
        "a.one",
        "b.two",
        "a.one",
    ]
    (warning,) = rows(verdict, "warnings")
    assert "measured 140 GB/s, 200 GB/s at the repeat" in warning["text"]
    assert "outside what it was before, so a repeat was taken: a.one" in str(verdict["notes"])
    told = session_context.read(runs.dir / "session-load.json")
    assert told.plan is not None
    assert all(due.past is None for check in told.plan.checks for due in check.due)


def test_without_a_past_there_is_no_second_look(runs: Runs) -> None:
    assert runs.run(STRAYED.replace("BEFORE", "pass").replace("AFTER", "pass"))["verdict"] == "PASS"
    assert len(runs.bodies(SessionEnded)) == 1


@pytest.mark.parametrize(
    "died", ["sys.exit(7)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
)
def test_a_second_look_that_dies_leaves_the_run_unjudged(runs: Runs, died: str) -> None:
    strays = journals.check("a.one", journals.due().against(PAST))
    program = STRAYED.replace("BEFORE", f"if context.session == 'load-again': {died}").replace(
        "AFTER", "pass"
    )
    verdict = runs.run(program, journals.plan(strays))
    assert verdict["verdict"] == "UNJUDGED"
    assert "a.one: the repeat did not finish" in texts(verdict)


def test_a_folder_that_no_journal_could_name_is_refused(tmp_path: Path) -> None:
    """Bytes of another encoding, or an umlaut where LC_ALL is C: surrogates, to Python."""
    refused = supervisor.output_folder(tmp_path / "l\udce9gacy")
    with pytest.raises(UserError, match=r"\\udce9gacy'.* --out"), refused:
        pytest.fail("a run was begun")
    assert list(tmp_path.iterdir()) == []
    with supervisor.output_folder(tmp_path / "année"):
        pass
