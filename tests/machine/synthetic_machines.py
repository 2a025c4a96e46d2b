"""Whole runs of machines that were never here: the shipped machine file, what such a machine shows,
the real plan, and a journal of it.

The journals are synthetic: the published figures of `boxes`, and a value that just passes for all
that nobody published. A check that is added is in the plan by itself.
"""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace

import gpu_machine
from boxes import Box
from faults import Change
from journals import entries, good_value
from real_checks import collected

from acceptance import resources
from acceptance.core.collection import SESSIONS
from acceptance.core.component import Component
from acceptance.core.fold import fold
from acceptance.core.judgement import covers
from acceptance.core.parts import Gpu
from acceptance.core.plan import Due, Plan, PlannedCheck
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
from acceptance.core.verdict import Verdict
from acceptance.expect import components, gpu_limits, plan_builder, sheet
from acceptance.expect.sheet import Sheet
from acceptance.machine import gpu_selection, machine_file
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, NvmlDevice
from acceptance.run import planning, profile

SHEETS = {one.name: one for one in gpu_limits.sheets()}
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
    box: Box, seen: Inventory, sensors: frozenset[str] = frozenset(), name: str = "accept"
) -> Plan:
    """The plan of a profile for the shipped machine file on this machine, which
    has these sensors.
    """
    path = resources.locate("machines") / box.file
    declared = machine_file.read(path)
    names = gpu_selection.names((), gpus(seen), components.gpu_count(declared, seen))
    chosen = profile.choose(profile.read(resources.locate("profiles.toml")), name)
    return plan_builder.build(
        collected(),
        profile=name,
        loads_s=profile.seconds(chosen, None),
        memory_gib=1.0,
        cannot_detect=chosen.cannot_detect,
        components=components.resolve(declared, seen, sensors, names),
        not_offered=(),
        book=planning.book(declared, path.name, seen, names),
        waivers=declared.waiver,
        declared_in=path.name,
        only=(),
        digest="synthetic",
        siblings=components.siblings(declared, seen, names),
        gaps=tuple(gpu_limits.gaps(seen, names)),
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
                yield Skipped(check.id, "only root may read it", due.measurement, due.component)
            elif value is None:
                lost = True
            else:
                yield Measured(check.id, due.measurement, due.component, due.unit, value)
        outcome = "error" if lost else "skip" if skipped else "pass"
        yield CheckEnded(check.id, outcome, "it is not there" if lost else "", check.seconds)

    def verdict(self, *, as_root: bool = True) -> Verdict:
        """The run, judged."""
        return fold(entries(self.bodies(as_root=as_root)))


def failed(found: Verdict) -> set[tuple[str, str]]:
    """What did not meet its limit: measurement and component."""
    return {(one.measurement or "", one.component or "") for one in found.of_kind("fail")}


def sheet_of(gpu: machine_file.DeclaredGpu) -> Sheet | None:
    """The sheet of a declared GPU."""
    return sheet.find(tuple(SHEETS.values()), pci_id=gpu.pci_id, nvml_name=gpu.model)
