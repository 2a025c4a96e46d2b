"""The supervisor's watch over sensors, kernel log and (in a child process) GPUs.

It lasts as long as the run, whatever happens to the sessions.

Unknown kernel messages of priority err or worse: which are new, and what they name.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from acceptance.core.evidence import Sample
from acceptance.core.message import Message, english
from acceptance.core.parts import Component
from acceptance.core.record import Event, Note
from acceptance.journal import clock, reader, segment
from acceptance.observe import event, kernel_log, kmsg, unknown_line
from acceptance.observe.event import KernelEvent
from acceptance.observe.kernel_line import KernelLine
from acceptance.observe.part_names import PartNames
from acceptance.observe.sensors import SampleThinner, Sensors
from acceptance.watch.event_log import EventLog, suspicion
from acceptance.watch.gpu_supervisor import SamplerProcess
from acceptance.watch.targets import WatchTarget
from acceptance.wording.errors import NotMeasurable, WordedError, said

# Unknown messages that name no part are noted up to this number of different ones.
MOST_NOTES = 100


class UnknownLines:
    """The unknown messages of one run.

    `names` are those of the parts. A message that came before the run too, with the same part and
    without its numbers, is none of this run's.
    """

    def __init__(self, names: PartNames) -> None:
        self._names = names
        self._before: set[tuple[Component | None, str]] = set()
        self._noted: set[str] = set()

    def before(self, lines: Iterable[KernelLine]) -> None:
        """Remember the messages before the run."""
        self._before.update(self._key(line) for line in lines if _is_error(line))

    def read(self, line: KernelLine) -> KernelEvent | Note | None:
        """The event of a message that names a part, a note of any other; None where it is no news.

        `line` is one from which no known event came.
        """
        if not _is_error(line) or unknown_line.is_harmless(line.text):
            return None
        part, text = self._key(line)
        if (part, text) in self._before:
            return None
        found = unknown_line.event(line)
        if part is not None:
            return replace(found, component=part, severity="error")
        if text in self._noted or len(self._noted) >= MOST_NOTES:
            return None
        self._noted.add(text)
        return Note(Message("unknown_line", {"text": found.text}))

    def _key(self, line: KernelLine) -> tuple[Component | None, str]:
        return self._names.part_in(line.text), unknown_line.without_numbers(line.text)


def _is_error(line: KernelLine) -> bool:
    return line.level is not None and line.level <= unknown_line.ERR and not line.foreign


PERIOD_S = 1.0
SEGMENT = "journal-watch.jsonl"
# The longest time for which a report of several messages may stay open. An error storm never
# pauses, and a crash must not lose the pending messages.
HOLD_S = 3.0


def to_record(
    event: event.KernelEvent,
    read_s: float,
    offset_s: float,
    gpus: Sequence[WatchTarget] = (),
) -> Event:
    """A kernel event as a record of the journal.

    `read_s` is the time of reading, in seconds since boot. The clock of kernel messages stops while
    the machine sleeps (`offset_s` behind ours), and in a paused VM it may fall behind altogether.
    A time stamp that does not fit the time of reading is replaced by it. `gpus` are under test.
    """
    stamp = event.time + offset_s if isinstance(event.time, float) else read_s
    fits = read_s - 3 * PERIOD_S <= stamp <= read_s + 0.1  # at most a few rounds ago
    suspected = suspicion(event.kind, event.code, event.component, event.text, gpus)
    return event.to_record(stamp if fits else read_s, suspected)


class HostWatch:
    """A thread with the segments `telemetry.jsonl` and `journal-watch.jsonl`, and a GPU sampler.

    Never raises into the run: after `stop`, `failure` describes what went wrong.
    `kernel_log_after` is the sequence number of the last kernel message before the watch; None if
    the log cannot be read. `tested` are the parts under test, as messages name them: their events
    are faults that elsewhere are warnings. `throughput` says whether somebody watches what the
    GPUs' links move. `names` are what the kernel calls the parts of the machine, for messages that
    nobody knows. Create it in the main thread, because it starts the child process.

    Raises JournalError when its segments cannot be created.
    """

    def __init__(
        self,
        run_dir: Path,
        root: Path = Path("/"),
        gpus: Sequence[WatchTarget] = (),
        tested: Mapping[str, event.PartKind] | None = None,
        *,
        throughput: bool = False,
        names: PartNames | None = None,
    ) -> None:
        self._trouble: Message | None = None
        self._tested = tested or {}
        self.kernel_log_after: int | None = None
        self._sensors = Sensors.find(root)
        self._samples = segment.Writer(run_dir / reader.TELEMETRY, root)
        self._events = EventLog(run_dir / SEGMENT, root)
        self._thinning = SampleThinner(self._keep, clock.boot_s())
        self._over = threading.Event()
        self._log: kmsg.Kmsg | None = None
        self._targets = tuple(gpus)
        self._unknown = UnknownLines(names or PartNames({}))
        self._held: list[
            tuple[kmsg.KmsgRecord, float]
        ] = []  # each with the time of its reading, in seconds since boot
        try:
            with contextlib.ExitStack() as stack:
                log = stack.enter_context(kmsg.Kmsg(root, since="boot"))
                # Messages lost before the run are no loss of the run.
                self.kernel_log_after, log.lost = self._newest(log), False
                self._log = log
                stack.pop_all()
        except NotMeasurable as error:
            self._events.note(
                Message(
                    english("kernel_log_not_followed", "the kernel log was not followed: {why}"),
                    {"why": error.message},
                )
            )
        self._thinning.put(clock.boot_s(), self._sensors.read())
        self._gpus = SamplerProcess(
            run_dir, root, gpus, kernel_log=self._log is not None, throughput=throughput
        )
        self._thread = threading.Thread(target=self._run, name="rigproof-watch", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> Message | None:
        """What went wrong with the watch, in one sentence or two; None if nothing did."""
        found = tuple(part for part in (self._trouble, self._gpus.failure) if part)
        return Message("trouble", {"text": found}) if found else None

    def _newest(self, log: kmsg.Kmsg) -> int:
        """Read all messages; returns the sequence number of the last one, -1 if there is none."""
        last = -1
        while records := log.read_new():
            last = records[-1].sequence
            self._unknown.before(kmsg.as_lines(records))
        return last

    def _keep(self, sample: Sample) -> None:
        self._samples.write(sample)
        self._samples.sync()

    def _run(self) -> None:
        # The value until the thread ends properly: a thread that dies cannot report it.
        self._trouble = Message(
            english(
                "watch_died",
                "the watch over sensors and kernel log died of an error of its own: please report "
                "it",
            )
        )
        try:
            while not self._over.wait(PERIOD_S):
                self._sample(last=False)
            self._sample(last=True)
            self._thinning.flush(clock.boot_s())
            self._trouble = None
        except (WordedError, OSError, ValueError) as error:
            self._trouble = Message(
                english("watch_stopped", "the watch over sensors and kernel log stopped: {why}"),
                {"why": said(error)},
            )

    def _sample(self, *, last: bool) -> None:
        self._gpus.check_alive()
        self._thinning.put(clock.boot_s(), self._sensors.read())
        if self._log is None:
            return
        fresh, now = self._log.read_new(), clock.boot_s()
        self._held += [(record, now) for record in fresh]
        # A report of several messages is read as a whole: while messages arrive, earlier ones wait
        # for the next round.
        if self._held and (last or not fresh or now - self._held[0][1] >= HOLD_S):
            read_at = {record.seconds_since_boot: moment for record, moment in self._held}
            # Both clocks at the same moment: reading a long report takes a while, and an older
            # offset would date its events before the start of their check.
            offset_s = clock.boot_s() - time.monotonic()
            lines = kmsg.as_lines(record for record, _ in self._held)
            events, silent = kernel_log.read(lines)
            known = event.weigh(events, self._tested, in_run=True)
            unknown = [found for line in silent if (found := self._unknown.read(line)) is not None]
            for found in (*known, *unknown):
                if isinstance(found, Note):
                    self._events.put(found)
                    continue
                moment = read_at.get(found.time, now) if isinstance(found.time, float) else now
                self._events.event(to_record(found, moment, offset_s, self._targets))
            self._held = []
        if self._log.lost:
            self._log.lost = False
            self._events.note(
                Message(
                    english(
                        "kernel_log_lost",
                        "the kernel overwrote messages before they were read: events may be "
                        "missing; enlarge its buffer with the boot option log_buf_len=4M",
                    )
                ),
                trouble=True,
            )

    def stop(self) -> None:
        """Read once more, end the child and close the segments; takes at most half a minute."""
        self._over.set()
        self._thread.join(10.0)
        self._gpus.stop()
        if self._thread.is_alive():
            self._trouble = Message(
                english(
                    "watch_hangs",
                    "the watch over sensors and kernel log hangs: a sensor or the kernel log does "
                    "not answer",
                )
            )
            return
        self._samples.close()
        self._events.close()
        if self._log is not None:
            self._log.close()
