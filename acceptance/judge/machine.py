"""The declared machine: what the machine file says should be there, its own limits, and its waivers. TOML, strictly read."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from acceptance.judge.measurement import Limit
from acceptance.judge.toml_place import explain, line_of, spell

SCHEMA = 1
Positive = Annotated[int, msgspec.Meta(ge=1)]
Text = Annotated[str, msgspec.Meta(min_length=1)]


class MachineFileError(Exception):
    """The machine file is wrong; the message is one sentence with file, line, key and cure."""


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class DeclaredCpu(_Strict, frozen=True):
    """`[cpu]`: `sockets`, `cores` and `threads` count the whole machine; `cpuburn` names a burn program to drive beside ours."""

    model: Text | None = None
    sockets: Positive | None = None
    cores: Positive | None = None
    threads: Positive | None = None
    governor: Text | None = None
    cpuburn: Text | None = None


class DeclaredDimm(_Strict, frozen=True):
    """`[[memory.dimm]]`: one module by its slot, as dmidecode names it."""

    slot: Text
    size_gib: Positive | None = None
    rated_mts: Positive | None = None
    configured_mts: Positive | None = None
    part_number: Text | None = None


class DeclaredMemory(_Strict, frozen=True):
    """`[memory]`: `total_gib` is what is installed; `test_share` is the share of free RAM that stressapptest fills."""

    total_gib: Positive | None = None
    dimms: Positive | None = None
    channels: Positive | None = None
    test_share: Annotated[float, msgspec.Meta(gt=0, le=0.95)] | None = None
    dimm: tuple[DeclaredDimm, ...] = ()


class DeclaredDisk(_Strict, frozen=True):
    """`[[disk]]`: disks are matched by model and, where given, by serial, never by a kernel name that changes."""

    model: Text
    count: Positive = 1
    size_gb: Positive | None = None
    serial: Text | None = None


class DeclaredLink(_Strict, frozen=True):
    """`[[network]]`: one network link by name, with its speed in Mbit/s."""

    name: Text
    speed_mbps: Positive | None = None


class DeclaredGpu(_Strict, frozen=True):
    """`[[gpu]]`: one card (or `count` equal ones), matched by PCI address where given, else by position on the bus."""

    model: Text | None = None
    count: Positive = 1
    pci_id: Annotated[str, msgspec.Meta(pattern="^10de:[0-9a-f]{4}$")] | None = None
    address: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]$")] | None = None
    link_width: Literal[1, 2, 4, 8, 16] | None = None
    link_gen: Literal[1, 2, 3, 4, 5, 6] | None = None


class DeclaredSystem(_Strict, frozen=True):
    """`[system]`: board, firmware and software, each compared as text with what is found."""

    board: Text | None = None
    bios_version: Text | None = None
    kernel: Text | None = None
    driver: Text | None = None


class DeclaredLimit(_Strict, frozen=True):
    """`[[limit]]`: a limit of this machine's own; it replaces the shipped one and is stamped as such."""

    measurement: Text
    unit: Text
    basis: Text
    component: Text | None = None
    low: float | None = None
    high: float | None = None
    warn_low: float | None = None
    warn_high: float | None = None

    def limit(self) -> Limit:
        """The limit itself; raises ValueError as Limit does."""
        return Limit(self.unit, self.basis, self.low, self.high, self.warn_low, self.warn_high)


class Waiver(_Strict, frozen=True):
    """`[[waiver]]`: a known shortfall, bounded: a measurement and the worst value accepted, or the name of a check that may be skipped.

    `component` may be a shell pattern (`disk:*`). `worst` is in the unit of the measurement's limit.
    """

    reason: Text
    measurement: Text | None = None
    skip: Text | None = None
    component: Text | None = None
    worst: float | None = None

    def __str__(self) -> str:
        what = self.measurement or self.skip or ""
        return f"{what} on {self.component}" if self.component else what


class Machine(_Strict, frozen=True):
    """A machine file. `gpus` is how many NVIDIA GPUs the machine has; 0 declares a machine without."""

    schema: Literal[1]
    name: Text
    description: str = ""
    gpus: Annotated[int, msgspec.Meta(ge=0)] | None = None
    cpu: DeclaredCpu = DeclaredCpu()
    memory: DeclaredMemory = DeclaredMemory()
    system: DeclaredSystem = DeclaredSystem()
    gpu: tuple[DeclaredGpu, ...] = ()
    disk: tuple[DeclaredDisk, ...] = ()
    network: tuple[DeclaredLink, ...] = ()
    limit: tuple[DeclaredLimit, ...] = ()
    waiver: tuple[Waiver, ...] = ()

    def gpu_count(self) -> int | None:
        """How many GPUs are declared, or None when nothing is said."""
        if self.gpus is None and self.gpu:
            return sum(gpu.count for gpu in self.gpu)
        return self.gpus


def _error(file: Path, line: int | None, sentence: str) -> MachineFileError:
    return MachineFileError(f"{file}{f', line {line}' if line else ''}: {sentence}")


def _check(machine: Machine, text: str, file: Path) -> None:
    """What types cannot say. Raises MachineFileError."""
    for index, row in enumerate(machine.limit):
        try:
            row.limit()
        except ValueError as error:
            raise _error(file, line_of(text, ["limit", index]), f"limit for {row.measurement}: {error}") from error
    for index, waiver in enumerate(machine.waiver):
        problem = _waiver_problem(waiver)
        if problem:
            raise _error(file, line_of(text, ["waiver", index]), f"waiver{spell([index])}: {problem}")
    slots = [dimm.slot for dimm in machine.memory.dimm]
    if len(set(slots)) != len(slots):
        raise _error(
            file, line_of(text, ["memory", "dimm", 0]), "two memory.dimm tables name the same slot: name each once"
        )
    if machine.gpus is not None and machine.gpu and machine.gpus != sum(gpu.count for gpu in machine.gpu):
        listed = sum(gpu.count for gpu in machine.gpu)
        raise _error(
            file, line_of(text, ["gpus"]), f"gpus is {machine.gpus} but the gpu tables list {listed}: make them agree"
        )


def _waiver_problem(waiver: Waiver) -> str | None:
    if not waiver.reason.strip():
        return "reason is empty: say why the shortfall is accepted"
    if (waiver.measurement is None) == (waiver.skip is None):
        return "give either measurement (with worst) or skip, the name of a check"
    if waiver.measurement is not None and waiver.worst is None:
        return "a waiver without a bound would excuse anything: add worst, the worst value accepted"
    if waiver.measurement is not None and waiver.component is None:
        return "add component, the one (or a pattern such as gpu*) whose shortfall is known"
    if waiver.skip is not None and waiver.worst is not None:
        return "a skip has no value, so worst means nothing here: remove it"
    if waiver.worst is not None and not math.isfinite(waiver.worst):
        return f"worst is {waiver.worst}: it must be a finite number"
    return None


def read(file: Path) -> Machine:
    """The machine that a file declares.

    Raises MachineFileError, with file, line and key, for anything that is not exactly right.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise MachineFileError(
            f"{file}: cannot be read ({error.strerror}): give the path of a machine file with --machine"
        ) from error
    except UnicodeDecodeError as error:
        raise MachineFileError(f"{file}: is not UTF-8 text (byte {error.start}): save it as UTF-8") from error
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MachineFileError(f"{file}: is not valid TOML: {error}") from error
    schema = table.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        sentence = f"schema {schema} is newer than this rigproof reads ({SCHEMA}): install a newer rigproof"
        raise _error(file, line_of(text, ["schema"]), sentence)
    try:
        machine = msgspec.convert(table, Machine)
    except msgspec.ValidationError as error:
        sentence, line = explain(str(error), text)
        raise _error(file, line, sentence) from error
    _check(machine, text, file)
    return machine
