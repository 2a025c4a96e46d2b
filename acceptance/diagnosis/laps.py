"""The laps of a burn: each format's slot is compared with its slot in the last lap. Pure.

Formats differ in power, so each has a clock and a temperature of its own: a change from one slot to
the next says nothing about the GPU.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from acceptance.core.evidence import Table
from acceptance.core.message import Message, english, known
from acceptance.diagnosis.gpu_history import BURN_ADVICE, GpuHistory, NotMeasured
from acceptance.diagnosis.steady_state import (
    WITHIN_C,
    SettleTime,
    weighted_mean,
    weighted_values,
    with_durations,
)

# Until then a slot's samples may show the format before it: the driver's power and utilisation are
# averages of up to a second.
START_S = 1.0
MIN_SAMPLES = 3  # the least samples for a slot's mean; one with a span is enough
COLUMNS = ("lap", "format", "from s", "to s")


@dataclass(frozen=True, slots=True)
class Slot:
    """One format's products in one lap, or all formats' where it is None.

    Times are seconds since boot.
    """

    lap: float
    format: str | None
    from_s: float
    to_s: float

    @property
    def since_s(self) -> float:
        """When its own samples begin, in seconds since boot.

        START_S after the slot's beginning; at half time for a slot shorter than twice that.
        """
        return self.from_s + min(START_S, (self.to_s - self.from_s) / 2)


@dataclass(frozen=True, slots=True)
class LapPair:
    """The mean of a reading in a slot, and in the slot of the same format in the last lap."""

    slot: Slot
    then: float
    last: float


@dataclass(frozen=True, slots=True)
class Laps:
    """The laps of one GPU's burn, at least two, with its telemetry.

    `slots` are in order of time. The methods raise NotMeasured where a reading was never sampled,
    fell silent, or is not a finite number, and where no two slots can be compared.
    """

    history: GpuHistory
    slots: tuple[Slot, ...]

    def settle_time(self) -> SettleTime:
        """The time until the temperature settled, from the beginning of the burn.

        It ends with the last slot that was more than 2 degC warmer or cooler than the same format's
        slot in the last lap, and at the earliest with the first slot: a slot is not divided. Where
        the lap before the last ends with such a slot, the GPU was still warming or cooling in the
        last lap: then it is the whole burn, and the note says so.
        """
        pairs = self._pairs("temperature_c", self.slots[-1].lap - 1)
        heat = self._summary()
        begin_s, latest = self.slots[0].from_s, pairs[-1]
        if abs(latest.then - latest.last) > WITHIN_C:
            moving = (
                "still_warming"
                if latest.last > latest.then
                else english("still_cooling", "still cooling: {heat}")
            )
            return SettleTime(self.slots[-1].to_s - begin_s, Message(moving, {"heat": heat}))
        unlike = [pair for pair in pairs if abs(pair.then - pair.last) > WITHIN_C]
        return SettleTime((unlike or pairs[:1])[-1].slot.to_s - begin_s, heat)

    def _summary(self) -> Message:
        offered = self.history.offers("temperature_margin_c")
        margin = f"{self._of_last_lap('temperature_margin_c'):.0f}" if offered else None
        final = f"{self.final_temperature():.0f}"
        return Message(
            english(
                "heat_of_last_lap",
                "{temperature} degC in the last lap[, {margin} degC below its limit]",
            ),
            known(temperature=final, margin=margin),
        )

    def clock_kept(self) -> tuple[float, Message]:
        """The ratio of mean clocks, last lap to first lap, for the format where it is lowest.

        Also both clocks in words.
        """
        pairs = self._pairs("sm_clock_mhz", self.slots[0].lap)
        if any(pair.then <= 0 for pair in pairs):
            raise NotMeasured(
                english("clock_told_as", "the clock of {gpu} was told as {clock} MHz under load"),
                gpu=str(self.history.gpu),
                clock="0",
            )
        kept, least = min(((pair.last / pair.then, pair) for pair in pairs), key=lambda one: one[0])
        clocks = {
            "format": least.slot.format or Message(english("all_formats", "all formats")),
            "first": f"{least.then:.0f}",
            "last": f"{least.last:.0f}",
        }
        return kept, Message(
            english(
                "clock_by_lap", "{format}: {first} MHz in the first lap, {last} MHz in the last"
            ),
            clocks,
        )

    def final_temperature(self) -> float:
        """The mean temperature of the last lap, in degC."""
        return self._of_last_lap("temperature_c")

    def _of_last_lap(self, name: str) -> float:
        (*_, last) = _whole_laps(self.slots)
        return weighted_mean(weighted_values(self.history, name, last.from_s, last.to_s))

    def _pairs(self, name: str, until_lap: float) -> list[LapPair]:
        """The slots up to a lap, each with its format's mean in the last lap.

        Where samples are too far apart for slots, whole laps are compared, which hold the same
        formats.
        """
        last_lap = self.slots[-1].lap
        for slots in (self.slots, _whole_laps(self.slots)):
            means = self._means(name, slots)
            last = {slot.format: value for slot, value in means.items() if slot.lap == last_lap}
            pairs = [
                LapPair(slot, value, last[slot.format])
                for slot, value in means.items()
                if slot.lap <= until_lap and slot.format in last
            ]
            if pairs:
                return pairs
        raise NotMeasured(
            english(
                "sampled_too_seldom",
                "{reading} of {gpu} was sampled too seldom in full use to hold one lap of the "
                "burn against another: {cure}",
            ),
            reading=name,
            gpu=str(self.history.gpu),
            cure=BURN_ADVICE,
        )

    def _means(self, name: str, slots: Sequence[Slot]) -> dict[Slot, float]:
        """The mean of a reading in each slot, from samples in full use wholly within the slot.

        Slots with too few such samples are left out.
        """
        samples = with_durations(self.history.points_with(name))
        ends = [point.boot_s for point, _ in samples]
        found = {}
        for slot in slots:
            near = samples[bisect_left(ends, slot.since_s) : bisect_left(ends, slot.to_s)]
            own = [
                (point, seconds)
                for point, seconds in near
                if point.began_s >= slot.since_s and point.busy()
            ]
            if len(own) >= MIN_SAMPLES or any(point.span_s for point, _ in own):
                found[slot] = weighted_mean(
                    [(point.values[name], seconds) for point, seconds in own]
                )
        return found


def slots(table: Table) -> tuple[Slot, ...] | None:
    """The slots in a load's table (it has COLUMNS), in order of time.

    None for fewer than two laps, or for another table.
    """
    found = []
    try:
        places = [table.columns.index(name) for name in COLUMNS]
        for row in table.rows:
            lap, name, from_s, to_s = (row[place] for place in places)
            found.append(Slot(float(lap), str(name), float(from_s), float(to_s)))
    except ValueError:
        return None
    found.sort(key=lambda slot: slot.from_s)
    if len({slot.lap for slot in found}) < 2 or not all(slot.from_s < slot.to_s for slot in found):
        return None
    return tuple(found)


def _whole_laps(slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """Each lap as one slot of all formats."""
    laps: dict[float, Slot] = {}
    for slot in slots:
        laps[slot.lap] = Slot(slot.lap, None, laps.get(slot.lap, slot).from_s, slot.to_s)
    return tuple(laps.values())
