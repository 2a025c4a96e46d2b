"""The machine file: the declared machine, its own limits, and its waivers.

TOML, strictly read.
"""

from __future__ import annotations

import math
import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from acceptance.core import parts, regular_file
from acceptance.core.finding import Waiver
from acceptance.core.limit import Limit, LimitError, number
from acceptance.core.message import UserError
from acceptance.core.nearest import nearest
from acceptance.core.parts import ITSELF, Component, Core, Function, Gpu, Named, Socket
from acceptance.core.plain_text import same_text
from acceptance.core.strict import Strict, Text
from acceptance.machine import toml_place
from acceptance.machine.toml_place import TomlError, line_of, spell

# Far above any machine, far below values that would hang a plan that names every component or
# overflow a float.
Positive = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
# The most GPUs that NVIDIA's driver serves in a machine: NV_MAX_DEVICES in nvlimits.h of
# open-gpu-kernel-modules.
DRIVER_GPUS = 32
MOST_GPUS = 2 * DRIVER_GPUS  # a later driver may serve more; a plan names every pair
MOST_LINKS = 144  # NVML lists up to 18 a GPU today
# The kernel's notation: a domain of four digits, longer only where needed. NVML's eight-digit form
# would never be equal to it.
_ADDRESS = "^([0-9a-f]{4}|[1-9a-f][0-9a-f]{4,7}):[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]$"
_GpuNumber = Annotated[int, msgspec.Meta(ge=0, le=MOST_GPUS - 1)]
# The required form of some keys, as the end of a sentence.
FORMS = {
    "pci_id": 'vendor and device as `lspci -n` prints them, such as "10de:2684"',
    "address": 'a PCI address as `lspci -D` prints it, such as "0000:65:00.0"',
    "link_width": "1, 2, 4, 8 or 16",
    "link_gen": "1, 2, 3, 4, 5 or 6",
    "between": "the numbers of two GPUs, such as [0, 1]",
    "gpu_pair.path": (
        'what `nvidia-smi topo -m` prints: "NV" and the number of links (such as "NV12"), '
        '"PIX", '
        '"PXB", "PHB", "NODE" or "SYS"'
    ),
}


class DeclaredCpu(Strict, frozen=True):
    """`[cpu]`: the processors.

    `sockets`, `cores` and `threads` count the whole machine; `watts` is what the processors may
    draw together, where the kernel does not show it; `cpuburn` names a burn program to drive beside
    ours.
    """

    model: Text | None = None
    sockets: Positive | None = None
    cores: Positive | None = None
    threads: Positive | None = None
    governor: Text | None = None
    watts: Positive | None = None
    cpuburn: Text | None = None


class DeclaredDimm(Strict, frozen=True):
    """`[[memory.dimm]]`: one module by its slot, as dmidecode names it."""

    slot: Text
    size_gib: Positive | None = None
    rated_mts: Positive | None = None
    configured_mts: Positive | None = None
    part_number: Text | None = None


class DeclaredMemory(Strict, frozen=True):
    """`[memory]`: the installed memory.

    `total_gib` is the installed size; `test_share` is the share of free RAM that stressapptest
    fills.
    """

    total_gib: Positive | None = None
    dimms: Positive | None = None
    channels: Positive | None = None
    test_share: Annotated[float, msgspec.Meta(gt=0, le=0.95)] | None = None
    dimm: tuple[DeclaredDimm, ...] = ()


class DeclaredDisk(Strict, frozen=True):
    """`[[disk]]`: disks of one model.

    They are matched by model and, where given, by serial and firmware, never by a kernel name,
    which can change. A `new` one must have counted nothing in its life that a new disk has not.
    """

    model: Text
    count: Positive = 1
    size_gb: Positive | None = None
    serial: Text | None = None
    firmware: Text | None = None
    new: bool = False


class DeclaredScratch(Strict, frozen=True):
    """`[[scratch]]`: a folder on a filesystem that the storage tests may write to.

    `write_gib` is what a soak may write there, `keep` whether one sealed GiB stays until the next
    accept. `allow` names kinds of filesystems that are else refused.
    """

    path: Text
    write_gib: Positive | None = None
    keep: bool = True
    allow: tuple[Text, ...] = ()


class DeclaredLink(Strict, frozen=True):
    """`[[network]]`: one network link by name, with its speed in Mbit/s.

    `gpus` are the numbers of the GPUs (gpu0 is 0) to which its card is the nearest, or one of the
    nearest.
    """

    name: Text
    speed_mbps: Positive | None = None
    gpus: tuple[_GpuNumber, ...] = ()


class DeclaredGpu(Strict, frozen=True):
    """`[[gpu]]`: one card (or `count` equal ones), in the order of their PCI addresses.

    Each declared fact is compared with that card. `nvlink_links` is how many NVLinks of each card
    are active; 0 means that none should be.
    """

    model: Text | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_GPUS)] = 1
    pci_id: Annotated[str, msgspec.Meta(pattern="^10de:[0-9a-f]{4}$")] | None = None
    address: Annotated[str, msgspec.Meta(pattern=_ADDRESS)] | None = None
    link_width: Literal[1, 2, 4, 8, 16] | None = None
    link_gen: Literal[1, 2, 3, 4, 5, 6] | None = None
    nvlink_links: Annotated[int, msgspec.Meta(ge=0, le=MOST_LINKS)] | None = None


class DeclaredGpuPair(Strict, frozen=True):
    """`[[gpu_pair]]`: the path between two GPUs, by their numbers (gpu0 is 0), both ways.

    `path` is its kind as `nvidia-smi topo -m` names it ("NV4": so many NVLinks are due), `p2p`
    whether each reads and writes the other's memory. `write_gbs` is the least that a copy from one
    to the other must reach with peer access on (`p2p_write`), in GB/s.
    """

    between: tuple[_GpuNumber, _GpuNumber]
    path: (
        Annotated[str, msgspec.Meta(pattern="^(NV[1-9][0-9]{0,2}|PIX|PXB|PHB|NODE|SYS)$")] | None
    ) = None
    p2p: bool | None = None
    write_gbs: Annotated[float, msgspec.Meta(gt=0)] | None = None


class DeclaredSystem(Strict, frozen=True):
    """`[system]`: board, firmware and software, each compared as text with the observed one."""

    board: Text | None = None
    bios_version: Text | None = None
    kernel: Text | None = None
    driver: Text | None = None


class DeclaredOrder(Strict, frozen=True):
    """`[order]`: by what buyer and seller know the machine; the reports name it."""

    number: Text | None = None
    asset_tag: Text | None = None


class DeclaredPsu(Strict, frozen=True):
    """`[psu]`: the power supply.

    `watts` is what it gives for long; of redundant supplies what is left when one fails.
    """

    watts: Positive | None = None


class DeclaredPower(Strict, frozen=True):
    """`[power]`: whether full load may come and go on this machine (`power.*`)."""

    pulses: bool = True


class DeclaredCollectives(Strict, frozen=True):
    """`[collectives]`: whether they also run with NVLink multicast (`link.collectives`)."""

    multicast: bool = False


SCHEMA = 1
MOST_MODULES = 3  # of one memory channel, on any board
_WHOLES = ("cpu", "memory", "system", "machine", "gpus")
_COMPONENTS = (
    "name one such as gpu0, gpu0->gpu1, core:3, socket0, disk:nvme0n1, dimm:DIMM_A1, net:eth0 or "
    f"{', '.join(_WHOLES)}"
)
# Units in which a sound reading may be 0 or less (a margin, a cold sensor). In every other unit a
# lower bound of 0 could never fail.
BELOW_ZERO = ("degC",)


class DeclaredLimit(Strict, frozen=True):
    """`[[limit]]`: the machine's own limit; it replaces the shipped one and is marked as such."""

    measurement: Text
    unit: Text
    basis: Text
    component: Component | None = None
    low: float | None = None
    high: float | None = None
    warn_low: float | None = None
    warn_high: float | None = None

    def limit(self) -> Limit:
        """The table as a Limit; raises LimitError as Limit does."""
        return Limit(self.unit, self.basis, self.low, self.high, self.warn_low, self.warn_high)


class Machine(Strict, frozen=True):
    """A machine file.

    `gpus` is how many NVIDIA GPUs the machine has; 0 declares a machine without.
    """

    schema: Literal[1]
    name: Text
    description: str = ""
    order: DeclaredOrder = DeclaredOrder()
    psu: DeclaredPsu = DeclaredPsu()
    power: DeclaredPower = DeclaredPower()
    collectives: DeclaredCollectives = DeclaredCollectives()
    gpus: Annotated[int, msgspec.Meta(ge=0)] | None = None
    cpu: DeclaredCpu = DeclaredCpu()
    memory: DeclaredMemory = DeclaredMemory()
    system: DeclaredSystem = DeclaredSystem()
    gpu: tuple[DeclaredGpu, ...] = ()
    gpu_pair: tuple[DeclaredGpuPair, ...] = ()
    disk: tuple[DeclaredDisk, ...] = ()
    scratch: tuple[DeclaredScratch, ...] = ()
    network: tuple[DeclaredLink, ...] = ()
    limit: tuple[DeclaredLimit, ...] = ()
    waiver: tuple[Waiver, ...] = ()

    def gpu_count(self) -> int | None:
        """How many GPUs are declared, or None when the file does not say it."""
        return sum(gpu.count for gpu in self.gpu) if self.gpus is None and self.gpu else self.gpus


def _error(file: Path, line: int | None, sentence: str) -> UserError:
    return UserError(f"{file}{f', line {line}' if line else ''}: {sentence}")


KeyPath = list[str | int]
Problem = tuple[KeyPath, str]  # the key at fault, and a sentence about it


def _problems(machine: Machine) -> Iterator[Problem]:
    """Problems that types cannot express."""
    if (count := machine.gpu_count() or 0) > MOST_GPUS:
        key: KeyPath = ["gpus"] if machine.gpus is not None else ["gpu"]
        yield (
            key,
            (
                f"{count} GPUs are declared, and a machine has at most {DRIVER_GPUS} (NVIDIA's "
                "driver): correct it"
            ),
        )
    places: dict[tuple[str, Component | None], int] = {}  # index by measurement and component
    for index, row in enumerate(machine.limit):
        key = ["limit", index]
        if row.component is not None and (problem := _no_component(row.component)):
            yield [*key, "component"], f"{spell([*key, 'component'])}: {problem}"
        try:
            row.limit()
        except LimitError as error:
            at = [*key, error.field] if error.field else key
            yield at, f"{spell(key)} for {row.measurement}: {error}"
        for bound in ("low", "warn_low"):
            floor = getattr(row, bound)
            if floor is not None and floor <= 0 and row.unit not in BELOW_ZERO:
                text = (
                    f"{bound} is {number(floor)}, and nothing measured in {row.unit} is ever "
                    "below 0"
                )
                cure = "give the least that is accepted, or leave it out where high alone is meant"
                yield (
                    [*key, bound],
                    f"{spell(key)} for {row.measurement}: {text}, so it could never fail: {cure}",
                )
        earlier = [
            places[name]
            for name in ((row.measurement, None), (row.measurement, row.component))
            if name in places
        ]
        for first in sorted(set(earlier)):
            text = (
                f"{spell(key)} for {row.measurement} never holds, because "
                f"{spell(['limit', first])} goes before it"
            )
            yield key, f"{text}: remove one of them, or put the one that names a component first"
        places.setdefault((row.measurement, row.component), index)
    for index, waiver in enumerate(machine.waiver):
        key = ["waiver", index]
        if problem := _waiver_problem(waiver):
            yield key, f"{spell(key)}: {problem}"
        if problem := _waived_component_problem(waiver):
            yield [*key, "component"], f"{spell([*key, 'component'])}: {problem}"
    named: tuple[tuple[KeyPath, list[str | None]], ...] = (
        (["memory", "dimm"], [dimm.slot for dimm in machine.memory.dimm]),
        (["gpu"], [gpu.address for gpu in machine.gpu]),
        (["disk"], [disk.serial for disk in machine.disk]),
        (["network"], [link.name for link in machine.network]),
        (
            ["scratch"],
            [re.sub("^/+", "/", posixpath.normpath(scratch.path)) for scratch in machine.scratch],
        ),
    )
    for keys, names in named:
        for index, name in _repeated(names):
            yield [*keys, index], f"{spell([*keys, index])} names {name} again: name each once"
    alone = [
        *(("gpu", at, "address", gpu.address, gpu.count) for at, gpu in enumerate(machine.gpu)),
        *(("disk", at, "serial", disk.serial, disk.count) for at, disk in enumerate(machine.disk)),
    ]
    for table, index, what, own, number_of in alone:
        if own is not None and number_of > 1:
            text = f"{spell([table, index])} has one {what}, so its count cannot be {number_of}"
            yield [table, index, "count"], f"{text}: remove one"
    yield from _new_disk_problems(machine)
    yield from _scratch_problems(machine)
    yield from _pair_problems(machine)
    yield from _network_problems(machine)
    listed = sum(gpu.count for gpu in machine.gpu)
    if listed and machine.gpus not in (None, listed):
        yield ["gpus"], f"gpus is {machine.gpus} but the gpu tables list {listed}: make them agree"
    memory = machine.memory
    if memory.dimms is not None and memory.dimms < len(memory.dimm):
        text = f"memory.dimms is {memory.dimms} but there are {len(memory.dimm)} memory.dimm tables"
        yield ["memory", "dimms"], f"{text}: make them agree"
    modules = max(memory.dimms or 0, len(memory.dimm))
    if memory.channels is not None and modules > MOST_MODULES * memory.channels:
        text = f"memory.channels is {memory.channels}, and a channel takes at most {MOST_MODULES}"
        yield ["memory", "channels"], f"{text} of the {modules} modules: make them agree"
    sizes = [dimm.size_gib for dimm in memory.dimm if dimm.size_gib is not None]
    if memory.total_gib is not None and memory.total_gib < sum(sizes):
        text = f"memory.total_gib is {memory.total_gib}, and the modules have {sum(sizes)} GiB"
        yield ["memory", "total_gib"], f"{text}: make them agree"


def _new_disk_problems(machine: Machine) -> Iterator[Problem]:
    """New disks and others in tables that nothing tells apart."""
    for index, disk in enumerate(machine.disk):
        for first, other in enumerate(machine.disk[:index]):
            apart = (disk.serial, disk.firmware, disk.size_gb) != (
                other.serial,
                other.firmware,
                other.size_gb,
            )
            if disk.new != other.new and same_text(disk.model, other.model) and not apart:
                key: KeyPath = ["disk", index if disk.new else first, "new"]
                yield (
                    key,
                    (
                        f"{spell(['disk', first])} and {spell(['disk', index])} are of one model, "
                        "and only one is new: give the serial numbers of these disks"
                    ),
                )


def _scratch_problems(machine: Machine) -> Iterator[Problem]:
    for index, scratch in enumerate(machine.scratch):
        key: KeyPath = ["scratch", index, "path"]
        if not scratch.path.startswith("/") or not scratch.path.isprintable():
            yield (
                key,
                f"{spell(key)} is {scratch.path!r}, which is no absolute path: give one such as "
                '"/data"',
            )
        elif ".." in scratch.path.split("/"):
            yield key, f"{spell(key)} leads up by '..': give the folder's own path"


def _pair_problems(machine: Machine) -> Iterator[Problem]:
    count = machine.gpu_count()
    seen: set[frozenset[int]] = set()
    for index, pair in enumerate(machine.gpu_pair):
        key: KeyPath = ["gpu_pair", index]
        key_text, both = spell(key), frozenset(pair.between)
        if len(both) == 1:
            yield [*key, "between"], f"{key_text} names GPU {pair.between[0]} twice: name two"
        elif text := _undeclared(both, count):
            yield [*key, "between"], f"{key_text} {text}"
        elif both in seen:
            yield (
                [*key, "between"],
                f"{key_text} names GPUs {min(both)} and {max(both)} again: name each pair once",
            )
        elif pair.path is None and pair.p2p is None and pair.write_gbs is None:
            yield key, f"{key_text} declares nothing: add path, p2p or write_gbs"
        seen.add(both)


def _network_problems(machine: Machine) -> Iterator[Problem]:
    count = machine.gpu_count()
    for index, link in enumerate(machine.network):
        key: KeyPath = ["network", index, "gpus"]
        if link.gpus and (text := _undeclared(link.gpus, count)):
            yield key, f"{spell(key)} {text}"


def _undeclared(numbers: Iterable[int], count: int | None) -> str | None:
    """What is wrong with GPUs that a table names by their numbers; `count` are declared."""
    if count is None:
        return "names GPUs, and the file does not say how many there are: add gpus"
    if (last := max(numbers)) < count:
        return None
    declared = f"numbered from 0 to {count - 1}" if count else "none"
    return f"names GPU {last}, but the declared GPUs are {declared}: correct it"


def _repeated(names: Iterable[str | None]) -> Iterator[tuple[int, str]]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield index, name
        elif name is not None:
            seen.add(name)


def _waiver_problem(waiver: Waiver) -> str | None:
    if not waiver.reason.strip():
        return "reason is empty: say why the shortfall is accepted"
    if (waiver.measurement is None) == (waiver.skip is None):
        return "give either measurement (with worst) or skip, the name of a check"
    if waiver.skip is not None and set(waiver.skip) & set("*?"):
        return (
            "a pattern would excuse whatever could not be done: name one check or one subject "
            "in "
            "skip"
        )
    if waiver.skip is not None:
        return (
            None
            if waiver.worst is None
            else "a skip has no value, so worst means nothing here: remove it"
        )
    if waiver.worst is None:
        return "a waiver without a bound would excuse anything: add worst, the worst value accepted"
    if not math.isfinite(waiver.worst):
        return f"worst is {waiver.worst}: it must be a finite number"
    if waiver.component is None:
        return "add component, the one (or a pattern such as gpu*) whose shortfall is known"
    return None


def _waived_component_problem(waiver: Waiver) -> str | None:
    if waiver.component is None or set(waiver.component) & set("*?["):  # or a pattern
        return None
    try:
        return _no_component(parts.parse(waiver.component))
    except ValueError as error:
        return f"{error}: correct it"


_KINDS = ("core", "disk", "dimm", "net")
_NUMBERED: dict[str, type[Gpu | Socket | Core]] = {"gpu": Gpu, "socket": Socket, "core": Core}


def _no_component(component: Component) -> str | None:
    """Why this is the name of nothing that is measured; None where it may be."""
    for end in component.ends:
        if not isinstance(end, Named | Function) and end != ITSELF:
            continue
        name = str(end)
        numbered = re.fullmatch(r"(gpu|socket|core)[^0-9a-z]*0*([0-9]{1,9})", name.lower())
        kind, colon, rest = name.partition(":")
        if numbered:
            near = str(_NUMBERED[numbered[1]](int(numbered[2])))
        elif colon:
            near = "".join(f"{one}:{rest}" for one in nearest(kind, _KINDS))
        else:
            near = "".join(nearest(name, _WHOLES))
        cure = f"did you mean {near}?" if near else _COMPONENTS
        return f"'{name}' is no component: {cure}"
    return None


class _TooLarge(float):
    """An infinity that the file writes as a number, such as 1e400."""

    def __new__(cls, text: str) -> _TooLarge:
        """The infinity, with the text that made it."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


def _number(text: str) -> float:
    value = float(text)
    return _TooLarge(text) if math.isinf(value) and "inf" not in text else value


def _too_large(value: object, path: KeyPath) -> Iterator[Problem]:
    """Numbers beyond what a computer's number holds, each with its key."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _too_large(one, [*path, key])
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _too_large(one, [*path, index])
    elif isinstance(value, _TooLarge) or (
        isinstance(value, int) and abs(value) > sys.float_info.max
    ):
        text = value.text if isinstance(value, _TooLarge) else "too large"
        yield path, f"{spell(path)} is {text}: no number above 1.8e308 is read: correct it"


def _text(file: Path) -> str:
    """The text of a machine file.

    Raises UserError where it is no regular file, too large, or not UTF-8.
    """
    try:
        content = regular_file.read(file, regular_file.MACHINE_FILE)
        # editors on Windows put a byte order mark before the text
        text = content.decode("utf-8-sig")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        cure = "give the path of a machine file with --machine"
        raise _error(file, None, f"cannot be read ({error.strerror}): {cure}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise _error(
            file, line, f"is not UTF-8 text (byte {error.start}): save it as UTF-8"
        ) from error


def key_error(file: Path, place: Sequence[str | int], sentence: str) -> UserError:
    """The error for a key that has a problem beyond the checks of `read`, with file and line."""
    return _error(file, line_of(_text(file), place), f"{spell(place)}: {sentence}")


def read(file: Path) -> Machine:
    """The machine that a file declares.

    Raises UserError with file, line and key for any problem of the file.
    """
    text = _text(file)
    try:
        return _machine(text, file)
    except TomlError as error:
        raise _error(file, error.line, str(error)) from error


def _machine(text: str, file: Path) -> Machine:
    """The machine of a text. Raises UserError and TomlError."""
    table = toml_place.loads(text, _number)
    if not table:
        what = "holds nothing but comments" if text.strip() else "is empty"
        cure = "draft one under another name with `rigproof inventory --write FILE`"
        raise _error(file, None, f"{what}, and would declare nothing: {cure}")
    for path, sentence in _too_large(table, []):
        raise _error(file, line_of(text, path), sentence)
    schema = table.get("schema")
    if schema is None:
        raise _error(file, None, f"schema is missing: add schema = {SCHEMA}")
    if isinstance(schema, int) and schema > SCHEMA:
        sentence = (
            f"schema {schema} is newer than this rigproof reads ({SCHEMA}): install a "
            "newer "
            "rigproof"
        )
        raise _error(file, line_of(text, ["schema"]), sentence)
    machine = toml_place.convert(table, text, Machine, {**FORMS, "schema": str(SCHEMA)})
    for path, sentence in _problems(machine):
        raise _error(file, line_of(text, path), sentence)
    return machine
