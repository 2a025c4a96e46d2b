"""The checks as pytest collected them."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Literal

import msgspec

Session = Literal["host-before", "load", "host-after"]
SESSIONS: tuple[Session, ...] = ("host-before", "load", "host-after")
# A second look at checks of the load whose figures lay outside what this machine gave on the nights
# before: no plan holds it.
REPEAT_SESSION: Literal["load-again"] = "load-again"
SessionName = Literal["host-before", "load", "load-again", "host-after"]


class PlanError(Exception):
    """The plan cannot be made as asked; the message is one sentence for the user.

    `place` is the key of the machine file that is at fault, as a path (`("waiver", 0, "skip")`),
    and `sentence` what is wrong with it.
    """

    def __init__(
        self, sentence: str, where: str | None = None, place: tuple[str | int, ...] = ()
    ) -> None:
        super().__init__(f"{where}: {sentence}" if where else sentence)
        self.sentence = sentence
        self.place = place


class Measures(msgspec.Struct, frozen=True):
    """What a check says that it measures: the arguments of its `measures` mark.

    `per` is the class of components. A *fact* is due only where the machine file declares it.
    `waivable` is false for what no waiver may excuse (miscompares).
    """

    name: str
    unit: str
    per: str
    fact: bool = False
    waivable: bool = True


class CollectedCheck(msgspec.Struct, frozen=True):
    """One check as pytest collected it.

    It costs `seconds`, the time of the load named in `load`, and so much for each GiB of RAM and
    each GPU that is tested. `slack` is how many seconds more its programs are given before they are
    ended. `heats` marks a load that keeps its components in full use. `loads_gpus` says that the
    load keeps every GPU that is due at work for all of its time, at once.
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
    """Whether `--only` names this check: a pattern is an id, a subject, an id without its
    parameter, or a shell pattern.
    """
    return any(
        check_id == pattern
        or check_id.startswith((pattern + ".", pattern + "["))
        or fnmatch.fnmatchcase(check_id, pattern)
        for pattern in patterns
    )
