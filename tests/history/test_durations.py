"""The usual times of checks: which earlier runs count, and what they say of the next plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import journals
import nights
import pytest
from cases import each
from known import known
from msgspec.structs import replace

from acceptance.core.parts import Gpu
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Entry,
    Outcome,
    RunEnded,
    RunStarted,
)
from acceptance.history import durations
from acceptance.history.durations import LEAST, RECENT, RunTimes
from acceptance.journal import reader

ONE, TWO = journals.check("a.one", seconds=100.0), journals.check("a.two", seconds=10.0)
PLAN = replace(journals.plan(ONE, TWO), gpus=(Gpu(0),), overhead_s=4.0)


def entries(*timed: tuple[float, Body]) -> list[Entry]:
    """A run in place, with these records at these seconds; it ends after 200."""
    start = RunStarted("run-1", PLAN, {"station": "host"}, "machine-1")
    bodies = [(0.0, start), *timed, (200.0, RunEnded(True, "done"))]
    return [
        Entry(number, 1000.0 + at, "2026-01-01T00:00:00.000Z", body, "journal.jsonl")
        for number, (at, body) in enumerate(bodies)
    ]


def ended(check: str, seconds: float, outcome: Outcome = "pass") -> CheckEnded:
    return CheckEnded(check, outcome, "", seconds)


def times(
    took: Mapping[str, float],
    *planned: PlannedCheck,
    station: str = "host",
    gpus: int = 1,
    overhead_s: float = 6.0,
) -> RunTimes:
    checks = planned or (ONE, TWO)
    return RunTimes(station, gpus, {one.id: one for one in checks}, took, overhead_s)


def started(check: str, at: float, seconds: float, outcome: Outcome = "pass") -> list[Any]:
    """A check that starts then and runs so long, as the journal times it and as it says itself."""
    return [(at, CheckStarted(check)), (at + seconds, ended(check, seconds, outcome))]


@each(
    "timed, took, overhead_s",
    [
        (
            [*started("a.one", 5.0, 80.0), *started("a.two", 100.0, 90.0, "fail")],
            {"a.one": 80.0, "a.two": 90.0},
            30.0,
        ),
        (
            [
                *started("a.one", 10.0, 100.0)[:1],
                *started("a.two", 20.0, 40.0),
                *started("a.one", 10.0, 100.0)[1:],
            ],
            {"a.one": 100.0, "a.two": 40.0},
            100.0,
        ),
        # It ran all the same.
        (started("a.one", 1.0, 149.0, "error"), {}, 51.0),
        (started("a.one", 1.0, 149.0, "skip"), {}, 51.0),
        (
            [*started("a.one", 1.0, 100.0), *started("a.one", 110.0, 40.0)],
            {"a.one": 100.0},
            60.0,
        ),
    ],
    told=[
        *("its checks and the rest", "time in which two checks run is counted once"),
        *("a check with an error has no time", "a skipped check has no time"),
        "of a repeated check the first time counts",
    ],
)
def test_the_times_of_a_run(timed: list[Any], took: dict[str, float], overhead_s: float) -> None:
    found = known(durations.times_of(entries(*timed)))
    assert (found.station, found.gpus, found.sessions) == ("host", 1, {"load"})
    assert found.took == took
    assert found.overhead_s == pytest.approx(overhead_s)


SLOW, USUAL, BOTH = {"a.one": 500.0}, {"a.one": 130.0}, {"a.one": 90.0, "a.two": 9.0}


@each(
    "runs, usual, timed, overhead_s",
    [
        (
            [*map(times, (USUAL, SLOW, USUAL, USUAL, USUAL)), *[times(SLOW)] * 9],
            [130.0, None],
            5,
            6.0,
        ),
        ([*[times(BOTH)] * 2, *[times({"a.one": 90.0})] * 2], [90.0, 9.0], 4, 6.0),
        ([times(USUAL)], [None, None], 0, 4.0),
        ([], [None, None], 0, 4.0),
        ([times(USUAL)] * LEAST, [130.0, None], LEAST, 6.0),
        ([times(USUAL, replace(ONE, seconds=105.0), TWO)] * 2, [130.0, None], 2, 6.0),
        (
            [times({}, journals.check("a.after", session="host-after"), overhead_s=1.0)] * 2,
            [None, None],
            0,
            4.0,
        ),
    ],
    told=[
        *("the median of the newest", "of the check that has most", "fewer than two show nothing"),
        *("none", "as many as are needed", "a little more free RAM makes no other kind"),
        "the rest is that of runs with the same sessions",
    ],
)
def test_the_usual_times(
    runs: list[RunTimes], usual: list[float | None], timed: int, overhead_s: float
) -> None:
    made = durations.with_usual_times(PLAN, runs, "host")
    assert [check.usual_s for check in made.checks] == usual
    assert [check.seconds for check in made.checks] == [100.0, 10.0]  # which limits rest on
    expected = [one or own for one, own in zip(usual, (100.0, 10.0), strict=True)]
    assert [check.expected_s for check in made.checks] == expected
    assert (made.timed_runs, made.overhead_s) == (timed, overhead_s)


@each(
    "changed, check",
    [
        ({"station": "docker"}, ONE),
        ({"gpus": 2}, ONE),
        ({}, replace(ONE, seconds=110.0)),
        ({}, replace(ONE, session="host-after")),
        ({}, replace(ONE, id="a.other")),
    ],
)
def test_a_run_of_another_kind_does_not_count(changed: dict[str, Any], check: PlannedCheck) -> None:
    other = times({"a.one": 130.0, "a.other": 1.0}, check, TWO, **changed)
    made = durations.with_usual_times(PLAN, [other, other], "host")
    assert ([one.usual_s for one in made.checks], made.timed_runs) == ([None, None], 0)
    assert durations.times_of(entries()[1:]) is None


def test_the_last_runs_of_this_profile_and_of_others_are_read(tmp_path: Path) -> None:
    """A machine with many nights since its last long run still knows how long that takes."""
    accept = journals.plan(journals.check(seconds=50.0), profile="accept")
    recorded = [nights.night(90, profile="accept", folder="gone")]
    whole = ("partial", "own-image")
    for plan, changed in (
        *((accept, {"apart": apart}) for apart in (*whole, "in-use", "interrupted")),
        *((accept, {"apart": apart}) for apart in ("not-whole", "salvaged")),
        (accept, {"postponed": True}),
        *[(journals.plan(profile="nightly"), {})] * (RECENT + 3),
    ):
        name = f"run-{len(recorded):05}"
        nights.write_run(tmp_path, name, plan=plan)
        recorded.append(nights.night(len(recorded), profile=plan.profile, folder=name, **changed))
    found = durations.recent(recorded, tmp_path, "nightly")
    seconds = [[one.seconds for one in run.planned.values()] for run in found]
    assert seconds == [[1.0]] * RECENT + [[50.0]] * len(whole)
    assert durations.recent(recorded, tmp_path, "accept") == found
    (tmp_path / str(recorded[-1].folder) / reader.SUPERVISOR).write_text("not a journal\n")
    assert len(durations.recent(recorded, tmp_path, "nightly")) == len(found) - 1
