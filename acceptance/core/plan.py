"""The plan of a run, as types: checks, due measurements, components, limits. Pure.

With it stand the phases and sessions of a run, the patterns that name checks, what a plan holds of
a site's own checks (their names, and the digest of their files), and which limits it was made with:
their version, their digest, and the sheets of the site.
"""

from __future__ import annotations

import fnmatch
import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from acceptance.core.finding import Criterion, Plausible, Siblings, Waiver, Within
from acceptance.core.limit import Limit, Worse
from acceptance.core.machine_facts import MachineFacts
from acceptance.core.message import Listed, Message, Text, english
from acceptance.core.parts import Component
from acceptance.core.past import Past

Session = Literal["host-before", "gpu-load", "host-load", "load", "host-after", "site"]
GPU_LOAD: Session = "gpu-load"  # its checks load only GPUs
HOST_LOAD: Session = "host-load"  # its checks load only processors, RAM and disks
SITE: Session = "site"  # its checks are the site's own (--checks), on the host
# The sessions of a phase run side by side; a phase begins when the one before it has ended.
PHASES: tuple[tuple[Session, ...], ...] = (
    ("host-before",),
    (GPU_LOAD, HOST_LOAD),
    ("load",),
    ("host-after",),
    (SITE,),
)
SESSIONS: tuple[Session, ...] = tuple(session for phase in PHASES for session in phase)
# The sessions whose checks load the machine; those of `load` share what they measure, or load all
# of it.
LOAD_SESSIONS: tuple[Session, ...] = (GPU_LOAD, HOST_LOAD, "load")
# Repeats checks of the load sessions whose measurements differed from this machine's earlier
# nights, alone and after them. No plan contains it.
REPEAT_SESSION: Literal["load-again"] = "load-again"
SessionName = Literal[
    "host-before", "gpu-load", "host-load", "load", "load-again", "host-after", "site"
]


def segment_of(session: SessionName) -> str:
    """The file name of a session's own segment of the journal."""
    return f"journal-{session}.jsonl"


def earlier_sessions(session: SessionName) -> tuple[Session, ...]:
    """The sessions that have ended before this one begins; none for a repeat.

    The other session of its own phase is not among them.
    """
    phases = iter(PHASES) if session != REPEAT_SESSION else iter(())
    return tuple(
        one
        for phase in itertools.takewhile(lambda phase: session not in phase, phases)
        for one in phase
    )


def side_by_side(one: SessionName, other: SessionName) -> bool:
    """Whether these two sessions are of one phase."""
    return one != other and any({one, other} <= set(phase) for phase in PHASES)


def matches_patterns(check_id: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern of `--only` matches this check.

    A pattern is an id, a subject, an id without its parameter, or a shell pattern.
    """
    return any(
        check_id == pattern
        or check_id.startswith((pattern + ".", pattern + "["))
        or fnmatch.fnmatchcase(check_id, pattern)
        for pattern in patterns
    )


# Shipped checks and measurements never have these names (tests/core/test_site.py), so no update of
# rigproof can take the name of a site's check or measurement.
SUBJECT = "site"  # of the ids of its checks: site.<file>.<function>
PREFIX = "site_"  # of the names of its measurements
FILE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)  # of a file with checks, less .py
MEASUREMENT = re.compile(r"site_[a-z0-9][a-z0-9_]{0,63}", re.ASCII)


class FamilyFile(msgspec.Struct, frozen=True):
    """A TOML file of the site: its name, and its text as the run had it."""

    name: str
    text: str


class SiteChecks(msgspec.Struct, frozen=True):
    """The site's own checks of a run.

    `folder` is where they were, `digest` the `folder_digest` of its files. `families` are its TOML
    files: what a report says of a measurement of theirs must come from the run itself.
    """

    folder: str
    digest: str
    families: tuple[FamilyFile, ...]


def folder_digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over the name and the content of every file, in the order of the names."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


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
        return Message(english("load_shortened", "{load} {planned} of {own} {unit}"), values)


def reductions_message(reductions: Sequence[Reduction]) -> Message:
    """All loads that are less in a list: the first few, and how many more."""
    loads = Listed.first([one.message for one in reductions], MOST_LOADS)
    return Message(english("loads_shortened", "{loads}"), {"loads": loads})


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


class SiteSheet(msgspec.Struct, frozen=True):
    """A GPU or disk sheet of the site.

    `file` is its path in the site's folder ("models/x.toml"), `text` its whole content with the
    SHA-256 `sha256`, so that sessions and reports use the very sheet of the plan. `replaces` says
    that it stands in for rigproof's own sheet of that model.
    """

    file: str
    model: str
    sha256: str
    text: str
    replaces: bool


class LooserLimit(msgspec.Struct, frozen=True):
    """A limit that is looser by the site's sheets than by rigproof's own.

    Of `kind` "ceiling" it is the most that is possible. `limit` is None where there is none any
    more.
    """

    measurement: str
    component: Component
    kind: Literal["limit", "ceiling"]
    own: Limit
    limit: Limit | None = None


class LimitSet(msgspec.Struct, frozen=True):
    """All that limits come from, but for the machine file, in one run.

    `version` is that of rigproof's own limits, `digest` the SHA-256 over these and the `sheets` of
    the site, which are from `folder`.
    """

    version: str
    digest: str
    folder: str | None = None
    sheets: tuple[SiteSheet, ...] = ()
    looser: tuple[LooserLimit, ...] = ()
