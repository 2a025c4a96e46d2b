"""One sample of a GPU, five times a second: the readings that change under load.

A reading that NVML does not offer, or refuses at this moment, is absent: no value replaces it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from acceptance.core import clock_reasons
from acceptance.machine import inventory
from acceptance.observe import gpu_counters, gpu_traits, nvlink, nvml_call
from acceptance.observe.nvml_call import LOST, Field, ask

# Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h); each is a reading of 0 or 1.
REASONS = {
    clock_reasons.IDLE: 0x1,
    clock_reasons.CLOCKS_SET: 0x2,
    clock_reasons.POWER_CAP: 0x4,
    clock_reasons.HW_SLOWDOWN: 0x8,
    clock_reasons.SYNC_BOOST: 0x10,
    clock_reasons.SW_THERMAL: 0x20,
    clock_reasons.HW_THERMAL: 0x40,
    clock_reasons.POWER_BRAKE: 0x80,
    clock_reasons.DISPLAY_CLOCKS: 0x100,
}
# Time for which each reason was active since the driver was loaded, in nanoseconds: field numbers
# (nvml.h, NVML_FI_DEV_CLOCKS_EVENT_REASON_*), with an older field of the same meaning. Numbers, not
# names: bindings of 2025 disagree with the drivers about three of them.
TIMES: dict[str, tuple[Field, ...]] = {
    "power_cap_s": ((74, 0),),
    "sync_boost_s": ((76, 0),),
    "sw_thermal_s": ((269, 0), (75, 0)),
    "hw_thermal_s": ((270, 0),),
    "power_brake_s": ((271, 0),),
}
# Unit of every reading. Raw fields have it in their name too; a flag is 0 or 1.
UNITS = {
    "temperature_c": "degC",
    "temperature_margin_c": "degC",
    "memory_temperature_c": "degC",
    "power_w": "W",
    "power_limit_w": "W",
    "application_clock_mhz": "MHz",
    "ecc_enabled": "count",
    "mig_enabled": "count",
    "energy_j": "J",
    "sm_clock_mhz": "MHz",
    "memory_clock_mhz": "MHz",
    "utilisation": "ratio",
    "fan": "ratio",
    "link_gen": "count",
    "link_width": "count",
    **dict.fromkeys((*REASONS, clock_reasons.UNKNOWN), "count"),
    **dict.fromkeys(TIMES, "s"),
    **dict.fromkeys(inventory.GpuCounters.__slots__, "count"),
}
_SENSOR = 0  # nvmlTemperatureSensors_t: the GPU's own


@dataclass(slots=True)
class Sampler:
    """Samples one GPU. `find` determines what the GPU offers; `read` takes a sample.

    `links` are the NVLinks that were active at `find`. `limit_c` is the absolute temperature limit
    from which a margin is computed if NVML reports no margin. `errors` are those of the readings
    that the last `read` did not get for another reason than that NVML does not offer them.
    """

    nvml: Any
    handle: Any
    links: tuple[int, ...]
    limit_c: float | None
    errors: dict[str, str] = field(default_factory=dict)
    _refusal: Exception | None = field(default=None, repr=False)

    @classmethod
    def find(cls, nvml: Any, handle: Any) -> Sampler:
        """Determine once what the GPU offers.

        Raises the binding's NVMLError when the GPU does not answer.
        """
        limit_c = gpu_traits.threshold(nvml, handle, gpu_traits.GPU_MAX)
        if limit_c is None:
            limit_c = gpu_traits.threshold(nvml, handle, gpu_traits.SLOWDOWN)
        active = tuple(
            inventory.known(link.link) for link in nvlink.read(nvml, handle) if link.active
        )
        return cls(nvml, handle, active, limit_c)

    def read(self, *, counters: bool = False) -> dict[str, float]:
        """All readings at this moment, by their names in UNITS.

        `counters` adds the readings that change seldom. Raises the binding's NVMLError when the GPU
        is lost or refuses every reading.
        """
        self._refusal = None
        self.errors = {}
        found = {
            name: float(value)
            for name, value in self._readings(counters)
            if value is not None and math.isfinite(value)
        }
        self.errors = {name: why for name, why in self.errors.items() if name not in found}
        if not found and self._refusal is not None:
            raise self._refusal
        return found

    def _readings(self, counters: bool) -> Iterator[tuple[str, float | None]]:
        """Readings by name, None for one that NVML did not give."""
        memory = nvml_call.field(self.nvml, "MEMORY_TEMP")
        times = TIMES if counters else {}
        wanted = [*memory, *(one for group in times.values() for one in group)]
        if counters:
            wanted += gpu_counters.counter_fields(self.nvml, self.links)
        values = self._fields(wanted, ("memory_temperature_c", *times))
        yield from self._temperatures()
        yield from self._scaled(_PLAIN)
        use = self._told(("utilisation",), "nvmlDeviceGetUtilizationRates")
        yield "utilisation", None if use is None else use.gpu / 100.0
        yield from self._reasons()
        yield "memory_temperature_c", nvml_call.first(values, memory)
        for name, group in times.items():
            time_ns = nvml_call.first(values, group)
            yield name, None if time_ns is None else time_ns / 1e9
        if counters:
            yield from self._settings()
            found = gpu_counters.counters_from(self.nvml, self.handle, self.links, values)
            yield from asdict(found).items()

    def _temperatures(self) -> Iterator[tuple[str, float | None]]:
        both = ("temperature_c", "temperature_margin_c")
        temperature = self._told(both, "nvmlDeviceGetTemperatureV", _SENSOR)
        if temperature is None:
            temperature = self._told(both, "nvmlDeviceGetTemperature", _SENSOR)
        margin = self._told(both[1:], "nvmlDeviceGetMarginTemperature")
        if margin is None and temperature is not None and self.limit_c is not None:
            margin = self.limit_c - temperature
        yield from (("temperature_c", temperature), ("temperature_margin_c", margin))

    def _scaled(self, table: Iterable[tuple[Any, ...]]) -> Iterator[tuple[str, float | None]]:
        for name, divisor, function, *arguments in table:
            value = self._told((name,), function, *arguments)
            yield name, None if value is None else value / divisor

    def _reasons(self) -> Iterator[tuple[str, float]]:
        flags = (*REASONS, clock_reasons.UNKNOWN)
        bits = self._told(flags, "nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:
            bits = self._told(flags, "nvmlDeviceGetCurrentClocksThrottleReasons")
        if bits is not None:
            yield from ((name, float(bits & bit != 0)) for name, bit in REASONS.items())
            yield clock_reasons.UNKNOWN, float(bits & ~sum(REASONS.values()) != 0)

    def _settings(self) -> Iterator[tuple[str, float | None]]:
        """Settings of the GPU, made by a person or a program; a mode is 0 or 1, as it is now."""
        yield from self._scaled(_SET)
        for name, function in (
            ("ecc_enabled", "nvmlDeviceGetEccMode"),
            ("mig_enabled", "nvmlDeviceGetMigMode"),
        ):
            modes = self._told((name,), function)
            yield name, None if modes is None else modes[0] != 0

    def _fields(self, wanted: list[Field], readings: Sequence[str]) -> dict[Field, float]:
        try:
            return nvml_call.fields(self.nvml, self.handle, wanted, raising=LOST)
        except self.nvml.NVMLError as refusal:
            self._keep(refusal, readings)
            return {}

    def _told(self, readings: Sequence[str], function: str, *arguments: Any) -> Any:
        """The answer of a function for these readings; None where NVML refuses it."""
        try:
            return ask(self.nvml, function, self.handle, *arguments)
        except self.nvml.NVMLError as refusal:
            self._keep(refusal, readings)
            return None

    def _keep(self, refusal: Any, readings: Sequence[str]) -> None:
        """Keep the reason for absent readings; raise it if the GPU is lost."""
        if refusal.value in LOST:
            raise refusal
        self._refusal = refusal
        self.errors |= dict.fromkeys(readings, str(refusal))


# Readings of one number each: name, divisor that gives the unit, function and its arguments.
_PLAIN: tuple[tuple[Any, ...], ...] = (
    ("power_w", 1000.0, "nvmlDeviceGetPowerUsage"),
    ("energy_j", 1000.0, "nvmlDeviceGetTotalEnergyConsumption"),
    ("sm_clock_mhz", 1.0, "nvmlDeviceGetClockInfo", gpu_traits.SM),
    ("memory_clock_mhz", 1.0, "nvmlDeviceGetClockInfo", gpu_traits.MEMORY),
    ("fan", 100.0, "nvmlDeviceGetFanSpeed"),
    ("link_gen", 1.0, "nvmlDeviceGetCurrPcieLinkGeneration"),
    ("link_width", 1.0, "nvmlDeviceGetCurrPcieLinkWidth"),
)
# The same for settings, once a second: the limit of `nvidia-smi -pl`, the clock of `nvidia-smi
# -ac`.
_SET: tuple[tuple[Any, ...], ...] = (
    ("power_limit_w", 1000.0, "nvmlDeviceGetPowerManagementLimit"),
    ("application_clock_mhz", 1.0, "nvmlDeviceGetApplicationsClock", gpu_traits.SM),
)
