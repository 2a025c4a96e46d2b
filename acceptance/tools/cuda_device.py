"""One device in deviceQuery's text: its lines, whose labels changed from version to version, and the GPU they describe."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from acceptance.tools import reading
from acceptance.tools.reading import UnreadableOutput

_CORES = re.compile(
    r"\( ?(?P<sm>\d+)\) Multiprocessors(?:,| x) \( ?(?P<each>-?\d+)\) CUDA Cores/MP: ?(?P<cores>-?\d+) CUDA Cores"
)
# The program's table of cores does not know the GPU, so the number that follows is a guess.
_GUESSED = re.compile(r"MapSMtoCores\b.*\bundefined")
_VERSION = r"\d+\.\d+"
_MHZ = r"(?P<{0}>\d+(?:\.\d+)?) M[Hh]z(?: \(.*GHz\))?"
# Label -> form of what follows it. Blanks are made single first.
_FIELDS = {
    "CUDA Driver Version / Runtime Version": rf"(?P<driver>{_VERSION}) / (?P<runtime>{_VERSION})",
    "CUDA Capability Major/Minor version number:": rf"(?P<capability>{_VERSION})",
    "Total amount of global memory:": r"(?P<mib>\d+) MBytes \((?P<bytes>\d+) bytes\)",
    "GPU Max Clock rate:": _MHZ.format("clock"),
    "GPU Clock rate:": _MHZ.format("clock"),
    "GPU Clock Speed:": r"(?P<clock_ghz>\d+\.\d+) GHz",
    "Memory Clock rate:": _MHZ.format("memory_clock"),
    "Memory Bus Width:": r"(?P<bus_bits>\d+)-bit",
    "L2 Cache Size:": r"(?P<l2>\d+) bytes",
    "Device has ECC support:": r"(?P<ecc>Enabled|Disabled)",
    "Device has ECC support enabled:": r"(?P<ecc>Yes|No)",
    "Device PCI Domain ID / Bus ID / location ID:": r"(?P<domain>\d+) / (?P<bus>\d+) / (?P<slot>\d+)",
    "Device PCI Bus ID / PCI location ID:": r"(?P<bus>\d+) / (?P<slot>\d+)",
}
_NEEDED = {
    "capability": "CUDA Capability Major/Minor version number",
    "bytes": "Total amount of global memory",
    "sm": "Multiprocessors",
    "bus": "Device PCI Domain ID / Bus ID / location ID",
}


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU as CUDA shows it. None: this version does not print it, prints 0 for unknown, or (cores) had to guess.

    Clocks in MHz, the bus width in bits. `pci_address` is `0000:0b:00.0`, in the kernel's hexadecimal form; programs of CUDA 6.5 and
    older print no domain, so theirs is `0b:00.0`.
    """

    index: int
    name: str
    compute_capability: str
    memory_mib: int
    memory_bytes: int
    sm: int
    cuda_cores: int | None
    max_clock_mhz: float | None
    memory_clock_mhz: float | None
    bus_bits: int | None
    l2_bytes: int | None
    ecc_enabled: bool | None
    pci_address: str
    driver_version: str | None
    runtime_version: str | None


@dataclass(slots=True)
class Block:
    """The lines under one `Device N: "NAME"`, collected before they are judged."""

    tool: str
    index: int
    name: str
    line: str
    _values: dict[str, str] = field(default_factory=dict)
    _guessed: bool = False

    def take(self, line: str, text: str) -> None:
        """Keep the values of a line (`text` has single blanks). Raises UnreadableOutput for one of unknown form, or there twice."""
        if _GUESSED.search(text):
            self._guessed = True
            return
        match = _match(text)
        if match is None or self._values.keys() & match.groupdict().keys():
            raise UnreadableOutput(self.tool, line, "a line of a device has an unknown form or comes twice")
        self._values.update(match.groupdict())

    def printed(self) -> frozenset[str]:
        """The names of the values that its lines gave."""
        return frozenset(self._values)

    def missing(self, printed: frozenset[str]) -> str | None:
        """A line that it lacks of those that every device needs, or that another device has (`printed`); None when it is whole."""
        lacking = sorted((_NEEDED.keys() | printed) - self._values.keys())
        return _NEEDED.get(lacking[0], lacking[0].replace("_", " ")) if lacking else None

    def device(self) -> Device:
        """The GPU. Raises UnreadableOutput for numbers that cannot be, or that do not go together."""
        values = self._values
        sm, size, mib = self._whole("sm"), self._whole("bytes"), self._whole("mib")
        if sm is None or size is None or mib is None or abs(size / 2**20 - mib) > 1:
            raise self._wrong("a device has no multiprocessors, no memory, or two sizes of it")
        cores = self._whole("cores")
        if (self._whole("each") or 0) * sm != (cores or 0):
            raise self._wrong(f"{sm} multiprocessors of {values['each']} cores are not {values['cores']} cores")
        clock_ghz = self._number("clock_ghz")
        return Device(
            index=self.index,
            name=self.name.strip(),
            compute_capability=values["capability"],
            memory_mib=mib,
            memory_bytes=size,
            sm=sm,
            cuda_cores=cores if cores is not None and cores > 0 and not self._guessed else None,
            max_clock_mhz=self._number("clock") if clock_ghz is None else clock_ghz * 1000,
            memory_clock_mhz=self._number("memory_clock"),
            bus_bits=self._whole("bus_bits"),
            l2_bytes=self._whole("l2"),
            ecc_enabled=values["ecc"] in {"Enabled", "Yes"} if "ecc" in values else None,
            pci_address=self._address(),
            driver_version=values.get("driver"),
            runtime_version=values.get("runtime"),
        )

    def _wrong(self, why: str) -> UnreadableOutput:
        return UnreadableOutput(self.tool, self.line, why)

    def _number(self, name: str) -> float | None:
        """A number; None where the text has none, or 0, which the driver writes for unknown."""
        return (reading.number(self.tool, self.line, self._values[name]) or None) if name in self._values else None

    def _whole(self, name: str) -> int | None:
        value = self._number(name)
        return None if value is None else int(value)

    def _address(self) -> str:
        bus, slot, domain = (self._whole(name) or 0 for name in ("bus", "slot", "domain"))
        if bus > 0xFF or slot > 0x1F:
            raise self._wrong(f"PCI has no bus {bus} with a location {slot}")
        place = f"{bus:02x}:{slot:02x}.0"
        return f"{domain:04x}:{place}" if "domain" in self._values else place


def too_new(runtime: str, driver: str) -> bool:
    """Whether a program of this CUDA runtime cannot start on a driver for that CUDA version ("12.8").

    Since CUDA 11 a runtime works on every driver of its own major version (NVIDIA's "CUDA minor
    version compatibility"); before, the driver had to be as new as the runtime.
    """
    wanted, there = (tuple(map(int, version.split("."))) for version in (runtime, driver))
    return wanted[0] > there[0] or (wanted[0] < 11 and wanted > there)


def _match(text: str) -> re.Match[str] | None:
    for label, form in _FIELDS.items():
        if text.startswith(label):
            return re.fullmatch(form, text[len(label) :].strip())
    return _CORES.fullmatch(text)


def is_field(text: str) -> bool:
    """Whether a line (with single blanks) is one of a device's that Block.take() keeps."""
    return text.startswith(tuple(_FIELDS)) or "CUDA Cores/MP" in text or _GUESSED.search(text) is not None
