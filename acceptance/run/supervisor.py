"""A run from lock to verdict: sessions in order, with the watch, a deadline, and the reports.

The supervisor is outside pytest and outside any container, and goes on when either dies.
"""

from __future__ import annotations

import contextlib
import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from acceptance.core.collection import REPEAT_SESSION, SESSIONS, SessionName
from acceptance.core.language import ENGLISH, Language
from acceptance.core.message import Listed, Message, Text, known
from acceptance.core.plan import Plan, PlannedCheck
from acceptance.core.record import (
    CheckEnded,
    ForeignProcess,
    Note,
    Postponed,
    RunEnded,
    SessionEnded,
    SessionStarted,
)
from acceptance.history.baseline import forgetful
from acceptance.journal import clock, ownership, reader, seal, segment
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.process import orphans
from acceptance.process.command import CommandError, ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.run import outputs
from acceptance.run.header import header_records
from acceptance.run.live_feed import LiveFeed, View
from acceptance.run.planning import PreparedRun
from acceptance.run.scratch import ScratchFolders
from acceptance.run.second_look import should_repeat
from acceptance.run.signals import StopRequest, stoppable
from acceptance.session import context as session_context
from acceptance.session import timeouts
from acceptance.station.base import Station
from acceptance.station.host import HostStation
from acceptance.watch import gpu_sampler, gpu_supervisor, host
from acceptance.wording import words

IN_USE = Message("machine_in_use")
# Interval for reading whether the watch has seen another user on a GPU.
USERS_PERIOD_S = 1.0
# Interval for reading whether a session has ended, and what it has written.
POLL_S = 0.05


class OutputError(Exception):
    """The output folder cannot be used; the message is one sentence with the cure."""


def _output_error(out: Path, error: OSError) -> OutputError:
    why = words.text(ownership.reason(error, out))
    return OutputError(
        f"{out}: no run can be written there ({why}): give another folder with --out"
    )


def usable(out: Path) -> None:
    """Raise OutputError where no run could be written, before anything is built for it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".rigproof-", dir=out):
            pass
    except OSError as error:
        raise _output_error(out, error) from error


def new_run_dir(out: Path) -> Path:
    """Make the folder of a new run. Raises OutputError."""
    run_id = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{secrets.token_hex(2)}"
    try:
        (out / run_id / "logs").mkdir(parents=True)
    except OSError as error:
        raise _output_error(out, error) from error
    return (out / run_id).resolve()


class Supervisor:
    """One run.

    `view` receives every entry of the sessions' journals as it appears, and the watch's records.
    With `give_way` the run ends as soon as the watch sees another user on a GPU; the function makes
    the record from the users.
    """

    def __init__(
        self,
        prepared: PreparedRun,
        station: Station,
        run_dir: Path,
        view: View,
        language: Language = ENGLISH,
        give_way: Callable[[tuple[Text, ...]], Postponed] | None = None,
    ) -> None:
        self._prepared = prepared
        self._plan: Plan = prepared.plan
        self._station = station
        self._run_dir = run_dir
        self._feed = LiveFeed(run_dir, view, (host.SEGMENT, gpu_sampler.EVENTS))
        self._language = language
        self._root = prepared.options.root
        self._kernel_log_after: int | None = None
        self._folders = ScratchFolders(prepared.scratches, run_dir.name, self._root)
        self._give_way = give_way
        self._watched = reader.Tail(run_dir / gpu_sampler.EVENTS)
        self._others: list[Message] = []
        self._others_s = self._began_s = clock.boot_s()

    def run(self) -> Run:
        """Run every session of the plan, judge, and write the run's files.

        Raises JournalError when the journal cannot be written.
        """
        with stoppable() as stop:
            with segment.Writer(self._run_dir / reader.SUPERVISOR, self._root) as writer:
                for body in header_records(self._prepared, self._station, self._run_dir):
                    writer.write(body)
                due = gpu_supervisor.due_targets(self._prepared.inventory, self._plan.gpus)
                watching = host.HostWatch(self._run_dir, self._root, due)
                self._kernel_log_after = watching.kernel_log_after
                try:
                    for told in self._folders.prepare():
                        writer.write(told)
                    end = self._sessions(writer, stop)
                finally:
                    watching.stop()
                    swept = orphans.sweep(self._run_dir.name, self._root)
                    left = self._folders.remove()
                for told in left:
                    writer.write(told)
                for stray in swept:
                    writer.write(Note(Message("process_outlived", {"process": stray})))
                self._feed.poll(last=True)
                if watching.failure:
                    writer.write(Note(watching.failure, trouble=True))
                if self._feed.failure:
                    writer.write(Note(self._feed.failure))
                self._look_for_others(stop, last=True)
                if self._give_way is not None and self._others and stop.reason in (None, IN_USE):
                    writer.write(self._give_way(tuple(self._others)))
                    end = RunEnded(False, IN_USE)
                writer.write(end)
                seal.write(writer)
            run = journal_run.read(self._run_dir)
            outputs.write(run, self._language)
            return run

    def _look_for_others(self, stop: StopRequest, *, last: bool = False) -> None:
        """Stop a run that gives way where the watch has seen another user on a GPU."""
        now_s = clock.boot_s()
        if self._give_way is None or (now_s < self._others_s and not last):
            return
        self._others_s = now_s + USERS_PERIOD_S
        with contextlib.suppress(segment.JournalError):  # the fold reads it again, strictly
            for entry in self._watched.each():
                if isinstance(one := entry.body, ForeignProcess):
                    since_s = max(0.0, one.since_s - self._began_s)
                    values = {"gpu": str(one.component), "who": one.who, "since": f"{since_s:.0f}"}
                    other = Message("gpu_used_since", values)
                    self._others += [other] if other not in self._others else []
        if self._others and not last:
            stop.reason = stop.reason or IN_USE

    def _sessions(self, writer: segment.Writer, stop: StopRequest) -> RunEnded:
        """Run every session in order, until one ends the run."""
        for name in SESSIONS:
            if self._plan.share(name):
                if stop.reason is not None:
                    return RunEnded(False, stop.reason)
                end = self._session(name, self._plan.share(name), writer, stop)
                if end is None and name == "load" and stop.reason is None:
                    end = self._second_look(writer, stop)
                if end:
                    return end
        # A stop request after the last measurement changes nothing.
        return RunEnded(True, Message("plan_done"))

    def _second_look(self, writer: segment.Writer, stop: StopRequest) -> RunEnded | None:
        """Repeat the checks of the load whose figures lay outside those of earlier nights."""
        if not any(due.past for check in self._plan.checks for due in check.due):
            return None
        found = reader.read(self._run_dir)
        ended = [entry.body for entry in found.entries if isinstance(entry.body, SessionEnded)]
        if not all(body.complete for body in ended):
            return None  # a session that has just died is not loaded again
        checks = journal_run.judge_live(found).verdict.checks
        again = tuple(one.id for one in checks if should_repeat(one.judged, one.findings))
        share = session_context.share(self._plan, REPEAT_SESSION, again)
        if not share:
            return None
        writer.write(Note(Message("second_look", {"checks": Listed(again)})))
        return self._session(REPEAT_SESSION, share, writer, stop)

    def _context(self, name: SessionName, share: Sequence[PlannedCheck], station: Station) -> Path:
        """Write a session's context. Raises JournalError when it cannot be written."""
        path = self._run_dir / f"session-{name}.json"
        context = session_context.SessionContext(
            mode="run",
            root=str(self._root),
            session=name,
            run_dir=str(station.inside(self._run_dir)),
            run_id=self._run_dir.name,
            machine_id=clock.machine_id(self._root),
            kernel_log_after=self._kernel_log_after,
            plan=forgetful(self._plan),
            again=tuple(check.id for check in share) if name == REPEAT_SESSION else (),
            niceness=self._prepared.options.niceness,
            fail_fast=self._prepared.options.fail_fast,
            machine=self._prepared.machine,
            inventory=self._prepared.inventory,
            scratches=self._folders.made,
        )
        try:
            session_context.write(context, path)
        except OSError as error:
            raise segment.JournalError("unwritten", path=str(path), why=error.strerror) from error
        return path

    def _session(
        self,
        name: SessionName,
        share: Sequence[PlannedCheck],
        writer: segment.Writer,
        stop: StopRequest,
    ) -> RunEnded | None:
        """Run one session's share of the plan.

        Returns the end of the run where a check ended it, or it was stopped.
        """
        station = self._station if name in ("load", REPEAT_SESSION) else HostStation()
        context = self._context(name, share, station)
        deadline = Deadline.after(sum(timeouts.check_limit_s(check) for check in share) + 60.0)
        began = time.monotonic()
        try:
            log = self._run_dir / "logs" / f"session-{name}.log"
            running = station.start(context, self._run_dir.name, deadline, log)
        except CommandError as error:
            detail = Message("not_started", {"why": error.message})
            writer.write(SessionEnded(name, False, detail, time.monotonic() - began))
            return None
        tail = reader.Tail(self._run_dir / f"journal-{name}.jsonl")
        planned, fail_fast = {one.id: one for one in share}, self._prepared.options.fail_fast
        failed_gate, begun = None, False
        try:
            outputs.load()
            while True:
                self._look_for_others(stop)
                over = running.poll() or deadline.passed() or stop.reason is not None
                self._feed.poll()
                for entry in tail.new():
                    self._feed.show(entry)
                    body = entry.body
                    begun = begun or isinstance(body, SessionStarted)
                    if (
                        isinstance(body, CheckEnded)
                        and body.check in planned
                        and session_context.ends_run(
                            planned[body.check], body.outcome, fail_fast=fail_fast
                        )
                    ):
                        failed_gate = failed_gate or body.check
                if over:
                    break
                time.sleep(POLL_S)
        # the journal is unreadable: stop everything and leave no container behind
        except BaseException:
            running.stop()
            running.wait()
            raise
        if not running.poll() and not deadline.passed():
            running.stop()
        gate, stopped = failed_gate is not None, stop.reason is not None
        complete, detail = outcome_of(running.wait(), begun=begun, gate=gate, stopped=stopped)
        writer.write(
            SessionEnded(name, complete, detail, time.monotonic() - began, running.container_id)
        )
        if stop.reason is not None and not complete:
            return RunEnded(False, stop.reason)
        return (
            RunEnded(False, Message("gate_not_passed", {"check": failed_gate}))
            if failed_gate
            else None
        )


def outcome_of(
    done: ProgramResult, *, begun: bool, gate: bool, stopped: bool
) -> tuple[bool, Message]:
    """Whether a session was whole, and how it ended.

    Exit code 0: all checks passed. 1: some did not. 2: a gate did not pass and ended it. Anything
    else is the session's own trouble: a crash, a refusal, a deadline. So is a session that ended
    before it had `begun` to write its journal.
    """
    if (
        begun
        and not done.timed_out
        and (done.returncode in (0, 1) or (gate and done.returncode == 2))
    ):
        return True, done.describe()
    if stopped:
        return False, Message("was_stopped")
    values = known(how=done.describe(), last=done.last_told(3) or None)
    return False, Message("ended_saying", values)
