"""Whole clean runs of the machines that ship, drawn: the real plan, values about what was measured
or published, and their noise.

The machines are those of the tests (`boxes`, `synthetic_machines`), here with what those leave out:
NVLinks that lead to switches on boards of eight, sensors of the processor, memory modules whose
rate is known, sixteen cores, and a machine without GPUs.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from boxes import BOXES, Box
from faults import Change
from gpu_machine import empty
from journals import entries
from synthetic_machines import DISK, SENSORS, inventory, planned
from test_every_limit import planned as planned_whole

from acceptance.core.evidence import AnyBody
from acceptance.core.finding import Siblings
from acceptance.core.fold import fold
from acceptance.core.message import Unmeasured
from acceptance.core.parts import Component
from acceptance.core.plan import SESSIONS, Due, Plan, PlannedCheck
from acceptance.core.record import (
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
from acceptance.diagnosis.steady_state import spreads
from acceptance.machine.inventory import CoreGroup, Dimm, Inventory
from selftest import noise
from selftest.figures import centre

WITHOUT_GPUS = "cpu-only"
NAMES = (*(box.file.removesuffix(".toml") for box in BOXES.values()), WITHOUT_GPUS)

Key = tuple[str, str, Component]  # check, measurement, component
Values = dict[Key, float | None]


@dataclass(frozen=True, eq=False)
class Machine:
    """A machine with its plan, and what a sound one of its kind gives, by measurement and
    component.

    `board`: its GPUs sit on a board with switches, or come from one. `virtual`: its CPUs are a
    guest's.
    """

    name: str
    box: Box
    plan: Plan
    centres: Mapping[tuple[str, Component], float]
    board: bool
    virtual: bool

    @property
    def gpus(self) -> int:
        """How many GPUs it has."""
        return self.box.count


@functools.cache
def machines() -> tuple[Machine, ...]:
    """Every machine whose file ships."""
    return tuple(map(named, NAMES))


@functools.cache
def named(name: str) -> Machine:
    """The machine of this name, which is its file's."""
    return _without_gpus() if name == WITHOUT_GPUS else _machine(_box(name))


MODULES = {
    "4090-7950x.toml": (4, 32, 3600),
    "2xa100-40gb-7049gp.toml": (8, 64, 3200),
}  # how many, GiB, MT/s


@functools.cache
def nightly(name: str) -> Machine:
    """The machine of this name as a night tests it, with a disk."""
    return _machine(_box(name), "nightly")


def _box(name: str) -> Box:
    return next(box for box in BOXES.values() if box.file == f"{name}.toml")


def _machine(box: Box, profile: str = "accept") -> Machine:
    seen, virtual = inventory(box), box.slot is None
    if box.nvlinks > 4 and box.count > 2:
        seen = _switched(seen)
    seen = _with_memory(seen, box.file)
    if box.count == 1:
        seen = _with_cores(seen, virtual)
    if profile == "nightly":
        seen = replace(seen, disks=(DISK,))
    return made(box, planned(box, seen, frozenset() if virtual else SENSORS, profile), virtual)


def made(box: Box, plan: Plan, virtual: bool) -> Machine:
    """A machine of this kind with its plan, and what a sound one gives."""
    board = box.sheet.startswith(("H100 SXM", "H200 SXM"))
    dues = {due.measurement: due for check in plan.checks for due in check.due}
    floors = _floors()
    centres = {
        (due.measurement, due.component): centre(box, due, dues, floors)
        for check in plan.checks
        for due in check.due
    }
    return Machine(box.file.removesuffix(".toml"), box, plan, centres, board, virtual)


def _without_gpus() -> Machine:
    box = Box(f"{WITHOUT_GPUS}.toml", "", 0, None)
    return made(box, planned(box, _with_cores(empty(0), True)), True)


def _switched(seen: Inventory) -> Inventory:
    """Every NVLink leads to a switch, and over it to every other GPU."""
    devices = tuple(
        replace(one, links=tuple(replace(link, remote_kind="switch") for link in one.links or ()))
        for one in seen.nvml.devices
    )
    return replace(seen, nvml=replace(seen.nvml, devices=devices))


@functools.cache
def everything() -> Machine:
    """A machine that declares all that can be declared, with every measurement there is."""
    box, plan = Box("everything.toml", "", 3, None), planned_whole("everything.toml")
    return replace(made(box, plan, False), name="all that can be declared")


def _with_memory(seen: Inventory, file: str) -> Inventory:
    if file not in MODULES:
        return seen
    count, gib, rate = MODULES[file]
    modules = tuple(
        Dimm(f"DIMM {slot}", gib << 30, "DDR", rate, rate, "maker", "part", None, 64, 64, None)
        for slot in range(count)
    )
    return replace(seen, memory=replace(seen.memory, dimms=modules, dimms_unread=None))


def _with_cores(seen: Inventory, virtual: bool) -> Inventory:
    group = CoreGroup("all", tuple((core,) if virtual else (core, core + 16) for core in range(16)))
    return replace(seen, cpu=replace(seen.cpu, core_groups=(group,), virtualised=virtual))


@functools.cache
def _floors() -> dict[str, float]:
    board = BOXES["8xh200.toml"]
    dues = (
        due for check in planned(board, _switched(inventory(board))).checks for due in check.due
    )
    return {
        due.measurement: due.limit.low
        for due in dues
        if due.limit is not None and due.limit.low is not None
    }


def spread(machine: Machine, measurement: str) -> noise.Noise:
    """The noise of a measurement on this machine."""
    return noise.of(measurement, board=machine.board, virtual=machine.virtual, gpus=machine.gpus)


@functools.cache
def figures(machine: Machine) -> tuple[tuple[Key, Due, float, float], ...]:
    """Everything due with its centre and one standard deviation in its unit."""
    found = []
    for check in machine.plan.checks:
        for due in check.due:
            middle, moved = (
                machine.centres[due.measurement, due.component],
                spread(machine, due.measurement),
            )
            deviation = moved.spread if moved.absolute else moved.spread * middle
            found.append(((check.id, due.measurement, due.component), due, middle, deviation))
    return tuple(found)


def draw(machine: Machine, dice: random.Random, change: Change | None = None) -> Values:
    """One run's values.

    A fault changes what is drawn; what follows from it (ratios, gains, spreads) is reckoned after.
    """
    found: Values = {}
    for key, due, middle, deviation in figures(machine):
        value = dice.gauss(middle, deviation) if deviation else middle
        if due.unit == "count" and deviation:
            value = float(max(0, round(value)))
        found[key] = change(key[0], due, value) if change else value
    return derived(machine, found)


def derived(machine: Machine, found: Values) -> Values:
    """The values of a run with what follows from others (ratios to siblings,
    gains, spreads) reckoned anew.
    """
    for check in machine.plan.checks:
        by_name: dict[str, dict[Component, float]] = {}
        for due in check.due:
            value = found.get((check.id, due.measurement, due.component))
            if value is not None:
                by_name.setdefault(due.measurement, {})[due.component] = value
        for name in by_name:
            for component, value in _follows(name, by_name).items():
                found[check.id, name, component] = value
    return found


def _follows(name: str, by_name: Mapping[str, Mapping[Component, float]]) -> dict[Component, float]:
    """The values of a measurement that is reckoned from others of its check; empty for one that
    is not, or whose base is not there.
    """
    base = by_name.get(name.replace("_ratio", ""), {})
    if "_ratio" in name:
        equal = Siblings(name, tuple(base))
        found = {one: equal.ratio(one, base) for one in by_name[name]}
        return {one: value for one, value in found.items() if value is not None}
    if name == "p2p_gain" and "p2p_write" in by_name and "p2p_staged" in by_name:
        return {
            way: by_name["p2p_write"][way] / staged for way, staged in by_name["p2p_staged"].items()
        }
    if name == "burn_temperature_spread":
        return {one: more for one, (more, _) in spreads(base, {"": tuple(base)}).items()}
    return {}


def bodies(machine: Machine, values: Values, *, as_root: bool = True) -> Iterator[AnyBody]:
    """The journal of a run.

    As a plain user what the waivers skip is skipped; a value that is None was not measured.
    """
    plan = machine.plan
    yield RunStarted("made", plan, {"made": "yes", "host": machine.name}, "no machine")
    for session in SESSIONS:
        share = plan.share(session)
        if share:
            yield SessionStarted(session, plan.digest, tuple(one.id for one in share))
            for check in share:
                yield from _check(plan, check, values, as_root)
            yield SessionEnded(session, True, "exited 0", 3.0)
    yield RunEnded(True, "every session of the plan was run")


def _check(plan: Plan, check: PlannedCheck, values: Values, as_root: bool) -> Iterator[AnyBody]:
    yield CheckStarted(check.id)
    skipped = False
    skips = () if as_root else tuple(one for one in plan.waivers if one.skip is not None)
    for due in check.due:
        value = values[check.id, due.measurement, due.component]
        if any(covers(waiver, check.id, due) for waiver in skips):
            skipped = True
            why = Unmeasured.NOT_PERMITTED
            told = "only root may read it"
            yield Skipped(check.id, told, due.measurement, due.component, why=why)
        elif value is not None:
            yield Measured(check.id, due.measurement, due.component, due.unit, value)
    yield CheckEnded(check.id, "skip" if skipped else "pass", "", check.seconds)


def judged(machine: Machine, values: Values, *, as_root: bool = True) -> Verdict:
    """The run, judged by the product's own fold."""
    return fold(entries(bodies(machine, values, as_root=as_root)))
