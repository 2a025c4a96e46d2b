from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import runs
from raising import raising
from runs import unpacked
from worded import worded

from acceptance.core.evidence import Sample
from acceptance.core.parts import Function, Gpu
from acceptance.core.record import CheckStarted, Entry, Event, Note
from acceptance.journal import reader, segment
from acceptance.journal import run as journal_run
from acceptance.run.live_feed import PERIOD_S, LiveFeed, Playback, RunClock, play, usual_speed

XID = Event("xid", "error", "NVRM: Xid", "A fault.", "Look.", 94, Function("0000:01:00.0"))


class Seen:
    """A view, and the clock of its looks."""

    def __init__(self, run_dir: Path) -> None:
        self.bodies: list[object] = []
        self.now_s = 0.0
        self.sight = LiveFeed(run_dir, self._take, ("journal-watch.jsonl",), lambda: self.now_s)

    def _take(self, entry: Entry) -> None:
        self.bodies.append(entry.body)

    def look(self, after_s: float = PERIOD_S, *, last: bool = False) -> list[object]:
        self.bodies.clear()
        self.now_s += after_s
        self.sight.poll(last=last)
        return list(self.bodies)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[segment.Writer]:
    with segment.Writer(
        tmp_path / reader.GPU_TELEMETRY, runs.machine_root(tmp_path / "root")
    ) as made:
        yield made


def test_of_samples_the_newest_of_each_component_is_shown_once(
    tmp_path: Path, writer: segment.Writer
) -> None:
    seen = Seen(tmp_path)
    assert seen.look() == [], "nothing was written yet"
    for degrees in (60.0, 61.0, 62.0):
        writer.write(Sample({"temperature_c": degrees}, component=Gpu(0)))
        writer.write(Sample({"temperature_c": degrees + 10}, component=Gpu(1)))
    newest = [
        Sample({"temperature_c": 62.0}, component=Gpu(0)),
        Sample({"temperature_c": 72.0}, component=Gpu(1)),
    ]
    assert seen.look() == newest
    assert seen.look() == [], "it was shown"
    writer.write(Sample({"temperature_c": 75.0}, component=Gpu(1)))
    assert seen.look() == [Sample({"temperature_c": 75.0}, component=Gpu(1))]


def test_what_few_samples_hold_is_shown_though_newer_ones_came(
    tmp_path: Path, writer: segment.Writer
) -> None:
    seen = Seen(tmp_path)
    rates = Sample({"temperature_c": 60.0, "pcie_tx_gb_s": 12.5}, component=Gpu(0))
    later = Sample({"temperature_c": 61.0}, component=Gpu(0))
    for body in (rates, later, later):
        writer.write(body)
    assert seen.look() == [rates, later]
    assert seen.look() == []


def test_looks_are_a_second_apart_but_for_the_last(tmp_path: Path, writer: segment.Writer) -> None:
    seen = Seen(tmp_path)
    writer.write(Sample({"power_w": 1.0}, component=Gpu(0)))
    assert seen.look(0.5) == []
    assert len(seen.look(0.5)) == 1
    writer.write(Sample({"power_w": 2.0}, component=Gpu(0)))
    assert seen.look(0.1) == []
    assert len(seen.look(0.1, last=True)) == 1


def test_a_long_segment_is_read_at_its_end_alone(tmp_path: Path, writer: segment.Writer) -> None:
    for look in range(2_000):
        writer.write(Sample({"power_w": float(look)}, component=Gpu(0)))
    assert (tmp_path / reader.GPU_TELEMETRY).stat().st_size > 3 * 64 << 10
    assert Seen(tmp_path).look() == [Sample({"power_w": 1999.0}, component=Gpu(0))]


def test_events_of_the_watch_are_shown_and_its_notes_are_not(tmp_path: Path) -> None:
    seen = Seen(tmp_path)
    runs.write_segment(
        tmp_path / "journal-watch.jsonl",
        [Note("a"), XID, XID],
        runs.machine_root(tmp_path / "root"),
    )
    assert seen.look() == [XID, XID]
    assert seen.look() == []


@pytest.mark.parametrize("name", ["journal-watch.jsonl", reader.GPU_TELEMETRY, reader.TELEMETRY])
def test_a_segment_that_cannot_be_read_is_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{}\nno record\nnor this\n")
    other = "journal-watch.jsonl" if name != "journal-watch.jsonl" else reader.TELEMETRY
    body = XID if name != "journal-watch.jsonl" else Sample({"load_1m": 1.0})
    runs.write_segment(tmp_path / other, [body], runs.machine_root(tmp_path / "root"))
    seen = Seen(tmp_path)
    assert seen.look() == [body]
    assert seen.look() == []
    assert seen.sight.failure is None


def test_a_view_that_fails_is_shown_nothing_more(tmp_path: Path, writer: segment.Writer) -> None:
    writer.write(Sample({"power_w": 2.0}, component=Gpu(0)))

    sight = LiveFeed(tmp_path, raising(KeyError("gpu0")), ())
    sight.poll(last=True)
    assert worded(sight.failure) == "the view of the run failed (KeyError: 'gpu0')"
    sight.poll(last=True)


RECORDED = Path(__file__).resolve().parents[2] / "fixtures/recordings/h200/runs/2xh200-host-smoke"


class Clock:
    """A clock that passes by sleeping alone."""

    def __init__(self) -> None:
        self.time_s, self.slept = 100.0, list[float]()

    def now_s(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time_s += seconds


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return unpacked(RECORDED, tmp_path / "run")


def test_a_run_takes_about_a_minute_and_is_never_slower_than_it_was() -> None:
    assert usual_speed(600.0) == 10.0
    assert usual_speed(20.0) == 1.0


def test_the_clock_waits_at_its_speed() -> None:
    clock = Clock()
    played = RunClock(4.0, clock.now_s, clock.sleep)
    played.wait_until(2.0)
    played.wait_until(1.0)  # already passed
    played.wait_until(10.0)
    assert clock.slept == [0.5, 2.0]
    assert played.now_s() == 10.0


def test_at_once_it_never_waits_and_shows_the_time_of_the_record() -> None:
    clock = Clock()
    played = RunClock(None, clock.now_s, clock.sleep)
    played.wait_until(400.0)
    assert (clock.slept, played.now_s()) == ([], 400.0)


def test_records_and_samples_come_in_their_order(run_dir: Path) -> None:
    run = journal_run.read(run_dir)
    moments, entries = zip(*Playback(run).entries(), strict=True)
    assert list(moments) == sorted(moments)
    assert (moments[0], moments[-1]) == (0.0, run.seconds)
    samples = [one for one in entries if isinstance(one.body, Sample)]
    assert len(samples) > 100
    assert len(entries) - len(samples) == len(run.entries)
    stamps = [one.boot_s for one in entries]
    assert stamps == sorted(stamps)


def test_telemetry_that_is_damaged_is_played_as_far_as_it_goes(run_dir: Path) -> None:
    path = run_dir / "telemetry-gpu.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:20], b"{nothing}\n", *lines[20:]]))
    played = Playback(journal_run.read(run_dir))
    entries = [entry for _, entry in played.entries()]
    gpu = [
        one for one in entries if isinstance(one.body, Sample) and one.body.component is not None
    ]
    assert len(gpu) == 19
    assert [one.code for one in played.troubles] == ["no_record"]
    assert any(isinstance(one.body, CheckStarted) for one in entries[20:])


def test_without_telemetry_the_journal_is_played(run_dir: Path) -> None:
    for path in run_dir.glob("telemetry*"):
        path.unlink()
    played = Playback(journal_run.read(run_dir))
    assert not [one for _, one in played.entries() if isinstance(one.body, Sample)]
    assert played.troubles == []


def test_it_stops_when_nobody_sees_it_any_more(run_dir: Path) -> None:
    seen: list[Entry] = []

    def entries() -> Iterator[tuple[float, Entry]]:
        yield from Playback(journal_run.read(run_dir)).entries()

    play(entries(), RunClock(None), (seen.append,), lambda: len(seen) == 3)
    assert len(seen) == 3
