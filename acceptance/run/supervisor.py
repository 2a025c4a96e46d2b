"""A run from lock to verdict: phases in order, with the watch, deadlines, and the reports.

The supervisor is outside pytest and outside any container, and goes on when either dies.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from acceptance.core.language import ENGLISH, Language
from acceptance.core.message import Listed, Message, Text, UserError, english, known
from acceptance.core.plan import (
    GPU_LOAD,
    HOST_LOAD,
    LOAD_SESSIONS,
    PHASES,
    REPEAT_SESSION,
    SITE,
    Plan,
    PlannedCheck,
    SessionName,
    segment_of,
)
from acceptance.core.record import (
    CheckEnded,
    ForeignProcess,
    Note,
    Postponed,
    RunEnded,
    SessionEnded,
    SessionStarted,
    Stopped,
)
from acceptance.core.repeat import should_repeat
from acceptance.journal import clock, reader, run_folder, seal, segment
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.machine.gpu import gpus
from acceptance.observe import part_names, tested_parts
from acceptance.process import orphans
from acceptance.process.command import CommandError, ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.run import outputs
from acceptance.run.header import header_records
from acceptance.run.live_feed import LiveFeed, View
from acceptance.run.planning import PreparedRun
from acceptance.run.scratch import ScratchFolders
from acceptance.run.signals import StopRequest, stoppable
from acceptance.session import context as session_context
from acceptance.station.base import HostStation, SessionHandle, Station
from acceptance.watch import gpu_sampler, gpu_supervisor, host
from acceptance.wording import words

IN_USE = Message(english("machine_in_use", "the machine is in use"))
# Interval for reading whether the watch has seen another user on a GPU.
USERS_PERIOD_S = 1.0
# Interval for reading whether a session has ended, and what it has written.
POLL_S = 0.05
# How much nicer the loads of processors and RAM are than those of GPUs beside them: a thread that
# feeds a GPU never waits for them (the burn of the whole machine does the same).
HOST_NICER = 10
NICEST = 19
LAST_LOADS = next(phase for phase in reversed(PHASES) if set(phase) & set(LOAD_SESSIONS))


def _output_error(out: Path, error: OSError) -> UserError:
    why = words.text(run_folder.reason(error, out))
    return UserError(f"{out}: no run can be written there ({why}): give another folder with --out")


@contextlib.contextmanager
def output_folder(out: Path) -> Iterator[None]:
    """Make the folder of the runs; where it ends by an error before a run has one, remove it again.

    Raises UserError where no run could be written, before anything is built for it.
    """
    for path in (out.absolute(), Path(sys.executable)):
        try:
            str(path).encode("utf-8")
        except UnicodeEncodeError as error:
            raise UserError(
                f"{str(path)!a}: the name is not UTF-8 (LC_ALL=C makes it so, too): give "
                "another folder with --out, or rename it"
            ) from error
    missing = [one for one in (out, *out.parents) if not one.exists()]
    try:
        try:
            out.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".rigproof-", dir=out):
                pass
        except OSError as error:
            raise _output_error(out, error) from error
        yield
    except BaseException:
        for folder in missing:
            with contextlib.suppress(OSError):  # it holds something, or never was
                folder.rmdir()
        raise


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Raise JournalError where a file of the run cannot be written."""
    try:
        yield
    except OSError as error:
        raise segment.JournalError(
            english("unwritten", "{path}: cannot be written ({why}): make room, then start again"),
            path=str(path),
            why=error.strerror,
        ) from error


def new_run_dir(out: Path) -> Path:
    """Make the folder of a new run. Raises UserError."""
    run_id = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{secrets.token_hex(2)}"
    try:
        (out / run_id / "logs").mkdir(parents=True)
    except OSError as error:
        raise _output_error(out, error) from error
    return (out / run_id).resolve()


@dataclass(slots=True)
class _Started:
    """A session that was started, and what its journal has shown so far.

    `began` is on the monotonic clock; `gate` is the check that ends the run.
    """

    name: SessionName
    handle: SessionHandle
    deadline: Deadline
    tail: reader.Tail
    planned: Mapping[str, PlannedCheck]
    began: float
    begun: bool = False
    gate: str | None = None


class Supervisor:
    """One run.

    `view` receives every entry of the sessions' journals as it appears, and the watch's records.
    With `give_way` the run ends as soon as the watch sees another user on a GPU; the function makes
    the record from the users. `live` says that the view is watched while the run goes on.
    """

    def __init__(
        self,
        prepared: PreparedRun,
        station: Station,
        run_dir: Path,
        view: View,
        language: Language = ENGLISH,
        give_way: Callable[[tuple[Text, ...]], Postponed] | None = None,
        *,
        live: bool = False,
    ) -> None:
        self._prepared = prepared
        self._plan: Plan = prepared.plan
        self._station = station
        self._run_dir = run_dir
        self._feed = LiveFeed(run_dir, view, (host.SEGMENT, gpu_sampler.EVENTS))
        self._language = language
        self._root = prepared.options.root
        self._kernel_log_after: int | None = None
        # As they are before the run: a part that fails may vanish.
        self._tested_parts = tested_parts.read(
            self._root,
            [gpu.pci_address for gpu in gpus(prepared.inventory)],
            [disk.name for disk in prepared.inventory.disks or ()],
        )
        self._folders = ScratchFolders(prepared.scratches, run_dir.name, self._root)
        self._site = run_dir / seal.SITE_CHECKS  # the run's copy of the site's own checks
        self._give_way = give_way
        self._live = live
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
                names = part_names.find(
                    self._prepared.inventory,
                    self._plan.gpus,
                    self._prepared.scratches,
                    self._root,
                )
                tested, live = self._tested_parts, self._live
                watching = host.HostWatch(
                    self._run_dir, self._root, due, tested, throughput=live, names=names
                )
                self._kernel_log_after = watching.kernel_log_after
                try:
                    self._copy_site()
                    for told in self._folders.prepare():
                        writer.write(told)
                    end = self._phases(writer, stop)
                finally:
                    watching.stop()
                    swept = orphans.sweep(self._run_dir.name, self._root)
                    left = self._folders.remove()
                for told in left:
                    writer.write(told)
                for stray in swept:
                    writer.write(
                        Note(
                            Message(
                                english(
                                    "process_outlived",
                                    "a process outlived its check and was killed: {process}",
                                ),
                                {"process": stray},
                            )
                        )
                    )
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

    def _copy_site(self) -> None:
        """Copy the site's checks, as they were planned, into the run's folder."""
        if self._prepared.site is None:
            return
        with _writing(self._site):
            self._prepared.site.folder.write(self._site)

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
                    other = Message(
                        english(
                            "gpu_used_since", "{gpu}: {who}, from second {since} of the run on"
                        ),
                        values,
                    )
                    self._others += [other] if other not in self._others else []
        if self._others and not last:
            stop.reason = stop.reason or IN_USE

    def _phases(self, writer: segment.Writer, stop: StopRequest) -> RunEnded:
        """Run every phase in order, until one ends the run."""
        for phase in PHASES:
            shares: dict[SessionName, Sequence[PlannedCheck]] = {
                name: share for name in phase if (share := self._plan.share(name))
            }
            if shares:
                if stop.reason is not None:
                    return RunEnded(False, stop.reason)
                end = self._phase(shares, writer, stop)
                if end:
                    return end
            if phase == LAST_LOADS and stop.reason is None:
                end = self._repeat(writer, stop)
                if end:
                    return end
        # A stop request after the last measurement changes nothing.
        return RunEnded(True, Message(english("plan_done", "every session of the plan was run")))

    def _repeat(self, writer: segment.Writer, stop: StopRequest) -> RunEnded | None:
        """Repeat the loads' checks whose figures lay outside those of earlier nights, alone."""
        if not any(due.past for check in self._plan.checks for due in check.due):
            return None
        found = reader.read(self._run_dir)
        ended = [entry.body for entry in found.entries if isinstance(entry.body, SessionEnded)]
        if not all(body.complete for body in ended):
            return None  # a session that has just died is not loaded again
        checks = journal_run.of_live(found).verdict.checks
        again = tuple(one.id for one in checks if should_repeat(one.judged, one.findings))
        share = session_context.share(self._plan, REPEAT_SESSION, again)
        if not share:
            return None
        writer.write(
            Note(
                Message(
                    english(
                        "second_look", "outside what it was before, so a repeat was taken: {checks}"
                    ),
                    {"checks": Listed(again)},
                )
            )
        )
        return self._phase({REPEAT_SESSION: share}, writer, stop)

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
            tested_parts=self._tested_parts,
            plan=self._plan.without_past(),
            again=tuple(check.id for check in share) if name == REPEAT_SESSION else (),
            niceness=self._niceness(name),
            fail_fast=self._prepared.options.fail_fast,
            machine=self._prepared.machine,
            inventory=self._prepared.inventory,
            scratches=self._folders.made,
            limits=self._prepared.limits,
            site=str(self._site) if name == SITE else None,
        )
        with _writing(path):
            session_context.write(context, path)
        return path

    def _niceness(self, name: SessionName) -> int:
        """The niceness of a session: the loads of processors and RAM give way to the GPUs'.

        Where no GPU is loaded they give way to nobody: other programs would starve them.
        """
        own = self._prepared.options.niceness
        beside = any(check.session == GPU_LOAD for check in self._plan.checks)
        return min(own + HOST_NICER, NICEST) if name == HOST_LOAD and beside else own

    def _start(
        self, name: SessionName, share: Sequence[PlannedCheck], writer: segment.Writer
    ) -> _Started | None:
        """Start one session's share of the plan; None, and its end journalled, where it cannot."""
        station: Station = HostStation(site=self._site) if name == SITE else HostStation()
        if name in (*LOAD_SESSIONS, REPEAT_SESSION):
            station = self._station
        context = self._context(name, share, station)
        deadline = Deadline.after(
            sum(session_context.check_limit_s(check) for check in share) + 60.0
        )
        began = time.monotonic()
        try:
            log = self._run_dir / "logs" / f"session-{name}.log"
            running = station.start(context, self._run_dir.name, deadline, log)
        except CommandError as error:
            detail = Message(
                english("not_started", "could not be started: {why}"), {"why": error.message}
            )
            writer.write(SessionEnded(name, False, detail, time.monotonic() - began))
            return None
        tail = reader.Tail(self._run_dir / segment_of(name))
        return _Started(name, running, deadline, tail, {one.id: one for one in share}, began)

    def _phase(
        self,
        shares: Mapping[SessionName, Sequence[PlannedCheck]],
        writer: segment.Writer,
        stop: StopRequest,
    ) -> RunEnded | None:
        """Run the sessions of one phase side by side, each with its share of the plan.

        One that dies leaves the other to its end. A gate that does not pass in one ends the other.
        Returns the end of the run where a check ended it, or it was stopped.
        """
        running: list[_Started] = []
        gate: str | None = None
        whole = True
        try:
            for name, share in shares.items():
                if one := self._start(name, share, writer):
                    running.append(one)
            outputs.load()
            while running:
                self._look_for_others(stop)
                for one in list(running):
                    ended_elsewhere = gate is not None and one.gate is None
                    over = one.handle.poll() or one.deadline.passed()
                    over = over or stop.reason is not None or ended_elsewhere
                    self._feed.poll()
                    self._follow(one)
                    gate = gate or one.gate
                    if over:
                        running.remove(one)
                        stopped = stop.reason is not None or ended_elsewhere
                        whole = _end(one, writer, stopped=stopped) and whole
                if running:
                    time.sleep(POLL_S)
        # the journal is unreadable: stop everything and leave no container behind
        except BaseException:
            for one in running:
                with contextlib.suppress(segment.JournalError):
                    writer.write(Stopped(session=one.name))
                one.handle.stop()
            for one in running:
                one.handle.wait()
            raise
        if stop.reason is not None and not whole:
            return RunEnded(False, stop.reason)
        return (
            RunEnded(
                False,
                Message(
                    english("gate_not_passed", "{check} did not pass, so nothing after it was run"),
                    {"check": gate},
                ),
            )
            if gate
            else None
        )

    def _follow(self, one: _Started) -> None:
        """Show what a session has written, and note whether a check of it ends the run."""
        for entry in one.tail.new():
            self._feed.show(entry)
            body = entry.body
            one.begun = one.begun or isinstance(body, SessionStarted)
            if isinstance(body, CheckEnded) and body.check in one.planned:
                check, fail_fast = one.planned[body.check], self._prepared.options.fail_fast
                if session_context.ends_run(check, body.outcome, fail_fast=fail_fast):
                    one.gate = one.gate or body.check


def _end(one: _Started, writer: segment.Writer, *, stopped: bool) -> bool:
    """End a session where it still runs, and journal how it ended; whether it was whole."""
    if not one.handle.poll():
        writer.write(Stopped(session=one.name))
        if not one.deadline.passed():
            one.handle.stop()
    gate = one.gate is not None
    complete, detail = outcome_of(one.handle.wait(), begun=one.begun, gate=gate, stopped=stopped)
    seconds = time.monotonic() - one.began
    writer.write(SessionEnded(one.name, complete, detail, seconds, one.handle.container_id))
    return complete


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
        return False, Message(english("was_stopped", "was stopped"))
    values = known(how=done.describe(), last=done.last_told(3) or None)
    return False, Message(english("ended_saying", "{how}[; it last said: {last}]"), values)
