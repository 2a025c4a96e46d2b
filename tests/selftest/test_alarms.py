"""Clean runs are no alarms, the noise is that of the recordings, and a harness
that alarms is noticed.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acceptance.core.fold import fold
from acceptance.core.limit import Grade, Limit
from acceptance.core.parts import Gpu, Pair
from acceptance.core.record import Entry
from acceptance.core.verdict import Verdict
from selftest import drawn_runs
from selftest.alarms import false_alarms
from selftest.drawn_runs import draw, judged, machines, named, spread
from selftest.figures import EVERYWHERE, RECORDED
from selftest.row import FalseAlarms

RUNS = Path(__file__).resolve().parents[2] / "fixtures/recordings/h200/runs"


@functools.cache
def found() -> tuple[FalseAlarms, ...]:
    return false_alarms(9, seed=3)


def test_every_machine_that_ships_has_its_clean_runs() -> None:
    assert [one.what for one in found()] == [machine.name for machine in machines()]
    assert sum(one.runs for one in found()) == 9
    assert [one.runs for one in false_alarms(3, seed=3)] == [1, 1, 1, 0, 0, 0, 0, 0, 0]


def test_a_clean_run_is_no_alarm() -> None:
    assert [one for one in found() if one.alarms] == []


def test_the_same_seed_gives_the_same_runs_and_another_gives_others() -> None:
    machine = named("2x4090")
    once, again, other = (draw(machine, random.Random(seed)) for seed in (1, 1, 2))
    assert once == again != other


def test_a_remark_is_counted_and_is_no_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(_self: Limit, _value: float) -> Grade:
        return "warn"

    monkeypatch.setattr(Limit, "grade", warn)
    (first, *_) = false_alarms(1, seed=1)
    assert (first.alarms, first.remarked) == (0, 1)


def test_limits_that_are_too_tight_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    grade = Limit.grade

    def strict(self: Limit, value: float) -> Grade:
        return "fail" if value in (self.low, self.high) else grade(self, value)

    monkeypatch.setattr(Limit, "grade", strict)
    (first, *_) = false_alarms(1, seed=1)
    assert (first.alarms, first.remarked) == (1, 0)
    assert first.told.startswith("1 x fail: ")


def test_a_fold_that_never_passes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unjudged(entries: list[Entry]) -> Verdict:
        return fold(
            [entry for entry in entries if getattr(entry.body, "measurement", "") != "gpu_count"]
        )

    monkeypatch.setattr(drawn_runs, "fold", unjudged)
    (first, *_) = false_alarms(1, seed=1)
    assert first.alarms == 1
    assert "was not measured" in first.told or "gpu_count" in first.told


def test_a_plain_user_is_not_judged_by_what_only_root_may_read() -> None:
    machine = named("4090-7950x")
    verdict = judged(machine, draw(machine, random.Random(1)), as_root=False)
    assert verdict.verdict == "PASS"
    assert verdict.of_kind("waived")


def recorded(*names: str) -> Iterator[tuple[str, float]]:
    """What was measured in recorded runs."""
    for name in names:
        for file in sorted((RUNS / name).glob("*.jsonl")):
            for line in file.read_text().splitlines():
                body: dict[str, Any] = json.loads(line).get("body", {})
                if body.get("record") == "measured" and body["value"] is not None:
                    yield body["measurement"], body["value"]


ACCEPTED = ("1xh200-container-accept", "1xh200-host-accept", "1xh200-host-accept-burn")


def test_what_was_recorded_is_within_three_deviations_of_the_middle_of_the_draws() -> None:
    machine = named("8xh200")
    middle = {**RECORDED, **EVERYWHERE}
    seen = set()
    for measurement, value in recorded(*ACCEPTED, "2xh200-host-smoke"):
        moved = spread(machine, measurement)
        if measurement in middle and moved.spread:
            seen.add(measurement)
            deviation = moved.spread if moved.absolute else moved.spread * middle[measurement]
            assert abs(value - middle[measurement]) <= 3 * deviation, (measurement, value)
    assert len(seen) > 30
    assert set(RECORDED) - seen <= {
        "copy_own_p2p"
    }  # no recorded run copied to a peer by our own load


def test_ratios_gains_and_spreads_follow_from_what_they_are_of() -> None:
    values = draw(named("2x4090"), random.Random(5))
    rates = [values["compute.gemm_together", "gemm_bf16", gpu] for gpu in (Gpu(0), Gpu(1))]
    assert rates[0] is not None
    assert rates[1] is not None
    assert values["compute.gemm_together", "gemm_bf16_ratio", Gpu(0)] == rates[0] / rates[1]
    gain = values["link.p2p", "p2p_gain", Pair(Gpu(0), Gpu(1))]
    assert gain is not None
    assert 0.9 < gain < 1.1
    spreads = [values["thermal.steady", "burn_temperature_spread", gpu] for gpu in (Gpu(0), Gpu(1))]
    assert spreads[0] is not None
    assert spreads[0] == pytest.approx(-(spreads[1] or 0.0))
