"""Gauges: the present state of every GPU and of the machine itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acceptance.core import clock_reasons
from acceptance.core.evidence import Sample
from acceptance.core.incident import without_duplicates
from acceptance.core.message import Listed, Message, Quantity
from acceptance.core.parts import ITSELF, Component, parse
from acceptance.core.record import HARMFUL, CheckEnded, CheckStarted, Entry, Event, Measured, Note
from acceptance.expect.sensor_range import THROUGHPUT
from acceptance.reports.text import one_line
from acceptance.wording.words import quantity

# A GPU whose reading is older than the newest of all by this much does not answer. After the first
# hour readings come every 10 s.
STALE_S = 30.0
# Rates of links come every other second, or with the means of 10 s.
RATE_STALE_S = 15.0
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
# events of a GPU checked for duplicates; later ones are just counted
_KEPT = 200


@dataclass(frozen=True, slots=True)
class Gauge:
    """The present state of one GPU; what is unknown is None.

    `held` are those of REASONS that hold its clocks down now.

    `figure` is the latest rate of its load, such as `664 TFLOP/s`, `lap` the progress of a burn as
    (lap, laps). `errors` counts its harmful events since the run began. `rates` are what its links
    move, in GB/s by their names in THROUGHPUT.
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
    rates: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Gpu:
    rates: dict[str, float] = field(default_factory=dict)
    rates_s: float = float("-inf")
    values: dict[str, float] = field(default_factory=dict)
    read_s: float = float("-inf")
    figure: str | None = None
    lap: tuple[int, int] | None = None
    figure_of: str = ""  # the segment of the session that gave figure and lap
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
            self.rates if known and newest_s - self.rates_s <= RATE_STALE_S else {},
        )


class Gauges:
    """The gauges of a run, updated record by record.

    `names` are its GPUs, `addresses` their names by the PCI addresses in events.
    """

    def __init__(
        self, names: Sequence[Component], addresses: Mapping[Component, Component]
    ) -> None:
        self._gpus = {name: _Gpu() for name in names}
        self._addresses = addresses
        self._newest_s = float("-inf")
        self._running: set[str] = set()  # the segments of sessions with a running check
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
            self._running.add(entry.segment)
            for gpu in self._gpus.values():
                # kept while the check that gave it runs on, in the session beside this one
                if gpu.figure_of == entry.segment or gpu.figure_of not in self._running:
                    gpu.figure = gpu.lap = None
        elif isinstance(body, CheckEnded):
            self._running.discard(entry.segment)
        elif isinstance(body, Measured):
            if (
                body.component in self._gpus
                and body.value is not None
                and body.unit not in ("count", "ratio")
            ):
                gpu = self._gpus[body.component]
                gpu.figure = f"{quantity(body.value, body.unit)} {body.measurement}"
                gpu.figure_of = entry.segment
        elif isinstance(body, Note) and body.progress and isinstance(body.text, Message):
            self._progress(body.text, entry.segment)

    def gauges(self) -> tuple[Gauge, ...]:
        """The gauges of all GPUs, in the run's order."""
        return tuple(gpu.gauge(str(name), self._newest_s) for name, gpu in self._gpus.items())

    def name(self, component: Component | None) -> Component | None:
        """The name of a component for people: `gpu0` for a PCI address of a GPU."""
        return self._addresses.get(component, component) if component else None

    def _sample(self, entry: Entry, body: Sample) -> None:
        self._newest_s = max(self._newest_s, entry.boot_s)
        if body.component is None:
            self.machine = dict(body.values)
        elif body.component in self._gpus:
            gpu = self._gpus[body.component]
            gpu.values, gpu.read_s = dict(body.values), entry.boot_s
            if rates := {name: gpu.values[name] for name in THROUGHPUT if name in gpu.values}:
                gpu.rates, gpu.rates_s = rates, entry.boot_s

    def _event(self, entry: Entry, body: Event) -> None:
        gpu = self._gpus.get(self.name(body.component) or ITSELF)
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

    def _progress(self, note: Message, segment: str) -> None:
        """The laps of burns, one of each GPU (`session.load_events.lap_message`)."""
        laps = note.values.get("text")
        for lap in laps if isinstance(laps, tuple) else ():
            match lap:
                case Message(
                    "burn_lap",
                    {
                        "gpu": str(name),
                        "lap": int() | float() as number,
                        "laps": int() | float() as most,
                        "formats": Listed(formats),
                    },
                ) if (gpu := self._gpus.get(parse(name))) is not None:
                    gpu.lap, gpu.figure_of = (int(number), int(most)), segment
                    gpu.figure = next(filter(None, map(_rate, reversed(formats))), gpu.figure)


def _rate(proved: object) -> str | None:
    """The rate of a format in a lap, for people."""
    match proved:
        case Message("burn_lap_format", {"format": str(name), "rate": Quantity(value, unit)}):
            return f"{quantity(value, unit)} {name}"
        case _:
            return None
