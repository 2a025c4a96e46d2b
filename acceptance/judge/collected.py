"""What pytest collected, and what must be right about it before anything is planned."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from acceptance.judge.limits import LimitBook
from acceptance.judge.machine import Waiver
from acceptance.judge.measurement import UNITS

Session = Literal["host-before", "load", "host-after"]
SESSIONS: tuple[Session, ...] = ("host-before", "load", "host-after")
# A second look at checks of the load whose figures lay outside what this machine gave on the nights before: no plan holds it.
AGAIN: Literal["load-again"] = "load-again"
SessionName = Literal["host-before", "load", "load-again", "host-after"]


class PlanError(Exception):
    """The plan cannot be made as asked; the message is one sentence for the user.

    `place` is the key of the machine file that is at fault, as a path (`("waiver", 0, "skip")`), and `sentence` what is wrong with it.
    """

    def __init__(self, sentence: str, where: str | None = None, place: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{where}: {sentence}" if where else sentence)
        self.sentence = sentence
        self.place = place


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

    It costs `seconds`, the time of the load named in `load`, and so much for each GiB of RAM and each GPU that is tested. `slack` is how
    many seconds more its programs are given before they are ended. `heats` marks a load that keeps its components in full use.
    `loads_gpus` says that the load keeps every GPU that is due at work for all of its time, at once.
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
    unwaivable = {measures.name for _, measures in every if not measures.waivable}
    own = -1  # the number of the machine file's own limit: the book begins with them, in its order
    for entry in book.entries:
        name, where = entry.measurement, entry.origin
        own += entry.own
        row: tuple[str | int, ...] = ("limit", own) if entry.own else ()
        if name not in units:
            told = f"a limit for {name}, which no check measures; measured are: {', '.join(sorted(units))}"
            raise PlanError(told, where, row and (*row, "measurement"))
        if entry.limit is not None and entry.limit.unit != units[name]:
            told = f"the limit for {name} is in {entry.limit.unit}, but {name} is measured in {units[name]}: write it in that unit"
            raise PlanError(told, where, row and (*row, "unit"))
        if entry.own and name in unwaivable:
            told = f"{name} takes no limit of the machine's own, because it proves a fault: remove it"
            raise PlanError(told, where, (*row, "measurement"))
    for _, measures in every:
        if not measures.fact and not book.knows(measures.name):
            raise PlanError(f"{measures.name} is measured but has no limit, and nothing says why none can be")


def lint_waivers(collected: Sequence[Collected], waivers: Iterable[Waiver], where: str) -> None:
    """A waiver must name something that exists and that may be waived. Raises PlanError."""
    for number, waiver in enumerate(waivers):
        named = [one for check in collected for one in check.measures if one.name == waiver.measurement]
        if waiver.measurement is not None and not named:
            told = f"a waiver names {waiver.measurement}, which no check measures: correct it"
            raise PlanError(told, where, ("waiver", number, "measurement"))
        if not all(one.waivable for one in named):
            told = f"{waiver.measurement} cannot be waived, because it proves a fault: remove it"
            raise PlanError(told, where, ("waiver", number, "measurement"))
        if waiver.skip is not None and not any(selected(check.id, [waiver.skip]) for check in collected):
            told = f"a waiver names the check {waiver.skip}, which does not exist: correct it"
            raise PlanError(told, where, ("waiver", number, "skip"))
