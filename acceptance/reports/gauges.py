"""Gauges: what is known at this moment of every GPU and of the machine itself,
from the records as they come.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acceptance.core import clock_reasons
from acceptance.core.incident import without_duplicates
from acceptance.core.limit import quantity
from acceptance.core.record import HARMFUL, CheckStarted, Entry, Event, Measured, Note, Sample
from acceptance.reports.text import one_line

# A reading that is older than the newest of all by so much is of a GPU that does not answer. After
# the first hour one comes in 10 s.
STALE_S = 30.0
LOST = "gpu-lost"
# Every one of them holds the clocks down; an idle GPU, and one in clocks that somebody set, are
# held by nothing.
REASONS = (
    *clock_reasons.HEAT_OR_HARDWARE,
    clock_reasons.POWER_CAP,
    clock_reasons.SYNC_BOOST,
    clock_reasons.DISPLAY_CLOCKS,
    clock_reasons.CLOCKS_SET,
    clock_reasons.UNKNOWN,
)
# Of a GPU that works at its power limit as it should, the power cap is told too; these are told in
# colour.
ALARMING = frozenset(clock_reasons.HEAT_OR_HARDWARE)
_MOST_TEXT = 20_000  # of a note: more than thirty GPUs tell
_KEPT = (
    200  # events of a GPU that are compared with each other; later ones are counted as they come
)
_LAP = re.compile(r"(gpu\d+): lap (\d+) of (\d+)\b((?:(?!; gpu\d+: ).)*)", re.DOTALL)
_RATE = re.compile(r"(?<![a-z])([a-z]+[0-9]+) at ([0-9.e+-]+) TFLOP/s")


@dataclass(frozen=True, slots=True)
class Gauge:
    """One GPU at this moment. What is not known is None.

    `held` are those of REASONS that hold its clocks down now.

    `figure` is the latest that its load told, such as `664 TFLOP/s`, `lap` how far a burn is:
    (turn, turns). `errors` counts what was told of it since the run began.
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
    """Follows a run.

    `names` are its GPUs, `addresses` their names by the PCI addresses that events speak of.
    """

    def __init__(self, names: Sequence[str], addresses: Mapping[str, str]) -> None:
        self._gpus = {name: _Gpu() for name in names}
        self._addresses = addresses
        self._newest_s = float("-inf")
        self.machine: dict[str, float] = {}
        self.elsewhere = 0  # errors of what is no GPU of this run

    def entry(self, entry: Entry) -> None:
        """Take in one record."""
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
        """Every GPU, in their order."""
        return tuple(gpu.gauge(name, self._newest_s) for name, gpu in self._gpus.items())

    def name(self, component: str | None) -> str | None:
        """What people call a component: `gpu0` for a PCI address of a GPU."""
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
            gpu.errors = len(
                without_duplicates(gpu.events)
            )  # the kernel log and NVML tell of the same
        else:
            gpu.errors += 1

    def _progress(self, text: str) -> None:
        for found in _LAP.finditer(text[:_MOST_TEXT]):
            gpu = self._gpus.get(found[1])
            if gpu is not None:
                gpu.lap = (int(found[2][:9]), int(found[3][:9]))
                rates = _RATE.findall(found[4])
                gpu.figure = f"{rates[-1][1]} TFLOP/s {rates[-1][0]}" if rates else gpu.figure
