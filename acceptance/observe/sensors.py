"""The host's sensors: found once, then sampled.

A sensor that the machine does not offer is absent from every sample; no value replaces it.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from acceptance.core.evidence import Sample
from acceptance.core.parts import Component
from acceptance.machine.thresholds import thresholds

# Unit of every reading. Raw fields have it in their name too.
UNITS = {
    "cpu_temperature_c": "degC",
    "cpu_mhz_min": "MHz",
    "cpu_mhz_mean": "MHz",
    "cpu_mhz_max": "MHz",
    "cpu_throttle_count": "count",
    "cpu_steal_s": "s",
    "load_1m": "ratio",
    "memory_available_gib": "GiB",
}
# Kernel drivers of hwmon devices in the processor: Intel, AMD, AMD with the zenpower module, Arm.
CPU_HWMON = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal"})
_CPU_ZONES = frozenset({"x86_pkg_temp", "cpu-thermal", "cpu_thermal"})


def _text(path: Path) -> str | None:
    """The content of a small file, or None if it cannot be read now.

    A CPU that was taken offline or a sensor in error cannot be read.
    """
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip()
    return None


def _value(text: str | None) -> float | None:
    """The text as a number; None unless it is a finite number."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _number(path: Path) -> float | None:
    return _value(_text(path))


def temperature_files(root: Path) -> tuple[Path, ...]:
    """The files of the processor's temperatures, in millidegrees Celsius.

    They are hwmon files, or those of thermal zones if there are none.
    """
    inputs = [
        path
        for device in sorted((root / "sys/class/hwmon").glob("hwmon*"))
        if _text(device / "name") in CPU_HWMON
        for path in sorted(device.glob("temp*_input"))
    ]
    if inputs:
        return tuple(inputs)
    zones = sorted((root / "sys/class/thermal").glob("thermal_zone*"))
    return tuple(zone / "temp" for zone in zones if _text(zone / "type") in _CPU_ZONES)


def _celsius(path: Path) -> float | None:
    value = _number(path)
    return None if value is None else value / 1000.0


def _is_possible(celsius: float) -> bool:
    low, high = thresholds().range.cpu_c.between
    return low <= celsius <= high


def _answering(files: tuple[Path, ...]) -> tuple[Path, ...]:
    """These sensors without those that are dead from the start, unless all are."""
    alive = tuple(
        path for path in files if (value := _celsius(path)) is None or _is_possible(value)
    )
    return alive if any(_celsius(path) is not None for path in alive) else files


def throttle_files(root: Path) -> tuple[Path, ...]:
    """Intel's counters of thermal throttling: one for each core and one for each package.

    Sibling threads show the same counter, so only one thread of each (package, core) and one of
    each package is read.
    """
    found: dict[tuple[str, ...], Path] = {}
    for cpu in sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*")):
        package, core = _text(cpu / "topology/physical_package_id"), _text(cpu / "topology/core_id")
        if package is None or core is None:
            continue
        found.setdefault(("core", package, core), cpu / "thermal_throttle/core_throttle_count")
        found.setdefault(("package", package), cpu / "thermal_throttle/package_throttle_count")
    return tuple(path for path in found.values() if path.exists())


@dataclass(frozen=True, slots=True)
class Sensors:
    """The sensors of one machine. `find` determines them once; `read` takes a sample."""

    root: Path
    temperatures: tuple[Path, ...]
    throttles: tuple[Path, ...]
    frequencies: tuple[Path, ...]

    @classmethod
    def find(cls, root: Path = Path("/")) -> Sensors:
        """Determine once which sensors this machine has."""
        frequencies = sorted(
            (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
        )
        return cls(
            root, _answering(temperature_files(root)), throttle_files(root), tuple(frequencies)
        )

    def offered(self) -> frozenset[str]:
        """Names of the readings that this machine has."""
        return frozenset(self.read())

    def read(self) -> dict[str, float]:
        """All readings at this moment, by their names in UNITS."""
        return dict(self._readings())

    def _readings(self) -> Iterator[tuple[str, float]]:
        temperatures = [
            value for path in self.temperatures if (value := _celsius(path)) is not None
        ]
        possible = [value for value in temperatures if _is_possible(value)]
        # If a sensor is missing, or gives what none can mean, it may be the hottest one. Where all
        # of them do, the check of the processors' cooling judges that.
        whole = temperatures and len(temperatures) == len(self.temperatures)
        if whole and len(possible) in (0, len(temperatures)):
            yield "cpu_temperature_c", max(temperatures)
        throttles = [value for path in self.throttles if (value := _number(path)) is not None]
        if throttles and len(throttles) == len(self.throttles):
            yield "cpu_throttle_count", sum(throttles)
        clocks = [
            value / 1000.0 for path in self.frequencies if (value := _number(path)) is not None
        ]
        if clocks:
            yield "cpu_mhz_min", min(clocks)
            yield "cpu_mhz_mean", sum(clocks) / len(clocks)
            yield "cpu_mhz_max", max(clocks)
        # proc(5): steal is the eighth number after the name.
        steal = _value(self._word("proc/stat", "cpu", 8))
        if steal is not None:
            yield "cpu_steal_s", steal / os.sysconf("SC_CLK_TCK")
        load = _value((_text(self.root / "proc/loadavg") or "").partition(" ")[0])
        if load is not None:
            yield "load_1m", load
        available = _value(self._word("proc/meminfo", "MemAvailable:", 1))
        if available is not None:
            yield "memory_available_gib", available / 1048576.0

    def _word(self, path: str, name: str, number: int) -> str | None:
        """The word with this number in the line that begins with `name`, or None."""
        for line in (_text(self.root / path) or "").splitlines():
            words = line.split()
            if words[:1] == [name] and len(words) > number:
                return words[number]
        return None


@dataclass(slots=True)
class SampleThinner:
    """Keeps the journal of a long run small.

    It keeps every sample of the first hour, and then one for each 10 s with mean, minimum and
    maximum. A reading that did not change has only a mean. `put` calls `write` with each sample
    that is to be written; `component` is the GPU that it is of.
    """

    write: Callable[[Sample], None]
    began_s: float
    component: Component | None = None
    whole_s: float = 3600.0
    span_s: float = 10.0
    _group: list[dict[str, float]] = field(default_factory=list)
    _group_began_s: float = 0.0

    def put(self, now_s: float, values: dict[str, float]) -> None:
        """Add one sample."""
        if now_s - self.began_s < self.whole_s:
            self.write(Sample(values, component=self.component))
            return
        if not self._group:
            self._group_began_s = now_s
        self._group.append(values)
        if now_s - self._group_began_s >= self.span_s:
            self.flush(now_s)

    def flush(self, now_s: float) -> None:
        """Write the pending samples."""
        if not self._group:
            return
        columns: dict[str, list[float]] = {}
        for sample in self._group:
            for name, value in sample.items():
                columns.setdefault(name, []).append(value)
        self._group = []
        low = {name: min(column) for name, column in columns.items()}
        high = {name: max(column) for name, column in columns.items()}
        # most are steady; without their minimum and maximum, a week is half as long
        steady = {name for name in columns if low[name] == high[name]}
        mean = {
            name: low[name] if name in steady else sum(column) / len(column)
            for name, column in columns.items()
        }
        low, high = ({name: one[name] for name in one if name not in steady} for one in (low, high))
        self.write(Sample(mean, now_s - self._group_began_s, low, high, self.component))
