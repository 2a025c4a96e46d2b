"""The laps of a burn: each format's turn is compared with its turn in the last lap. Pure.

Formats differ in power, so each has a clock and a temperature of its own: a change from one turn to
the next says nothing about the GPU.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from acceptance.core.evidence import Table
from acceptance.core.message import Message, known
from acceptance.diagnosis.gpu_history import BURN_ADVICE, GpuHistory, NotMeasured
from acceptance.diagnosis.steady_state import WITHIN_C, SettleTime
from acceptance.diagnosis.time_weight import weighted_mean, weighted_values, with_durations

# Until then a turn's samples may show the format before it: the driver's power and utilisation are
# averages of up to a second.
START_S = 1.0
MIN_SAMPLES = 3  # the least samples for a turn's mean; one with a span is enough
COLUMNS = ("lap", "format", "from s", "to s")


@dataclass(frozen=True, slots=True)
class Turn:
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

        START_S after the turn's beginning; at half time for a turn shorter than twice that.
        """
        return self.from_s + min(START_S, (self.to_s - self.from_s) / 2)


@dataclass(frozen=True, slots=True)
class LapPair:
    """The mean of a reading in a turn, and in the turn of the same format in the last lap."""

    turn: Turn
    then: float
    last: float


@dataclass(frozen=True, slots=True)
class Laps:
    """The laps of one GPU's burn, at least two, with its telemetry.

    `turns` are in order of time. The methods raise NotMeasured where a reading was never sampled,
    fell silent, or is not a finite number, and where no two turns can be compared.
    """

    history: GpuHistory
    turns: tuple[Turn, ...]

    def settle_time(self) -> SettleTime:
        """The time until the temperature settled, from the beginning of the burn.

        It ends with the last turn that was more than 2 degC warmer or cooler than the same format's
        turn in the last lap, and at the earliest with the first turn: a turn is not divided. Where
        the lap before the last ends with such a turn, the GPU was still warming or cooling in the
        last lap: then it is the whole burn, and the note says so.
        """
        pairs = self._pairs("temperature_c", self.turns[-1].lap - 1)
        heat = self._summary()
        begin_s, latest = self.turns[0].from_s, pairs[-1]
        if abs(latest.then - latest.last) > WITHIN_C:
            moving = "still_warming" if latest.last > latest.then else "still_cooling"
            return SettleTime(self.turns[-1].to_s - begin_s, Message(moving, {"heat": heat}))
        unlike = [pair for pair in pairs if abs(pair.then - pair.last) > WITHIN_C]
        return SettleTime((unlike or pairs[:1])[-1].turn.to_s - begin_s, heat)

    def _summary(self) -> Message:
        offered = self.history.offers("temperature_margin_c")
        margin = f"{self._of_last_lap('temperature_margin_c'):.0f}" if offered else None
        final = f"{self.final_temperature():.0f}"
        return Message("heat_of_last_lap", known(temperature=final, margin=margin))

    def clock_kept(self) -> tuple[float, Message]:
        """The ratio of mean clocks, last lap to first lap, for the format where it is lowest.

        Also both clocks in words.
        """
        pairs = self._pairs("sm_clock_mhz", self.turns[0].lap)
        if any(pair.then <= 0 for pair in pairs):
            raise NotMeasured("clock_told_as", gpu=str(self.history.gpu), clock="0")
        kept, least = min(((pair.last / pair.then, pair) for pair in pairs), key=lambda one: one[0])
        clocks = {
            "format": least.turn.format or Message("all_formats"),
            "first": f"{least.then:.0f}",
            "last": f"{least.last:.0f}",
        }
        return kept, Message("clock_by_lap", clocks)

    def final_temperature(self) -> float:
        """The mean temperature of the last lap, in degC."""
        return self._of_last_lap("temperature_c")

    def _of_last_lap(self, name: str) -> float:
        (*_, last) = _whole_laps(self.turns)
        return weighted_mean(weighted_values(self.history, name, last.from_s, last.to_s))

    def _pairs(self, name: str, until_lap: float) -> list[LapPair]:
        """The turns up to a lap, each with its format's mean in the last lap.

        Where samples are too far apart for turns, whole laps are compared, which hold the same
        formats.
        """
        last_lap = self.turns[-1].lap
        for turns in (self.turns, _whole_laps(self.turns)):
            means = self._means(name, turns)
            last = {turn.format: value for turn, value in means.items() if turn.lap == last_lap}
            pairs = [
                LapPair(turn, value, last[turn.format])
                for turn, value in means.items()
                if turn.lap <= until_lap and turn.format in last
            ]
            if pairs:
                return pairs
        raise NotMeasured(
            "sampled_too_seldom", reading=name, gpu=str(self.history.gpu), cure=BURN_ADVICE
        )

    def _means(self, name: str, turns: Sequence[Turn]) -> dict[Turn, float]:
        """The mean of a reading in each turn, from samples in full use wholly within the turn.

        Turns with too few such samples are left out.
        """
        samples = with_durations(self.history.points_with(name))
        ends = [point.boot_s for point, _ in samples]
        found = {}
        for turn in turns:
            near = samples[bisect_left(ends, turn.since_s) : bisect_left(ends, turn.to_s)]
            own = [
                (point, seconds)
                for point, seconds in near
                if point.began_s >= turn.since_s and point.busy()
            ]
            if len(own) >= MIN_SAMPLES or any(point.span_s for point, _ in own):
                found[turn] = weighted_mean(
                    [(point.values[name], seconds) for point, seconds in own]
                )
        return found


def turns(table: Table) -> tuple[Turn, ...] | None:
    """The turns in a load's table (it has COLUMNS), in order of time.

    None for fewer than two laps, or for another table.
    """
    found = []
    try:
        places = [table.columns.index(name) for name in COLUMNS]
        for row in table.rows:
            lap, name, from_s, to_s = (row[place] for place in places)
            found.append(Turn(float(lap), str(name), float(from_s), float(to_s)))
    except ValueError:
        return None
    found.sort(key=lambda turn: turn.from_s)
    if len({turn.lap for turn in found}) < 2 or not all(turn.from_s < turn.to_s for turn in found):
        return None
    return tuple(found)


def _whole_laps(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Each lap as one turn of all formats."""
    laps: dict[float, Turn] = {}
    for turn in turns:
        laps[turn.lap] = Turn(turn.lap, None, laps.get(turn.lap, turn).from_s, turn.to_s)
    return tuple(laps.values())
