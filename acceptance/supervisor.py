"""A run from lock to verdict: sessions in order, the watch beside them, a deadline over all, and the reports at the end.

It is outside pytest and outside any container, and goes on when either dies.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

from acceptance import clock, gpu_child, journal, outputs, provenance, session, strays
from acceptance.command import CommandError, Completed
from acceptance.deadline import Deadline
from acceptance.judge.plan import SESSIONS, Plan, Session
from acceptance.judge.record import CheckEnded, Entry, Note, RunEnded, RunStarted, SessionEnded, SessionStarted
from acceptance.judge.verdict import Verdict
from acceptance.place import Host, Station
from acceptance.plugin import belt_s
from acceptance.preparation import Prepared
from acceptance.watch import Watch

View = Callable[[Entry], None]
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Somebody ended rigproof before a run had begun. Not an Exception, so that nothing on the way takes it for a fault."""


class Stop:
    """Whether somebody asked the run to end, and how: `reason` is None until then.

    A flag that is looked at, and not an exception: one that came out of a half-written record would cost the journal its last word.
    """

    def __init__(self) -> None:
        self.reason: str | None = None

    def ask(self, number: int, _frame: FrameType | None = None) -> None:
        """The signal handler; the first word counts."""
        self.reason = self.reason or f"stopped by {signal.Signals(number).name}"


class OutputError(Exception):
    """The output folder cannot be used; the message is one sentence with the cure."""


def _refused(out: Path, error: OSError) -> OutputError:
    return OutputError(f"{out}: no run can be written there ({error.strerror}): give another folder with --out")


def usable(out: Path) -> None:
    """Raise OutputError where no run could be written, before anything is built or measured for it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".rigproof-", dir=out):
            pass
    except OSError as error:
        raise _refused(out, error) from error


def new_run_dir(out: Path) -> Path:
    """Make the folder of a new run. Raises OutputError."""
    run_id = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{secrets.token_hex(2)}"
    try:
        (out / run_id / "logs").mkdir(parents=True)
    except OSError as error:
        raise _refused(out, error) from error
    return (out / run_id).resolve()


def _handle(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, object]:
    """Install a handler for every stop signal that is not ignored: `nohup` and `&` mean what they say. Returns the handlers before."""
    before: dict[signal.Signals, object] = {}
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, handler)
    return before


def _restore(before: dict[signal.Signals, object]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)  # type: ignore[arg-type]  # it is what signal.signal gave


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into Stopped, for the time before a run, when nothing is written that could be torn."""

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        raise Stopped(f"stopped by {signal.Signals(number).name}")

    before = _handle(stop)
    try:
        yield
    finally:
        _restore(before)


@contextlib.contextmanager
def stoppable() -> Iterator[Stop]:
    """Turn SIGINT, SIGTERM and SIGHUP into a Stop for as long as a run and its reports last."""
    stop = Stop()
    before = _handle(stop.ask)
    try:
        yield stop
    finally:
        _restore(before)


class Supervisor:
    """One run. `view` is shown every entry of the sessions' journals as it appears."""

    def __init__(self, prepared: Prepared, station: Station, run_dir: Path, view: View) -> None:
        self._prepared = prepared
        self._plan: Plan = prepared.plan
        self._station = station
        self._run_dir = run_dir
        self._view = view
        self._root = prepared.options.root
        self._kernel_log_after: int | None = None

    def run(self) -> Verdict:
        """Run every session of the plan and judge. Raises JournalError when the evidence cannot be written."""
        with stoppable() as stop:
            with journal.Writer(self._run_dir / journal.SUPERVISOR, self._root) as writer:
                self._open(writer)
                watch = Watch(self._run_dir, self._root, gpu_child.due(self._prepared.inventory, self._plan.gpus))
                self._kernel_log_after = watch.kernel_log_after
                try:
                    end = self._sessions(writer, stop)
                finally:
                    watch.stop()
                    swept = strays.sweep(self._run_dir.name, self._root)
                for stray in swept:
                    writer.write(Note(f"a process outlived its check and was killed: {stray}"))
                if watch.failure:
                    writer.write(Note(watch.failure, trouble=True))
                writer.write(end)
            return outputs.write(self._run_dir)

    def _sessions(self, writer: journal.Writer, stop: Stop) -> RunEnded:
        """Every session in its order, until one of them says why nothing may come after it."""
        for name in SESSIONS:
            if self._plan.share(name):
                if stop.reason is not None:
                    return RunEnded(False, stop.reason)
                end = self._session(name, writer, stop)
                if end:
                    return end
        # A stop that came when everything had been measured takes nothing away.
        return RunEnded(True, "every session of the plan was run")

    def _open(self, writer: journal.Writer) -> None:
        options = self._prepared.options
        told = provenance.gather(
            station=self._station.name,
            machine_file=str(options.machine_file) if options.machine_file else None,
            machine=self._prepared.machine.name if self._prepared.machine else None,
            boot_id=clock.boot_id(self._root),
            user="root" if os.geteuid() == 0 else "unprivileged",
            **self._station.provenance,
        )
        writer.write(RunStarted(self._run_dir.name, self._plan, told, clock.machine_id(self._root)))
        for note in self._station.notes:
            writer.write(note)
        writer.write(self._prepared.observed())

    def _context(self, name: Session, station: Station) -> Path:
        """Write what a session is told. Raises JournalError when the disk does not take it."""
        path = self._run_dir / f"session-{name}.json"
        context = session.Context(
            mode="run",
            root=str(self._root),
            session=name,
            run_dir=str(station.inside(self._run_dir)),
            kernel_log_after=self._kernel_log_after,
            plan=self._plan,
            machine=self._prepared.machine,
            inventory=self._prepared.inventory,
        )
        try:
            session.write(context, path)
        except OSError as error:
            raise journal.JournalError(
                f"{path}: cannot be written ({error.strerror}): make room, then start again"
            ) from error
        return path

    def _session(self, name: Session, writer: journal.Writer, stop: Stop) -> RunEnded | None:
        """Run one session; returns the end of the run where a gate did not pass, or somebody stopped it."""
        station = self._station if name == "load" else Host()
        context = self._context(name, station)
        deadline = Deadline.after(sum(belt_s(check) for check in self._plan.share(name)) + 60.0)
        began = time.monotonic()
        try:
            log = self._run_dir / "logs" / f"session-{name}.log"
            running = station.start(context, self._run_dir.name, deadline, log)
        except CommandError as error:
            writer.write(SessionEnded(name, False, f"could not be started: {error}", time.monotonic() - began))
            return None
        tail = journal.Tail(self._run_dir / f"journal-{name}.jsonl")
        gates = {check.id for check in self._plan.share(name) if check.gate}
        failed_gate, begun = None, False
        try:
            while True:
                over = running.poll() or deadline.passed() or stop.reason is not None
                for entry in tail.new():
                    self._view(entry)
                    body = entry.body
                    begun = begun or isinstance(body, SessionStarted)
                    if isinstance(body, CheckEnded) and body.check in gates and body.outcome != "pass":
                        failed_gate = body.check
                if over:
                    break
                time.sleep(0.05)
        except BaseException:  # the journal cannot be read or shown any more: nothing may go on, and no container stay
            running.stop()
            running.wait()
            raise
        if not running.poll() and not deadline.passed():
            running.stop()
        gate, stopped = failed_gate is not None, stop.reason is not None
        complete, detail = outcome_of(running.wait(), begun=begun, gate=gate, stopped=stopped)
        writer.write(SessionEnded(name, complete, detail, time.monotonic() - began))
        if stop.reason is not None and not complete:
            return RunEnded(False, stop.reason)
        return RunEnded(False, f"{failed_gate} did not pass, so nothing after it was run") if failed_gate else None


def outcome_of(done: Completed, *, begun: bool, gate: bool, stopped: bool) -> tuple[bool, str]:
    """Whether a session was whole, and how it ended.

    Exit code 0: all passed. 1: some did not. 2: a gate did not pass and ended it. Anything else is the session's own trouble: a crash,
    a refusal, a deadline; and so is one that ended before it had `begun` to write its journal.
    """
    if begun and not done.timed_out and (done.returncode in (0, 1) or (gate and done.returncode == 2)):
        return True, done.describe()
    if stopped:
        return False, "was stopped"
    return False, "; it last said: ".join(part for part in (done.describe(), done.last_lines(3)) if part)
