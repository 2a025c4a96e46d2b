"""The checks as pytest collected them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from acceptance.core import nearest
from acceptance.core.message import Message, Text, english, known
from acceptance.core.plan import (
    LOAD_SESSIONS,
    PlannedCheck,
    Session,
    earlier_sessions,
    matches_patterns,
)
from acceptance.expect.loosest import Bounds, possible
from acceptance.loads.work import Work, work_of
from acceptance.wording.errors import WordedUserError

AnyLoad = Literal["any", "gpus"]


class PlanError(WordedUserError):
    """The plan cannot be made; the message is one sentence for the user.

    `place` is the path of the key at fault in the machine file (`("waiver", 0, "skip")`),
    `sentence` what is wrong with it.
    """

    def __init__(
        self, sentence: str, where: Text | None = None, place: tuple[str | int, ...] = ()
    ) -> None:
        told = Message(
            english("plan_refused", "[{where}: ]{why}"), known(where=where, why=sentence)
        )
        super().__init__(told.code, **told.values)
        self.sentence = sentence
        self.place = place


class Measures(msgspec.Struct, frozen=True):
    """A measurement that a check declares, as its family has it.

    `per` is the class of components. A *fact* is due only where the machine file declares it.
    `waivable` is false for measurements that no waiver may excuse (miscompares). `ratio_of` is the
    measurement that a ratio between equal components is made of. `own` is how far the machine file
    may go; None: as its unit says.
    """

    name: str
    unit: str
    per: str
    fact: bool = False
    waivable: bool = True
    ratio_of: str | None = None
    own: Bounds | None = None

    @property
    def bounds(self) -> Bounds:
        """How far the machine file may go with it. Raises SetupError."""
        return self.own or Bounds(possible=possible()[self.unit])


class CollectedCheck(msgspec.Struct, frozen=True):
    """One check as pytest collected it.

    `calculated_s` is its time from `seconds`, `load`, `extra_load`, `seconds_per_gib` for each GiB
    of RAM that is filled, `core_seconds_per_gib` for each GiB that all cores fill together,
    `seconds_per_gpu`, `seconds_per_pair`, and `seconds_per_turn` for each turn of the GPUs that
    share the way to the host (`machine.topology.host_turns`). `extra_load` is a part of the check
    that it makes only where the profile names it. `slack` is the extra time in seconds before its
    programs are ended, and `slack_per_gib` that for each GiB of RAM. `last` marks one that runs
    after all others, because the machine may not survive it.

    `follows` are the checks (ids or patterns) that it is judged from, one of which must be in the
    plan; `follows_load` is the same for "any" check of the load sessions, or one that keeps the
    "gpus" at work. What its load does to the machine is in `work`.
    """

    id: str
    title: str
    session: Session
    measures: tuple[Measures, ...]
    seconds: float
    load: str | None = None
    extra_load: str | None = None
    gate: bool = False
    seconds_per_gib: float = 0.0
    core_seconds_per_gib: float = 0.0
    seconds_per_gpu: float = 0.0
    seconds_per_pair: float = 0.0
    seconds_per_turn: float = 0.0
    slack: float = 0.0
    slack_per_gib: float = 0.0
    last: bool = False
    follows: tuple[str, ...] = ()
    follows_load: AnyLoad | None = None

    @property
    def work(self) -> Work:
        """What its load does to the machine."""
        return work_of(self.load)

    def has_evidence(self, planned: Sequence[PlannedCheck]) -> bool:
        """Whether what it is judged from is among these checks, those planned before it."""
        if self.follows and not any(matches_patterns(one.id, self.follows) for one in planned):
            return False
        if self.follows_load == "gpus":
            return any(one.gpu_load_s for one in planned)
        return self.follows_load is None or any(one.session in LOAD_SESSIONS for one in planned)

    def calculated_s(
        self, loads_s: Mapping[str, float], memory_gib: float, gpus: int, cores: int, turns: int
    ) -> float:
        """Seconds of this check: its own, its loads', and those for RAM, GPUs, ordered pairs and
        turns.

        `loads_s` are the seconds of each load, its own among them; `memory_gib` is the tested RAM.
        Without `cores` that the kernel shows, one core fills it. `turns` is the largest number of
        GPUs that share the way to the host.
        """
        seconds = self.seconds + (loads_s[self.load] if self.load else 0.0)
        seconds += loads_s.get(self.extra_load, 0.0) if self.extra_load else 0.0
        seconds += self.seconds_per_gib * memory_gib + self.seconds_per_gpu * gpus
        seconds += self.core_seconds_per_gib * memory_gib / max(1, cores)
        seconds += self.seconds_per_turn * turns
        return seconds + self.seconds_per_pair * gpus * (gpus - 1)


def lint_follows(checks: Sequence[CollectedCheck]) -> str | None:
    """What is wrong with a check that a check follows, in a sentence; None where nothing is.

    It must exist, and run in a session that has ended before.
    """
    for check in checks:
        earlier = [one for one in checks if one.session in earlier_sessions(check.session)]
        for name in check.follows:
            if any(matches_patterns(one.id, [name]) for one in earlier):
                continue
            if any(matches_patterns(one.id, [name]) for one in checks):
                return f"{check.id} follows {name}, which does not run in a session before it"
            cure = nearest.cure(name, [one.id for one in checks], "name a check")
            return f"{check.id} follows {name}, which is no check: {cure}"
        if check.follows_load and not set(LOAD_SESSIONS) <= set(earlier_sessions(check.session)):
            return f"{check.id} follows loads, and does not run after all of them"
    return None
