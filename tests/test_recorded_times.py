"""The time that a plan says, against the recorded runs: as a whole before the first check, and what
is left from the first third on. fixtures/recordings/*/runs.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from runs import RECORDED, recorded

from acceptance.core.parts import Core
from acceptance.core.plan import Plan
from acceptance.core.record import CheckEnded, CheckStarted
from acceptance.expect.collected import CollectedCheck
from acceptance.expect.plan_builder import OVERHEAD_S
from acceptance.history import durations
from acceptance.journal.run import Run
from acceptance.machine import topology
from acceptance.machine.gpu import gpus
from acceptance.reports.progress import RunProgress, eta_s
from acceptance.run import planning

# nvbandwidth and the p2p sample were told other times than any profile of today tells them
OTHER_LOADS = {"2xh200-host-smoke"}
RUNS = [name for name in RECORDED if name not in OTHER_LOADS]
# Products from cool were a check of their own, made on each GPU in turn.
GONE_S = {"compute.gemm_alone": 25.0}
CORES = 16  # of the H200 hosts; no recorded run has a check whose time follows its cores
FIRST_CONTACT, LEFT = 0.25, 0.15


@pytest.fixture(scope="module")
def collected() -> dict[str, CollectedCheck]:
    """The checks of today with their costs."""
    return {check.id: check for check in planning.collect(Path("/")).checks}


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest) -> Run:
    """A recorded run."""
    return recorded(request.param)


@pytest.fixture
def plan(run: Run, collected: dict[str, CollectedCheck]) -> Plan:
    """Its plan with the times that today's costs give; a check that is gone keeps its own."""
    made = run.plan
    due = {one.component for check in made.checks for one in check.due}
    cores = [one for one in due if isinstance(one, Core)]
    turns = topology.host_turns(run.inventory, gpus(run.inventory, made.gpus))
    counts = (made.memory_gib, len(made.gpus), len(cores), turns)
    checks = []
    for check in made.checks:
        seconds = check.seconds
        if check.id in collected:
            seconds = collected[check.id].calculated_s(made.loads_s, *counts)
        elif check.id in GONE_S:
            seconds = GONE_S[check.id] * len(made.gpus)
        checks.append(replace(check, seconds=seconds))
    return replace(made, checks=tuple(checks), overhead_s=OVERHEAD_S)


def test_a_plan_is_right_on_first_contact(run: Run, plan: Plan) -> None:
    assert eta_s(plan) == pytest.approx(run.seconds, rel=FIRST_CONTACT)


def test_what_is_left_is_right_from_the_first_third_on(run: Run, plan: Plan) -> None:
    """The time that passed and the time that is left make the whole run, whenever one looks."""
    now = first = run.first.boot_s
    progress, third = RunProgress(plan, lambda: now), first + run.seconds / 3
    steps = [entry for entry in run.entries if isinstance(entry.body, (CheckStarted, CheckEnded))]
    left_s: list[tuple[float, float]] = []
    moment = third
    for entry in steps:
        while moment < entry.boot_s:
            now = moment
            left_s.append((moment - first, progress.left_s()))
            moment += 1.0
        now = entry.boot_s
        if isinstance(entry.body, CheckStarted):
            progress.started(entry.body.check)
        elif isinstance(entry.body, CheckEnded):
            progress.ended(entry.body.check, entry.body.outcome)
    assert len(left_s) > run.seconds / 2
    for passed_s, told_s in left_s:
        assert passed_s + told_s == pytest.approx(run.seconds, rel=LEFT), passed_s


def test_a_night_takes_as_long_as_the_nights_before_it() -> None:
    """Two recorded nights of one machine; the first stands for two."""
    before, after = (recorded(f"1xh200-nightly-{name}") for name in ("accepted", "after"))
    times = durations.times_of(before.entries)
    assert times is not None
    made = durations.with_usual_times(after.plan, [times, times], times.station)
    assert made.timed_runs == 2
    assert eta_s(after.plan) > 1.3 * after.seconds  # what that version calculated
    assert eta_s(made) == pytest.approx(after.seconds, rel=0.10)
