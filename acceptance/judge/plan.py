"""What is due in a run: checks, their measurements, and the components each belongs to, with the limits they will be held against.

The plan is made once, before anything is heated, and the verdict is computed against it: what it names and the journal does not hold
is not a pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from acceptance.judge.birth import Birth
from acceptance.judge.collected import SESSIONS as SESSIONS
from acceptance.judge.collected import Collected as Collected
from acceptance.judge.collected import Measures as Measures
from acceptance.judge.collected import PlanError as PlanError
from acceptance.judge.collected import Session as Session
from acceptance.judge.collected import lint, lint_waivers, selected
from acceptance.judge.limits import LimitBook
from acceptance.judge.machine import Waiver
from acceptance.judge.measurement import Limit
from acceptance.judge.noise import Worse
from acceptance.judge.past import Past

Scope = Literal["full", "partial"]


class Due(msgspec.Struct, frozen=True):
    """One measurement of one component that this run owes.

    Without a limit, `unlimited` says why none can be, and `worse` which side is the worse one, where rules or the unit tell. `past` is what
    it was on the nights before, where anything is remembered. `ceiling` is the most that is possible, where that is known.
    """

    measurement: str
    component: str
    unit: str
    limit: Limit | None
    origin: str
    unlimited: str | None = None
    waivable: bool = True
    past: Past | None = None
    worse: Worse | None = None
    ceiling: Limit | None = None


class PlannedCheck(msgspec.Struct, frozen=True):
    """One check of the plan with everything due from it; `seconds` is its expected cost, `slack_s` what its programs may take beyond.

    `gpu_load_s` is for how many seconds its load keeps every GPU that is due at work, at once; 0 where it does not.
    """

    id: str
    title: str
    session: Session
    seconds: float
    due: tuple[Due, ...]
    gate: bool = False
    slack_s: float = 0.0
    gpu_load_s: float = 0.0


class Plan(msgspec.Struct, frozen=True):
    """All that is due.

    `gpus` names the GPUs that this run tests. `memory_gib` is how much RAM the memory test fills. `gaps` name what no check of this plan
    covers though the machine has it: they keep the run from passing. `birth` is the machine as it was when it was accepted, where it was.
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
    gpus: tuple[str, ...] = ()
    birth: Birth | None = None

    def eta_s(self) -> float:
        """Expected seconds, all checks in sequence."""
        return sum(check.seconds for check in self.checks)

    def share(self, session: Session) -> tuple[PlannedCheck, ...]:
        """The checks of one session, in the order in which they run."""
        return tuple(check for check in self.checks if check.session == session)

    def forgetful(self) -> Plan:
        """The plan without what was before: a session measures, and holds its values against limits alone."""
        return replace(
            self,
            birth=None,
            checks=tuple(
                replace(check, due=tuple(replace(due, past=None) for due in check.due)) for check in self.checks
            ),
        )


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
            ceiling = book.ceiling(measures.name, component)
            found.append(
                Due(measures.name, component, measures.unit, limit, origin, why, measures.waivable, ceiling=ceiling)
            )
    return tuple(found)


def _gaps(
    checks: Sequence[Collected], planned: Sequence[PlannedCheck], classes: Mapping[str, Sequence[str]], book: LimitBook
) -> Iterator[str]:
    """What keeps a full run from passing: a GPU that nothing loads, a limit for a component that this machine does not show."""
    loaded = {check.id for check in checks if check.session == "load" and check.heats}
    heated = {due.component for check in planned if check.id in loaded for due in check.due}
    for gpu in classes["gpu"]:
        if gpu not in heated:
            yield f"{gpu}: no check of this plan loads it"
    shown = {(one.name, name) for check in checks for one in check.measures for name in classes.get(one.per, ())}
    for entry in book.entries:
        missing = entry.component is not None and (entry.measurement, entry.component) not in shown
        if entry.limit is not None and missing:
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
    gaps: Sequence[str] = (),
    narrowed: bool = False,
) -> Plan:
    """The plan of one run: session by session, in each gates first and what heats last, else as in `collected`.

    `narrowed` says that `components` hold only some of the machine's GPUs.

    Raises PlanError when a lint finds a contradiction, or a pattern of `only` selects nothing that is due.
    """
    lint(collected, book)
    lint_waivers(collected, waivers, declared_in or "the machine file")
    for pattern in only:
        if not any(selected(check.id, [pattern]) for check in collected):
            names = ", ".join(check.id for check in collected)
            raise PlanError(f"--only {pattern} matches no check; the checks are: {names}")
    planned: list[PlannedCheck] = []
    for check in sorted(collected, key=lambda check: (SESSIONS.index(check.session), not check.gate, check.heats)):
        if only and not selected(check.id, only):
            continue
        if check.load is not None and check.load not in loads_s:
            continue  # this profile does not run that load
        due = dues(check, components, book)
        if due:
            load_s = loads_s[check.load] if check.load else 0.0
            seconds = check.seconds + load_s + check.seconds_per_gib * memory_gib
            seconds += check.seconds_per_gpu * len(components["gpu"])
            work_s = load_s if check.loads_gpus else 0.0
            planned.append(
                PlannedCheck(check.id, check.title, check.session, seconds, due, check.gate, check.slack, work_s)
            )
    if not planned:
        raise PlanError("nothing is due: no check of this selection applies to this machine")
    for pattern in only:
        if not any(selected(check.id, [pattern]) for check in planned):
            raise PlanError(f"--only {pattern}: nothing of it is due on this machine in the profile {profile}")
    partial = bool(only) or narrowed
    return Plan(
        profile=profile,
        scope="partial" if partial else "full",
        checks=tuple(planned),
        waivers=tuple(waivers),
        loads_s=dict(loads_s),
        memory_gib=memory_gib,
        cannot_detect=tuple(cannot_detect),
        not_tested=tuple(not_offered),
        gaps=() if partial else (*gaps, *_gaps(collected, planned, components, book)),
        inventory_declared=declared_in is not None,
        digest=digest,
        gpus=tuple(components["gpu"]),
    )
