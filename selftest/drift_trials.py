"""Nights of sound and of decaying machines, drawn, through the product's own judgement. Pure.

Night by night what is remembered is reduced to a past, the first look is held against it, and the
second where it asks for one. The limits do not judge here: what is found is found by the nights
alone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeVar

from acceptance import resources
from acceptance.core.finding import Finding
from acceptance.core.past import DriftJudgement
from acceptance.core.plan import Due
from acceptance.history import noise
from acceptance.history.noise import DriftBook, DriftRule
from acceptance.history.reference_builder import NightValue, build_reference
from acceptance.wording import words
from selftest.decay import FAULTS, Fault
from selftest.drawn_nights import YEAR, Moved, Night, moves, year
from selftest.drawn_runs import Key, Machine, nightly

ONE, BOARD = "1xh200", "8xh200"
# A fault begins when the machine is known, and is looked for as long as a season lasts.
SOUND_BEFORE, LOOKED_FOR = 150, 120
_T = TypeVar("_T")


@cache
def book() -> DriftBook:
    """The shipped rules."""
    return noise.read_rules(
        resources.locate("drift.toml"), noise.read(resources.locate("noise.toml"))
    )


class Line:
    """One measurement of one part through the nights, as the product remembers and judges it;
    the first night is the baseline.
    """

    def __init__(self, due: Due, rule: DriftRule) -> None:
        self._due, self._rule = due, rule
        self._looks: list[NightValue] = []
        self._born: float | None = None
        self._rebased = False

    def rebase(self) -> None:
        """Another era begins: no night before counts but for counters, which go on counting."""
        self._looks, self._rebased = self._looks if self._rule.rate is not None else [], True

    def night(self, day: int, first: float, second: float) -> tuple[Finding, ...]:
        """Judge one night by those before, and remember it."""
        if self._born is None:
            self._born = first
            return ()
        rules = self._rule.constants.nights
        early, late = self._looks[: rules.recent], self._looks[rules.recent :][-rules.known :]
        looks = [*early, *late]
        past = build_reference(
            looks,
            self._born,
            rule=self._rule,
            today=float(day),
            baseline_day=0.0,
            rebased=self._rebased,
        )
        found, again = DriftJudgement(), None
        if past is not None:
            found = past.judge(self._due.unit, first)
            if found.look_again:
                again = second
                found = past.judge(self._due.unit, first, again)
        self._looks.append(NightValue(float(day), first, again, found.outside, found.unsteady))
        name, part = self._due.measurement, self._due.component
        return tuple(
            Finding(one.kind, "", one.code, measurement=name, component=part, drift=one)
            for one in found.findings
        )


@dataclass(frozen=True, slots=True)
class Quiet:
    """Sound years of one kind of machine: how many, nights with a remark, what failed wrongly
    (one line each), and the years with any.
    """

    machine: str
    years: int
    figures: int
    remarked: int
    words: Counter[str]
    failed: tuple[str, ...]
    failed_years: int


@dataclass(frozen=True, slots=True)
class Detected:
    """One fault in several machines: on which night after it began each was remarked, and
    failed; None where it was not.
    """

    fault: Fault
    remarked: tuple[int | None, ...]
    failed: tuple[int | None, ...]


def quiet_year(name: str, as_cards: bool, seed: int) -> tuple[int, list[tuple[int, Finding]]]:
    """One sound year: how many figures were judged, and everything that was
    said, with its night.
    """
    dice = random.Random(f"sound {name} {seed}")
    machine = nightly(name)
    moved = moves(machine, dice, as_cards=as_cards)
    lines = _lines(machine, moved, lambda key: _moving(key, moved[key]))
    said = [
        (night.day, found)
        for night in year(machine, moved, dice, YEAR)
        for key, line in lines.items()
        for found in line.night(night.day, *_looks(night, key))
    ]
    return len(lines), said


def quiet(name: str, years: int, seed: int, jobs: int = 1, *, as_cards: bool = False) -> Quiet:
    """So many sound years of a machine."""
    found = _each(partial(quiet_year, name, as_cards), range(seed, seed + years), jobs)
    remarks = Counter(
        f"{one.kind} {one.drift.what}" for _, said in found for _, one in said if one.drift
    )
    failed = [[words.of(one) for _, one in said if one.kind == "fail"] for _, said in found]
    return Quiet(
        name,
        years,
        found[0][0],
        sum(len({day for day, _ in said}) for _, said in found),
        remarks,
        tuple(text for texts in failed for text in texts),
        sum(bool(texts) for texts in failed),
    )


def detect_once(place: int, as_cards: bool, seed: int) -> tuple[int | None, int | None]:
    """On which night after it began a fault of FAULTS was remarked and failed,
    in one machine drawn.
    """
    fault = FAULTS[place]
    dice = random.Random(f"{fault.seed or fault.what} {seed}")
    machine = nightly(ONE)
    moved = {
        key: one
        for key, one in moves(machine, dice, as_cards=as_cards).items()
        if _touched(fault, key, one)
    }
    lines = _lines(machine, moved, lambda _key: True)

    def decay(key: Key, due: Due, value: float, night: int, die: random.Random) -> float:
        return (
            value
            if night < SOUND_BEFORE
            else fault.decay(key, due, value, night - SOUND_BEFORE, die)
        )

    remarked = None
    for night in year(machine, moved, dice, SOUND_BEFORE + LOOKED_FOR, decay):
        if night.day == SOUND_BEFORE and fault.era:
            for line in lines.values():
                line.rebase()
        said = [
            one for key, line in lines.items() for one in line.night(night.day, *_looks(night, key))
        ]
        if night.day >= SOUND_BEFORE and said:
            remarked = night.day - SOUND_BEFORE if remarked is None else remarked
            if any(one.kind == "fail" for one in said):
                return remarked, night.day - SOUND_BEFORE
    return remarked, None


def detect(draws: int, seed: int, jobs: int = 1, *, as_cards: bool = False) -> tuple[Detected, ...]:
    """Every fault in so many machines each."""
    found = []
    for place, fault in enumerate(FAULTS):
        told = _each(partial(detect_once, place, as_cards), range(seed, seed + draws), jobs)
        found.append(Detected(fault, tuple(one for one, _ in told), tuple(one for _, one in told)))
    return tuple(found)


def _lines(
    machine: Machine, moved: dict[Key, Moved], wanted: Callable[[Key], bool]
) -> dict[Key, Line]:
    """The figures that nights can be held against each other in."""
    found = {}
    for key, one in moved.items():
        rule = book().rule(
            one.due.measurement, one.due.unit, one.due.limit, virtual=machine.virtual
        )
        if rule is not None and wanted(key):
            found[key] = Line(one.due, rule)
    return found


def _moving(key: Key, one: Moved) -> bool:
    """Whether a figure moves by itself, or is reckoned from others that do.

    What never moves is never outside.
    """
    return not one.still or any(part in key[1] for part in ("_ratio", "_gain", "_spread"))


def _touched(fault: Fault, key: Key, one: Moved) -> bool:
    dice = random.Random(0)
    return any(fault.decay(key, one.due, 1000.0, night, dice) != 1000.0 for night in range(1, 41))


def _looks(night: Night, key: Key) -> tuple[float, float]:
    first, second = night.first[key], night.second[key]
    assert first is not None
    assert second is not None
    return first, second


def _each(make: Callable[[int], _T], seeds: Sequence[int], jobs: int) -> list[_T]:
    if jobs == 1:
        return [make(seed) for seed in seeds]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(make, seeds))
