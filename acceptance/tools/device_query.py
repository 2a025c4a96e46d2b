"""deviceQuery: the GPUs as the CUDA runtime shows them (NVIDIA's samples of CUDA 4.0 to 13).

It runs no kernel and compares nothing: `Result = PASS` only means that it reached its end, even
without any device. A failing `cudaGetDeviceCount` comes from driver, permissions or fabric, and is
an *error* here, not a *fail*. The order of devices is CUDA's, not PCI's, and the PCI numbers are
decimal. The number of CUDA cores comes from a table inside the program, not from the GPU.

Readings: `device_query_count`, count, component `machine`; and by GPU (`gpu0` is CUDA's device 0):

- `device_query_sm`, count: multiprocessors.
- `device_query_memory`, GiB: memory that CUDA can see, less than the GPU has.
- `device_query_clock`, MHz: the highest SM clock according to the driver, not a measured clock.
- `device_query_l2`, count: bytes of L2 cache. Absent, like the clock, if the text does not give it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from acceptance.core.limit import GIB
from acceptance.core.message import Listed, Message, Values, english, plural
from acceptance.core.parts import MACHINE, Component, Gpu
from acceptance.process.unreadable import UnreadableOutput, number
from acceptance.tools import proof, reading
from acceptance.tools.reading import GpuEntry, Reading, ToolOutput

_CORES = re.compile(
    r"\( ?(?P<sm>\d+)\) Multiprocessors(?:,| x) \( ?(?P<each>-?\d+)\) CUDA Cores/MP: "
    r"?(?P<cores>-?\d+) CUDA Cores"
)
# The program's table of cores does not have the GPU, so the number that follows is a guess.
_GUESSED = re.compile(r"MapSMtoCores\b.*\bundefined")
_VERSION = r"\d+\.\d+"
_MHZ = r"(?P<{0}>\d+(?:\.\d+)?) M[Hh]z(?: \(.*GHz\))?"
# Label -> form of the value. Blanks are made single first.
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
    "Device PCI Domain ID / Bus ID / location ID:": (
        r"(?P<domain>\d+) / (?P<bus>\d+) / (?P<slot>\d+)"
    ),
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
    """One GPU in CUDA's view.

    None: this version does not print it, prints 0 for unknown, or (cores) had to guess.

    Clocks are in MHz, the bus width in bits. `pci_address` has the kernel's hexadecimal form,
    `0000:0b:00.0`; programs of CUDA 6.5 and older print no domain, so theirs is `0b:00.0`.
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
        """Store the values of a line (`text` has single blanks).

        Raises UnreadableOutput for a line of unknown form, and for a repeated one.
        """
        if _GUESSED.search(text):
            self._guessed = True
            return
        match = _match(text)
        if match is None or self._values.keys() & match.groupdict().keys():
            raise UnreadableOutput(
                self.tool,
                line,
                Message(
                    english(
                        "device_line_unknown",
                        "a line of a device has an unknown form or comes twice",
                    )
                ),
            )
        self._values.update(match.groupdict())

    def printed(self) -> frozenset[str]:
        """Names of the values in its lines."""
        return frozenset(self._values)

    def missing(self, printed: frozenset[str]) -> str | None:
        """A line that is missing here, or None if the block is complete.

        Every device needs certain lines, and all those that another device has (`printed`).
        """
        lacking = sorted((_NEEDED.keys() | printed) - self._values.keys())
        return _NEEDED.get(lacking[0], lacking[0].replace("_", " ")) if lacking else None

    def device(self) -> Device:
        """The GPU.

        Raises UnreadableOutput for numbers that are impossible or contradict each other.
        """
        values = self._values
        sm, size, mib = self._integer("sm"), self._integer("bytes"), self._integer("mib")
        if sm is None or size is None or mib is None or abs(size / 2**20 - mib) > 1:
            raise self._wrong(
                Message(
                    english(
                        "device_sizes",
                        "a device has no multiprocessors, no memory, or two sizes of it",
                    )
                )
            )
        cores = self._integer("cores")
        if (self._integer("each") or 0) * sm != (cores or 0):
            counts: Values = {"sm": sm, "each": values["each"], "cores": values["cores"]}
            raise self._wrong(
                Message(
                    english(
                        "device_cores", "{sm} multiprocessors of {each} cores are not {cores} cores"
                    ),
                    counts,
                )
            )
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
            bus_bits=self._integer("bus_bits"),
            l2_bytes=self._integer("l2"),
            ecc_enabled=values["ecc"] in {"Enabled", "Yes"} if "ecc" in values else None,
            pci_address=self._address(),
            driver_version=values.get("driver"),
            runtime_version=values.get("runtime"),
        )

    def _wrong(self, why: Message) -> UnreadableOutput:
        return UnreadableOutput(self.tool, self.line, why)

    def _number(self, name: str) -> float | None:
        """A number; None if the text has none, or has 0, the driver's value for unknown."""
        return (
            (number(self.tool, self.line, self._values[name]) or None)
            if name in self._values
            else None
        )

    def _integer(self, name: str) -> int | None:
        value = self._number(name)
        return None if value is None else int(value)

    def _address(self) -> str:
        bus, slot, domain = (self._integer(name) or 0 for name in ("bus", "slot", "domain"))
        if bus > 0xFF or slot > 0x1F:
            raise self._wrong(
                Message(
                    english("pci_location", "PCI has no bus {bus} with a location {slot}"),
                    {"bus": bus, "slot": slot},
                )
            )
        place = f"{bus:02x}:{slot:02x}.0"
        return f"{domain:04x}:{place}" if "domain" in self._values else place


def too_new(runtime: str, driver: str) -> bool:
    """Whether a program of this CUDA runtime cannot start on a driver for that CUDA version.

    Versions have the form "12.8". Since CUDA 11 a runtime works on every driver of its own major
    version (NVIDIA's "CUDA minor version compatibility"); before, the driver had to be at least as
    new as the runtime.
    """
    wanted, there = (tuple(map(int, version.split("."))) for version in (runtime, driver))
    return wanted[0] > there[0] or (wanted[0] < 11 and wanted > there)


def _match(text: str) -> re.Match[str] | None:
    for label, form in _FIELDS.items():
        if text.startswith(label):
            return re.fullmatch(form, text[len(label) :].strip())
    return _CORES.fullmatch(text)


def is_field(text: str) -> bool:
    """Whether a line (with single blanks) is one that Block.take() stores."""
    return (
        text.startswith(tuple(_FIELDS))
        or "CUDA Cores/MP" in text
        or _GUESSED.search(text) is not None
    )


TOOL = "deviceQuery"

_DETECTED = re.compile(r"(?:Detected|Found) (?P<count>\d+) CUDA Capable device\(s\)")
_DEVICE_START = re.compile(r"Device \d+: [\"“„]")
_DEVICE = re.compile(r"Device (?P<index>\d{1,4}): [\"“„](?P<name>[^\"“”„]+)[\"“”]")
_CLOSING = re.compile(
    r"(?:\bCUDA Driver Version = (?P<driver>\d+\.\d+), CUDA Runtime Version = "
    r"(?P<runtime>\d+\.\d+), )?"
    r"\bNumDevs = (?P<count>\d+)\b"
)


@dataclass(slots=True)
class _Text:
    """Content of the lines, before it is judged."""

    detected: int | None = None
    closing: int | None = None
    result: str | None = None
    blocks: list[Block] = field(default_factory=list)
    versions: tuple[str, str] | None = None


def argv(binary: str) -> tuple[str, ...]:
    """The command line; it takes no options."""
    return (binary,)


def _count(line: str, before: int | None, digits: str) -> int:
    if before is not None:
        raise UnreadableOutput(
            TOOL,
            line,
            Message(
                english("line_twice", "a line that comes once comes twice: give one run at a time")
            ),
        )
    return int(number(TOOL, line, digits))


def _collect(lines: Sequence[str], trouble: proof.CudaError | None) -> _Text:
    found = _Text()
    for line in lines:
        text = " ".join(line.split())
        if match := _DETECTED.search(text):
            found.detected = _count(line, found.detected, match["count"])
        elif match := _CLOSING.search(text):
            found.closing = _count(line, found.closing, match["count"])
            found.versions = (match["driver"], match["runtime"]) if match["driver"] else None
        elif _DEVICE_START.match(text):
            match = _DEVICE.fullmatch(text)
            if match is None or int(match["index"]) != len(found.blocks):
                raise UnreadableOutput(
                    TOOL,
                    line,
                    Message(
                        english(
                            "device_unknown", "a device has an unknown form or the wrong number"
                        )
                    ),
                )
            found.blocks.append(Block(TOOL, len(found.blocks), match["name"], line))
        elif result := reading.sample_result(TOOL, line, found.result):
            found.result = result
        elif is_field(text):
            if not found.blocks:
                raise UnreadableOutput(
                    TOOL,
                    line,
                    Message(
                        english(
                            "device_line_early", "a line of a device stands before any 'Device N:'"
                        )
                    ),
                )
            found.blocks[-1].take(line, text)
    if found.detected is None and found.closing is None and not found.blocks and trouble is None:
        raise reading.foreign(TOOL, "\n".join(lines))
    if trouble is not None and found.result == "PASS" and found.blocks:
        raise UnreadableOutput(
            TOOL,
            "",
            Message(
                english(
                    "runs_differ",
                    "the text holds a failed and a passed run: give one run at a time",
                )
            ),
        )
    return found


def _worthless(text: _Text) -> Message | None:
    """Why a text without a CUDA error still proves nothing, or None."""
    if text.result is None:
        return Message("line_missing", {"line": "Result ="})
    if text.result == "FAIL":
        return Message("fail_unexplained", {"tool": TOOL})
    if text.detected is None or text.closing is None:
        line = "Detected" if text.detected is None else "NumDevs ="
        return Message("line_missing", {"line": line})
    if not text.detected == text.closing == len(text.blocks):
        printed = len(text.blocks)
        counts = {"detected": text.detected, "printed": printed, "closing": text.closing}
        return Message(
            english(
                "devices_differ",
                "it detected {detected} devices, printed {printed} and counts {closing}: the text "
                "is cut",
            ),
            counts,
        )
    if not text.blocks:
        return Message(
            english("device_query_empty", "deviceQuery found no device, which it calls a pass")
        )
    names = frozenset[str]().union(*(block.printed() for block in text.blocks))
    for block in text.blocks:
        missing = block.missing(names)
        if missing is not None:
            return Message(
                english(
                    "device_line_missing", "the text is cut: device {device} has no line '{line}'"
                ),
                {"device": block.index, "line": missing},
            )
    return None


def _devices(text: _Text) -> tuple[Device, ...]:
    devices = tuple(block.device() for block in text.blocks)
    if len({device.pci_address for device in devices}) < len(devices):
        raise UnreadableOutput(
            TOOL,
            text.blocks[-1].line,
            Message(english("address_twice", "two devices have one PCI address")),
        )
    for device in devices:
        driver, runtime = device.driver_version, device.runtime_version
        if driver is None or runtime is None:
            continue
        if text.versions is not None and text.versions[0] != driver:
            why = Message(
                english(
                    "driver_cuda_differs",
                    "a device says that the driver is for CUDA {one}, and the last line {other}",
                ),
                {"one": driver, "other": text.versions[0]},
            )
            raise UnreadableOutput(TOOL, text.blocks[device.index].line, why)
        if too_new(runtime, driver):
            why = Message(
                english(
                    "runtime_too_new",
                    "a program of CUDA {runtime} does not start on a driver for CUDA {driver}: "
                    "the text was changed",
                ),
                {"runtime": runtime, "driver": driver},
            )
            raise UnreadableOutput(TOOL, text.blocks[device.index].line, why)
    return devices


def version_mismatch(text: str) -> Message | None:
    """How the CUDA runtimes of the devices and of the last line of a passed run differ, or None.

    Only for our own runs: texts from users may be put together from two runs.
    """
    _, found = _read(text)
    for device in _devices(found):
        if found.versions is None or found.versions[1] != device.runtime_version:
            closing = (
                found.versions[1]
                if found.versions
                else Message(english("nothing_there", "nothing"))
            )
            values: Values = {"device": device.index, "runtime": str(device.runtime_version)}
            return Message(
                english(
                    "runtimes_differ",
                    "deviceQuery says runtime {runtime} of device {device} and {closing} in its "
                    "last line: the text was changed",
                ),
                {**values, "closing": closing},
            )
    return None


def devices(text: str) -> tuple[Device, ...]:
    """The GPUs of a complete, passed run, in CUDA's order.

    Raises UnreadableOutput, with the reason, for any other text.
    """
    output, found = _read(text)
    if output is not None:
        raise UnreadableOutput(TOOL, "", output.reason)
    return _devices(found)


def _read(text: str) -> tuple[ToolOutput | None, _Text]:
    """The outcome if it is not *pass*, and the content of the lines."""
    lines = reading.tool_lines(text)
    trouble = proof.find_code(lines)
    found = _collect(lines, trouble)
    if error := trouble or proof.trouble(lines):
        return proof.outcome(TOOL, error), found
    why = _worthless(found)
    return (ToolOutput(TOOL, "error", why) if why is not None else None), found


def parse(text: str) -> ToolOutput:
    """Parse deviceQuery's text.

    *pass* needs the result, and as many complete devices as the first and the last line count.

    A CUDA error is an *error* with cause and fix; only a code that itself proves a fault
    (uncorrectable ECC) is a *fail*. Raises UnreadableOutput.
    """
    output, found = _read(text)
    if output is not None:
        return output
    gpus: dict[Component, Device] = {Gpu(device.index): device for device in _devices(found)}
    clocks = {
        name: gpu.max_clock_mhz for name, gpu in gpus.items() if gpu.max_clock_mhz is not None
    }
    caches = {name: float(gpu.l2_bytes) for name, gpu in gpus.items() if gpu.l2_bytes is not None}
    readings = (
        Reading("device_query_count", "count", {MACHINE: float(len(gpus))}),
        Reading("device_query_sm", "count", {name: float(gpu.sm) for name, gpu in gpus.items()}),
        Reading(
            "device_query_memory",
            "GiB",
            {name: gpu.memory_bytes / GIB for name, gpu in gpus.items()},
        ),
        Reading("device_query_clock", "MHz", clocks),
        Reading("device_query_l2", "count", caches),
    )
    shown = tuple(
        Message(
            english("device_at", "{gpu} {model} at {address}"),
            {"gpu": str(name), "model": gpu.name, "address": gpu.pci_address},
        )
        for name, gpu in gpus.items()
    )
    reason = Message(
        plural("devices_shown", "{n} device: {devices}", "{n} devices: {devices}"),
        {"n": len(gpus), "devices": Listed(shown)},
    )
    listed = tuple(
        GpuEntry(gpu.index, gpu.name, None, gpu.pci_address, gpu.memory_mib)
        for gpu in gpus.values()
    )
    return ToolOutput(TOOL, "pass", reason, tuple(r for r in readings if r.values), gpus=listed)
