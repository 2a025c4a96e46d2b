"""Reads the GPU telemetry of a run in progress.

Each read continues where the last one ended: a segment of days is long.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path

from acceptance.core.parts import Component
from acceptance.diagnosis.gpu_history import Collector, GpuHistory, HistoryPoint
from acceptance.diagnosis.signature import GpuHeat
from acceptance.journal import reader, segment
from acceptance.machine.thresholds import Range

# The largest distance, in seconds, between a moment and a sample that still represents it: ten
# periods, or the length of the span for a sample that represents one.
NEAR_S = 2.0
NEAR_SPAN_S = 10.0


class GpuTelemetry:
    """Follows one segment of samples.

    `ranges` are those of each GPU's sensors, by GPU name (`sensor_range.card_ranges`).
    """

    def __init__(
        self, path: Path, ranges: Mapping[Component, Mapping[str, Range]] | None = None
    ) -> None:
        self._tail = reader.Tail(path)
        self._collector = Collector(ranges)
        self._damage: segment.JournalError | None = None

    def histories(
        self, checks: tuple[tuple[str, float, float], ...] = ()
    ) -> dict[Component, GpuHistory]:
        """The history of every GPU until now, by its name; empty while there is no segment.

        `checks` (name, begin, end) loaded the machine meanwhile.
        Raises JournalError when the segment cannot be read or is damaged before its end.
        """
        self._read()
        if self._damage is not None:
            raise self._damage
        return self._collector.histories(checks)

    def heat(self, gpu: Component, boot_s: float) -> GpuHeat | None:
        """Temperature and clock of a GPU near a moment, in seconds since boot.

        None if no readable sample is near enough. Never raises: a load's finding must not be lost
        for want of its temperature.
        """
        points = self._collector.points.get(gpu, [])
        if not points or points[-1].boot_s < boot_s:
            self._read()
            points = self._collector.points.get(gpu, [])
        place = bisect_left(points, boot_s, key=lambda point: point.boot_s)
        near = [
            point
            for point in points[max(0, place - 1) : place + 1]
            if _away_s(point, boot_s) <= (NEAR_SPAN_S if point.span_s else NEAR_S)
        ]
        if not near:
            return None
        values = min(near, key=lambda point: _away_s(point, boot_s)).values
        return GpuHeat(values.get("temperature_c"), values.get("sm_clock_mhz"))

    def _read(self) -> None:
        try:
            for entry in self._tail.each() if self._damage is None else ():
                self._collector.add(entry)
        except segment.JournalError as damage:  # later records would hide the lost ones
            self._damage = damage


def _away_s(point: HistoryPoint, boot_s: float) -> float:
    """Distance in seconds between a moment and the time that a point covers."""
    return max(point.began_s - boot_s, boot_s - point.boot_s, 0.0)
