"""Thermal steady state of a burning GPU: when it settled, and how much clock was left. Pure.

A burn is the time within a check from the first moment in which the GPU was in full use to the
last: what a load does before (making its operands, say) heats nothing. This is the only judgement
of heat and clocks where no laps are known (see `laps`), because the load died.

Time-weighted mean and median of a GPU's reading. Pure.

Each sample counts for the time until the next one.

A card that draws less power than its equals while its fans run higher. Pure.

A connector or cable of high resistance gets hot, and the card's own supply gives the chip less: the
card does the same work at lower clocks, and cools more. In the whole burn all cards have the same
load, so equal cards are comparable; one with a lower power limit must only reach its share of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from statistics import median

from acceptance.core import clock_reasons
from acceptance.core.message import Message, english, known
from acceptance.core.parts import Component
from acceptance.diagnosis.gpu_history import (
    BURN_ADVICE,
    GAP_S,
    GpuHistory,
    HistoryPoint,
    NotMeasured,
)
from acceptance.expect.components import LEAST_EQUALS
from acceptance.wording.errors import each_once

Shares = list[tuple[float, float]]  # values, each with the seconds for which it counts


def with_durations(points: Sequence[HistoryPoint]) -> list[tuple[HistoryPoint, float]]:
    """Points, each with the seconds for which it counts.

    That is its span, or the time until the next point, GAP_S at most.
    """
    found = []
    for point, following in zip_longest(points, points[1:]):
        after_s = min(GAP_S, following.began_s - point.boot_s) if following is not None else 0.0
        found.append((point, max(point.span_s or after_s, 1e-3)))
    return found


def weighted_values(
    history: GpuHistory,
    name: str,
    since_s: float,
    until_s: float,
    which: Callable[[HistoryPoint], bool] = lambda _: True,
) -> Shares:
    """The values of a reading between two moments, each with its duration.

    Only points that `which` accepts; times are seconds since boot. Raises NotMeasured where there
    are none, and as the history does.
    """
    found = []
    for point, seconds in with_durations(history.points_with(name)):
        if point.boot_s >= since_s and point.began_s <= until_s and which(point):
            within_s = min(point.boot_s, until_s) - max(point.began_s, since_s)
            found.append((point.values[name], max(within_s, 1e-3) if point.span_s else seconds))
    if not found:
        raise NotMeasured(
            english(
                "not_sampled_between",
                "{reading} of {gpu} was not sampled from {since} to {until} s after boot",
            ),
            reading=name,
            gpu=str(history.gpu),
            since=f"{since_s:.0f}",
            until=f"{until_s:.0f}",
        )
    return found


def weighted_mean(shares: Shares) -> float:
    """The time-weighted mean."""
    return sum(value * share for value, share in shares) / sum(share for _, share in shares)


def weighted_median(shares: Shares) -> float:
    """The time-weighted median."""
    ordered = sorted(shares)
    until = list(accumulate(share for _, share in ordered))
    return next(
        value
        for (value, _), reached in zip(ordered, until, strict=True)
        if reached >= until[-1] / 2
    )


WITHIN_C = 2.0
SHORT_S = 30.0
LAST_S = 10.0  # the least time that counts as the end of a burn
FIRST_S = 60.0
ROWS = 60
ROW_S = 10.0
COLUMNS = ("minute", "degC", "MHz", "W", "held back by")
NOT_REPORTED = "not told"
# Reasons that hold clocks back, in words; those that a builder checks first come first.
REASONS = {
    clock_reasons.HW_THERMAL: "heat (hardware)",
    clock_reasons.SW_THERMAL: "heat (software)",
    clock_reasons.POWER_BRAKE: "power brake",
    clock_reasons.HW_SLOWDOWN: "hardware slowdown",
    clock_reasons.POWER_CAP: "power cap",
}
_CAUSES = {
    clock_reasons.HW_THERMAL: Message(
        english(
            "too_little_cooling",
            "too little cooling (fan, dust, paste or pads, airflow of this slot)",
        )
    ),
    clock_reasons.SW_THERMAL: Message("too_little_cooling"),
    clock_reasons.POWER_BRAKE: Message(
        english("supply_holds_back", "the power supply or a cable told the card to hold back")
    ),
    clock_reasons.HW_SLOWDOWN: Message(
        english("heat_or_supply", "heat, or the power supply told the card to hold back")
    ),
    clock_reasons.POWER_CAP: Message(
        english(
            "power_limit_reached",
            "its power limit, which less heat makes go further (compare `nvidia-smi -q -d POWER` "
            "with its equals)",
        )
    ),
}


@dataclass(frozen=True, slots=True)
class SettleTime:
    """How long the temperature took to settle, in seconds, and a note on it."""

    seconds: float
    note: Message


@dataclass(frozen=True, slots=True)
class BurnTelemetry:
    """The telemetry of one GPU from the first to the last moment of full use within a check.

    Times are seconds since boot. The methods raise NotMeasured where a reading was never sampled,
    fell silent, or is not a finite number.
    """

    history: GpuHistory
    begin_s: float
    end_s: float

    @classmethod
    def within(cls, history: GpuHistory, begin_s: float, end_s: float) -> BurnTelemetry:
        """The burn within a check's time.

        Raises NotMeasured where the GPU was never in full use then.
        """
        busy = [
            point
            for point in history.points
            if point.busy() and begin_s <= point.began_s and point.boot_s <= end_s
        ]
        if not busy:
            raise NotMeasured(
                english("never_burned", "{gpu} was never in full use while it was to burn: {cure}"),
                gpu=str(history.gpu),
                cure=BURN_ADVICE,
            )
        first_s, last_s = busy[0].began_s, busy[-1].boot_s
        points = tuple(
            point for point in history.points if first_s <= point.began_s and point.boot_s <= last_s
        )
        return cls(GpuHistory(history.gpu, points, history.outside), first_s, last_s)

    @property
    def seconds(self) -> float:
        """The burn's duration in seconds."""
        return self.end_s - self.begin_s

    @property
    def short_note(self) -> Message | None:
        """A note that the burn was too short to say much; None where it was not."""
        return (
            Message(
                english("short_burn", "only {seconds} s under load, which tells little of heat"),
                {"seconds": f"{self.seconds:.0f}"},
            )
            if self.seconds < SHORT_S
            else None
        )

    def settle_time(self) -> SettleTime:
        """The time until the temperature stays within 2 degC of its final value.

        The final value is the mean over the last tenth (10 s at least). A temperature that leaves
        that range within the last tenth has not settled: then it is the whole burn, and the note
        says what it does.
        """
        points = self.history.points_with("temperature_c")
        last_s = min(self.seconds, max(LAST_S, self.seconds / 10))
        final_c = self._mean("temperature_c", self.end_s - last_s, self.end_s)
        out = [
            point.boot_s
            for point in points
            if max(
                abs(point.least("temperature_c") - final_c),
                abs(point.most("temperature_c") - final_c),
            )
            > WITHIN_C
        ]
        margin = self._margin(last_s)
        heat = Message(
            english(
                "heat_at_end", "{temperature} degC at the end[, {margin} degC below its limit]"
            ),
            known(temperature=f"{final_c:.0f}", margin=margin),
        )
        if out and out[-1] > self.end_s - last_s:
            return SettleTime(self.seconds, self._moving(heat, final_c, last_s))
        return SettleTime(out[-1] - self.begin_s if out else 0.0, heat)

    def _moving(self, heat: Message, final_c: float, last_s: float) -> Message:
        """What an unsettled temperature does, compared with an equal time before the end."""
        from_s = max(self.begin_s, self.end_s - 2 * last_s)
        try:
            before_c = self._mean("temperature_c", from_s, self.end_s - last_s)
        except NotMeasured:  # the burn lasted no longer than its end
            return Message(english("still_warming", "still warming: {heat}"), {"heat": heat})
        if abs(final_c - before_c) <= WITHIN_C / 2:
            return Message(english("swings", "swings without rest: {heat}"), {"heat": heat})
        moving = "still_warming" if final_c > before_c else "still_cooling"
        return Message(moving, {"heat": heat})

    def _margin(self, last_s: float) -> str | None:
        if not self.history.offers("temperature_margin_c"):
            return None
        return f"{self._mean('temperature_margin_c', self.end_s - last_s, self.end_s):.0f}"

    def clock_kept(self) -> tuple[float, Message]:
        """The median clock of the last quarter relative to that of the first minute, in full use.

        The first minute is a quarter of the burn at most. Also both clocks in words.
        """
        first = self._busy(
            "sm_clock_mhz", self.begin_s, self.begin_s + min(FIRST_S, self.seconds / 4)
        )
        last = self._busy("sm_clock_mhz", self.end_s - self.seconds / 4, self.end_s)
        if first <= 0:
            raise NotMeasured("clock_told_as", gpu=str(self.history.gpu), clock=f"{first:g}")
        clocks = {"first": f"{first:.0f}", "last": f"{last:.0f}"}
        code = (
            english("clock_by_minute", "{first} MHz in the first minute, {last} MHz in the last")
            if self.seconds / 4 > FIRST_S
            else english(
                "clock_by_quarter", "{first} MHz in the first quarter, {last} MHz in the last"
            )
        )
        return last / first, Message(code, clocks)

    def final_temperature(self) -> float:
        """The mean temperature of the last quarter, in degC."""
        return self._mean("temperature_c", self.end_s - self.seconds / 4, self.end_s)

    def causes(self) -> tuple[Message, ...]:
        """The likely causes of low clocks, by the reasons that were up in the last quarter."""
        since = self.end_s - self.seconds / 4
        found = each_once(_CAUSES[name] for name in self._up(since, self.end_s))
        return found or (
            Message(
                english(
                    "no_reason_sampled",
                    "no reason was sampled: clocks set by hand (`nvidia-smi -q -d CLOCK`), or a "
                    "load that was held up",
                )
            ),
        )

    def rows(self) -> tuple[tuple[float | str, ...], ...]:
        """A row for each interval of the burn in the order of COLUMNS, ROWS at most.

        Each has means, and the reasons that held the clocks back.
        """
        step_s = max(ROW_S, self.seconds / ROWS)
        count = min(ROWS, max(1, math.ceil(self.seconds / step_s - 1e-6)))
        found = []
        for number in range(count):
            since, until = (
                self.begin_s + number * step_s,
                min(self.end_s, self.begin_s + (number + 1) * step_s),
            )
            figures = [
                self._cell(name, since, until)
                for name in ("temperature_c", "sm_clock_mhz", "power_w")
            ]
            up = ", ".join(REASONS[name] for name in self._up(since, until))
            has_reasons = any(self.history.offers(name) for name in REASONS)
            found.append(
                (
                    round((until - self.begin_s) / 60, 2),
                    *figures,
                    up or ("nothing" if has_reasons else NOT_REPORTED),
                )
            )
        return tuple(found)

    def _cell(self, name: str, since: float, until: float) -> float | str:
        try:
            return round(self._mean(name, since, until), 1)
        except NotMeasured:
            return NOT_REPORTED

    def _up(self, since: float, until: float) -> list[str]:
        points = [
            point
            for point in self.history.points
            if since <= point.boot_s and point.began_s <= until
        ]
        return [
            name
            for name in REASONS
            if any(name in point.values and point.most(name) > 0 for point in points)
        ]

    def _mean(self, name: str, since: float, until: float) -> float:
        return weighted_mean(weighted_values(self.history, name, since, until))

    def _busy(self, name: str, since: float, until: float) -> float:
        return weighted_median(weighted_values(self.history, name, since, until, HistoryPoint.busy))


def growth_around(
    history: GpuHistory, counter: str, begin_s: float, end_s: float
) -> tuple[float | None, float, float | None]:
    """How much a counter grew before, within and after some time.

    None for before or after where there are fewer than two samples. Growth between the samples
    around the beginning or end of the time counts as within. Raises NotMeasured where that is not
    known.
    """
    having = [place for place, point in enumerate(history.points) if counter in point.values]
    if not having:
        raise NotMeasured("never_sampled", reading=counter, gpu=str(history.gpu))
    first = max(
        (place for place in having if history.points[place].boot_s <= begin_s), default=having[0]
    )
    last = min(
        (place for place in having if history.points[place].began_s >= end_s), default=having[-1]
    )

    def grown(points: Sequence[HistoryPoint]) -> float:
        return GpuHistory(history.gpu, tuple(points)).growth(counter)

    def known(points: Sequence[HistoryPoint]) -> float | None:
        return grown(points) if sum(counter in point.values for point in points) > 1 else None

    return (
        known(history.points[: first + 1]),
        grown(history.points[first : last + 1]),
        known(history.points[last:]),
    )


def spreads(
    values: Mapping[Component, float], siblings: Mapping[str, Sequence[Component]]
) -> dict[Component, tuple[float, float]]:
    """Each value minus the median of its siblings, and that median.

    A GPU is absent where it has no value or no sibling has one.
    """
    found = {}
    for names in siblings.values():
        for name in names:
            others = [values[other] for other in names if other != name and other in values]
            if name in values and others:
                middle = median(others)
                found[name] = (values[name] - middle, middle)
    return found


# Below both, equal cards differ by their chips: two H200s 698 and 703 W at one limit, cards in
# slots by up to 3 %. Published detectors take the same bounds.
LESS_W, LESS_SHARE = 25.0, 0.06
HIGHER_FAN = 0.05  # of full speed: fans are told in hundredths, and equal cards differ by some
# Held back by heat for more of the time than this, a card draws less because it is hot.
HOT_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Draw:
    """What a card drew in the second half of the burn: means of power in W and of its fans' speed.

    `limit_w` is its power limit, None where it is not told; `hot` says that heat held it back.
    """

    power_w: float
    fan: float
    limit_w: float | None
    hot: bool


def draw(burn: BurnTelemetry) -> Draw:
    """The draw of a card in full use. Raises NotMeasured where power or fan was not sampled."""
    since = burn.end_s - burn.seconds / 2

    def mean(name: str) -> float:
        return weighted_mean(
            weighted_values(burn.history, name, since, burn.end_s, HistoryPoint.busy)
        )

    heat = (clock_reasons.HW_THERMAL, clock_reasons.SW_THERMAL)
    limits = [point.values.get("power_limit_w") for point in burn.history.points]
    return Draw(
        mean("power_w"),
        mean("fan"),
        next((limit for limit in limits if limit is not None), None),
        any(burn.history.offers(name) and mean(name) > HOT_SHARE for name in heat),
    )


def compare(
    draws: Mapping[Component, Draw], siblings: Mapping[str, Sequence[Component]]
) -> dict[Component, Message | None]:
    """What is told against each card by its equals, None for nothing.

    Cards with fewer than two equals are absent: nobody can say which of two is the odd one.
    """
    found: dict[Component, Message | None] = {}
    for names in siblings.values():
        for name in names:
            equals = [draws[other] for other in names if other != name and other in draws]
            if name in draws and len(equals) >= LEAST_EQUALS - 1:
                found[name] = _against(draws[name], equals)
    return found


def _expected_w(own: Draw, equals: Sequence[Draw]) -> float:
    """What equals draw: the median in W, or as a share of the own limit where that is less."""
    found = [median(one.power_w for one in equals)]
    shares = [one.power_w / one.limit_w for one in equals if one.limit_w]
    if own.limit_w and len(shares) == len(equals):
        found.append(median(shares) * own.limit_w)
    return min(found)


def _against(own: Draw, equals: Sequence[Draw]) -> Message | None:
    power_w, fan = _expected_w(own, equals), median(one.fan for one in equals)
    less = power_w - own.power_w >= max(LESS_W, LESS_SHARE * power_w)
    if not less or own.fan - fan < HIGHER_FAN or own.hot:
        return None
    return Message(
        english(
            "draws_less_and_cools_more",
            "draws {power} W beside {equals} W of its equals, fans at {fan} % beside {fans} %",
        ),
        {
            "power": f"{own.power_w:.0f}",
            "equals": f"{power_w:.0f}",
            "fan": f"{100 * own.fan:.0f}",
            "fans": f"{100 * fan:.0f}",
        },
    )
