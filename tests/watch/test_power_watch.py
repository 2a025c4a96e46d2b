"""The watch over the GPUs during the power load: what it tells, and when it pulls the watchdog."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import each
from fake_nvml import LOST, NOT_SUPPORTED, FakeNvml, Refusal
from known import known

from acceptance.core.clock_reasons import HW_SLOWDOWN, POWER_BRAKE
from acceptance.core.parts import Gpu
from acceptance.loads.pulse.watchdog import STOPPED, Holder, Watchdog
from acceptance.suites.fixtures.power import WatchRun, read_watch
from acceptance.watch import power_watch
from acceptance.watch.targets import WatchTarget, attach

BOTH = [(Gpu(0), "0000:01:00.0"), (Gpu(1), "0000:02:00.0")]
REASONS = "nvmlDeviceGetCurrentClocksEventReasons"
SOUND: dict[Any, Any] = {
    "nvmlDeviceGetTemperatureV": 60,
    "nvmlDeviceGetMarginTemperature": 20,
    REASONS: 0x4,
    "nvmlDeviceGetClockInfo": 1755,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetPowerUsage": 500_000,
}


def jumping() -> Callable[..., int]:
    """A power that is another one at every look."""
    watts = iter(range(100_000, 10**9, 1_000))
    return lambda *_: next(watts)


def watched(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    answers: dict[Any, Any],
    fields: dict[Any, Any] | None = None,
    seconds: float = 0.6,
) -> tuple[WatchRun, str | None]:
    """What the watch says, and why the load has to end, if it has."""
    nvml = FakeNvml(2, {**SOUND, **answers}, {186: 650_000} if fields is None else fields)
    place = folder / "watchdog"
    gpus = attach(nvml, [WatchTarget(name, None, where) for name, where in BOTH])
    over = threading.Event()
    timer = threading.Timer(seconds, over.set)
    timer.start()
    power_watch.watch(nvml, gpus, Holder(place), over)
    timer.cancel()
    return read_watch(capsys.readouterr().out), Watchdog(place).reason()


def test_sound_gpus_are_told_and_the_leash_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, reason = watched(tmp_path, capsys, {})
    assert found.began
    assert (found.stop, reason) == (None, None)
    assert {gpu: one.limit_w for gpu, one in found.gpus.items()} == {Gpu(0): 700.0, Gpu(1): 700.0}
    # power that stands still is told once
    assert [one[1:] for one in found.gpus[Gpu(0)].samples] == [(650.0, 1755.0)]


def test_every_change_of_the_power_is_told_the_average_where_no_other_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {("nvmlDeviceGetPowerUsage", 0): jumping()}
    found, _ = watched(tmp_path, capsys, answers, {186: Refusal(NOT_SUPPORTED)})
    samples = found.gpus[Gpu(0)].samples
    assert len(samples) > 10
    assert all(a[1] < b[1] for a, b in itertools.pairwise(samples))
    assert [one[1] for one in found.gpus[Gpu(1)].samples] == [500.0]


@each(
    "answers, code, reasons",
    [
        ({(REASONS, 1): 0x84}, "power_brake_pulled", {POWER_BRAKE}),
        ({(REASONS, 1): 0x8}, "power_slowed_down", {HW_SLOWDOWN}),
        ({"nvmlDeviceGetMarginTemperature": 0}, "power_too_hot", set()),
        ({REASONS: Refusal(NOT_SUPPORTED)}, "power_gpu_unread", set()),
    ],
)
def test_the_leash_is_pulled_for_what_safety_says(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    answers: dict[Any, Any],
    code: str,
    reasons: set[str],
) -> None:
    found, reason = watched(tmp_path, capsys, answers, seconds=5.0)
    assert (known(found.stop).code, reason) == (code, STOPPED)
    assert {name for one in found.gpus.values() for _, name in one.reasons} == reasons


def test_a_gpu_that_is_lost_stops_the_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = iter([20] * 6)

    def margin(*_: object) -> int:
        try:
            return next(looks)
        except StopIteration:
            raise Refusal(LOST) from None

    began = time.monotonic()
    answers = {("nvmlDeviceGetMarginTemperature", 1): margin}
    found, reason = watched(tmp_path, capsys, answers, seconds=9.0)
    assert (known(found.stop).code, known(found.stop).values["gpu"]) == ("power_gpu_lost", "gpu1")
    assert reason == STOPPED
    assert time.monotonic() - began < 5.0


def test_a_gpu_that_is_lost_from_the_start_stops_the_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _ = watched(tmp_path, capsys, {("nvmlDeviceGetUUID", 1): Refusal(LOST)}, seconds=5.0)
    assert known(found.stop).code == "power_gpu_lost"


def test_the_program_ends_when_the_load_drops_the_leash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "watchdog"
    nvml = FakeNvml(2, {**SOUND, "nvmlShutdown": None}, {186: 650_000})

    def drop() -> None:
        while not place.exists():
            time.sleep(0.01)
        time.sleep(0.3)
        place.unlink()

    dropping = threading.Thread(target=drop)
    dropping.start()
    assert power_watch.main(power_watch.argv("python", place, BOTH)[3:], nvml) == 0
    dropping.join()
    assert set(read_watch(capsys.readouterr().out).gpus) == {Gpu(0), Gpu(1)}


def test_a_watch_that_cannot_begin_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = power_watch.argv("python", tmp_path / "watchdog", [(Gpu(0), "0000:09:00.0")])
    nvml = FakeNvml(2, {**SOUND, "nvmlInit": Refusal(999, "driver not loaded")})
    assert power_watch.main(argv[3:], nvml) == 1
    assert "driver not loaded" in capsys.readouterr().err
    assert Watchdog(tmp_path / "watchdog").reason() is not None
