"""Nights of one measurement, and the shipped rules, for the tests of drift."""

from __future__ import annotations

import random
from collections.abc import Iterable

from known import known

from acceptance import resources
from acceptance.core.finding import Finding
from acceptance.core.limit import Limit
from acceptance.core.past import DriftFinding, Past
from acceptance.history import noise
from acceptance.history.noise import DriftBook, DriftRule
from acceptance.history.reference_builder import NightValue, build_reference
from acceptance.wording import words

BOOK: DriftBook = noise.read_rules(
    resources.locate("drift.toml"), noise.read(resources.locate("noise.toml"))
)
RATE = "gemm_bf16"


def rule(
    measurement: str = RATE,
    unit: str = "TFLOP/s",
    limit: Limit | None = None,
    *,
    virtual: bool = False,
) -> DriftRule:
    """The shipped rule of a measurement."""
    return known(BOOK.rule(measurement, unit, limit, virtual=virtual))


def said(found: DriftFinding, measurement: str = RATE) -> str:
    """A finding of drift in words."""
    about = Finding(
        found.kind, "a.one", found.code, measurement=measurement, component="gpu0", drift=found
    )
    return words.of(about)


def looks(values: Iterable[float], first: float = 100.0) -> list[NightValue]:
    """One look a night, from a day on."""
    return [NightValue(first + night, value) for night, value in enumerate(values)]


def steady(count: int, middle: float = 600.0, deviation: float = 3.0, seed: int = 1) -> list[float]:
    """So many values of sound noise."""
    dice = random.Random(seed)
    return [dice.gauss(middle, deviation) for _ in range(count)]


def past(
    found: list[NightValue],
    born: float | None = None,
    *,
    of: DriftRule | None = None,
    rebased: bool = False,
) -> Past:
    """The past of the night after these looks; `born` is of the first of them,
    which then is the baseline.
    """
    day = found[0].day if found else 100.0
    today = found[-1].day + 1.0 if found else 101.0
    return known(
        build_reference(
            found if born is None else found[1:],
            born,
            rule=of or rule(),
            today=today,
            baseline_day=None if born is None else day,
            rebased=rebased,
        )
    )
