"""Every shipped profile on a sound machine of one GPU, of two and of eight: it passes whole.

Each machine is a described one with its shipped machine file, and no check is left out: all loads
are replayed (`played`). What a run does on a real disk is not: the folder of its runs lies on RAM.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import played
import pytest

from acceptance.core.plan import Plan
from acceptance.core.record import RunStarted
from acceptance.core.verdict import covers

# Each takes half a minute to a minute and mostly waits; all of them a few minutes side by side.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

MACHINES = {
    "1xh200-vm": "1xh200-vm.toml",
    "2x4090": "2x4090.toml",
    "8xh100": "8xh100.toml",
}
# With a shorter burn, because they are too long for a rehearsal even as they are played here.
SHORTENED = {"smoke": False, "accept": True, "nightly": False, "train": False, "soak": True}
AT_ONCE = 5


@dataclass(frozen=True)
class Result:
    """What a run left: its files are gone when the next one begins."""

    code: int
    out: str
    plan: Plan
    verdict: dict[str, Any]
    outcomes: dict[str, str]
    accused: str


Results = dict[tuple[str, str], "Future[Result]"]


def _play(home: Path, library: Path, name: str, profile: str) -> Result:
    with played.machine(home, library, name, MACHINES[name]) as stage:
        run = played.play(stage, profile, short=SHORTENED[profile])
        if run.folder is not None and "watch.sampled" in run.texts("unjudged"):
            # The machine that tests was too busy for its own watch, which it says.
            run = played.play(stage, profile, short=SHORTENED[profile])
        assert run.folder is not None, run.err
        run.assert_agrees()
        (started,) = run.bodies(RunStarted)
        accused = run.texts("violations") + run.texts("unjudged")
        return Result(run.code, run.out, started.plan, run.verdict, run.outcomes(), accused)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, library: Path) -> Iterator[Results]:
    """All of them, side by side, each with a lock of the machine of its own."""
    home = tmp_path_factory.mktemp("profiles")
    longest = sorted(SHORTENED, key=("soak", "accept").count, reverse=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            (name, profile): pool.submit(_play, home / f"{name}-{profile}", library, name, profile)
            for profile in longest
            for name in reversed(MACHINES)
        }


@pytest.mark.parametrize("profile", SHORTENED)
@pytest.mark.parametrize("name", MACHINES)
def test_a_sound_machine_passes_the_whole_profile(runs: Results, name: str, profile: str) -> None:
    found = runs[name, profile].result()
    assert found.accused == "", found.out
    assert (found.code, found.verdict["verdict"]) == (0, "PASS")
    assert found.verdict["scope"] == ("partial" if SHORTENED[profile] else "full")
    assert found.plan.gaps == ()
    waived = {
        check.id
        for check in found.plan.checks
        for due in check.due
        for one in found.plan.waivers
        if one.skip is not None and covers(one, check.id, due)
    }
    assert found.outcomes.keys() == {check.id for check in found.plan.checks}
    assert {check for check, outcome in found.outcomes.items() if outcome != "pass"} <= waived
    assert {found.outcomes[check] for check in waived} <= {"pass", "skip"}


def _measured(verdict: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """What verdict.json holds of each measurement and component."""
    return {
        (one["measurement"], one["component"]): one
        for check in verdict["checks"]
        for one in check["measurements"]
    }


def test_what_a_machine_has_not_is_not_due(runs: Results) -> None:
    """Two 4090 have no peer access, as it should be, and no counters of ECC."""
    told = _measured(runs["2x4090", "accept"].result().verdict)
    supported = told["p2p_supported", "gpu0->gpu1"]
    assert (supported["value"], supported["limit"]["high"]) == (0, 0)
    assert ("copy_d2d_read", "gpu0->gpu1") not in told
    assert ("gpu_ecc_uncorrected", "gpu0") not in told


def test_every_path_of_eight_is_measured(runs: Results) -> None:
    told = _measured(runs["8xh100", "accept"].result().verdict)
    assert sum(1 for measurement, _ in told if measurement == "copy_d2d_read") == 56
    assert [told["nvlink_active", f"gpu{index}"]["value"] for index in range(8)] == [18] * 8
