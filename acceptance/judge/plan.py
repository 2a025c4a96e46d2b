"""What is due in a run: checks, their measurements, and the components each belongs to, with the limits they will be held against.

The plan is made once, before anything is heated, and the verdict is computed against it: what it names and the journal does not hold
is not a pass.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from acceptance.judge.limits import LimitBook
from acceptance.judge.machine import Waiver
from acceptance.judge.measurement import UNITS, Limit

Session = Literal["host-before", "load", "host-after"]
SESSIONS: tuple[Session, ...] = ("host-before", "load", "host-after")
Scope = Literal["full", "partial"]


class PlanError(Exception):
    """The plan cannot be made; the message is one sentence for the user."""


class Measures(msgspec.Struct, frozen=True):
    """What a check says that it measures: the arguments of its `measures` mark.

    `per` is the class of components. A *fact* is due only where the machine file declares it. `waivable` is false for what no waiver
    may excuse (miscompares).
    """

    name: str
    unit: str
    per: str
    fact: bool = False
    waivable: bool = True


class Collected(msgspec.Struct, frozen=True):
    """One check as pytest collected it.

    It costs `seconds`, and the time of the load named in `load`, and `seconds_per_gib` for each GiB of RAM that is tested.
    """

    id: str
    title: str
    session: Session
    measures: tuple[Measures, ...]
    seconds: float
    load: str | None = None
    gate: bool = False
    seconds_per_gib: float = 0.0


class Due(msgspec.Struct, frozen=True):
    """One measurement of one component that this run owes. Without a limit, `unlimited` says why none can be."""

    measurement: str
    component: str
    unit: str
    limit: Limit | None
    origin: str
    unlimited: str | None = None
    waivable: bool = True


class PlannedCheck(msgspec.Struct, frozen=True):
    """One check of the plan with everything due from it; `seconds` is its expected cost."""

    id: str
    title: str
    session: Session
    seconds: float
    due: tuple[Due, ...]
    gate: bool = False


class Plan(msgspec.Struct, frozen=True):
    """All that is due.

    `memory_gib` is how much RAM the memory test fills. `gaps` name what no check of this plan covers though the machine has it: they
    keep the run from passing.
    """

    profile: str
    scope: Scope
    checks: tuple[PlannedCheck, ...]
    waivers: tuple[Waiver, ...]
    loads_s: dict[str, float]
    memory_gib: float
    cannot_detect: tuple[str, ...]
    not_tested: tuple[str, ...]
    gaps: tuple[str, ...]
    inventory_declared: bool
    digest: str

    def eta_s(self) -> float:
        """Expected seconds, all checks in sequence."""
        return sum(check.seconds for check in self.checks)

    def share(self, session: Session) -> tuple[PlannedCheck, ...]:
        """The checks of one session, in the order in which they run."""
        return tuple(check for check in self.checks if check.session == session)


def selected(check_id: str, patterns: Sequence[str]) -> bool:
    """Whether `--only` names this check: a pattern is an id, a subject, an id without its parameter, or a shell pattern."""
    return any(
        check_id == pattern
        or check_id.startswith((pattern + ".", pattern + "["))
        or fnmatch.fnmatchcase(check_id, pattern)
        for pattern in patterns
    )


def lint(collected: Sequence[Collected], book: LimitBook) -> None:
    """Both ways, over every check there is: units agree, every limit is measured, every measurement has a limit or says why not.

    Raises PlanError, also for a machine's own limit on what no waiver may excuse: it would be a waiver without a bound.
    """
    every = [(check, measures) for check in collected for measures in check.measures]
    units: dict[str, str] = {}
    for check, measures in every:
        if measures.unit not in UNITS:
            raise PlanError(f"{check.id} measures {measures.name} in {measures.unit}, which is no unit of ours")
        other = units.setdefault(measures.name, measures.unit)
        if other != measures.unit:
            raise PlanError(f"{check.id} measures {measures.name} in {measures.unit}, another check in {other}")
    for entry in book.entries:
        name, where = entry.measurement, entry.origin
        if name not in units:
            known = ", ".join(sorted(units))
            raise PlanError(f"{where}: a limit for {name}, which no check measures; measured are: {known}")
        if entry.limit is not None and entry.limit.unit != units[name]:
            told = f"the limit for {name} is in {entry.limit.unit}, but {name} is measured in {units[name]}"
            raise PlanError(f"{where}: {told}: write it in that unit")
        if entry.own and any(measures.name == name and not measures.waivable for _, measures in every):
            raise PlanError(
                f"{where}: {name} takes no limit of the machine's own, because it proves a fault: remove it"
            )
    for _, measures in every:
        if not measures.fact and not book.knows(measures.name):
            raise PlanError(f"{measures.name} is measured but has no limit, and nothing says why none can be")


def lint_waivers(collected: Sequence[Collected], waivers: Iterable[Waiver], where: str) -> None:
    """A waiver must name something that exists and that may be waived. Raises PlanError."""
    for waiver in waivers:
        named = [one for check in collected for one in check.measures if one.name == waiver.measurement]
        if waiver.measurement is not None and not named:
            raise PlanError(f"{where}: a waiver names {waiver.measurement}, which no check measures: correct it")
        if not all(one.waivable for one in named):
            raise PlanError(f"{where}: {waiver.measurement} cannot be waived, because it proves a fault: remove it")
        if waiver.skip is not None and not any(selected(check.id, [waiver.skip]) for check in collected):
            raise PlanError(f"{where}: a waiver names the check {waiver.skip}, which does not exist: correct it")


def dues(check: Collected, components: Mapping[str, Sequence[str]], book: LimitBook) -> tuple[Due, ...]:
    """Everything one check owes on this machine.

    Raises PlanError for a component class that nothing resolves, and for a component for which there is neither a limit nor a reason.
    """
    found: list[Due] = []
    for measures in check.measures:
        if measures.per not in components:
            raise PlanError(f"{check.id} measures per {measures.per}, which is no class of components")
        for component in components[measures.per]:
            held = book.find(measures.name, component)
            if measures.fact and (held is None or held.limit is None):
                continue
            if held is None:
                raise PlanError(f"{measures.name} on {component} has no limit, and nothing says why none can be")
            limit, origin, why = held.limit, held.origin, held.unlimited
            found.append(Due(measures.name, component, measures.unit, limit, origin, why, measures.waivable))
    return tuple(found)


def _gaps(
    checks: Sequence[Collected], planned: Sequence[PlannedCheck], classes: Mapping[str, Sequence[str]], book: LimitBook
) -> Iterator[str]:
    """What keeps a full run from passing: a GPU that nothing loads, a limit for a component that this machine does not show."""
    heated = {due.component for check in planned if check.session == "load" for due in check.due}
    for gpu in classes["gpu"]:
        if gpu not in heated:
            yield f"{gpu}: no check of this plan loads it"
    shown = {(one.name, name) for check in checks for one in check.measures for name in classes.get(one.per, ())}
    for entry in book.entries:
        if entry.component is not None and (entry.measurement, entry.component) not in shown:
            yield f"{entry.origin}: a limit for {entry.measurement} on {entry.component}, which this machine does not show"


def build(
    collected: Sequence[Collected],
    *,
    profile: str,
    loads_s: Mapping[str, float],
    memory_gib: float,
    cannot_detect: Sequence[str],
    components: Mapping[str, Sequence[str]],
    not_offered: Sequence[str],
    book: LimitBook,
    waivers: Sequence[Waiver],
    declared_in: str | None,
    only: Sequence[str],
    digest: str,
) -> Plan:
    """The plan of one run: session by session, gates first in theirs, else in the order of `collected`.

    Raises PlanError when a lint finds a contradiction, or a pattern of `only` selects nothing that is due.
    """
    lint(collected, book)
    lint_waivers(collected, waivers, declared_in or "the machine file")
    for pattern in only:
        if not any(selected(check.id, [pattern]) for check in collected):
            names = ", ".join(check.id for check in collected)
            raise PlanError(f"--only {pattern} matches no check; the checks are: {names}")
    planned: list[PlannedCheck] = []
    for check in sorted(collected, key=lambda check: (SESSIONS.index(check.session), not check.gate)):
        if only and not selected(check.id, only):
            continue
        if check.load is not None and check.load not in loads_s:
            continue  # this profile does not run that load
        due = dues(check, components, book)
        if due:
            load_s = loads_s[check.load] if check.load else 0.0
            seconds = check.seconds + load_s + check.seconds_per_gib * memory_gib
            planned.append(PlannedCheck(check.id, check.title, check.session, seconds, due, check.gate))
    if not planned:
        raise PlanError("nothing is due: no check of this selection applies to this machine")
    for pattern in only:
        if not any(selected(check.id, [pattern]) for check in planned):
            raise PlanError(f"--only {pattern}: nothing of it is due on this machine in the profile {profile}")
    return Plan(
        profile=profile,
        scope="partial" if only else "full",
        checks=tuple(planned),
        waivers=tuple(waivers),
        loads_s=dict(loads_s),
        memory_gib=memory_gib,
        cannot_detect=tuple(cannot_detect),
        not_tested=tuple(not_offered),
        gaps=() if only else tuple(_gaps(collected, planned, components, book)),
        inventory_declared=declared_in is not None,
        digest=digest,
    )
