"""Whole runs of machines that were never here: the shipped machine file, what such a machine shows,
the real plan, and a journal of it.

The journals are synthetic: the published figures of `boxes`, and a value that just passes for all
that nobody published. A check that is added is in the plan by itself.
"""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import gpu_machine
from boxes import Box
from faults import Change
from journals import entries, good_value
from real_checks import collected

from acceptance import resources
from acceptance.core.evidence import Scratch
from acceptance.core.fold import fold
from acceptance.core.message import Unmeasured
from acceptance.core.parts import Component, Gpu
from acceptance.core.plan import SESSIONS, Due, Plan, PlannedCheck
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Measured,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Skipped,
)
from acceptance.core.verdict import Verdict, covers
from acceptance.expect import components, gpu_limits, plan_builder, sheet
from acceptance.expect.plan_builder import MachineUnderTest, Request
from acceptance.expect.sheet import Sheet
from acceptance.machine import gpu_selection, machine_file, scratch_place, topology
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import CoreGroup, Disk, Inventory, NvmlDevice
from acceptance.machine.machine_file import DeclaredScratch
from acceptance.run import planning, profile
from acceptance.station.options import Options

SHEETS = {one.name: one for one in gpu_limits.sheets()}


@dataclass(frozen=True)
class Host:
    """Physical cores, threads and GiB of RAM of a machine."""

    cores: int
    threads: int
    ram_gib: int


# As the shipped machine files have them, most in the lines that their user is to fill in.
HOSTS = {
    "1xh200-vm.toml": Host(16, 16, 128),
    "1xh200.toml": Host(64, 128, 512),
    "4090-7950x.toml": Host(16, 32, 128),
    "2x3090ti-bridge.toml": Host(16, 32, 128),
    "2x4090.toml": Host(32, 64, 256),
    "2xa100-40gb-7049gp.toml": Host(76, 152, 512),
    "8xh100.toml": Host(112, 224, 2048),
    "8xh200.toml": Host(112, 224, 2048),
}
DISK = Disk("nvme0n1", "maker", "serial", 2 << 40, "nvme", "nvme", None)
SENSORS = frozenset({"cpu_temperature_c", "cpu_throttle_count"})
FREE = 0.98  # share of the RAM that is free on a machine where nothing else runs
GPUS_OF_A_NODE = 4  # as eight GPUs stand on the two sockets of an HGX board's host
GTS = {3: 8.0, 4: 16.0, 5: 32.0}


def device(box: Box, one: Sheet, index: int) -> NvmlDevice:
    """A GPU as NVML shows a healthy one of this model."""
    rate = one.memory.bandwidth_gbs / one.memory.bus_bits * 8
    traits = replace(
        gpu_machine.TRAITS,
        compute_capability=one.compute_capability,
        cuda_cores=one.cuda_cores,
        max_sm_clock_mhz=one.nvml_max_sm_mhz or one.boost_mhz,
        max_memory_clock_mhz=rate * 500,
        memory_bus_bits=one.memory.bus_bits,
        max_link_gen=one.pcie_gen,
        max_link_gen_here=min(one.pcie_gen or 0, box.slot[0]) if box.slot else one.pcie_gen,
        max_link_width_here=box.slot[1] if box.slot else one.pcie_width,
        virtualised=box.slot is None,
        ecc_enabled=one.ecc,
        numa_node=index // GPUS_OF_A_NODE,
    )
    peers = [other for other in range(box.count) if other != index]
    return gpu_machine.device(
        index,
        traits=traits,
        name=one.nvml_names[0],
        memory_bytes=int(one.memory.gib * (1 << 30)),
        links=tuple(
            gpu_machine.link(number, to=peers[number % len(peers)], speed_gbs=one.nvlink.link_gbs)
            for number in range(box.nvlinks)
            if one.nvlink is not None
        ),
        counters=gpu_machine.COUNTERS if "GeForce" not in one.name else gpu_machine.NO_COUNTERS,
    )


@functools.cache
def inventory(box: Box) -> Inventory:
    """The machine as it shows itself."""
    one = SHEETS[box.sheet]
    seen = gpu_machine.machine(
        *(device(box, one, index) for index in range(box.count)),
        found=gpu_machine.pairs(box.count, box.p2p, box.p2p, box.path),
    )
    pci = tuple(
        replace(
            function,
            device_id=one.pci_ids[0],
            max_link_speed_gts=GTS[one.pcie_gen or 0],
            slot_max_link_speed_gts=GTS[box.slot[0]] if box.slot else None,
            slot_max_link_width=box.slot[1] if box.slot else None,
        )
        for function in seen.pci
    )
    return replace(seen, pci=pci, cpu=replace(seen.cpu, virtualised=box.slot is None))


def planned(
    box: Box,
    seen: Inventory,
    sensors: frozenset[str] = frozenset(),
    name: str = "accept",
    *,
    memory_gib: float = 1.0,
    power_s: Mapping[str, float] | None = None,
    scratches: Sequence[Scratch] = (),
) -> Plan:
    """The plan of a profile for the shipped machine file on this machine, which
    has these sensors. `power_s` are the seconds of the power load by check.
    """
    path = resources.locate("machines") / box.file
    declared = machine_file.read(path)
    names = gpu_selection.names((), gpus(seen), components.gpu_count(declared, seen))
    chosen = profile.choose(profile.read(resources.locate("profiles.toml")), name)
    return plan_builder.build(
        collected(),
        "synthetic",
        MachineUnderTest(
            components=components.resolve(declared, seen, sensors, names, scratches=scratches),
            book=planning.book(declared, path.name, seen, names),
            siblings=components.siblings(declared, seen, names, scratches),
            waivers=declared.waiver,
            file=path.name,
            turns=topology.host_turns(seen, gpus(seen, names)),
            gaps=tuple(gpu_limits.gaps(seen, names, gpu_limits.sheets())),
        ),
        Request(
            profile=name,
            loads_s=profile.seconds(chosen, None) | dict(power_s or {}),
            memory_gib=memory_gib,
            cannot_detect=chosen.cannot_detect,
        ),
    )


@functools.cache
def whole_inventory(box: Box) -> Inventory:
    """The machine as it shows itself, with its processors, its RAM and a disk."""
    seen, host = inventory(box), HOSTS[box.file]
    cores = tuple((core,) for core in range(host.cores))
    return replace(
        seen,
        cpu=replace(
            seen.cpu,
            cores=host.cores,
            threads=host.threads,
            core_groups=(CoreGroup("all", cores),),
            socket_cores=(CoreGroup("socket0", cores),),
        ),
        memory=replace(
            seen.memory,
            total_bytes=host.ram_gib << 30,
            available_bytes=int(FREE * host.ram_gib * (1 << 30)),
        ),
        disks=(DISK,),
    )


@functools.cache
def prepared_plan(box: Box, name: str) -> Plan:
    """The plan of a profile as `planning.prepare` makes it on this machine: with the RAM that it
    fills, steps of power, and a folder on its disk, where an accepting run has left a file.
    """
    seen, path = whole_inventory(box), resources.locate("machines") / box.file
    declared = machine_file.read(path)
    chosen = profile.choose(profile.read(resources.locate("profiles.toml")), name)
    folder = DeclaredScratch("/data")
    (budget,) = scratch_place.budgets(name, (folder,))
    tested = Scratch(
        path=folder.path,
        component=DISK.component,
        mount=folder.path,
        kind="ext4",
        source="/dev/nvme0n1",
        disks=(DISK.name,),
        layers=(),
        free_bytes=1 << 40,
        write_bytes=budget.all_bytes,
        kept_bytes=budget.kept_bytes,
        keep=folder.keep,
        sealed_bytes=1 << 30,
    )
    names = gpu_selection.names((), gpus(seen), components.gpu_count(declared, seen))
    power_s, _ = planning.power_steps(declared, Options(path, profile=name), names, {})
    return planned(
        box,
        seen,
        SENSORS,
        name,
        memory_gib=planning.memory_gib(declared, chosen, seen),
        power_s=power_s,
        scratches=(tested,),
    )


@dataclass
class Run:
    """One machine's plan with the values that it gives, before and after a fault."""

    box: Box
    made: Plan
    change: Change | None = None

    def figure(self, due: Due) -> float:
        """What was published of it, or a value that passes."""
        given = self.box.figures.get(due.measurement)
        if isinstance(given, tuple):
            return given[min(self._position(due.component), len(given) - 1)]
        return given if given is not None else good_value(due)

    def _position(self, component: Component) -> int:
        if isinstance(component, Gpu):
            return component.number
        return list(itertools.permutations(map(Gpu, range(self.box.count)), 2)).index(
            component.ends
        )

    def values(self, check: PlannedCheck) -> dict[tuple[str, Component], float | None]:
        """A value of everything that a check owes. A ratio follows from what it is the ratio of."""
        found: dict[tuple[str, Component], float | None] = {}
        for due in check.due:
            value = self.figure(due)
            found[due.measurement, due.component] = (
                self.change(check.id, due, value) if self.change else value
            )
        for due in check.due:
            base = due.measurement.replace("_ratio", "")
            rates = {
                name: value
                for (one, name), value in found.items()
                if one == base
                and value is not None
                and (due.siblings is None or name in due.siblings.among)
            }
            if base != due.measurement and len(rates) > 1 and due.component in rates:
                others = statistics.median(
                    value for name, value in rates.items() if name != due.component
                )
                found[due.measurement, due.component] = rates[due.component] / others
        return found

    def bodies(self, *, as_root: bool = True) -> Iterator[Body]:
        """The journal. As a plain user what the waivers skip is skipped."""
        yield RunStarted(
            "synthetic", self.made, {"synthetic": "yes", "host": self.box.file}, "no machine"
        )
        for session in SESSIONS:
            share = self.made.share(session)
            if share:
                yield SessionStarted(session, self.made.digest, tuple(one.id for one in share))
                for check in share:
                    yield from self._check(check, as_root)
                yield SessionEnded(session, True, "exited 0", 3.0)
        yield RunEnded(True, "every session of the plan was run")

    def _check(self, check: PlannedCheck, as_root: bool) -> Iterator[Body]:
        yield CheckStarted(check.id)
        values, lost, skipped = self.values(check), False, False
        for due in check.due:
            value = values[due.measurement, due.component]
            waived = any(
                one.skip is not None and covers(one, check.id, due) for one in self.made.waivers
            )
            if waived and not as_root:
                skipped = True
                why = Unmeasured.NOT_PERMITTED
                told = "only root may read it"
                yield Skipped(check.id, told, due.measurement, due.component, why=why)
            elif value is None:
                lost = True
            else:
                yield Measured(check.id, due.measurement, due.component, due.unit, value)
        outcome = "error" if lost else "skip" if skipped else "pass"
        told = "it is not there" if lost else ""
        codes = (why.value,) if outcome == "skip" else None
        yield CheckEnded(check.id, outcome, told, check.seconds, codes)

    def verdict(self, *, as_root: bool = True) -> Verdict:
        """The run, judged."""
        return fold(entries(self.bodies(as_root=as_root)))


def failed(found: Verdict) -> set[tuple[str, str]]:
    """What did not meet its limit: measurement and component."""
    return {(one.measurement or "", one.component or "") for one in found.of_kind("fail")}


def sheet_of(gpu: machine_file.DeclaredGpu) -> Sheet | None:
    """The sheet of a declared GPU."""
    return sheet.find(tuple(SHEETS.values()), pci_id=gpu.pci_id, nvml_name=gpu.model)
