"""What is due in a run, as types: checks, their measurements, and the components each belongs
to, with their limits.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from acceptance.core.collection import Session
from acceptance.core.limit import Limit, Worse
from acceptance.core.waiver import Waiver
from acceptance.history.baseline_facts import MachineFacts
from acceptance.history.reference import Reference

Scope = Literal["full", "partial"]


class Due(msgspec.Struct, frozen=True):
    """One measurement of one component that this run owes.

    Without a limit, `unlimited` says why none can be, and `worse` which side is the worse one,
    where rules or the unit tell. `past` is what it was on the nights before, where anything is
    remembered. `ceiling` is the most that is possible, where that is known.
    """

    measurement: str
    component: str
    unit: str
    limit: Limit | None
    origin: str
    unlimited: str | None = None
    waivable: bool = True
    past: Reference | None = None
    worse: Worse | None = None
    ceiling: Limit | None = None


class PlannedCheck(msgspec.Struct, frozen=True):
    """One check of the plan with everything due from it; `seconds` is its expected cost, `slack_s`
    what its programs may take beyond.

    `gpu_load_s` is for how many seconds its load keeps every GPU that is due at work, at once; 0
    where it does not.
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

    `gpus` names the GPUs that this run tests. `memory_gib` is how much RAM the memory test fills.
    `gaps` name what no check of this plan covers though the machine has it: they keep the run from
    passing. `birth` is the machine as it was when it was accepted, where it was.
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
    birth: MachineFacts | None = None

    def eta_s(self) -> float:
        """Expected seconds, all checks in sequence."""
        return sum(check.seconds for check in self.checks)

    def share(self, session: Session) -> tuple[PlannedCheck, ...]:
        """The checks of one session, in the order in which they run."""
        return tuple(check for check in self.checks if check.session == session)

    def forgetful(self) -> Plan:
        """The plan without what was before: a session measures, and holds its
        values against limits alone.
        """
        return replace(
            self,
            birth=None,
            checks=tuple(
                replace(check, due=tuple(replace(due, past=None) for due in check.due))
                for check in self.checks
            ),
        )
