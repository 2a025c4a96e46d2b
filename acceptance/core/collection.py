"""The checks as pytest collected them."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Literal

import msgspec

Session = Literal["host-before", "load", "host-after"]
SESSIONS: tuple[Session, ...] = ("host-before", "load", "host-after")
# Repeats checks of the load session whose measurements differed from this machine's earlier nights.
# No plan contains it.
REPEAT_SESSION: Literal["load-again"] = "load-again"
SessionName = Literal["host-before", "load", "load-again", "host-after"]


class PlanError(Exception):
    """The plan cannot be made; the message is one sentence for the user.

    `place` is the path of the key at fault in the machine file (`("waiver", 0, "skip")`),
    `sentence` what is wrong with it.
    """

    def __init__(
        self, sentence: str, where: str | None = None, place: tuple[str | int, ...] = ()
    ) -> None:
        super().__init__(f"{where}: {sentence}" if where else sentence)
        self.sentence = sentence
        self.place = place


class Measures(msgspec.Struct, frozen=True):
    """A measurement that a check declares, as its family has it.

    `per` is the class of components. A *fact* is due only where the machine file declares it.
    `waivable` is false for measurements that no waiver may excuse (miscompares). `ratio_of` is the
    measurement that a ratio between equal components is made of.
    """

    name: str
    unit: str
    per: str
    fact: bool = False
    waivable: bool = True
    ratio_of: str | None = None


class CollectedCheck(msgspec.Struct, frozen=True):
    """One check as pytest collected it.

    Its cost is `seconds`, plus the time of the load named in `load`, plus `seconds_per_gib` for
    each GiB of RAM and `seconds_per_gpu` for each tested GPU. `slack` is the extra time in seconds
    before its programs are ended. `heats` marks a load that keeps its components in full use.
    `loads_gpus` marks a load that keeps every due GPU busy at once, for its whole time.
    """

    id: str
    title: str
    session: Session
    measures: tuple[Measures, ...]
    seconds: float
    load: str | None = None
    gate: bool = False
    seconds_per_gib: float = 0.0
    seconds_per_gpu: float = 0.0
    slack: float = 0.0
    heats: bool = False
    loads_gpus: bool = False


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
