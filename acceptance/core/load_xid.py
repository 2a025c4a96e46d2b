"""Xids of the run's own loads: of which the usual cause is a program, and these are good. Pure.

A check that shows one proves nothing. A GPU that shows one in two loads, while its equals show
none, is at fault.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from acceptance.core.foreign_process import GpuUse, uses
from acceptance.core.incident import SAME_WITHIN_S
from acceptance.core.parts import Component
from acceptance.core.plan import LOAD_SESSIONS, Plan, PlannedCheck
from acceptance.core.record import Entry, Event, GpuUser, SessionEnded, Stopped, Suspicion, records

Grade = Literal["fail", "error"]

# A stamp of the kernel's clock may be this much early.
CLOCK_S = 0.2
# A program may take its grace and a slow end of its context, then the driver reports.
ENDING_S = 15.0
# Of a signal that is known only from the end of its program: how long that may have taken.
ENDED_S = 5.0
# What the driver says of a program that was ended may come when the next check runs.
LATE_S = 4.0
# An Xid comes at most this long before the one that is its consequence.
CAUSE_S = 30.0


@dataclass(frozen=True, slots=True)
class _Xid:
    """An Xid that suspects a GPU, at its moment, with the checks whose load was on that GPU."""

    entry: Entry
    event: Event
    suspicion: Suspicion
    moment_s: float
    checks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Window:
    """Time in which programs were ended: of a check, of a session, or (both None) of any.

    `component` is what they loaded, `pid` the only one that was ended; None where it is not known.
    """

    boot: int
    since_s: float
    until_s: float
    check: str | None = None
    session: str | None = None
    component: Component | None = None
    pid: str | None = None

    def covers(self, xid: _Xid, sessions: Mapping[str, str]) -> bool:
        """Whether an Xid came in this time, in a check that it is of."""
        in_time = self.boot == xid.entry.boot and self.since_s <= xid.moment_s <= self.until_s
        if self.component is not None and not self.component.holds(xid.suspicion.gpu):
            return False
        if None not in (self.pid, xid.suspicion.pid) and self.pid != str(xid.suspicion.pid):
            return False
        own = {sessions[check] for check in xid.checks}
        if self.check is None:
            return in_time and (self.session is None or self.session in own)
        late = sessions.get(self.check) in own and xid.moment_s <= self.since_s + LATE_S
        return in_time and (self.check in xid.checks or late)


def moment_s(entry: Entry, event: Event) -> float:
    """When an event happened, in seconds since boot."""
    return entry.boot_s if event.boot_s is None else event.boot_s


def works_on(check: PlannedCheck, part: Component, plan: Plan) -> bool:
    """Whether a check loads this part: a GPU, by its name or a PCI function of it, or another."""
    if check.session not in LOAD_SESSIONS:
        return False
    if part in plan.gpu_functions or any(part.holds(gpu) for gpu in plan.gpus):
        return any(due.component.holds(gpu) for due in check.due for gpu in plan.gpus)
    return any(due.component == part for due in check.due)


def grades(
    plan: Plan, entries: Sequence[Entry], owners: Mapping[Entry, tuple[str, ...]]
) -> dict[Entry, Grade]:
    """What the Xids that suspect a GPU are worth; those that suspect none are left out.

    `owners` are the checks that each event belongs to.
    """
    checks = {check.id: check for check in plan.checks}
    xids = [
        _Xid(entry, event, event.suspicion, moment_s(entry, event), loading)
        for entry in entries
        if isinstance(event := entry.body, Event)
        and event.suspicion is not None
        and event.severity == "warning"
        and (loading := _loading(event.suspicion.gpu, owners.get(entry, ()), checks))
    ]
    if not xids:
        return {}
    sessions = {check.id: check.session for check in plan.checks}
    people = _People(entries)
    windows = _windows(entries, people)
    held = [
        one
        for one in xids
        if people.own(one)
        and not any(window.covers(one, sessions) for window in windows)
        and not _is_consequence(one, entries)
    ]
    loads: dict[Component, set[str]] = defaultdict(set)
    for one in held:
        loads[one.suspicion.gpu].update(one.checks)
    return {one.entry: _grade(plan, one.suspicion.gpu, loads) for one in held}


def _loading(
    gpu: Component, owners: Sequence[str], checks: Mapping[str, PlannedCheck]
) -> tuple[str, ...]:
    return tuple(
        name
        for name in owners
        if checks[name].session in LOAD_SESSIONS
        and any(due.component.holds(gpu) for due in checks[name].due)
    )


def _grade(plan: Plan, gpu: Component, loads: Mapping[Component, set[str]]) -> Grade:
    equals = equal_gpus(plan, gpu)
    again = len(loads[gpu]) > 1
    return "fail" if again and equals and not any(loads.get(one) for one in equals) else "error"


def equal_gpus(plan: Plan, gpu: Component) -> frozenset[Component]:
    """The tested GPUs with which the plan compares this one."""
    groups = (due.siblings.among for check in plan.checks for due in check.due if due.siblings)
    return frozenset(one for among in groups if gpu in among for one in among) - {gpu}


def _is_consequence(xid: _Xid, entries: Sequence[Entry]) -> bool:
    """Whether another Xid of the same GPU or process came shortly before, which then counts."""
    if not xid.suspicion.consequence:
        return False
    for entry, event in records(entries, Event):
        if entry is xid.entry or entry.boot != xid.entry.boot:
            continue
        if event.kind != "xid" or event.code == xid.event.code:
            continue
        pid = xid.suspicion.pid
        kin = pid is not None and event.suspicion is not None and event.suspicion.pid == pid
        since_s = xid.moment_s - moment_s(entry, event)
        if (kin or event.component == xid.event.component) and -CLOCK_S <= since_s <= CAUSE_S:
            return True
    return False


def _windows(entries: Sequence[Entry], people: _People) -> list[_Window]:
    """When programs got a signal: of the run, of somebody else, or of the kernel.

    One of the run's programs that the kernel kills may take its peers with it.
    """
    found = []
    for entry in entries:
        boot, at_s, body = entry.boot, entry.boot_s, entry.body
        if isinstance(body, Stopped):
            since_s = at_s - (ENDED_S if body.ended else CLOCK_S)
            until_s = at_s + ENDING_S
            found.append(_Window(boot, since_s, until_s, body.check, body.session, body.component))
        elif isinstance(body, SessionEnded) and not body.complete:
            found.append(_Window(boot, at_s - ENDED_S, at_s + ENDING_S, session=body.session))
        elif isinstance(body, Event) and body.kind == "oom":
            at_s = moment_s(entry, body)
            victim = None if body.code is None else str(body.code)
            ours = any(victim == str(pid) for own, pid in people.own_pids if own == boot)
            pid = None if ours else victim
            found.append(_Window(boot, at_s - CLOCK_S, at_s + ENDING_S, pid=pid))
    return found


class _People:
    """Who used the GPUs, by the watch's records."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        users = [(entry.boot, one) for entry, one in records(entries, GpuUser)]
        self.own_pids = {(boot, one.pid) for boot, one in users if one.own}
        self._commands = {one.command for _, one in users if one.own}
        drawing: dict[tuple[int, Component, int, float], GpuUse] = {}
        for boot, one in users:
            if not one.own:
                until_s = inf if one.until_s is None else one.until_s
                name = (boot, one.component, one.pid, one.since_s)
                drawing[name] = GpuUse(
                    one.command or "", one.component, boot, one.since_s, until_s, one.pid
                )
        self._others = (*uses(entries), *drawing.values())
        self._other_pids = {(one.boot, one.pid) for one in self._others if one.pid is not None}

    def own(self, xid: _Xid) -> bool:
        """Whether an Xid is the run's: of a process of its own, or of no process of others.

        A process that the watch did not see lasted less than about a second; the driver names at
        most the first 15 characters of its command.
        """
        boot, pid, command = xid.entry.boot, xid.suspicion.pid, xid.suspicion.command
        if pid is not None and (boot, pid) in self.own_pids:
            return True
        if pid is not None and (boot, pid) in self._other_pids:
            return False
        if command is not None and any(
            one is not None and one.rpartition("/")[2].startswith(command) for one in self._commands
        ):
            return True
        # The watch sees a user up to a second late, and NVML's Xid comes up to ten seconds late.
        return not any(
            one.boot == boot
            and one.gpu == xid.suspicion.gpu
            and one.since_s - SAME_WITHIN_S <= xid.moment_s <= one.until_s + SAME_WITHIN_S
            for one in self._others
        )
