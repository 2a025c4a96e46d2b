from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from known import known
from runs import machine_root, until
from worded import worded

from acceptance.core.evidence import Sample
from acceptance.core.parts import Function, Gpu, parse
from acceptance.core.record import Event, Note
from acceptance.journal import clock, reader, segment
from acceptance.observe import event, kernel_log, kmsg
from acceptance.observe.kernel_line import KernelLine
from acceptance.watch import gpu_supervisor, host
from acceptance.watch.host import HostWatch, to_record
from acceptance.watch.targets import WatchTarget

GONE = "NVRM: Xid (PCI:0000:01:00): 79, pid=1234, name=x, GPU has fallen off the bus."


class Machine:
    """A root with a thermometer and a kernel log, both to be changed by hand."""

    def __init__(self, root: Path) -> None:
        self.root = machine_root(root)
        self.run_dir = root / "run"
        self.run_dir.mkdir()
        self.log = root / "dev/kmsg"
        self.log.parent.mkdir()
        self.log.write_text("6,0,1000,-;Linux version 6.8\n")
        self.thermometer = root / "sys/class/hwmon/hwmon0/temp1_input"
        self.thermometer.parent.mkdir(parents=True)
        (self.thermometer.parent / "name").write_text("k10temp\n")
        self.thermometer.write_text("41000\n")
        self._sequence = 0

    def say(self, *texts: str, skip: int = 0, stamp: float | None = None, level: int = 4) -> None:
        """Let the kernel say something now; `skip` messages before it are lost."""
        with self.log.open("a") as file:
            for text in texts:
                self._sequence += 1 + skip
                usec = int((time.monotonic() if stamp is None else stamp) * 1e6)
                file.write(f"{level},{self._sequence},{usec},-;{text}\n")

    def journalled(self, name: str = host.SEGMENT) -> list[object]:
        return [entry.body for entry in segment.read_segment(self.run_dir / name).entries]


def heard(machine: Machine, watched: HostWatch, *texts: str, last: bool = True) -> list[object]:
    """What is journalled once the kernel has said this and the watch has looked."""
    machine.say(*texts)
    watched._sample(last=last)
    return machine.journalled()


def stopped(watched: HostWatch) -> str:
    """Why the watch failed, once it has ended."""
    watched.stop()
    return str(worded(known(watched.failure)))


def events(machine: Machine) -> list[Event]:
    return [body for body in machine.journalled() if isinstance(body, Event)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def watched(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostWatch]:
    """A watch whose own thread waits for ever: a test looks for it."""
    monkeypatch.setattr(host, "PERIOD_S", 10_000.0)
    watched = HostWatch(machine.run_dir, machine.root)
    yield watched
    if not watched._over.is_set():
        watched.stop()


def test_it_runs_by_itself(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "PERIOD_S", 0.02)
    machine.say("something before the run", GONE)
    watched = HostWatch(machine.run_dir, machine.root)
    assert watched.kernel_log_after == 2
    machine.say(GONE)
    until(machine.journalled, "the event is journalled")
    machine.thermometer.write_text("77000\n")
    until(
        lambda: Sample({"cpu_temperature_c": 77.0}) in machine.journalled(reader.TELEMETRY),
        "the heat is journalled",
    )
    watched.stop()
    assert watched.failure is None
    assert machine.journalled(reader.TELEMETRY)[0] == Sample({"cpu_temperature_c": 41.0})
    (found,) = events(machine)
    assert (found.kind, found.code, found.component, found.severity) == (
        "xid",
        79,
        parse("0000:01:00.0"),
        "fatal",
    )


def test_a_part_under_test_fails_where_another_warns(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "PERIOD_S", 10_000.0)
    watched = HostWatch(machine.run_dir, machine.root, tested={"ata3": "disk"})
    machine.say("ata3: COMRESET failed (errno=-16)", "ata4: COMRESET failed (errno=-16)")
    watched.stop()
    assert [(str(one.component), one.severity) for one in events(machine)] == [
        ("ata3", "error"),
        ("ata4", "warning"),
    ]


def test_the_last_words_are_not_lost(machine: Machine, watched: HostWatch) -> None:
    machine.say(GONE)
    machine.thermometer.write_text("90000\n")
    watched.stop()
    assert [type(body) for body in machine.journalled()] == [Event]
    assert machine.journalled(reader.TELEMETRY)[-1] == Sample({"cpu_temperature_c": 90.0})
    assert watched.failure is None


def test_a_report_of_several_messages_is_held_back_until_it_is_whole(
    machine: Machine, watched: HostWatch
) -> None:
    aer = "pcieport 0000:00:01.0: "
    heard(
        machine,
        watched,
        f"{aer}AER: Uncorrectable (Fatal) error message received from 0000:01:00.0",
        last=False,
    )
    machine.say(
        f"{aer}PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, "
        "(Receiver ID)"
    )
    machine.say(
        f"{aer}  device [8086:a70d] error status/mask=00000020/00000000",
        f"{aer}   [ 5] SDES                   (First)",
    )
    watched._sample(last=False)
    assert machine.journalled() == []
    watched._sample(last=False)
    whole = machine.journalled()
    assert whole
    watched._sample(last=False)
    assert machine.journalled() == whole  # and only once


def test_an_endless_stream_of_messages_does_not_hold_them_back_for_ever(
    machine: Machine, watched: HostWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An error storm before a crash is the evidence of it.
    heard(machine, watched, GONE, last=False)
    now = clock.boot_s()
    monkeypatch.setattr(clock, "boot_s", lambda: now + host.HOLD_S)
    heard(machine, watched, "more and more", last=False)
    assert [type(body) for body in machine.journalled()] == [Event]


def test_lost_messages_are_trouble(machine: Machine, watched: HostWatch) -> None:
    machine.say("one", skip=3)
    watched._sample(last=True)
    assert worded(
        [
            (body.trouble, "overwrote" in worded(body.text))
            for body in machine.journalled()
            if isinstance(body, Note)
        ]
    ) == [(True, True)]
    watched._sample(last=True)
    assert len(machine.journalled()) == 1


@pytest.mark.parametrize(
    ("log", "after"),
    [("6,812,1000,-;Linux version 6.8 has long scrolled away\n", 812), ("", -1)],
    ids=["what was lost before the run", "an empty log"],
)
def test_where_the_log_begins_is_no_trouble(machine: Machine, log: str, after: int) -> None:
    machine.log.write_text(log)
    watched = HostWatch(machine.run_dir, machine.root)
    watched.stop()
    assert (watched.kernel_log_after, machine.journalled(), watched.failure) == (after, [], None)


@pytest.mark.parametrize("content", [None, "rubbish\n"])
def test_a_log_that_cannot_be_read_is_said(machine: Machine, content: str | None) -> None:
    machine.log.unlink()
    if content is not None:
        machine.log.write_text(content)
    watched = HostWatch(machine.run_dir, machine.root)
    machine.thermometer.write_text("55000\n")
    watched.stop()
    assert (watched.kernel_log_after, watched.failure) == (None, None)
    (note,) = machine.journalled()
    assert isinstance(note, Note)
    assert worded(note.text).startswith("the kernel log was not followed: ")
    assert len(machine.journalled(reader.TELEMETRY)) == 2


def test_a_log_that_breaks_later(machine: Machine, watched: HostWatch) -> None:
    machine.log.write_text(machine.log.read_text() + "rubbish\n")
    failure = stopped(watched)
    assert failure.startswith("the watch over sensors and kernel log stopped: ")
    assert "rubbish" in failure


def test_a_journal_that_cannot_be_written(
    machine: Machine, watched: HostWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def fsync(file: int) -> None:
        if file == watched._samples._file:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    assert "telemetry.jsonl: cannot be written (No space left on device)" in stopped(watched)


def test_a_segment_that_cannot_be_begun(machine: Machine) -> None:
    (machine.run_dir / reader.TELEMETRY).write_text("")
    with pytest.raises(segment.JournalError, match="File exists"):
        HostWatch(machine.run_dir, machine.root)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_of_its_own_is_no_silence(
    machine: Machine, watched: HostWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty: dict[str, object] = {}
    monkeypatch.setattr(kmsg.Kmsg, "read_new", lambda _: empty["slip"])
    assert stopped(watched) == (
        "the watch over sensors and kernel log died of an error of its own: please report it"
    )


def test_a_sensor_that_hangs(
    machine: Machine, watched: HostWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = watched._thread.join
    monkeypatch.setattr(watched._over, "set", lambda: None)
    monkeypatch.setattr(watched._thread, "join", lambda _: real(0.01))
    assert "does not answer" in stopped(watched)
    monkeypatch.undo()
    watched.stop()


# --- the GPUs ---


GPU = (WatchTarget(Gpu(0), "GPU-0", "0000:01:00.0"),)


def test_a_child_that_ends_before_the_run_is_the_watch_s_failure(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "PERIOD_S", 0.02)
    monkeypatch.setattr(
        gpu_supervisor, "argv", lambda _: (sys.executable, "-c", "raise SystemExit('no driver')")
    )
    watched = HostWatch(machine.run_dir, machine.root, GPU)
    until(known(watched._gpus._running).poll, "the child ends")
    machine.log.write_text(machine.log.read_text() + "rubbish\n")
    failure = stopped(watched)
    assert failure.startswith("the watch over sensors and kernel log stopped: ")
    assert failure.endswith("before the run did: no driver")


@pytest.mark.parametrize("readable", [True, False])
def test_the_child_is_told_whether_the_kernel_log_is_followed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, readable: bool
) -> None:
    monkeypatch.setattr(
        gpu_supervisor, "argv", lambda _: (sys.executable, "-c", "import time; time.sleep(60)")
    )
    if not readable:
        machine.log.unlink()
    watched = HostWatch(machine.run_dir, machine.root, GPU)
    watched.stop()
    assert watched.failure is None, "its child watched until it was stopped"
    context = msgspec.json.decode((machine.run_dir / gpu_supervisor.CONTEXT).read_bytes())
    assert context["kernel_log"] is readable


# --- when it happened ---


def seen(stamp: float | str | None) -> event.KernelEvent:
    return event.KernelEvent(
        "xid",
        79,
        Function("0000:01:00.0"),
        "fatal",
        stamp,
        "text",
        "meaning",
        "action",
        hardware=True,
    )


@pytest.mark.parametrize(
    ("stamp", "moment"),
    [
        (499.0, 499.0),  # a moment ago
        (497.0, 497.0),
        (496.9, 500.0),  # too long ago to have been read only now: the clocks differ
        (500.05, 500.05),
        (500.2, 500.0),  # not yet
        (12.0, 500.0),
        ("Mon Jan  1 00:00:00 2026", 500.0),
        (None, 500.0),
    ],
)
def test_a_stamp_counts_when_it_fits_the_moment_of_reading(
    stamp: float | str | None, moment: float
) -> None:
    assert to_record(seen(stamp), 500.0, 0.0).boot_s == moment


def test_a_machine_that_slept() -> None:
    # The kernel's messages carry a clock that stands still in sleep; ours does not.
    assert to_record(seen(99.5), 500.0, 400.0).boot_s == 499.5
    assert to_record(seen(99.5), 500.0, 400.0) == Event(
        "xid",
        "fatal",
        "text",
        "meaning",
        "action",
        79,
        Function("0000:01:00.0"),
        499.5,
        hardware=True,
    )


def test_an_event_is_dated_by_its_stamp_though_it_was_held_back(
    machine: Machine, watched: HostWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "PERIOD_S", 1.0)
    monkeypatch.setattr(clock, "boot_s", lambda: 5000.0)
    monkeypatch.setattr(time, "monotonic", lambda: 4000.0)
    machine.say(GONE, stamp=3999.5)
    watched._sample(last=False)
    monkeypatch.setattr(clock, "boot_s", lambda: 5060.0)  # the next look comes late
    monkeypatch.setattr(time, "monotonic", lambda: 4060.0)
    watched._sample(last=False)
    assert [one.boot_s for one in events(machine)] == [4999.5]


def test_the_time_that_reading_a_report_takes_moves_no_event(
    machine: Machine, watched: HostWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would put an event of a check's first moments to before the check began."""
    read = kernel_log.events_of

    def slowly(lines: Sequence[KernelLine]) -> tuple[event.KernelEvent, ...]:
        time.sleep(0.5)
        return read(lines)

    monkeypatch.setattr(kernel_log, "events_of", slowly)
    began = clock.boot_s()
    machine.say(GONE)
    said = clock.boot_s()
    watched._sample(last=True)
    (found,) = events(machine)
    assert began - 0.01 <= known(found.boot_s) <= said + 0.01
