"""Limits from the machine file: each declared fact becomes a measurement that can fail."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace

from acceptance.core.component import Component
from acceptance.core.limit import Limit
from acceptance.core.message import Message, Values, known
from acceptance.core.parts import CPU, MACHINE, MEMORY, SYSTEM, Gpu, Pair, Part
from acceptance.expect import derived
from acceptance.expect.compute import burn_overrides, pattern_overrides
from acceptance.expect.derived import Known
from acceptance.expect.limit_book import Override, at_least, exactly, must_be_zero
from acceptance.machine.channels import peak_gbs
from acceptance.machine.machine_file import DeclaredDimm, DeclaredDisk, Machine


def declared_limits(machine: Machine, file: str) -> Iterator[Override]:
    """Every declared fact as a limit whose basis names the file and the key."""

    def fact(measurement: str, component: Component, limit: Limit, *place: str | int) -> Override:
        return Override(measurement, _declared(file), limit, component, place=place)

    def says(key: str, value: object) -> Message:
        return Message("declares", {"file": file, "key": key, "value": repr(value)})

    cpu = machine.cpu
    for name, key, count in (
        ("cpu_sockets", "sockets", cpu.sockets),
        ("cpu_cores", "cores", cpu.cores),
        ("cpu_threads", "threads", cpu.threads),
    ):
        if count is not None:
            yield fact(name, CPU, exactly(count, "count", says(f"cpu.{key}", count)), "cpu", key)
    for name, key, text in (
        ("cpu_model_differs", "model", cpu.model),
        ("cpu_governor_differs", "governor", cpu.governor),
    ):
        if text is not None:
            yield fact(name, CPU, must_be_zero(says(f"cpu.{key}", text)))
    memory = machine.memory
    if memory.total_gib is not None:
        declared = says("memory.total_gib", memory.total_gib)
        size = Known(memory.total_gib, {"declared": declared})
        for found in derived.floors("declared_memory", MEMORY, _declared(file), size):
            yield replace(found, place=("memory", "total_gib"))
    if memory.dimms is not None or memory.dimm:
        count = memory.dimms if memory.dimms is not None else len(memory.dimm)
        basis = (
            says("memory.dimms", count)
            if memory.dimms is not None
            else Message("lists_modules", {"file": file, "slots": count})
        )
        yield fact("dimm_count", MEMORY, exactly(count, "count", basis))
    for index, dimm in enumerate(memory.dimm):
        yield from _dimm(dimm, file, index)
    for name, key, text in _system(machine):
        yield fact(name, SYSTEM, must_be_zero(says(f"system.{key}", text)))
    for index, disk in enumerate(machine.disk, start=1):
        component = Part("declared-disk", str(index))
        yield fact(
            "disk_count",
            component,
            at_least(disk.count, "count", _declares_disk(index, disk, file)),
        )
    for index, link in enumerate(machine.network):
        component = Part("net", link.name)
        yield fact("link_up", component, at_least(1, "count", says("network.name", link.name)))
        if link.speed_mbps is not None:
            basis = says(f"{link.name}, speed_mbps", link.speed_mbps)
            limit = at_least(link.speed_mbps, "Mbit/s", basis)
            yield fact("link_speed", component, limit, "network", index, "speed_mbps")
        for number in link.gpus:
            basis = says(f"{link.name}, gpus", list(link.gpus))
            yield fact("gpu_network_differs", Gpu(number), must_be_zero(basis))
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
    return Message("declares_disk", values)


def _system(machine: Machine) -> list[tuple[str, str, str]]:
    system = machine.system
    rows = (
        ("board_differs", "board", system.board),
        ("bios_version_differs", "bios_version", system.bios_version),
        ("kernel_differs", "kernel", system.kernel),
        ("driver_differs", "driver", system.driver),
    )
    return [(name, key, text) for name, key, text in rows if text is not None]


def _declared(file: str) -> Message:
    return Message("declared_in", {"file": file})


def _dimm(dimm: DeclaredDimm, file: str, index: int) -> Iterator[Override]:
    component, origin = Part("dimm", dimm.slot), _declared(file)

    def says(key: str | None = None, value: str | None = None) -> Message:
        return Message("declares_module", known(file=file, slot=dimm.slot, key=key, value=value))

    yield Override("dimm_present", origin, at_least(1, "count", says()), component)
    if dimm.size_gib is not None:
        limit = exactly(dimm.size_gib, "GiB", says("size_gib", f"{dimm.size_gib}"))
        yield Override("dimm_size", origin, limit, component)
    for name, key, rate in (
        ("dimm_rated_speed", "rated_mts", dimm.rated_mts),
        ("dimm_configured_speed", "configured_mts", dimm.configured_mts),
    ):
        if rate is not None:
            limit = at_least(rate, "MT/s", says(key, f"{rate}"))
            place = ("memory", "dimm", index, key)
            yield Override(name, origin, limit, component, place=place)
    if dimm.part_number is not None:
        limit = must_be_zero(says("part_number", repr(dimm.part_number)))
        yield Override("dimm_part_number_differs", origin, limit, component)


def _gpus(machine: Machine, file: str) -> Iterator[Override]:
    origin, count = _declared(file), machine.gpu_count()
    if count is not None:
        basis = Message("declares_gpus", {"file": file, "n": count})
        yield Override("gpu_count", origin, exactly(count, "count", basis), MACHINE)
    position = 0
    for index, gpu in enumerate(machine.gpu):
        for _ in range(gpu.count):
            component = Gpu(position)
            position += 1
            declares = functools.partial(_gpu_says, file, str(component))
            for name, key, text in (
                ("gpu_model_differs", "model", gpu.model),
                ("gpu_pci_id_differs", "pci_id", gpu.pci_id),
                ("gpu_address_differs", "address", gpu.address),
            ):
                if text is not None:
                    limit = must_be_zero(declares(key, repr(text)))
                    yield Override(name, origin, limit, component)
            if gpu.link_width is not None:
                basis = declares("link_width", f"{gpu.link_width}")
                limit = at_least(gpu.link_width, "count", basis)
                place = ("gpu", index, "link_width")
                yield Override("gpu_link_width_max", origin, limit, component, place=place)
            if gpu.link_gen is not None:
                basis = declares("link_gen", f"{gpu.link_gen}")
                limit = at_least(gpu.link_gen, "count", basis)
                place = ("gpu", index, "link_gen")
                yield Override("gpu_link_gen_max", origin, limit, component, place=place)
            if gpu.nvlink_links is not None:
                basis = declares("nvlink_links", f"{gpu.nvlink_links}")
                limit = exactly(gpu.nvlink_links, "count", basis)
                place = ("gpu", index, "nvlink_links")
                yield Override("nvlink_active", origin, limit, component, place=place)


def _gpu_says(file: str, component: str, key: str, value: str) -> Message:
    return Message(
        "declares_of", {"file": file, "component": component, "key": key, "value": value}
    )


def _gpu_pairs(machine: Machine, file: str) -> Iterator[Override]:
    origin = _declared(file)
    for index, pair in enumerate(machine.gpu_pair):
        for first, second in (pair.between, pair.between[::-1]):
            component = Pair(Gpu(first), Gpu(second))
            values: Values = {"file": file, "between": f"[{pair.between[0]}, {pair.between[1]}]"}
            if pair.path is not None:
                told: Values = {**values, "key": "path", "value": repr(pair.path)}
                limit = must_be_zero(Message("declares_pair", told))
                yield Override("gpu_path_differs", origin, limit, component)
            if pair.p2p is not None:
                told = {**values, "key": "p2p", "value": str(pair.p2p).lower()}
                limit = exactly(int(pair.p2p), "count", Message("declares_pair", told))
                yield Override("p2p_supported", origin, limit, component)
                if pair.p2p:
                    meant = Limit("count", Message("declares_pair", told), high=1)
                    yield Override("transport_doubts", origin, meant, component)
            if pair.write_gbs is not None:
                told = {**values, "key": "write_gbs", "value": f"{pair.write_gbs:g}"}
                limit = at_least(pair.write_gbs, "GB/s", Message("declares_pair", told))
                place = ("gpu_pair", index, "write_gbs")
                yield Override("p2p_write", origin, limit, component, place=place)


def own_limits(machine: Machine, file: str) -> Iterator[Override]:
    """The machine file's own limits as overrides, then the limits of the burn from them."""
    origin = Message("override_in", {"file": file})
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
        origin = Message("from_modules", {"file": file})
        yield from derived.floors("channels", None, origin, Known(peak, values))
