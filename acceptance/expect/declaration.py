"""Limits from the machine file: each declared fact becomes a measurement that can fail."""

from __future__ import annotations

from collections.abc import Iterator

from acceptance.core.limit import Limit
from acceptance.expect.compute import burn_overrides
from acceptance.expect.limit_book import Override, at_least, exactly, memory_floor, must_be_zero
from acceptance.machine.machine_file import DeclaredDimm, Machine

# Firmware and kernel keep a part of the installed RAM: 1.5 to 4 % on the machines examined (24 GiB
# VM: 23.54 seen). One missing module of twelve is 8.3 %, so this floor still detects it.
RAM_SHARE_SEEN = 0.95
# numpy's copy and triad reach 60 to 80 % of the channel peak on healthy desktops and servers; at
# half of it a channel is missing.
BANDWIDTH_SHARE = 0.5


def declared_limits(machine: Machine, file: str) -> Iterator[Override]:
    """Every declared fact as a limit whose basis names the file and the key."""

    def fact(measurement: str, component: str, limit: Limit) -> Override:
        return Override(measurement, f"declared in {file}", limit, component)

    def says(key: str, value: object) -> str:
        return f"{file} declares {key} = {value!r}"

    cpu = machine.cpu
    for key, count in (("sockets", cpu.sockets), ("cores", cpu.cores), ("threads", cpu.threads)):
        if count is not None:
            yield fact(f"cpu_{key}", "cpu", exactly(count, "count", says(f"cpu.{key}", count)))
    for key, text in (("model", cpu.model), ("governor", cpu.governor)):
        if text is not None:
            yield fact(f"cpu_{key}_differs", "cpu", must_be_zero(says(f"cpu.{key}", text)))
    memory = machine.memory
    if memory.total_gib is not None:
        basis = f"{says('memory.total_gib', memory.total_gib)}; firmware and kernel keep up to 5 %"
        yield fact(
            "memory_total", "memory", at_least(RAM_SHARE_SEEN * memory.total_gib, "GiB", basis)
        )
    if memory.dimms is not None or memory.dimm:
        count = memory.dimms if memory.dimms is not None else len(memory.dimm)
        basis = (
            says("memory.dimms", count)
            if memory.dimms is not None
            else f"{file} lists the modules in {count} slots"
        )
        yield fact("dimm_count", "memory", exactly(count, "count", basis))
    for dimm in memory.dimm:
        yield from _dimm(dimm, file)
    for key, text in _system(machine):
        yield fact(f"{key}_differs", "system", must_be_zero(says(f"system.{key}", text)))
    for index, disk in enumerate(machine.disk, start=1):
        component = f"declared-disk:{index}"
        yield fact(
            "disk_count",
            component,
            at_least(disk.count, "count", says(f"disk {index}, model", disk.model)),
        )
    for link in machine.network:
        component = f"net:{link.name}"
        yield fact("link_up", component, at_least(1, "count", says("network.name", link.name)))
        if link.speed_mbps is not None:
            basis = says(f"{link.name}, speed_mbps", link.speed_mbps)
            yield fact("link_speed", component, at_least(link.speed_mbps, "Mbit/s", basis))
    yield from _gpus(machine, file)
    yield from _gpu_pairs(machine, file)


def _system(machine: Machine) -> list[tuple[str, str]]:
    system = machine.system
    rows = (
        ("board", system.board),
        ("bios_version", system.bios_version),
        ("kernel", system.kernel),
        ("driver", system.driver),
    )
    return [(key, text) for key, text in rows if text is not None]


def _dimm(dimm: DeclaredDimm, file: str) -> Iterator[Override]:
    component, origin = f"dimm:{dimm.slot}", f"declared in {file}"
    text = f"{file} declares a module in {dimm.slot}"
    yield Override("dimm_present", origin, at_least(1, "count", text), component)
    if dimm.size_gib is not None:
        yield Override(
            "dimm_size",
            origin,
            exactly(dimm.size_gib, "GiB", f"{text} with size_gib = {dimm.size_gib}"),
            component,
        )
    for key, rate in (("rated", dimm.rated_mts), ("configured", dimm.configured_mts)):
        if rate is not None:
            limit = at_least(rate, "MT/s", f"{text} with {key}_mts = {rate}")
            yield Override(f"dimm_{key}_speed", origin, limit, component)
    if dimm.part_number is not None:
        limit = must_be_zero(f"{text} with part_number = {dimm.part_number!r}")
        yield Override("dimm_part_number_differs", origin, limit, component)


def _gpus(machine: Machine, file: str) -> Iterator[Override]:
    origin, count = f"declared in {file}", machine.gpu_count()
    if count is not None:
        basis = f"{file} declares {count} GPU{'s' if count != 1 else ''}"
        yield Override("gpu_count", origin, exactly(count, "count", basis), "machine")
    position = 0
    for gpu in machine.gpu:
        for _ in range(gpu.count):
            component = f"gpu{position}"
            position += 1
            words = f"{file} declares {component}"
            for key, text in (
                ("model", gpu.model),
                ("pci_id", gpu.pci_id),
                ("address", gpu.address),
            ):
                if text is not None:
                    yield Override(
                        f"gpu_{key}_differs",
                        origin,
                        must_be_zero(f"{words} with {key} = {text!r}"),
                        component,
                    )
            if gpu.link_width is not None:
                limit = at_least(
                    gpu.link_width, "count", f"{words} with link_width = {gpu.link_width}"
                )
                yield Override("gpu_link_width_max", origin, limit, component)
            if gpu.link_gen is not None:
                limit = at_least(gpu.link_gen, "count", f"{words} with link_gen = {gpu.link_gen}")
                yield Override("gpu_link_gen_max", origin, limit, component)
            if gpu.nvlink_links is not None:
                limit = exactly(
                    gpu.nvlink_links, "count", f"{words} with nvlink_links = {gpu.nvlink_links}"
                )
                yield Override("nvlink_active", origin, limit, component)


def _gpu_pairs(machine: Machine, file: str) -> Iterator[Override]:
    origin = f"declared in {file}"
    for pair in machine.gpu_pair:
        for first, second in (pair.between, pair.between[::-1]):
            component = f"gpu{first}->gpu{second}"
            text = f"{file} declares between = [{pair.between[0]}, {pair.between[1]}]"
            if pair.path is not None:
                limit = must_be_zero(f"{text} with path = {pair.path!r}")
                yield Override("gpu_path_differs", origin, limit, component)
            if pair.p2p is not None:
                limit = exactly(
                    int(pair.p2p), "count", f"{text} with p2p = {str(pair.p2p).lower()}"
                )
                yield Override("p2p_supported", origin, limit, component)


def own_limits(machine: Machine, file: str) -> Iterator[Override]:
    """The machine file's own limits as overrides, then the limits of the burn from them."""
    own = [
        Override(row.measurement, f"override in {file}", row.limit(), row.component, own=True)
        for row in machine.limit
    ]
    yield from own
    for found in own:
        yield from burn_overrides(found)


def bandwidth_limits(machine: Machine, rates_mts: tuple[int, ...], file: str) -> Iterator[Override]:
    """Floors for copy and triad.

    Only where the DIMMs' rate is known and the machine file declares the channels.
    """
    if rates_mts and machine.memory.channels is not None:
        floor, basis = memory_floor(rates_mts, machine.memory.channels, BANDWIDTH_SHARE)
        for name in ("memory_copy", "memory_triad"):
            yield Override(
                name, f"derived from the DIMMs and {file}", at_least(floor, "GB/s", basis)
            )
