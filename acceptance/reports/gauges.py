"""Gauges: the present state of every GPU and of the machine itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acceptance.core import clock_reasons
from acceptance.core.incident import without_duplicates
from acceptance.core.limit import quantity
from acceptance.core.record import HARMFUL, CheckStarted, Entry, Event, Measured, Note, Sample
from acceptance.reports.text import one_line

# A GPU whose reading is older than the newest of all by this much does not answer. After the first
# hour readings come every 10 s.
STALE_S = 30.0
LOST = "gpu-lost"
# Reasons that hold the clocks down. An idle GPU's clocks are not held down.
REASONS = (
    *clock_reasons.HEAT_OR_HARDWARE,
    clock_reasons.POWER_CAP,
    clock_reasons.SYNC_BOOST,
    clock_reasons.DISPLAY_CLOCKS,
    clock_reasons.CLOCKS_SET,
    clock_reasons.UNKNOWN,
)
# These are coloured. The power cap is listed too, but a GPU at its power limit works as it should.
ALARMING = frozenset(clock_reasons.HEAT_OR_HARDWARE)
_MOST_TEXT = 20_000  # of a note; thirty GPUs need less
# events of a GPU checked for duplicates; later ones are just counted
_KEPT = 200
_LAP = re.compile(r"(gpu\d+): lap (\d+) of (\d+)\b((?:(?!; gpu\d+: ).)*)", re.DOTALL)
_RATE = re.compile(r"(?<![a-z])([a-z]+[0-9]+) at ([0-9.e+-]+) TFLOP/s")


@dataclass(frozen=True, slots=True)
class Gauge:
    """The present state of one GPU; what is unknown is None.

    `held` are those of REASONS that hold its clocks down now.

    `figure` is the latest rate of its load, such as `664 TFLOP/s`, `lap` the progress of a burn as
    (lap, laps). `errors` counts its harmful events since the run began.
    """

    name: str
    power_w: float | None
    temperature_c: float | None
    clock_mhz: float | None
    held: tuple[str, ...]
    idle: bool
    errors: int
    figure: str | None
    lap: tuple[int, int] | None
    lost: bool


@dataclass(slots=True)
class _Gpu:
    values: dict[str, float] = field(default_factory=dict)
    read_s: float = float("-inf")
    figure: str | None = None
    lap: tuple[int, int] | None = None
    events: list[Entry] = field(default_factory=list)
    errors: int = 0
    lost: bool = False

    def gauge(self, name: str, newest_s: float) -> Gauge:
        known = {} if self.lost or newest_s - self.read_s > STALE_S else self.values
        return Gauge(
            one_line(name, 40),
            known.get("power_w"),
            known.get("temperature_c"),
            known.get("sm_clock_mhz"),
            tuple(one for one in REASONS if known.get(one)),
            bool(known.get(clock_reasons.IDLE)),
            self.errors,
            self.figure,
            self.lap,
            self.lost,
        )


class Gauges:
    """The gauges of a run, updated record by record.

    `names` are its GPUs, `addresses` their names by the PCI addresses in events.
    """

    def __init__(self, names: Sequence[str], addresses: Mapping[str, str]) -> None:
        self._gpus = {name: _Gpu() for name in names}
        self._addresses = addresses
        self._newest_s = float("-inf")
        self.machine: dict[str, float] = {}
        self.elsewhere = 0  # errors of anything but a GPU of this run

    def entry(self, entry: Entry) -> None:
        """Process one record."""
        body = entry.body
        if isinstance(body, Sample):
            self._sample(entry, body)
        elif isinstance(body, Event) and body.severity in HARMFUL:
            self._event(entry, body)
        elif isinstance(body, CheckStarted):
            for gpu in self._gpus.values():
                gpu.figure = gpu.lap = None
        elif isinstance(body, Measured):
            if (
                body.component in self._gpus
                and body.value is not None
                and body.unit not in ("count", "ratio")
            ):
                self._gpus[
                    body.component
                ].figure = f"{quantity(body.value, body.unit)} {body.measurement}"
        elif isinstance(body, Note) and body.progress:
            self._progress(body.text)

    def gauges(self) -> tuple[Gauge, ...]:
        """The gauges of all GPUs, in the run's order."""
        return tuple(gpu.gauge(name, self._newest_s) for name, gpu in self._gpus.items())

    def name(self, component: str | None) -> str | None:
        """The name of a component for people: `gpu0` for a PCI address of a GPU."""
        return self._addresses.get(component, component) if component else None

    def _sample(self, entry: Entry, body: Sample) -> None:
        self._newest_s = max(self._newest_s, entry.boot_s)
        if body.component is None:
            self.machine = dict(body.values)
        elif body.component in self._gpus:
            gpu = self._gpus[body.component]
            gpu.values, gpu.read_s = dict(body.values), entry.boot_s

    def _event(self, entry: Entry, body: Event) -> None:
        gpu = self._gpus.get(self.name(body.component) or "")
        if gpu is None:
            self.elsewhere += 1
            return
        gpu.lost |= body.kind == LOST
        if len(gpu.events) < _KEPT:
            gpu.events.append(entry)
            # the kernel log and NVML report the same event
            gpu.errors = len(without_duplicates(gpu.events))
        else:
            gpu.errors += 1

    def _progress(self, text: str) -> None:
        for found in _LAP.finditer(text[:_MOST_TEXT]):
            gpu = self._gpus.get(found[1])
            if gpu is not None:
                gpu.lap = (int(found[2][:9]), int(found[3][:9]))
                rates = _RATE.findall(found[4])
                gpu.figure = f"{rates[-1][1]} TFLOP/s {rates[-1][0]}" if rates else gpu.figure
