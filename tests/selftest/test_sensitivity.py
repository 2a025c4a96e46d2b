"""Every limit can fail, the smallest fault is what the limit and the noise make it, and a judge
with a fault in it is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from cases import each
from msgspec.structs import replace

from acceptance.core.finding import About, Finding, Within
from acceptance.core.fold import fold
from acceptance.core.record import Entry
from acceptance.core.verdict import Verdict
from acceptance.expect import measurements
from selftest import drawn_runs
from selftest.drawn_runs import everything, machines, named
from selftest.durations import lasting
from selftest.probe import Caught, Subject, first, smallest, subjects, unable
from selftest.sensitivity import every, rows, unmeasured
from selftest.sensitivity_rows import COUNTED, SLOW
from selftest.slowness import BASES, caught_slow

PAGE = Path(__file__).resolve().parents[2] / "docs/sensitivity.md"
QUICK = [  # nothing is drawn for these
    asked
    for asked in COUNTED
    if {
        one.unit
        for one in measurements.shipped().by_name.values()
        if re.fullmatch(asked.pattern, one.name)
    }
    <= {"count", "s"}
]


def subject(machine: str, measurement: str, *, less: bool = True) -> Subject:
    return next(
        one
        for one in subjects(named(machine))
        if one.due.measurement == measurement and one.less == less
    )


def searched(machine: str, measurement: str, *, less: bool = True) -> Caught:
    return smallest(subject(machine, measurement, less=less), 20, 1, {})


@each("name", ["1xh200", "2x4090", "cpu-only"])
def test_every_limit_can_fail_and_nothing_may_be_left_out(name: str) -> None:
    assert list(unable(named(name))) == []


def test_so_can_all_that_can_be_declared() -> None:
    assert list(unable(everything())) == []


def test_every_limited_measurement_has_its_row() -> None:
    patterns = [one.pattern for one in (*SLOW, *COUNTED)]
    names = {one.due.measurement for machine in every() for one in subjects(machine)}
    unasked = {
        name for name in names if not any(re.fullmatch(pattern, name) for pattern in patterns)
    }
    assert unasked == {"cpu_gemm_f64"}  # limited by one machine file's own figure only


@each(
    "measurement, less, fails, warns",
    [
        ("gemm_bf16_miscompares", False, 1, 1),
        ("gpu_ecc_uncorrected", False, 1, 1),
        ("gpu_remapped_uncorrected", False, 513, 1),
        ("gpu_pcie_replays", False, 81, 1),
        ("gpu_link_width", True, 1, 1),
        ("nvlink_active", True, 1, 1),
        ("gpu_count", True, 1, 1),
        ("gpu_count", False, 1, 1),
        ("gpu_hw_thermal_slowdown", False, 0.001, 0.001),
    ],
)
def test_the_smallest_count(measurement: str, less: bool, fails: float, warns: float) -> None:
    found = searched("8xh200", measurement, less=less)
    assert (found.fails, found.warns) == (fails, warns)


def test_noise_moves_what_is_caught_for_certain() -> None:
    """Half of the runs fail at 10 % already; 99 of 100 need as much more as the
    noise of the ratio takes.
    """
    ratio = searched("8xh200", "gemm_bf16_ratio")
    assert ratio.fails is not None
    assert ratio.warns is not None
    assert 0.10 < ratio.fails < 0.13
    assert 0.05 < ratio.warns < 0.08
    unsteady = searched("8xh200", "gemm_f16_short_ratio")
    assert unsteady.fails is not None
    assert unsteady.fails > ratio.fails + 0.02


def test_halving_finds_the_first_step() -> None:
    steps = [float(step) for step in range(1, 100)]
    assert [first(steps, lambda size, edge=edge: size >= edge) for edge in (1, 2, 57, 99, 100)] == [
        1,
        2,
        57,
        99,
        None,
    ]  # type: ignore[misc]


def test_what_is_slow_is_caught_or_missed_and_nothing_else() -> None:
    found = caught_slow(runs=4, percents=(0, 25))
    assert len(found) == 2 * len(BASES)
    assert all(one.fails + one.warns + one.missed == pytest.approx(1) for one in found)
    assert all(one.fails == 1 for one in found if one.percent == 25)
    assert all(one.fails == 0 for one in found if one.percent == 0)


def test_a_flag_must_last_from_one_sample_to_the_next() -> None:
    flagged, halved = lasting(2, 1)  # of two runs only; the page has a hundred
    told = re.fullmatch(r"fails at ([0-9.]+) s", flagged.smallest)
    assert told
    assert 0 < float(told[1]) <= 0.2
    assert "warns at" in halved.smallest


def without_findings(verdict: Verdict) -> Verdict:
    """The verdict with no reason against the run: a PASS."""
    checks = tuple(replace(one, findings=()) for one in verdict.checks)
    return replace(verdict, checks=checks, findings=())


def test_a_fold_that_counts_only_failures_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(entries: Sequence[Entry]) -> Verdict:
        verdict = fold(entries)
        return verdict if verdict.verdict == "FAIL" else without_findings(verdict)

    monkeypatch.setattr(drawn_runs, "fold", blind)
    found = list(unable(named("1xh200")))
    assert "1xh200: gpu.present, gpu_count: a run without it passes" in found
    assert len(found) == sum(
        len({due.measurement for due in check.due}) for check in named("1xh200").plan.checks
    )


def test_a_limit_that_is_dropped_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    against = Within.judge

    def lenient(self: Within, about: About, value: float) -> Finding | None:
        return None if about.measurement == "gemm_bf16" else against(self, about, value)

    monkeypatch.setattr(Within, "judge", lenient)
    assert list(unable(named("1xh200"))) == [
        "1xh200: compute.gemm_together, gemm_bf16: no fault of it fails"
    ]
    (row,) = rows([one for one in SLOW if "in bf16" in one.what], 5, 1)
    assert "gemm_bf16 " not in row.how


def test_a_judge_that_only_remarks_has_rows_that_say_never(monkeypatch: pytest.MonkeyPatch) -> None:
    def remarking(entries: Sequence[Entry]) -> Verdict:
        return replace(without_findings(fold(entries)), checks=())

    monkeypatch.setattr(drawn_runs, "fold", remarking)
    (row,) = rows(QUICK[:1], 2, 1)
    assert (row.smallest, row.missed) == ("never", "all")
    left_out = unmeasured([named("1xh200")])
    assert (left_out.smallest, left_out.missed) == ("never", "1")


def test_the_page_tells_what_is_found_now() -> None:
    page = PAGE.read_text()
    for row in rows(QUICK, 1, 1):
        assert f"| {row.what} | {row.smallest} | {row.missed} | {row.how} |" in page
    assert "python -m selftest.sensitivity" in page
    for machine in machines():
        assert f"| {machine.name} |" in page
