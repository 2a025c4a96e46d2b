"""The GPUs under load as the watch recorded them: throttling, heat, links and error counters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pytest

from acceptance.core import clock_reasons
from acceptance.core.message import (
    Gap,
    Listed,
    Message,
    Text,
    Values,
    english,
    no_answer,
    not_offered,
)
from acceptance.core.parts import Component
from acceptance.diagnosis import gpu_work
from acceptance.diagnosis.gpu_history import (
    DMESG_ADVICE,
    GpuHistory,
    NotMeasured,
    ThrottleTime,
    running_at,
)
from acceptance.diagnosis.gpu_work import power_trouble
from acceptance.machine.gpu import Gpu, joined, uuids
from acceptance.machine.gpu_health import READINGS
from acceptance.machine.inventory import NvmlAnswer
from acceptance.machine.thresholds import thresholds
from acceptance.observe import nvml
from acceptance.observe.readiness import fabric_obstacles
from acceptance.process.deadline import Deadline
from acceptance.session.check import Check, loss
from acceptance.suites.fixtures import gpu_health, gpu_links
from acceptance.wording.errors import WordedError, each_once

NamedSpans = Sequence[tuple[str, float, float]]

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
    "gpu_ecc_uncorrected_new": ("ecc_uncorrected", "ecc_uncorrected_total"),
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
# Counters of the same errors: one starts anew with the driver, the other is kept on the card.
ALTERNATIVES = frozenset({"gpu_ecc_uncorrected_new"})


# Sums over the links that are up, which the inventory and the watch count each for themselves.
OF_LINKS = frozenset({"nvlink_recoveries", "nvlink_replays", "nvlink_crc_errors"})


@pytest.fixture
def watched(
    gpu_history: Mapping[Component, GpuHistory], due_gpus: tuple[Gpu, ...]
) -> Mapping[Gpu, GpuHistory]:
    """The telemetry of every GPU that is due."""
    missing = [gpu.name for gpu in due_gpus if gpu.name not in gpu_history]
    if missing:
        raise WordedError("no_telemetry", gpus=Listed(tuple(map(str, missing))))
    return {gpu: gpu_history[gpu.name] for gpu in due_gpus}


def _each(
    watched: Mapping[Gpu, GpuHistory],
    check: Check,
    measurement: str,
    reading: str,
    reduce: Callable[[GpuHistory, str], float],
    troubles: list[Message],
) -> dict[Component, float]:
    """A figure of each GPU for which the measurement is due and the reading exists.

    Failures are added to `troubles`, and the other GPUs keep their figures.
    """
    due = check.components(measurement)
    found = {}
    for gpu, history in watched.items():
        if gpu.name in due and history.offers(reading):
            try:
                found[gpu.name] = reduce(history, reading)
            except NotMeasured as error:
                troubles.append(error.message)
    return found


def _unread_reasons(
    watched: Mapping[Gpu, GpuHistory], reading: str, why: Message
) -> dict[Component, Gap]:
    """The reason why a reading was not measured, for each GPU that does not offer it.

    Its driver does not report it, answers with an error, or reports impossible values.
    """
    return {
        gpu.name: _gap(history, reading, why)
        for gpu, history in watched.items()
        if not history.offers(reading)
    }


def _gap(history: GpuHistory, reading: str, why: Message) -> Gap:
    if reading in history.refused:
        told = {"reading": reading, "error": history.refused[reading]}
        return no_answer(
            Message(
                english(
                    "reading_refused",
                    "NVML answered every request for {reading} with an error ({error}): look at "
                    "the kernel log for Xid lines, and run again",
                ),
                told,
            )
        )
    if reading in history.outside:
        outside = history.outside[reading].message
        return not_offered(
            Message(
                english("reading_outside", "{reading}: {outside}"),
                {"reading": reading, "outside": outside},
            )
        )
    return not_offered(why)


def _left_out(watched: Mapping[Gpu, GpuHistory], reading: str) -> dict[Component, Message]:
    """A note for each GPU with samples left out because no sensor can produce their values."""
    return {
        gpu.name: Message(
            english("left_out", "left out: {outside}"),
            {"outside": history.outside[reading].message},
        )
        for gpu, history in watched.items()
        if reading in history.outside
    }


def _conclude(troubles: Sequence[Message]) -> None:
    """Raise WordedError where a figure is missing; what was journalled before stays evidence."""
    if troubles:
        raise WordedError("clauses", why=each_once(troubles))


@pytest.mark.session("host-after")
@pytest.mark.costs(0.3)
@pytest.mark.follows(load="any")
@pytest.mark.measures("gpu_sample_period", "gpu_sample_gap")
def test_sampled(watched: Mapping[Gpu, GpuHistory], load_spans: NamedSpans, check: Check) -> None:
    """Every GPU was watched through every load, five times a second.

    Measured: the usual time between two samples, and the longest time without one while loads ran;
    one step in twenty may be longer than 0.4 s. A gap is the watch's own trouble and not the
    card's: it is an error. So is a reading that disappears: only a reading that was absent from the
    start counts as not offered.
    """
    if not load_spans:
        raise WordedError(
            english(
                "no_load_ended",
                "no check of the load session came to its end, so nothing was watched under load",
            )
        )
    begin, end = min(begin for _, begin, _ in load_spans), max(end for _, _, end in load_spans)
    gaps = {gpu.name: history.longest_gap(begin, end) for gpu, history in watched.items()}
    troubles: list[Message] = []
    periods = {}
    for gpu, history in watched.items():
        try:
            periods[gpu.name] = history.period()
        except NotMeasured as error:
            troubles.append(error.message)
    most = thresholds().samples
    check("gpu_sample_period", periods, serials=uuids(watched))
    check("gpu_sample_gap", gaps, serials=uuids(watched))
    lost = [
        Message(
            english("gap_of", "{gpu} for {seconds} s"), {"gpu": str(name), "seconds": f"{gap:.1f}"}
        )
        for name, gap in gaps.items()
        if gap > most.gap_s
    ]
    slow = [
        Message(
            english("period_of", "{gpu} every {seconds} s"),
            {"gpu": str(name), "seconds": f"{period:.2f}"},
        )
        for name, period in periods.items()
        if period > most.period_s
    ]
    steps = {gpu.name: history.slow_step(begin, end) for gpu, history in watched.items()}
    lame = [
        Message(
            english("step_of", "{gpu} {seconds} s"), {"gpu": str(name), "seconds": f"{step:.2f}"}
        )
        for name, step in steps.items()
        if step is not None and step > most.step_s
    ]
    why = (
        [Message(english("gaps", "not sampled: {gaps}"), {"gaps": Listed(tuple(lost))})]
        if lost
        else []
    )
    why += (
        [
            Message(
                english("slow_periods", "sampled only: {periods}"), {"periods": Listed(tuple(slow))}
            )
        ]
        if slow
        else []
    )
    why += (
        [
            Message(
                english("slow_steps", "more than one step in twenty too long: {steps}"),
                {"steps": Listed(tuple(lame))},
            )
        ]
        if lame and not slow
        else []
    )
    if why:
        troubles.append(
            Message(
                english(
                    "sampled_too_slowly",
                    "{why}: the driver answered too slowly; look for NVRM lines in `dmesg` and "
                    "run again",
                ),
                {"why": tuple(why)},
            )
        )
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
    troubles: list[Message] = []
    for measurement, (flag, counter) in REASONS.items():
        notes: dict[Component, Message | None] = {}

        def held_back(
            history: GpuHistory, flag: str, counter: str | None = counter, notes: Any = notes
        ) -> float:
            if flag == clock_reasons.POWER_CAP:  # normal under load: no sample of it is left out
                summed = counter is not None and history.offers(counter)
                return max(history.seconds(flag), history.growth(str(counter)) if summed else 0.0)
            held = history.held_back(flag, counter)
            during = running_at(history.moments(flag), load_spans)
            notes[history.gpu] = (
                Message(english("during_checks", "during {checks}"), {"checks": Listed(during)})
                if during and held.seconds
                else _lone_note(held, history)
            )
            return held.seconds

        seconds = _each(watched, check, measurement, flag, held_back, troubles)
        unread = _unread_reasons(
            watched,
            flag,
            Message(
                english(
                    "clock_reasons_not_told",
                    "the driver does not tell why clocks are held back: update it",
                )
            ),
        )
        check(measurement, seconds, skipped=unread, notes=notes, serials=uuids(watched))
    _conclude(troubles)


def _lone_note(held: ThrottleTime, history: GpuHistory) -> Message | None:
    """A note on throttling that was seen only briefly at the edge of a load, and not counted."""
    if not held.lone:
        return None
    moments = tuple(f"{moment - history.points[0].began_s:.0f} s" for moment in held.lone)
    return Message(
        english(
            "lone_samples",
            "not counted: one sample or less at the edge of a load, {moments} after the watch "
            "began",
        ),
        {"moments": Listed(moments)},
    )


@pytest.mark.session("host-after")
@pytest.mark.costs(0.3)
@pytest.mark.measures("gpu_settings_unchanged")
def test_settings(
    watched: Mapping[Gpu, GpuHistory],
    load_spans: NamedSpans,
    say: Callable[[Text], None],
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
        gpu: gpu_work.setting_changes(history, load_spans) for gpu, history in watched.items()
    }
    for history in watched.values():
        for note in gpu_work.clock_notes(history):
            say(note)
    check(
        "gpu_settings_unchanged",
        {gpu.name: 1.0 for gpu, found in changed.items() if not found},
        serials=uuids(watched),
    )
    all_changes = tuple(one for found in changed.values() for one in found)
    _conclude(
        [
            Message(
                english(
                    "settings_changed",
                    "{changes}: find who set it (a job, a service such as nvidia-powerd, a "
                    "person), put it back, and run again",
                ),
                {"changes": all_changes},
            )
        ]
        if all_changes
        else []
    )


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
    for measurement, name, untold, extreme in (
        (
            "gpu_temperature_margin",
            "temperature_margin_c",
            Message(
                english(
                    "margin_not_told",
                    "the driver does not tell how near it is to its thermal limit: update it",
                )
            ),
            GpuHistory.minimum,
        ),
        (
            "gpu_temperature",
            "temperature_c",
            Message(
                english(
                    "temperature_not_told", "the driver does not tell the temperature: update it"
                )
            ),
            GpuHistory.maximum,
        ),
        (
            "gpu_memory_temperature",
            "memory_temperature_c",
            Message(
                english(
                    "memory_temperature_not_told",
                    "the driver does not tell the memory's temperature: update it",
                )
            ),
            GpuHistory.maximum,
        ),
        (
            "gpu_power",
            "power_w",
            Message(
                english("driver_tells_no_power", "the driver does not tell the power: update it")
            ),
            GpuHistory.maximum,
        ),
    ):
        found = _each(watched, check, measurement, name, extreme, troubles)
        if name == "power_w":
            found = {gpu: value for gpu, value in found.items() if gpu not in no_power}
        unread = _unread_reasons(watched, name, untold)
        if measurement == "gpu_memory_temperature":  # due where the inventory read it
            due = check.components(measurement)
            told = no_answer(Message("reading_lost", {"what": name}))
            lost = [gpu for gpu, why in unread.items() if gpu in due and why.reason == untold]
            unread |= dict.fromkeys(lost, told)
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
@pytest.mark.follows(load="gpus")
@pytest.mark.measures("gpu_link_gen", "gpu_link_width")
def test_pcie_link(watched: Mapping[Gpu, GpuHistory], check: Check) -> None:
    """Each GPU's PCIe generation and width while it was in full use, against the lesser of what
    card and slot can do.

    Measured: the smallest of all samples under load, two seconds after the load began: an idle card
    slows its link down, and that is no fault. Not measured: bandwidth, which is another check.
    """
    troubles: list[Message] = []
    for measurement, name in (("gpu_link_gen", "link_gen"), ("gpu_link_width", "link_width")):
        found = _each(watched, check, measurement, name, GpuHistory.under_load, troubles)
        unread = _unread_reasons(
            watched,
            name,
            Message(
                english("link_not_told", "the driver does not tell the link's state: update it")
            ),
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

    Measured: the growth of the driver's counters from the inventory before the run to the last
    sample (of uncorrected errors also of the card's own counter, the larger of both), and remaps or
    page retirements that became pending or failed meanwhile. A counter that was there before and is
    in no sample is an error. Errors counted before the run are another check.
    """
    troubles: list[Message] = []
    for measurement, names in COUNTERS.items():
        total = max if measurement in ALTERNATIVES else sum
        found = {}
        for gpu, history in watched.items():
            if gpu.name not in check.components(measurement):
                continue
            lost = [name for name in names if _counted(gpu, name) is not None]
            lost = [name for name in lost if not history.offers(name)]
            troubles += [loss(gpu.name, name) for name in lost]
            try:
                growth = [_growth(gpu, history, name) for name in names if history.offers(name)]
            except NotMeasured as error:
                troubles.append(error.message)
                continue
            grown = total(growth) if growth else 0.0
            if history.offers(names[0]) and (grown or not lost):
                found[gpu.name] = grown
        check(measurement, found, serials=uuids(watched))
    _conclude(troubles)


def _counted(gpu: Gpu, name: str) -> float | None:
    """A counter of the inventory before the run; None where the driver did not offer it."""
    return None if gpu.counters is None else getattr(gpu.counters, name)


def _growth(gpu: Gpu, history: GpuHistory, name: str) -> float:
    """The growth of a counter since the inventory, or since the first sample where it fell between.

    Without persistence mode the driver sets counters to 0 when its last user ends, which may happen
    before the watch begins. Of the links of a sum more may be up than the inventory saw.
    """
    before, first = _counted(gpu, name), history.points_with(name)[0].least(name)
    missed = 0.0 if before is None or name in OF_LINKS else max(0.0, first - before)
    return missed + history.growth(name)


@pytest.mark.session("host-after")
@pytest.mark.costs(0.5)
@pytest.mark.measures("nvlink_active", "nvlink_speed")
def test_nvlinks(due_gpus: tuple[Gpu, ...], deadline: Deadline, check: Check) -> None:
    """How many NVLinks of each GPU are up after the load, and the speed of the slowest of them in
    one direction.

    Measured: each link as NVML reports it when asked again. Where nothing says how many a card has,
    fewer than before the run are an error. A link that went down under load and came back is in the
    counters.
    """
    now = nvml.probe(deadline=deadline)
    seen = joined(due_gpus, now)
    gpu_links.measure(seen, check)
    due = check.components("nvlink_active") | check.components("nvlink_speed")
    _conclude([*_unseen(now, due_gpus, due), *_links_that_fell(due_gpus, seen, check)])


@pytest.mark.session("host-after")
@pytest.mark.costs(0.5)
@pytest.mark.measures(*READINGS)
def test_health(due_gpus: tuple[Gpu, ...], deadline: Deadline, check: Check) -> None:
    """What each GPU's driver says of its health after the load, by the same rules as before it.

    Measured: the flags that NVML reports when asked again, and whether each GPU is still in its
    NVLink fabric. What was offered before the load and is not any more was not measured. Not
    measured: a state that came and went between both.
    """
    now = nvml.probe(deadline=deadline)
    seen = joined(due_gpus, now)
    unjudged = gpu_health.measure(seen, check)
    left = (one.message for one in fabric_obstacles(now, due_gpus))
    due = frozenset(due.component for name in READINGS for due in check.due(name))
    _conclude([*_unseen(now, due_gpus, due), *unjudged, *left])


def _unseen(
    now: NvmlAnswer, due_gpus: tuple[Gpu, ...], due: Collection[Component]
) -> list[Message]:
    """What NVML says, with the cure, where it does not answer for one of these components."""
    lost = tuple(
        Message(
            "component_says",
            {
                "component": str(gpu.name),
                "why": gpu.error
                or Message(english("not_listed_any_more", "NVML does not list it any more")),
            },
        )
        for gpu in joined(due_gpus, now)
        if gpu.name in due and (gpu.device is None or gpu.error is not None)
    )
    why = now.error or lost
    return [Message("with_cure", {"why": why, "cure": DMESG_ADVICE})] if lost else []


def _links_that_fell(before: Sequence[Gpu], seen: Sequence[Gpu], check: Check) -> list[Message]:
    """The GPUs with fewer links up than before the run, where no limit says how many must be."""
    unlimited = {due.component for due in check.due("nvlink_active") if due.limit is None}
    fell = []
    for first, last in zip(before, seen, strict=True):
        if last.device is None or last.error is not None or last.name not in unlimited:
            continue
        if last.active_links < first.active_links:
            links: Values = {"before": first.active_links, "after": last.active_links}
            told: Values = {
                "component": str(last.name),
                "why": Message(
                    english(
                        "nvlinks_fell",
                        "{before} NVLinks were up before the run, {after} are after it",
                    ),
                    links,
                ),
            }
            why = Message("component_says", told)
            fell.append(Message("with_cure", {"why": why, "cure": DMESG_ADVICE}))
    return fell
