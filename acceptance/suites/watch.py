"""The GPUs under load as the watch recorded them: throttling, heat, links and error counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from acceptance.core import clock_reasons
from acceptance.diagnosis import gpu_settings
from acceptance.diagnosis.gpu_history import GpuHistory, ThrottleTime, running_at
from acceptance.diagnosis.gpu_work import power_trouble
from acceptance.machine.gpu import Gpu, joined, uuids
from acceptance.observe import nvml
from acceptance.session.check import Check
from acceptance.session.programs import Programs
from acceptance.suites.fixtures import gpu_links

NamedSpans = Sequence[tuple[str, float, float]]

LONGEST_GAP_S = 2.0  # ten missed samples in a row
SLOWEST_S = 0.2  # five samples a second
JITTER = 1.1
SLOWEST_STEP_S = 0.4  # for 95 of 100 steps: an occasional missed sample
# NVML's sampled clock event reasons (nvml.h, nvmlClocksEventReasons), with the driver's own sum of
# the time where it keeps one.
REASONS = {
    "gpu_hw_slowdown": (clock_reasons.HW_SLOWDOWN, None),
    "gpu_hw_thermal_slowdown": (clock_reasons.HW_THERMAL, "hw_thermal_s"),
    "gpu_sw_thermal_slowdown": (clock_reasons.SW_THERMAL, "sw_thermal_s"),
    "gpu_power_brake": (clock_reasons.POWER_BRAKE, "power_brake_s"),
    "gpu_power_cap": (clock_reasons.POWER_CAP, "power_cap_s"),
}
# The first of each must be present wherever the measurement is due. A driver that does not report
# one of the others has nothing there to count.
COUNTERS = {
    "gpu_ecc_uncorrected_new": ("ecc_uncorrected",),
    "gpu_ecc_corrected_new": ("ecc_corrected",),
    "gpu_remapped_new": (
        "remapped_uncorrected",
        "remapped_corrected",
        "remap_pending",
        "remap_failed",
    ),
    "gpu_retired_new": ("retired_double", "retired_single", "retired_pending"),
    "gpu_pcie_replays": ("pcie_replays",),
    "gpu_nvlink_recoveries": ("nvlink_recoveries",),
    "gpu_nvlink_replays": ("nvlink_replays",),
    "gpu_nvlink_crc_errors": ("nvlink_crc_errors",),
}


class WatchLost(Exception):
    """The GPUs were not watched as required, so the absence of events proves nothing."""


@pytest.fixture
def watched(
    gpu_history: Mapping[str, GpuHistory], due_gpus: tuple[Gpu, ...]
) -> Mapping[Gpu, GpuHistory]:
    """The telemetry of every GPU that is due."""
    missing = [gpu.name for gpu in due_gpus if gpu.name not in gpu_history]
    if missing:
        raise WatchLost(
            f"{', '.join(missing)}: no telemetry was recorded: journal.jsonl says why the "
            "watch did not run"
        )
    return {gpu: gpu_history[gpu.name] for gpu in due_gpus}


def _each(
    watched: Mapping[Gpu, GpuHistory],
    check: Check,
    measurement: str,
    reading: str,
    reduce: Callable[[GpuHistory, str], float],
    troubles: list[str],
) -> dict[str, float]:
    """A figure of each GPU for which the measurement is due and the reading exists.

    Failures are added to `troubles`, and the other GPUs keep their figures.
    """
    due = check.components(measurement)
    found = {}
    for gpu, history in watched.items():
        if gpu.name in due and history.offers(reading):
            try:
                found[gpu.name] = reduce(history, reading)
            except ValueError as error:
                troubles.append(str(error))
    return found


def _unread_reasons(watched: Mapping[Gpu, GpuHistory], reading: str, why: str) -> dict[str, str]:
    """The reason why a reading was not measured, for each GPU that does not offer it.

    Its driver does not report it, or reports impossible values.
    """
    return {
        gpu.name: f"{reading}: {history.outside[reading]}" if reading in history.outside else why
        for gpu, history in watched.items()
        if not history.offers(reading)
    }


def _left_out(watched: Mapping[Gpu, GpuHistory], reading: str) -> dict[str, str | None]:
    """A note for each GPU with samples left out because no sensor can produce their values."""
    return {
        gpu.name: f"left out: {history.outside[reading]}" if reading in history.outside else None
        for gpu, history in watched.items()
    }


def _conclude(troubles: list[str]) -> None:
    """Raise WatchLost where a figure is missing; what was journalled before stays evidence."""
    if troubles:
        raise WatchLost("; ".join(dict.fromkeys(troubles)))


@pytest.mark.session("host-after")
@pytest.mark.costs(0.3)
@pytest.mark.measures("gpu_sample_period", "gpu_sample_gap")
def test_sampled(watched: Mapping[Gpu, GpuHistory], load_spans: NamedSpans, check: Check) -> None:
    """Every GPU was watched through every load, five times a second.

    Measured: the usual time between two samples, and the longest time without one while loads ran;
    one step in twenty may be longer than 0.4 s. A gap is the watch's own trouble and not the
    card's: it is an error. So is a reading that disappears: only a reading that was absent from the
    start counts as not offered.
    """
    if not load_spans:
        raise WatchLost(
            "no check of the load session came to its end, so nothing was watched under load"
        )
    begin, end = min(begin for _, begin, _ in load_spans), max(end for _, _, end in load_spans)
    gaps = {gpu.name: history.longest_gap(begin, end) for gpu, history in watched.items()}
    troubles: list[str] = []
    periods = {}
    for gpu, history in watched.items():
        try:
            periods[gpu.name] = history.period()
        except ValueError as error:
            troubles.append(str(error))
    check("gpu_sample_period", periods, serials=uuids(watched))
    check("gpu_sample_gap", gaps, serials=uuids(watched))
    lost = [f"{name} for {gap:.1f} s" for name, gap in gaps.items() if gap > LONGEST_GAP_S]
    slow = [
        f"{name} every {period:.2f} s"
        for name, period in periods.items()
        if period > SLOWEST_S * JITTER
    ]
    steps = {gpu.name: history.slow_step(begin, end) for gpu, history in watched.items()}
    lame = [
        f"{name} {step:.2f} s"
        for name, step in steps.items()
        if step is not None and step > SLOWEST_STEP_S
    ]
    texts = [
        *([f"not sampled: {', '.join(lost)}"] if lost else []),
        *([f"sampled only: {', '.join(slow)}"] if slow else []),
        *(
            [f"more than one step in twenty too long: {', '.join(lame)}"]
            if lame and not slow
            else []
        ),
    ]
    if texts:
        cure = "the driver answered too slowly; look for NVRM lines in `dmesg` and run again"
        troubles.append(f"{'; '.join(texts)}: {cure}")
    for history in watched.values():
        troubles += history.vanished().values()
    _conclude(troubles)


@pytest.mark.session("host-after")
@pytest.mark.costs(0.3)
@pytest.mark.measures(
    "gpu_hw_slowdown",
    "gpu_hw_thermal_slowdown",
    "gpu_sw_thermal_slowdown",
    "gpu_power_brake",
    "gpu_power_cap",
)
def test_throttling(
    watched: Mapping[Gpu, GpuHistory], load_spans: NamedSpans, check: Check
) -> None:
    """For how long each GPU's clocks were held back during the run, by reason, and in which checks.

    Measured: each bit of NVML's clock event reasons by itself, in samples, and the driver's own
    sums of the time where it keeps them, which also cover the time between two samples; the larger
    counts. Software power capping is normal under load: it is recorded.
    """
    troubles: list[str] = []
    for measurement, (flag, counter) in REASONS.items():
        notes: dict[str, str | None] = {}

        def held_back(
            history: GpuHistory, flag: str, counter: str | None = counter, notes: Any = notes
        ) -> float:
            if flag == clock_reasons.POWER_CAP:  # normal under load: no sample of it is left out
                summed = counter is not None and history.offers(counter)
                return max(history.seconds(flag), history.growth(str(counter)) if summed else 0.0)
            held = history.held_back(flag, counter)
            during = running_at(history.moments(flag), load_spans)
            notes[history.gpu] = (
                f"during {', '.join(during)}"
                if during and held.seconds
                else _lone_note(held, history)
            )
            return held.seconds

        seconds = _each(watched, check, measurement, flag, held_back, troubles)
        unread = _unread_reasons(
            watched, flag, "the driver does not tell why clocks are held back: update it"
        )
        check(measurement, seconds, skipped=unread, notes=notes, serials=uuids(watched))
    _conclude(troubles)


def _lone_note(held: ThrottleTime, history: GpuHistory) -> str | None:
    """A note on throttling that was seen only briefly at the edge of a load, and not counted."""
    if not held.lone:
        return None
    moments = ", ".join(f"{moment - history.points[0].began_s:.0f} s" for moment in held.lone)
    return f"not counted: one sample or less at the edge of a load, {moments} after the watch began"


@pytest.mark.session("host-after")
@pytest.mark.costs(0.3)
@pytest.mark.measures("gpu_settings_unchanged")
def test_settings(
    watched: Mapping[Gpu, GpuHistory],
    load_spans: NamedSpans,
    say: Callable[[str], None],
    check: Check,
) -> None:
    """Nobody changed what is set at a GPU during the run: power limit, application clock, ECC, MIG,
    clocks that are held.

    Measured: the settings that NVML reports once a second, and the reasons clocks-setting and
    display-clocks while the GPU was in use. A setting that held from the start is a note. One that
    changed in the middle leaves the run unjudged, because its figures belong to two machines. Not
    measured: settings that cannot be read back, such as clocks locked above those that the loads
    reach.
    """
    changed = {
        gpu: gpu_settings.setting_changes(history, load_spans) for gpu, history in watched.items()
    }
    for history in watched.values():
        for note in gpu_settings.clock_notes(history):
            say(note)
    check(
        "gpu_settings_unchanged",
        {gpu.name: 1.0 for gpu, found in changed.items() if not found},
        serials=uuids(watched),
    )
    texts = [sentence for found in changed.values() for sentence in found]
    cure = (
        "find who set it (a job, a service such as nvidia-powerd, a person), put it back, and "
        "run again"
    )
    _conclude([f"{'; '.join(texts)}: {cure}"] if texts else [])


@pytest.mark.session("host-after")
@pytest.mark.costs(0.3)
@pytest.mark.measures(
    "gpu_temperature_margin",
    "gpu_temperature",
    "gpu_memory_temperature",
    "gpu_power",
)
def test_heat(
    watched: Mapping[Gpu, GpuHistory], work_spans: Sequence[tuple[float, float]], check: Check
) -> None:
    """How near each GPU came to its thermal limit, its highest temperatures, and its highest power.

    Measured: the smallest margin (T.Limit) that NVML reported, or the temperature against the
    card's own limit where it reports no margin; the hottest sample of GPU and memory; the highest
    power sample. A power that stayed constant under load, or disagrees with the card's energy
    counter, was not measured. Not measured: how the temperature would develop in a longer run.
    """
    no_power = {
        gpu.name: trouble
        for gpu, history in watched.items()
        if (trouble := power_trouble(history, work_spans))
    }
    troubles = list(no_power.values())
    for measurement, name, words, extreme in (
        (
            "gpu_temperature_margin",
            "temperature_margin_c",
            "how near it is to its thermal limit",
            GpuHistory.minimum,
        ),
        ("gpu_temperature", "temperature_c", "the temperature", GpuHistory.maximum),
        (
            "gpu_memory_temperature",
            "memory_temperature_c",
            "the memory's temperature",
            GpuHistory.maximum,
        ),
        ("gpu_power", "power_w", "the power", GpuHistory.maximum),
    ):
        found = _each(watched, check, measurement, name, extreme, troubles)
        if name == "power_w":
            found = {gpu: value for gpu, value in found.items() if gpu not in no_power}
        unread = _unread_reasons(watched, name, f"the driver does not tell {words}: update it")
        check(
            measurement,
            found,
            skipped=unread,
            notes=_left_out(watched, name),
            serials=uuids(watched),
        )
    _conclude(troubles)


@pytest.mark.session("host-after")
@pytest.mark.costs(0.3)
@pytest.mark.measures("gpu_link_gen", "gpu_link_width")
def test_pcie_link(watched: Mapping[Gpu, GpuHistory], check: Check) -> None:
    """Each GPU's PCIe generation and width while it was in full use, against the lesser of what
    card and slot can do.

    Measured: the smallest of all samples under load, two seconds after the load began: an idle card
    slows its link down, and that is no fault. Not measured: bandwidth, which is another check.
    """
    troubles: list[str] = []
    for measurement, name in (("gpu_link_gen", "link_gen"), ("gpu_link_width", "link_width")):
        found = _each(watched, check, measurement, name, GpuHistory.under_load, troubles)
        unread = _unread_reasons(
            watched, name, "the driver does not tell the link's state: update it"
        )
        check(measurement, found, skipped=unread, serials=uuids(watched))
    _conclude(troubles)


@pytest.mark.session("host-after")
@pytest.mark.costs(0.3)
@pytest.mark.measures(
    "gpu_ecc_uncorrected_new",
    "gpu_ecc_corrected_new",
    "gpu_remapped_new",
    "gpu_retired_new",
    "gpu_pcie_replays",
    "gpu_nvlink_recoveries",
    "gpu_nvlink_replays",
    "gpu_nvlink_crc_errors",
)
def test_counters(watched: Mapping[Gpu, GpuHistory], check: Check) -> None:
    """Errors that each GPU counted during the run: memory, PCIe link, NVLinks.

    Measured: the growth of the driver's counters from the first sample to the last, and remaps or
    page retirements that became pending or failed meanwhile. Errors counted before the run are
    another check.
    """
    troubles: list[str] = []
    for measurement, names in COUNTERS.items():

        def grown(history: GpuHistory, _first: str, names: tuple[str, ...] = names) -> float:
            return sum(history.growth(name) for name in names if history.offers(name))

        found = _each(watched, check, measurement, names[0], grown, troubles)
        check(measurement, found, serials=uuids(watched))
    _conclude(troubles)


@pytest.mark.session("host-after")
@pytest.mark.costs(0.5)
@pytest.mark.measures("nvlink_active", "nvlink_speed")
def test_nvlinks(due_gpus: tuple[Gpu, ...], programs: Programs, check: Check) -> None:
    """How many NVLinks of each GPU are up after the load, and the speed of the slowest of them in
    one direction.

    Measured: each link as NVML reports it when asked again. A link that went down under load and
    came back is in the counters.
    """
    now = nvml.probe(deadline=programs.deadline)
    seen = joined(due_gpus, now)
    gpu_links.measure(seen, check)
    due = check.components("nvlink_active")
    lost = [
        f"{gpu.name}: {gpu.error if gpu.device else 'NVML does not list it any more'}"
        for gpu in seen
        if gpu.name in due and (gpu.device is None or gpu.error is not None)
    ]
    _conclude(
        [f"{now.error or '; '.join(lost)}: look for NVRM lines in `dmesg`, and run again"]
        if lost
        else []
    )
