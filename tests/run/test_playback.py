"""A run that is played: its order, its clock, and what cannot be read of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from runs import unpacked

from acceptance.core.evidence import Sample
from acceptance.core.record import CheckStarted, Entry
from acceptance.journal import run as journal_run
from acceptance.run.playback import Playback, RunClock, play, usual_speed

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
