"""Limits from the machine file: each declared fact becomes a measurement that can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from acceptance.core.limit import Limit
from acceptance.core.message import Message, Text, Values, english, known, plural
from acceptance.core.parts import CPU, MACHINE, MEMORY, SYSTEM, Component, Gpu, Pair, Part
from acceptance.expect import limit_book, measurements
from acceptance.expect.compute import burn_overrides, pattern_overrides
from acceptance.expect.limit_book import Amount, Override, at_least, exactly, must_be_zero
from acceptance.machine.channels import peak_gbs
from acceptance.machine.machine_file import DeclaredDimm, DeclaredDisk, Machine

_Kind = Callable[[Any, str, Text], Limit]


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the machine file: what it is of, where it stands, and how it declares a key."""

    component: Component
    file: str
    says: Callable[[str, str], Message]
    place: tuple[str | int, ...]

    def limits(self, kind: _Kind, **declared: tuple[str, Any]) -> Iterator[Override]:
        """By measurement, key and declared value; nothing for what the file does not declare."""
        for name, (key, value) in declared.items():
            if value is not None:
                limit = kind(value, measurements.unit(name), self.says(key, repr(value)))
                place = () if kind is _same else (*self.place, key)
                yield Override(name, _declared(self.file), limit, self.component, place=place)


def _same(_: object, __: str, basis: Text) -> Limit:
    """A limit for how often something differs from what is declared."""
    return must_be_zero(basis)


def declared_limits(machine: Machine, file: str) -> Iterator[Override]:
    """Every declared fact as a limit whose basis names the file and the key."""

    def says(table: str, key: str, value: str) -> Message:
        return Message(
            english("declares", "{file} declares {key} = {value}"),
            {"file": file, "key": f"{table}{key}", "value": value},
        )

    def table(component: Component, name: str) -> _Table:
        return _Table(component, file, partial(says, f"{name}."), (name,))

    def fact(measurement: str, component: Component, limit: Limit) -> Override:
        return Override(measurement, _declared(file), limit, component)

    cpu, memory, system = machine.cpu, machine.memory, machine.system
    of_cpu = table(CPU, "cpu")
    yield from of_cpu.limits(
        exactly,
        cpu_sockets=("sockets", cpu.sockets),
        cpu_cores=("cores", cpu.cores),
        cpu_threads=("threads", cpu.threads),
    )
    yield from of_cpu.limits(
        _same,
        cpu_model_differs=("model", cpu.model),
        cpu_governor_differs=("governor", cpu.governor),
    )
    if memory.total_gib is not None:
        declared = says("memory.", "total_gib", repr(memory.total_gib))
        size = Amount(memory.total_gib, {"declared": declared})
        for found in limit_book.floors("declared_memory", MEMORY, _declared(file), size):
            yield replace(found, place=("memory", "total_gib"))
    if memory.dimms is not None:
        basis = says("memory.", "dimms", repr(memory.dimms))
        yield fact("dimm_count", MEMORY, exactly(memory.dimms, "count", basis))
    elif memory.dimm:
        basis = Message(
            english("lists_modules", "{file} lists the modules in {slots} slots"),
            {"file": file, "slots": len(memory.dimm)},
        )
        yield fact("dimm_count", MEMORY, exactly(len(memory.dimm), "count", basis))
    for index, dimm in enumerate(memory.dimm):
        yield from _dimm(dimm, file, index)
    yield from table(SYSTEM, "system").limits(
        _same,
        board_differs=("board", system.board),
        bios_version_differs=("bios_version", system.bios_version),
        kernel_differs=("kernel", system.kernel),
        driver_differs=("driver", system.driver),
    )
    for index, disk in enumerate(machine.disk, start=1):
        limit = at_least(disk.count, "count", _declares_disk(index, disk, file))
        yield fact("disk_count", Part("declared-disk", str(index)), limit)
    for index, link in enumerate(machine.network):
        component = Part("net", link.name)
        basis = says("network.", "name", repr(link.name))
        yield fact("link_up", component, at_least(1, "count", basis))
        of_link = partial(says, f"{link.name}, ")
        yield from _Table(component, file, of_link, ("network", index)).limits(
            at_least, link_speed=("speed_mbps", link.speed_mbps)
        )
        for number in link.gpus:
            gpu = _Table(Gpu(number), file, of_link, ("network", index))
            yield from gpu.limits(_same, gpu_network_differs=("gpus", list(link.gpus)))
    yield from _gpus(machine, file)
    yield from _gpu_pairs(machine, file)


def _declares_disk(index: int, disk: DeclaredDisk, file: str) -> Message:
    """What a disk is declared by: serial and firmware too, where a disk must have them."""
    values = known(
        file=file,
        index=index,
        model=repr(disk.model),
        serial=None if disk.serial is None else repr(disk.serial),
        firmware=None if disk.firmware is None else repr(disk.firmware),
    )
    return Message(
        english(
            "declares_disk",
            "{file} declares disk {index}, model = {model}[, serial = {serial}][, firmware = "
            "{firmware}]",
        ),
        values,
    )


def _declared(file: str) -> Message:
    return Message(english("declared_in", "declared in {file}"), {"file": file})


def _dimm(dimm: DeclaredDimm, file: str, index: int) -> Iterator[Override]:
    component = Part("dimm", dimm.slot)

    def says(key: str | None = None, value: str | None = None) -> Message:
        return Message(
            english("declares_module", "{file} declares a module in {slot}[ with {key} = {value}]"),
            known(file=file, slot=dimm.slot, key=key, value=value),
        )

    table = _Table(component, file, says, ("memory", "dimm", index))
    yield Override("dimm_present", _declared(file), at_least(1, "count", says()), component)
    yield from table.limits(exactly, dimm_size=("size_gib", dimm.size_gib))
    yield from table.limits(
        at_least,
        dimm_rated_speed=("rated_mts", dimm.rated_mts),
        dimm_configured_speed=("configured_mts", dimm.configured_mts),
    )
    yield from table.limits(_same, dimm_part_number_differs=("part_number", dimm.part_number))


def _gpus(machine: Machine, file: str) -> Iterator[Override]:
    origin, count = _declared(file), machine.gpu_count()
    if count is not None:
        basis = Message(
            plural("declares_gpus", "{file} declares {n} GPU", "{file} declares {n} GPUs"),
            {"file": file, "n": count},
        )
        yield Override("gpu_count", origin, exactly(count, "count", basis), MACHINE)
    listed = [(at, gpu) for at, gpu in enumerate(machine.gpu) for _ in range(gpu.count)]
    for position, (at, gpu) in enumerate(listed):
        component = Gpu(position)
        table = _Table(component, file, partial(_gpu_says, file, str(component)), ("gpu", at))
        yield from table.limits(
            _same,
            gpu_model_differs=("model", gpu.model),
            gpu_pci_id_differs=("pci_id", gpu.pci_id),
            gpu_address_differs=("address", gpu.address),
        )
        yield from table.limits(
            at_least,
            gpu_link_width_max=("link_width", gpu.link_width),
            gpu_link_gen_max=("link_gen", gpu.link_gen),
        )
        yield from table.limits(exactly, nvlink_active=("nvlink_links", gpu.nvlink_links))


def _gpu_says(file: str, component: str, key: str, value: str) -> Message:
    return Message(
        english("declares_of", "{file} declares {component} with {key} = {value}"),
        {"file": file, "component": component, "key": key, "value": value},
    )


def _gpu_pairs(machine: Machine, file: str) -> Iterator[Override]:
    origin = _declared(file)
    for index, pair in enumerate(machine.gpu_pair):
        for first, second in (pair.between, pair.between[::-1]):
            component = Pair(Gpu(first), Gpu(second))
            says = partial(_pair_says, file, f"[{pair.between[0]}, {pair.between[1]}]")
            table = _Table(component, file, says, ("gpu_pair", index))
            yield from table.limits(_same, gpu_path_differs=("path", pair.path))
            if pair.p2p is not None:
                basis = says("p2p", str(pair.p2p).lower())
                yield Override(
                    "p2p_supported", origin, exactly(int(pair.p2p), "count", basis), component
                )
                if pair.p2p:
                    meant = Limit("count", basis, high=1)
                    yield Override("transport_doubts", origin, meant, component)
            if pair.write_gbs is not None:
                limit = at_least(pair.write_gbs, "GB/s", says("write_gbs", f"{pair.write_gbs:g}"))
                place = ("gpu_pair", index, "write_gbs")
                yield Override("p2p_write", origin, limit, component, place=place)


def _pair_says(file: str, between: str, key: str, value: str) -> Message:
    values = {"file": file, "between": between, "key": key, "value": value}
    return Message(
        english("declares_pair", "{file} declares between = {between} with {key} = {value}"), values
    )


def own_limits(machine: Machine, file: str) -> Iterator[Override]:
    """The machine file's own limits as overrides, then the limits of the burn from them."""
    origin = Message(english("override_in", "override in {file}"), {"file": file})
    own = [
        Override(row.measurement, origin, row.limit(), row.component, own=True)
        for row in machine.limit
    ]
    yield from own
    for found in own:
        yield from burn_overrides(found)
        yield from pattern_overrides(found)


def channel_limits(machine: Machine, file: str) -> Iterator[Override]:
    """As many memory channels filled as declared, and all alike.

    Only for a machine whose firmware tells the channels: on others both would be due and unread.
    """
    if (count := machine.memory.channels) is None:
        return
    basis = Message("declares", {"file": file, "key": "memory.channels", "value": repr(count)})
    yield Override("memory_channels", _declared(file), exactly(count, "count", basis), MEMORY)
    yield Override("memory_channels_unequal", _declared(file), must_be_zero(basis), MEMORY)


def bandwidth_limits(machine: Machine, rates_mts: tuple[int, ...], file: str) -> Iterator[Override]:
    """Floors for copy and triad.

    Only where the DIMMs' rate is known and the machine file declares the channels.
    """
    channels = machine.memory.channels
    if rates_mts and channels is not None:
        slowest = min(rates_mts)  # which all run at
        peak = peak_gbs(slowest, channels)
        values: Values = {"rate": slowest, "channels": channels, "peak": f"{peak:.1f}"}
        origin = Message(
            english("from_modules", "derived from the DIMMs and {file}"), {"file": file}
        )
        yield from limit_book.floors("channels", None, origin, Amount(peak, values))
