"""Whether a GPU worked for the time of a load: by its use, its power, or its energy counter.

Synthetic, and on recorded runs.
"""

from __future__ import annotations

import gzip
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cases import each
from runs import recorded
from thoroughness import ALL

from acceptance.core.clock_reasons import IDLE
from acceptance.core.parts import Gpu
from acceptance.core.record import CheckEnded, CheckStarted, RunStarted
from acceptance.diagnosis.gpu_history import GpuHistory, HistoryPoint, OutOfRange, histories
from acceptance.diagnosis.gpu_work import idle_reason, power_trouble, setting_changes, work
from acceptance.expect import sensor_range
from acceptance.journal import reader
from acceptance.journal import segment as journal_segment
from acceptance.machine.thresholds import thresholds
from acceptance.wording import words

RUNS = Path(__file__).resolve().parents[2] / "fixtures/recordings/h200/runs"
RECORDED = [path.parent for path in sorted(RUNS.glob(f"*/{reader.GPU_TELEMETRY}.gz"))]
BEGIN, END, LOAD_S = 100.0, 130.0, 20.0
# The shortest five; `make test-all` reads them all.
BY_SIZE = sorted(
    RECORDED, key=lambda folder: (folder / f"{reader.GPU_TELEMETRY}.gz").stat().st_size
)
TRIED = RECORDED if ALL else BY_SIZE[:5]
# What keeps every GPU at work, and the load in the plan that says for how long.
WORKING = {
    "compute.gemm_together": "gpu_gemm",
    "vram.patterns": "vram",
    "together.burn": "burn",
    **{f"burn.gpu_burn[{mode}]": f"gpu_burn_{mode}" for mode in ("float", "tensor", "double")},
}


def at_work(moment: float) -> dict[str, float]:
    """A card of 450 W from 105 to 125 s, as it is told when all is well."""
    busy = 105.0 <= moment < 125.0
    power_w = 440.0 + round(moment * 5) % 3 if busy else 21.0
    energy_j = 21.0 * moment + 420.0 * min(max(moment - 105.0, 0.0), 20.0)
    return {
        "utilisation": float(busy),
        "power_w": power_w,
        "energy_j": energy_j,
        "power_limit_w": 450.0,
    }


def history(
    change: Callable[[float], Mapping[str, float | None]] = lambda _moment: {},
) -> GpuHistory:
    points = []
    for step in range(5 * 40):
        moment = round(95.0 + step / 5, 3)
        values = {**at_work(moment), **change(moment)}
        points.append(
            HistoryPoint(
                moment, {name: value for name, value in values.items() if value is not None}
            )
        )
    return GpuHistory(Gpu(0), tuple(points))


def without(*names: str) -> dict[str, float | None]:
    return dict.fromkeys(names)


@each("evidence", ["utilisation", "power_w", "energy_j"])
def test_one_kind_of_evidence_is_enough(evidence: str) -> None:
    others = {"utilisation", "power_w", "energy_j"} - {evidence}
    found = history(lambda _moment: without(*others))
    assert idle_reason(found, BEGIN, END, LOAD_S) is None
    assert work(found, BEGIN, END).seconds == pytest.approx(20.0, abs=1.0)


def test_a_gpu_that_stood_still_for_most_of_the_time_proves_nothing() -> None:
    def resting(moment: float) -> Mapping[str, float | None]:
        return (
            {"utilisation": 0.0, "power_w": 21.0, "energy_j": 2310.0 + 21.0 * moment}
            if moment >= 110.0
            else {}
        )

    told = idle_reason(history(resting), BEGIN, END, LOAD_S)
    assert words.text(told or "") == (
        "gpu0 was to work for 20 s and was seen at work for 5.0 s "
        "(in use for 5.0 s, above 225 W for 5.0 s (at most 442 W), by its energy counter for 5.0 s)"
    )


@pytest.mark.parametrize(("until", "enough"), [(121.4, True), (120.6, False)])
def test_the_share_of_the_load_that_must_be_seen(until: float, enough: bool) -> None:
    def change(moment: float) -> Mapping[str, float | None]:
        return {
            **without("power_w", "energy_j"),
            **({"utilisation": 0.0} if moment >= until else {}),
        }

    assert (idle_reason(history(change), BEGIN, END, LOAD_S) is None) == enough


def test_what_came_before_and_after_the_check_is_not_its_work() -> None:
    assert idle_reason(history(), 95.0, 105.0, LOAD_S) is not None
    assert idle_reason(history(), 125.0, 134.0, LOAD_S) is not None


def test_use_that_the_driver_itself_calls_idle_is_none() -> None:
    found = history(lambda _moment: {IDLE: 1.0, **without("power_w", "energy_j")})
    assert idle_reason(found, BEGIN, END, LOAD_S) is not None


def test_without_power_nothing_is_said_of_it() -> None:
    assert power_trouble(history(lambda _moment: without("power_w")), [(BEGIN, END)]) is None
    assert power_trouble(GpuHistory(Gpu(0), ()), [(BEGIN, END)]) is None


def test_nothing_told_is_nothing_shown() -> None:
    said = idle_reason(
        history(lambda _moment: without("utilisation", "power_w", "energy_j")), BEGIN, END, LOAD_S
    )
    assert said is not None
    assert words.message(said).endswith(
        "(its use is not told, its power is not told, its energy is not told)"
    )


def test_samples_that_stand_for_seconds() -> None:
    points = [
        HistoryPoint(110.0, {"utilisation": 0.9, "power_w": 430.0, "power_limit_w": 450.0}, 10.0),
        HistoryPoint(120.0, {"utilisation": 1.0, "power_w": 440.0}, 10.0),
        HistoryPoint(130.0, {"utilisation": 0.1, "power_w": 60.0}, 10.0),
    ]
    found = work(GpuHistory(Gpu(0), tuple(points)), 99.0, 131.0)
    assert (found.use_s, found.power_s, found.energy_s) == (pytest.approx(20.0), 20.0, None)


@each("folder", TRIED, told=lambda folder: str(folder.name))
def test_healthy_gpus_were_seen_at_work_and_their_power_was_measured(
    folder: Path, tmp_path: Path
) -> None:
    segment = tmp_path / reader.GPU_TELEMETRY
    segment.write_bytes(gzip.decompress((folder / f"{reader.GPU_TELEMETRY}.gz").read_bytes()))
    found = histories(journal_segment.read_segment(segment).entries)
    assert found
    entries = recorded(folder.name).entries
    (started,) = [entry.body for entry in entries if isinstance(entry.body, RunStarted)]
    began = {one.body.check: one.boot_s for one in entries if isinstance(one.body, CheckStarted)}
    ended = {one.body.check: one.boot_s for one in entries if isinstance(one.body, CheckEnded)}
    spans = {name: (began[name], ended[name]) for name in WORKING if name in ended}
    assert spans
    for gpu in found.values():
        for name, span in spans.items():
            load_s = started.plan.loads_s[WORKING[name]]
            assert work(gpu, *span).seconds > 1.1 * thresholds().work.share * load_s, name
        assert power_trouble(gpu, tuple(spans.values())) is None
        assert gpu.outside == {}
        assert gpu.vanished() == {}
        assert setting_changes(gpu, ()) == ()


def test_recorded_runs_with_telemetry_are_there() -> None:
    listed = tomllib.loads((RUNS / "INDEX.toml").read_text())["run"]
    assert len(RECORDED) >= 6
    assert {path.name for path in RECORDED} <= {one["name"] for one in listed}


def test_what_a_card_tells_of_itself_narrows_its_ranges() -> None:
    assert sensor_range.card_ranges() == sensor_range.ranges()
    own = sensor_range.card_ranges((450.0, None), 3105.0, 10501.0)
    assert own["power_w"] == (0.1, 900.0)
    assert own["sm_clock_mhz"] == (1.0, pytest.approx(3260.25))
    assert sensor_range.outside(own, "memory_clock_mhz", 12000.0)
    assert not sensor_range.outside(own, "memory_clock_mhz", 10501.0)
    assert sensor_range.outside(own, "temperature_c", float("nan"))
    assert not sensor_range.outside(own, "something new", -1.0)


def test_a_reading_of_which_no_sample_was_plausible_was_not_measured() -> None:
    told = {"power_w": OutOfRange(3, 0.0, 0.0, 0.1, 900.0)}
    found = GpuHistory(Gpu(0), (HistoryPoint(1.0, {"utilisation": 1.0}),), told)
    with pytest.raises(
        ValueError, match=r"power_w of gpu0 was not measured \(3 samples of 0, outside 0.1 to 900"
    ):
        found.maximum("power_w")


def test_the_last_sample_of_all_may_be_a_lone_one() -> None:
    points = [
        HistoryPoint(100.0 + step / 5, {"utilisation": float(step < 10), "held": float(step == 11)})
        for step in range(12)
    ]
    found = GpuHistory(Gpu(0), tuple(points)).held_back("held")
    assert (found.seconds, found.lone) == (0.0, (points[-1].boot_s,))
