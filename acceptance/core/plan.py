"""The plan of a run, as types: checks, due measurements, components, limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from acceptance.core.collection import SITE, Session, SessionName
from acceptance.core.criterion import Criterion, Plausible, Siblings, Within
from acceptance.core.limit import Limit, Worse
from acceptance.core.machine_facts import MachineFacts
from acceptance.core.message import Listed, Message, Text
from acceptance.core.parts import Component
from acceptance.core.past import Past
from acceptance.core.site import SiteChecks
from acceptance.core.waiver import Waiver

Scope = Literal["full", "partial"]
MOST_LOADS = 3  # that a sentence names


class Due(msgspec.Struct, frozen=True):
    """One measurement of one component that this run owes, and what it is held against.

    Without a limit, `unlimited` says why there can be none, and `worse` is the worse direction,
    where rules or the unit define one. There is at most one criterion of a kind.
    """

    measurement: str
    component: Component
    unit: str
    criteria: tuple[Criterion, ...]
    origin: Text
    unlimited: Text | None = None
    waivable: bool = True
    worse: Worse | None = None

    @property
    def limit(self) -> Limit | None:
        """The absolute limit."""
        return next((one.limit for one in self.criteria if isinstance(one, Within)), None)

    @property
    def ceiling(self) -> Limit | None:
        """The most that is physically possible, where that is known."""
        return next((one.limit for one in self.criteria if isinstance(one, Plausible)), None)

    @property
    def siblings(self) -> Siblings | None:
        """What a ratio between equal components is made of; None for any other measurement."""
        return next((one for one in self.criteria if isinstance(one, Siblings)), None)

    @property
    def past(self) -> Past | None:
        """The reference from earlier nights, where there is one."""
        return next((one for one in self.criteria if isinstance(one, Past)), None)

    def against(self, *criteria: Criterion) -> Due:
        """The same, held against these too, in place of its own of their kinds."""
        kept = self.without(*map(type, criteria)).criteria
        return replace(self, criteria=(*kept, *criteria))

    def without(self, *kinds: type[Criterion]) -> Due:
        """The same, held against no criterion of these kinds."""
        return replace(self, criteria=tuple(one for one in self.criteria if type(one) not in kinds))


class PlannedCheck(msgspec.Struct, frozen=True):
    """One check of the plan, with everything that is due from it.

    `seconds` is its calculated time, which its time limit rests on; `slack_s` is the extra time
    that its programs may take. `usual_s` is how many seconds it took in this machine's last
    comparable runs, None where fewer than two are known: it limits nothing. `gpu_load_s` is how
    many seconds its load keeps every due GPU busy at once; 0 where it does not. `load_s` is how
    many seconds its load is planned for, 0 without one; the profile's own are `own_s`. The load
    verifies every result of the parts that it `verifies` for that time.
    """

    id: str
    title: str
    session: Session
    seconds: float
    due: tuple[Due, ...]
    gate: bool = False
    slack_s: float = 0.0
    gpu_load_s: float = 0.0
    usual_s: float | None = None
    verifies: tuple[Component, ...] = ()
    load_s: float = 0.0
    own_s: float = 0.0

    @property
    def expected_s(self) -> float:
        """How many seconds it will take: as usual on this machine, else as calculated."""
        return self.seconds if self.usual_s is None else self.usual_s


class Reduction(msgspec.Struct, frozen=True):
    """Less of a load than the profile's own, in seconds or GiB.

    `load` is the load as the profile names it, the part that it fills, or the disk that it writes
    to. `planned` is that of the run, `own` that of the profile.
    """

    load: str
    planned: float
    own: float
    unit: Literal["s", "GiB"]

    @property
    def message(self) -> Message:
        """The load that is less than the profile's own."""
        values = {
            "load": self.load,
            "planned": f"{round(self.planned, 2):g}",
            "own": f"{round(self.own, 2):g}",
            "unit": self.unit,
        }
        return Message("load_shortened", values)


def reductions_message(reductions: Sequence[Reduction]) -> Message:
    """All loads that are less in a list: the first few, and how many more."""
    loads = Listed.first([one.message for one in reductions], MOST_LOADS)
    return Message("loads_shortened", {"loads": loads})


class Plan(msgspec.Struct, frozen=True):
    """Everything that is due in a run.

    `gpus` names the GPUs that this run tests, `gpu_functions` the PCI functions of the machine's
    GPUs and of the bridges above them, which is how the kernel names them. `memory_gib` is how much
    RAM the memory test fills. `gaps` name what the machine has and no check of this plan covers:
    they keep the run from passing. `baseline` are the facts of the accepted run, where there is
    one. `overhead_s` is how many seconds of the run no check runs in. `timed_runs` is the number of
    earlier runs that the usual times are taken from. `site` are the site's own checks, where the
    run has any. `shortened` is what the run does less of than its profile, where it has every check
    on every GPU: such a run is partial too. `own_memory_gib` is the RAM that the profile fills here
    by default, None of an older rigproof.
    """

    profile: str
    scope: Scope
    checks: tuple[PlannedCheck, ...]
    waivers: tuple[Waiver, ...]
    loads_s: dict[str, float]
    memory_gib: float
    cannot_detect: tuple[Text, ...]
    not_tested: tuple[Text, ...]
    gaps: tuple[Text, ...]
    inventory_declared: bool
    digest: str
    gpus: tuple[Component, ...] = ()
    baseline: MachineFacts | None = msgspec.field(default=None, name="birth")
    overhead_s: float = 0.0
    timed_runs: int = 0
    gpu_functions: tuple[Component, ...] = ()
    site: SiteChecks | None = None
    shortened: tuple[Reduction, ...] = ()
    own_memory_gib: float | None = None

    def without_past(self) -> Plan:
        """The plan without baseline and earlier nights: values are held against limits alone."""
        checks = (
            replace(check, due=tuple(due.without(Past) for due in check.due))
            for check in self.checks
        )
        return replace(self, baseline=None, checks=tuple(checks))

    @property
    def is_whole(self) -> bool:
        """Whether every check of the profile is due on every GPU, however short its loads are."""
        return self.scope == "full" or bool(self.shortened)

    def share(self, session: Session) -> tuple[PlannedCheck, ...]:
        """The checks of one session, in the order in which they run."""
        return tuple(check for check in self.checks if check.session == session)

    def site_digest(self, session: SessionName) -> str | None:
        """The digest of the site's checks that a session runs; None for a session of our own."""
        return self.site.digest if self.site is not None and session == SITE else None
