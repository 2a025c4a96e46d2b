"""What is due in a run: checks, their measurements, and the components each belongs to, with the limits they will be held against.

The plan is made once, before anything is heated, and the verdict is computed against it: what it names and the journal does not hold
is not a pass.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from acceptance.judge.limits import LimitBook, Override
from acceptance.judge.machine import Waiver
from acceptance.judge.measurement import Limit

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

    Raises PlanError.
    """
    units: dict[str, str] = {}
    facts: set[str] = set()
    for check in collected:
        for measures in check.measures:
            if units.setdefault(measures.name, measures.unit) != measures.unit:
                raise PlanError(
                    f"{check.id} measures {measures.name} in {measures.unit}, another check in {units[measures.name]}"
                )
            if measures.fact:
                facts.add(measures.name)
    for where, name, limit in book.all_limits():
        if name not in units:
            known = ", ".join(sorted(units))
            raise PlanError(f"{where}: a limit for {name}, which no check measures; measured are: {known}")
        if units[name] != limit.unit:
            raise PlanError(
                f"{where}: the limit for {name} is in {limit.unit}, but {name} is measured in {units[name]}"
            )
    for name in sorted(set(units) - facts):
        if not book.knows(name):
            raise PlanError(f"{name} is measured but has no limit, and nothing says why none can be")


def lint_waivers(collected: Sequence[Collected], waivers: Iterable[Waiver], where: str) -> None:
    """A waiver must name something that exists and that may be waived. Raises PlanError."""
    measured = {measures.name: measures for check in collected for measures in check.measures}
    for waiver in waivers:
        if waiver.measurement is not None:
            measures = measured.get(waiver.measurement)
            if measures is None:
                raise PlanError(f"{where}: a waiver names {waiver.measurement}, which no check measures")
            if not measures.waivable:
                raise PlanError(
                    f"{where}: {waiver.measurement} cannot be waived: it proves a fault whatever the reason"
                )
        elif not any(selected(check.id, [waiver.skip or ""]) for check in collected):
            raise PlanError(f"{where}: a waiver names the check {waiver.skip}, which does not exist")


def dues(check: Collected, components: Mapping[str, Sequence[str]], book: LimitBook) -> tuple[Due, ...]:
    """Everything one check owes on this machine. Raises PlanError for a component class that nothing resolves."""
    found: list[Due] = []
    for measures in check.measures:
        if measures.per not in components:
            raise PlanError(f"{check.id} measures per {measures.per}, which is no class of components")
        for component in components[measures.per]:
            held: Override | None = book.find(measures.name, component)
            if measures.fact and (held is None or held.limit is None):
                continue
            found.append(
                Due(
                    measurement=measures.name,
                    component=component,
                    unit=measures.unit,
                    limit=held.limit if held else None,
                    origin=held.origin if held else "none",
                    unlimited=held.unlimited
                    if held
                    else "the machine file sets no limit and no default fits this component",
                    waivable=measures.waivable,
                )
            )
    return tuple(found)


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
    """The plan of one run. Raises PlanError when a lint finds a contradiction or `only` selects nothing."""
    lint(collected, book)
    lint_waivers(collected, waivers, declared_in or "the machine file")
    unknown = [pattern for pattern in only if not any(selected(check.id, [pattern]) for check in collected)]
    if unknown:
        names = ", ".join(check.id for check in collected)
        raise PlanError(f"--only {unknown[0]} matches no check; the checks are: {names}")
    planned: list[PlannedCheck] = []
    for session in SESSIONS:
        for check in collected:
            if check.session != session or (only and not selected(check.id, only)):
                continue
            if check.load is not None and check.load not in loads_s:
                continue  # this profile does not run that load
            due = dues(check, components, book)
            if due:
                load_s = loads_s[check.load] if check.load else 0.0
                seconds = check.seconds + load_s + check.seconds_per_gib * memory_gib
                planned.append(PlannedCheck(check.id, check.title, session, seconds, due, check.gate))
    if not planned:
        raise PlanError("nothing is due: no check of this selection applies to this machine")
    heated = {due.component for check in planned if check.session == "load" for due in check.due}
    gaps = [] if only else [f"{gpu}: no check of this plan loads it" for gpu in components["gpu"] if gpu not in heated]
    return Plan(
        profile=profile,
        scope="partial" if only else "full",
        checks=tuple(planned),
        waivers=tuple(waivers),
        loads_s=dict(loads_s),
        memory_gib=memory_gib,
        cannot_detect=tuple(cannot_detect),
        not_tested=tuple(not_offered),
        gaps=tuple(gaps),
        inventory_declared=declared_in is not None,
        digest=digest,
    )
