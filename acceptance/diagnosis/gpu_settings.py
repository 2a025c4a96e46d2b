"""Changes of a GPU's settings during a run: power limit, clocks, ECC, MIG. Pure.

If the settings of a GPU change in the middle, its values belong to two machines. A setting that
holds from the start is only worth a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acceptance.core import clock_reasons
from acceptance.core.message import Listed, Message, Values, known
from acceptance.diagnosis.gpu_history import GpuHistory, HistoryPoint, running_at
from acceptance.machine.thresholds import thresholds

NamedSpans = Sequence[tuple[str, float, float]]

_WORDS = {
    "power_limit_w": (Message("power_limit"), "{:g} W"),
    "application_clock_mhz": (Message("application_clock"), "{:g} MHz"),
    "ecc_enabled": (Message("ecc"), "{:g}"),
    "mig_enabled": (Message("mig_mode"), "{:g}"),
}
_SWITCHES = ("ecc_enabled", "mig_enabled")
_HELD = {
    clock_reasons.CLOCKS_SET: Message("clocks_set"),
    clock_reasons.DISPLAY_CLOCKS: Message("display_clocks"),
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
        Message("held_from_start", {"gpu": str(history.gpu), "held": held})
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
                yield Message("setting_changed", values)
                break
    for flag, held in _HELD.items():
        since = _held_since(history, flag)
        if since is not None and not _from_the_start(history, since):
            moment = _moment(history, since, spans)
            yield Message("held_since", {"gpu": str(history.gpu), "held": held, "moment": moment})


def _value(name: str, form: str, value: float) -> str | Message:
    if name not in _SWITCHES:
        return form.format(value)
    return Message("switched_on" if value else "switched_off")


def _moment(history: GpuHistory, point: HistoryPoint, spans: NamedSpans) -> Message:
    seconds = point.boot_s - history.points[0].began_s
    during = running_at([(point.began_s, point.boot_s)], spans)
    checks = Listed(during) if during else None
    return Message("after_watch_began", known(seconds=f"{seconds:.0f}", check=checks))


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
