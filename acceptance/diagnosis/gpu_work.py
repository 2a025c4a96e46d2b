"""Proof that a GPU was busy and its power was measured while a check loaded it. Pure.

A tool's output proves nothing about a GPU that did nothing: NVML's samples must show the load, by
utilisation, power or energy.

Changes of a GPU's settings during a run: power limit, clocks, ECC, MIG. Pure.

If the settings of a GPU change in the middle, its values belong to two machines. A setting that
holds from the start is only worth a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from acceptance.core import clock_reasons
from acceptance.core.clock_reasons import IDLE
from acceptance.core.message import Listed, Message, Values, english, known
from acceptance.diagnosis.gpu_history import GpuHistory, HistoryPoint, running_at
from acceptance.diagnosis.steady_state import with_durations
from acceptance.machine.thresholds import thresholds

ENERGY_STEP_S = 1.0  # energy counters advance in steps of up to a tenth of a second
_GAP_S = 1.0  # samples further apart say nothing about the time between them


@dataclass(frozen=True, slots=True)
class Work:
    """How many seconds a GPU was seen at work between two moments, by three kinds of evidence.

    None for evidence that was not sampled. `evidence` states all of it.
    """

    use_s: float | None
    power_s: float | None
    energy_s: float | None
    evidence: Listed

    @property
    def seconds(self) -> float:
        """The seconds of the evidence that shows the most."""
        return max(
            (one for one in (self.use_s, self.power_s, self.energy_s) if one is not None),
            default=0.0,
        )


def work(history: GpuHistory, begin_s: float, end_s: float) -> Work:
    """The work of a GPU between two moments, in seconds since boot."""
    points = _points_between(history.points, begin_s, end_s)
    limit_w = _limit_w(history)
    use_s = _use_s(points)
    power_s = energy_s = None
    if limit_w is not None:
        power_s = _power_s(points, thresholds().work.power * limit_w)
        energy_s = _energy_s(points, thresholds().work.power * limit_w)
    in_use = (
        Message(english("use_not_told", "its use is not told"))
        if use_s is None
        else Message(english("in_use_for", "in use for {seconds} s"), {"seconds": f"{use_s:.1f}"})
    )
    energy = (
        Message(english("energy_not_told", "its energy is not told"))
        if energy_s is None
        else Message(
            english("energy_for", "by its energy counter for {seconds} s"),
            {"seconds": f"{energy_s:.1f}"},
        )
    )
    power = _power_evidence(points, power_s, limit_w)
    return Work(use_s, power_s, energy_s, Listed((in_use, power, energy)))


def _power_evidence(
    points: Sequence[HistoryPoint], power_s: float | None, limit_w: float | None
) -> Message:
    measured = [point for point in points if "power_w" in point.values]
    if not measured:
        return Message(english("power_not_told", "its power is not told"))
    most = f"{max(point.most('power_w') for point in measured):.0f}"
    if power_s is None or limit_w is None:
        return Message(
            english("power_at_most", "at most {most} W (its limit is not told)"), {"most": most}
        )
    least, seconds = f"{thresholds().work.power * limit_w:.0f}", f"{power_s:.1f}"
    return Message(
        english("power_above", "above {least} W for {seconds} s (at most {most} W)"),
        {"least": least, "seconds": seconds, "most": most},
    )


def idle_reason(history: GpuHistory, begin_s: float, end_s: float, load_s: float) -> Message | None:
    """Why the samples do not show a GPU at work for the time of its load; None where they do.

    `begin_s` and `end_s` are those of the check, in seconds since boot; `load_s` is how many
    seconds its load keeps the GPU at work.
    """
    found = work(history, begin_s, end_s)
    if found.seconds >= thresholds().work.share * load_s:
        return None
    return Message(
        english(
            "seen_idle",
            "{gpu} was to work for {due} s and was seen at work for {seconds} s ({evidence})",
        ),
        {
            "gpu": str(history.gpu),
            "due": f"{load_s:g}",
            "seconds": f"{found.seconds:.1f}",
            "evidence": found.evidence,
        },
    )


def power_trouble(history: GpuHistory, spans: Sequence[tuple[float, float]]) -> Message | None:
    """Why the power of a GPU was not measured during its loads; None where it was.

    `spans` are the loads' beginnings and ends in seconds since boot. It was not measured where it
    never changed over `still_s` of load, where it is an idle card's while the GPU is in full use,
    and where it disagrees with the card's own energy counter.
    """
    for begin_s, end_s in spans:
        points = [
            point
            for point in _points_between(history.points, begin_s, end_s)
            if "power_w" in point.values
        ]
        trouble = _power_stuck(points) or _idling(history, points) or _disagreement(points)
        if trouble:
            return Message(
                english("power_not_measured", "the power of {gpu} was not measured: {why}"),
                {"gpu": str(history.gpu), "why": trouble},
            )
    return None


def idle_clock(
    history: GpuHistory, span: tuple[float, float], highest_mhz: float | None
) -> Message | None:
    """Why the clock of a GPU was not measured within a span of load: it was an idle card's.

    None where it was higher in full use. `highest_mhz` is the card's highest SM clock; without it,
    and without samples of clock or utilisation, the result is None as well.
    """
    points = [
        point
        for point in _points_between(history.points, *span)
        if point.busy() and "sm_clock_mhz" in point.values
    ]
    if not points or highest_mhz is None:
        return None
    most = max(point.most("sm_clock_mhz") for point in points)
    if most >= thresholds().power.idle_clock * highest_mhz:
        return None
    return Message(
        english(
            "clock_not_measured",
            "the clock of {gpu} was not measured: at most {most} MHz of {highest} MHz in full "
            "use, which is an idle card's",
        ),
        {"gpu": str(history.gpu), "most": f"{most:.0f}", "highest": f"{highest_mhz:.0f}"},
    )


def _power_stuck(points: Sequence[HistoryPoint]) -> Message | None:
    """Why power looks unmeasured: constant for `still_s` while the GPU was in use.

    A GPU without utilisation counts as in use.
    """
    since: HistoryPoint | None = None
    for point in points:
        power_w = point.values["power_w"]
        loaded = point.values.get("utilisation", 1.0) >= thresholds().work.in_use
        if not loaded or point.least("power_w") != point.most("power_w"):
            since = None
        elif since is None or since.values["power_w"] != power_w:
            since = point
        elif point.boot_s - since.began_s >= thresholds().power.still_s:
            seconds = f"{point.boot_s - since.began_s:.0f}"
            return Message(
                english("power_stood", "it stood at {power} W for {seconds} s under load"),
                {"power": f"{power_w:g}", "seconds": seconds},
            )
    return None


def _idling(history: GpuHistory, points: Sequence[HistoryPoint]) -> Message | None:
    """Why power looks unmeasured: an idle card's for `still_s` in total, in full use."""
    limit_w = _limit_w(history)
    if limit_w is None:
        return None
    low = [
        (point, seconds)
        for point, seconds in _steps(points)
        if point.busy() and point.most("power_w") < thresholds().power.idle_power * limit_w
    ]
    seconds = sum(lasted for _, lasted in low)
    if seconds < thresholds().power.still_s:
        return None
    most = max(point.most("power_w") for point, _ in low)
    return Message(
        english(
            "power_of_idle",
            "at most {most} W of its limit of {limit} W for {seconds} s in full use",
        ),
        {"most": f"{most:.0f}", "limit": f"{limit_w:.0f}", "seconds": f"{seconds:.0f}"},
    )


def _disagreement(points: Sequence[HistoryPoint]) -> Message | None:
    """Why power looks unmeasured: it disagrees with the energy counter over `still_s` or more."""
    measured = [point for point in points if "energy_j" in point.values]
    if len(measured) < 2 or measured[-1].boot_s - measured[0].boot_s < thresholds().power.still_s:
        return None
    counted_j = measured[-1].most("energy_j") - measured[0].most("energy_j")
    sampled_j = sum(
        after.values["power_w"] * after.span_s
        if after.span_s
        else (before.values["power_w"] + after.values["power_w"])
        / 2
        * (after.boot_s - before.boot_s)
        for before, after in pairwise(measured)
    )
    limits = thresholds().power
    allowed_j = limits.agree_share * max(sampled_j, counted_j) + limits.agree_j
    if abs(sampled_j - counted_j) <= allowed_j:
        return None
    seconds = measured[-1].boot_s - measured[0].boot_s
    sampled, counted = sampled_j / seconds, counted_j / seconds
    return Message(
        english(
            "energy_disagrees",
            "its samples make {sampled} W over {seconds} s, and the card's energy counter makes "
            "{counted} W",
        ),
        {"sampled": f"{sampled:.0f}", "seconds": f"{seconds:.0f}", "counted": f"{counted:.0f}"},
    )


def _points_between(
    points: Sequence[HistoryPoint], begin_s: float, end_s: float
) -> list[HistoryPoint]:
    return [point for point in points if begin_s <= point.began_s and point.boot_s <= end_s]


def _limit_w(history: GpuHistory) -> float | None:
    """The first power limit sampled, in W; None where the driver does not report it."""
    return next(
        (
            point.values["power_limit_w"]
            for point in history.points
            if "power_limit_w" in point.values
        ),
        None,
    )


def _steps(points: Sequence[HistoryPoint]) -> Iterator[tuple[HistoryPoint, float]]:
    """Points, each with the seconds for which it counts; a gap does not count."""
    for point, seconds in with_durations(points):
        yield point, point.span_s or (seconds if seconds <= _GAP_S else 0.0)


def _use_s(points: Sequence[HistoryPoint]) -> float | None:
    measured = [point for point in points if "utilisation" in point.values]
    if not measured:
        return None
    return sum(seconds * _share_in_use(point) for point, seconds in _steps(measured))


def _share_in_use(point: HistoryPoint) -> float:
    """The share of a point's time in which the GPU was in use.

    0 where the driver gives the clock reason "idle".
    """
    if point.values.get(IDLE, 0.0) >= thresholds().work.in_use:
        return 0.0
    return (
        min(1.0, max(0.0, point.values["utilisation"]))
        if point.span_s
        else float(point.values["utilisation"] >= thresholds().work.in_use)
    )


def _power_s(points: Sequence[HistoryPoint], least_w: float) -> float | None:
    measured = [point for point in points if "power_w" in point.values]
    if not measured:
        return None
    return sum(seconds for point, seconds in _steps(measured) if point.values["power_w"] >= least_w)


def _energy_s(points: Sequence[HistoryPoint], least_w: float) -> float | None:
    """Seconds at work by the energy counter, over steps of ENERGY_STEP_S."""
    measured = [point for point in points if "energy_j" in point.values]
    if len(measured) < 2:
        return None
    found, since = 0.0, measured[0]
    for point in measured[1:]:
        step_s = point.boot_s - since.boot_s
        if step_s >= ENERGY_STEP_S:
            if (point.most("energy_j") - since.most("energy_j")) / step_s >= least_w:
                found += step_s
            since = point
    return found


NamedSpans = Sequence[tuple[str, float, float]]

_WORDS = {
    "power_limit_w": (Message(english("power_limit", "the power limit")), "{:g} W"),
    "application_clock_mhz": (
        Message(english("application_clock", "the application clock")),
        "{:g} MHz",
    ),
    "ecc_enabled": (Message(english("ecc", "ECC")), "{:g}"),
    "mig_enabled": (Message(english("mig_mode", "MIG mode")), "{:g}"),
}
_SWITCHES = ("ecc_enabled", "mig_enabled")
_HELD = {
    clock_reasons.CLOCKS_SET: Message(
        english(
            "clocks_set", "its clocks are held at a value that somebody set (reason clocks-setting)"
        )
    ),
    clock_reasons.DISPLAY_CLOCKS: Message(
        english(
            "display_clocks",
            "its clocks are held by the display's settings (reason display-clocks)",
        )
    ),
}
_APPLICATION, _CLOCK = "application_clock_mhz", "sm_clock_mhz"
MIN_POINTS = 3  # consecutive samples: a single one, while clocks ramp up or down, is no setting
# a GPU that was in use this long without the reason was not held by it from the start
FREE_S = 2.0
PERIOD_S = 0.2  # the time that one sample stands for


def setting_changes(history: GpuHistory, spans: NamedSpans) -> tuple[Message, ...]:
    """Every setting that changed during the run.

    `spans` are (check, begin, end) in seconds since boot.
    """
    return tuple(_changes(history, spans))


def clock_notes(history: GpuHistory) -> tuple[Message, ...]:
    """The reasons that held the clocks from the start."""
    return tuple(
        Message(
            english("held_from_start", "{gpu}: {held}, from the start"),
            {"gpu": str(history.gpu), "held": held},
        )
        for flag, held in _HELD.items()
        if (since := _held_since(history, flag)) is not None and _from_the_start(history, since)
    )


def _changes(history: GpuHistory, spans: NamedSpans) -> Iterator[Message]:
    for name, (setting, form) in _WORDS.items():
        points = [point for point in history.points if name in point.values]
        for point in points:
            was = points[0].least(name)
            others = [value for value in (point.least(name), point.most(name)) if value != was]
            if others:
                values: Values = {
                    "gpu": str(history.gpu),
                    "setting": setting,
                    "old": _value(name, form, was),
                    "new": _value(name, form, others[0]),
                    "moment": _moment(history, point, spans),
                }
                yield Message(
                    english(
                        "setting_changed", "{gpu}: {setting} changed from {old} to {new} {moment}"
                    ),
                    values,
                )
                break
    for flag, held in _HELD.items():
        since = _held_since(history, flag)
        if since is not None and not _from_the_start(history, since):
            moment = _moment(history, since, spans)
            yield Message(
                english("held_since", "{gpu}: {held}, {moment} and not before"),
                {"gpu": str(history.gpu), "held": held, "moment": moment},
            )


def _value(name: str, form: str, value: float) -> str | Message:
    if name not in _SWITCHES:
        return form.format(value)
    return Message(english("switched_on", "on") if value else english("switched_off", "off"))


def _moment(history: GpuHistory, point: HistoryPoint, spans: NamedSpans) -> Message:
    seconds = point.boot_s - history.points[0].began_s
    during = running_at([(point.began_s, point.boot_s)], spans)
    checks = Listed(during) if during else None
    return Message(
        english("after_watch_began", "{seconds} s after the watch began[ (during {check})]"),
        known(seconds=f"{seconds:.0f}", check=checks),
    )


def _held_since(history: GpuHistory, flag: str) -> HistoryPoint | None:
    """The first of MIN_POINTS consecutive points in which a reason held the clocks of the GPU in
    use.

    A single point with a span is enough. None where there is no such point.
    """
    held: list[HistoryPoint] = []
    for point in _points_in_use(history, flag):
        held = [*held, point] if point.most(flag) > 0.0 else []
        if len(held) >= MIN_POINTS or (held and held[-1].span_s):
            return held[0]
    return None


def _from_the_start(history: GpuHistory, since: HistoryPoint) -> bool:
    """Whether a reason may have held the clocks since the GPU's first use.

    A card whose application clock is below its highest clock is held by it in every light load, and
    that is how it was sold.
    """
    offered = history.offers(_APPLICATION) and history.offers(_CLOCK)
    if offered and history.maximum(_APPLICATION) < history.maximum(_CLOCK):
        return True
    before = [point for point in history.points if point.boot_s < since.began_s and _in_use(point)]
    return sum(max(point.span_s, PERIOD_S) for point in before) < FREE_S


def _points_in_use(history: GpuHistory, flag: str) -> list[HistoryPoint]:
    """The points in which the GPU was in use; all where its driver does not report utilisation."""
    return [point for point in history.points if flag in point.values and _in_use(point)]


def _in_use(point: HistoryPoint) -> bool:
    return point.values.get("utilisation", 1.0) >= thresholds().work.in_use
