"""A run from lock to verdict: sessions in order, the watch beside them, a deadline over all, and the reports at the end.

It is outside pytest and outside any container, and goes on when either dies.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec

from acceptance import clock, journal, outputs, provenance, session, strays
from acceptance.deadline import Deadline
from acceptance.judge.plan import SESSIONS, Plan, Session
from acceptance.judge.record import CheckEnded, Entry, Note, Observed, RunEnded, RunStarted, SessionEnded
from acceptance.judge.verdict import Verdict
from acceptance.plugin import belt_s
from acceptance.preparation import Prepared
from acceptance.station import Host, Station
from acceptance.watch import Watch

View = Callable[[Entry], None]


class Stopped(BaseException):
    """Somebody ended the run: Ctrl-C, or a signal. Not an Exception, so that nothing on the way takes it for a fault of a check."""


class OutputError(Exception):
    """The output folder cannot be used; the message is one sentence with the cure."""


def new_run_dir(out: Path) -> Path:
    """Make the folder of a new run. Raises OutputError."""
    run_id = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{secrets.token_hex(2)}"
    try:
        (out / run_id / "logs").mkdir(parents=True)
    except OSError as error:
        raise OutputError(
            f"{out}: no run can be written there ({error.strerror}): give another folder with --out"
        ) from error
    return (out / run_id).resolve()


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into Stopped while a run is under way."""

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        raise Stopped(f"stopped by {signal.Signals(number).name}")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
        with journal.Writer(self._run_dir / journal.SUPERVISOR, self._root) as writer, stoppable():
            self._open(writer)
            watch = Watch(self._run_dir, self._root)
            self._kernel_log_after = watch.kernel_log_after
            end = RunEnded(True, "every session of the plan was run")
            try:
                for name in SESSIONS:
                    if self._plan.share(name):
                        failed_gate = self._session(name, writer)
                        if failed_gate:
                            end = RunEnded(False, f"{failed_gate} did not pass, so nothing after it was run")
                            break
            except Stopped as stopped:
                end = RunEnded(False, str(stopped))
            finally:
                watch.stop()
                for stray in strays.sweep(self._run_dir.name, self._root):
                    writer.write(Note(f"a process outlived its check and was killed: {stray}"))
            if watch.failure:
                writer.write(Note(watch.failure, trouble=True))
            writer.write(end)
        return outputs.write(self._run_dir)

    def _open(self, writer: journal.Writer) -> None:
        options = self._prepared.options
        told = provenance.gather(
            station=self._station.name,
            machine_file=str(options.machine_file) if options.machine_file else None,
            machine=self._prepared.machine.name if self._prepared.machine else None,
            boot_id=clock.boot_id(self._root),
            user="root" if os.geteuid() == 0 else "unprivileged",
        )
        writer.write(RunStarted(self._run_dir.name, self._plan, told, clock.machine_id(self._root)))
        writer.write(Observed(msgspec.to_builtins(self._prepared.inventory)))

    def _session(self, name: Session, writer: journal.Writer) -> str | None:
        """Run one session; returns the gate that did not pass, if one did not."""
        context = self._run_dir / f"session-{name}.json"
        session.write(
            session.Context(
                mode="run",
                root=str(self._root),
                session=name,
                run_dir=str(self._run_dir),
                kernel_log_after=self._kernel_log_after,
                plan=self._plan,
                machine=self._prepared.machine,
                inventory=self._prepared.inventory,
            ),
            context,
        )
        deadline = Deadline.after(sum(belt_s(check) for check in self._plan.share(name)) + 60.0)
        station = self._station if name == "load" else Host()
        began = time.monotonic()
        running = station.start(context, self._run_dir.name, deadline, self._run_dir / "logs" / f"session-{name}.log")
        tail = journal.Tail(self._run_dir / f"journal-{name}.jsonl")
        gates = {check.id for check in self._plan.share(name) if check.gate}
        failed_gate = None
        try:
            while True:
                over = running.poll() or deadline.passed()
                for entry in tail.new():
                    self._view(entry)
                    body = entry.body
                    if isinstance(body, CheckEnded) and body.check in gates and body.outcome != "pass":
                        failed_gate = body.check
                if over:
                    break
                time.sleep(0.05)
        except Stopped:
            writer.write(SessionEnded(name, False, "was stopped", time.monotonic() - began))
            raise
        finally:
            if not running.poll() and not deadline.passed():
                running.stop()
        done = running.wait()
        # 0: all passed. 1: some did not. Anything else is the session's own trouble: a crash, a refusal, a deadline.
        complete = done.returncode in (0, 1) and not done.timed_out
        last = done.last_lines(3)
        detail = (
            done.describe()
            if complete or failed_gate
            else f"{done.describe()}{f'; it last said: {last}' if last else ''}"
        )
        writer.write(SessionEnded(name, complete or failed_gate is not None, detail, done.seconds))
        return failed_gate
