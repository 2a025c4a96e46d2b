"""Compare runs: what each measured of the same components, and which differences exceed the noise.

The first run is what the others are compared with. Nothing here changes a verdict. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from acceptance.baseline.facts import (
    Matching,
    MovedPart,
    ReplacedPart,
    circumstances,
    identities,
    match,
    unique_identities,
)
from acceptance.core.message import Message
from acceptance.core.parts import ITSELF, Component
from acceptance.core.plan import SiteChecks
from acceptance.core.record import Outcome
from acceptance.core.verdict import WORDS, Judgement, Verdict, worst
from acceptance.history.noise import DriftBook, Spread
from acceptance.journal.run import Run

# Of a later run against the first. Lost: due in both, and not measured any more; gained: the
# reverse. Gone and new: due in only one of the two. Changed: beyond the noise, and it is unknown
# which value is worse.
DifferenceKind = Literal[
    "worse", "lost", "changed", "better", "gained", "gone", "new", "incomparable", "same"
]
ORDER: tuple[DifferenceKind, ...] = (
    "worse",
    "lost",
    "changed",
    "better",
    "gained",
    "gone",
    "new",
    "incomparable",
    "same",
)
BAD: frozenset[DifferenceKind] = frozenset({"worse", "lost"})
REPORTED_KINDS: frozenset[DifferenceKind] = frozenset(
    {"worse", "lost", "changed", "better", "gained"}
)

MeasurementKey = tuple[str, str, Component]  # check, measurement, component


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run of a comparison.

    `identities` are serial numbers or UUIDs by component, `facts` the machine's and the software's
    properties, `seconds` the duration. `sealed` is false for a run of a version without seals, and
    `troubles` say why a run's evidence is not whole. `site` are the site's own
    checks, where it had any.
    """

    name: str
    verdict: Verdict
    machine_id: str
    virtual: bool = False
    identities: Mapping[Component, str] = field(default_factory=dict, hash=False)
    facts: Mapping[tuple[Component, str], str] = field(default_factory=dict, hash=False)
    seconds: float | None = None
    site: SiteChecks | None = None
    sealed: bool = True
    troubles: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A later run's value against the first one's.

    `difference` is in the measurement's unit, `share` relative to the first value. `times` is the
    difference as a multiple of the noise (infinite if the noise allows nothing).
    """

    kind: DifferenceKind
    difference: float | None = None
    share: float | None = None
    spread: Spread | None = None
    times: float = 0.0


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One measurement of one component over all runs.

    `values` has one value per run, None if there is none; `changes` one entry per later run.
    """

    check: str
    measurement: str
    component: Component
    unit: str
    values: tuple[float | None, ...]
    changes: tuple[ValueChange, ...]
    why: str | None = None  # why the values cannot be compared

    @property
    def kind(self) -> DifferenceKind:
        """The most serious kind among the later runs."""
        return min((change.kind for change in self.changes), key=ORDER.index)


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """Outcomes of a check that differ between runs; None for a run in which it was not due.

    If `check` is None, they are the verdicts of the runs.
    """

    check: str | None
    outcomes: tuple[str | None, ...]
    kind: DifferenceKind


@dataclass(frozen=True, slots=True)
class FactDifference:
    """A property in which the runs differ: driver, kernel, VBIOS, profile.

    A value is None if the run does not have it.
    """

    component: Component
    name: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of several runs; rows beyond the noise come first."""

    runs: tuple[ComparedRun, ...]
    other_machines: tuple[int, ...]  # later runs of another machine than the first run's
    moved: tuple[tuple[MovedPart, ...], ...]  # by later run
    replaced: tuple[tuple[ReplacedPart, ...], ...]
    outcomes: tuple[OutcomeChange, ...]
    rows: tuple[ComparisonRow, ...]
    differences: tuple[FactDifference, ...]

    def of_kind(self, *kinds: DifferenceKind) -> tuple[ComparisonRow, ...]:
        """The rows of these kinds, in order."""
        return tuple(row for row in self.rows if row.kind in kinds)

    @property
    def worse(self) -> bool:
        """Whether anything is worse than in the first run, beyond the noise."""
        return any(row.kind in BAD for row in self.rows) or any(
            one.kind in BAD for one in self.outcomes
        )

    @property
    def unrelated(self) -> tuple[int, ...]:
        """The later runs that measured nothing of what the first run measured."""
        return tuple(
            index
            for index in range(1, len(self.runs))
            if not any(None not in (row.values[0], row.values[index]) for row in self.rows)
        )

    @property
    def not_repeated(self) -> tuple[str, ...]:
        """The checks that failed in the first run and were not due in every later one."""
        first, *later = ({check.id: check for check in run.verdict.checks} for run in self.runs)
        failed = [name for name, check in first.items() if check.outcome == "fail"]
        return tuple(name for name in failed if not all(name in one for one in later))

    @property
    def proves_nothing(self) -> bool:
        """Whether it cannot tell that nothing is worse."""
        unknown = self.unrelated or self.not_repeated
        return bool(self.not_whole or (unknown and not self.worse))

    @property
    def not_whole(self) -> tuple[int, ...]:
        """The runs whose evidence is not whole: a comparison with them proves nothing."""
        return tuple(index for index, run in enumerate(self.runs) if run.troubles)


def compare(runs: Sequence[ComparedRun], book: DriftBook) -> Comparison:
    """Compare two runs or more. Raises ValueError for fewer."""
    if len(runs) < 2:
        raise ValueError("a comparison needs two runs")
    first, later = runs[0], runs[1:]
    own = book.noise.with_site(*(run.site for run in runs))
    book = replace(book, noise=own)
    matched = [match(first.identities, run.identities, _components(run)) for run in later]
    named = [
        _figures(first, None),
        *(_figures(run, how) for run, how in zip(later, matched, strict=True)),
    ]
    keys = dict.fromkeys(chain.from_iterable(named))
    rows = [_row(key, [figures.get(key) for figures in named], runs, matched, book) for key in keys]
    return Comparison(
        tuple(runs),
        tuple(
            index for index, run in enumerate(later, start=1) if run.machine_id != first.machine_id
        ),
        tuple(how.moved for how in matched),
        tuple(how.replaced for how in matched),
        tuple(_outcomes(runs)),
        tuple(sorted(rows, key=_rank)),
        tuple(_differences(runs, matched)),
    )


def _components(run: ComparedRun) -> tuple[Component, ...]:
    facts = (component for component, _ in run.facts if component != ITSELF)
    return (
        *(judged.due.component for check in run.verdict.checks for judged in check.judged),
        *facts,
    )


def _figures(run: ComparedRun, how: Matching | None) -> dict[MeasurementKey, Judgement]:
    """Everything due, by check, measurement, and the component's name in the first run."""
    return {
        (
            check.id,
            judged.due.measurement,
            how.name(judged.due.component) if how else judged.due.component,
        ): judged
        for check in run.verdict.checks
        for judged in check.judged
    }


def _rank(row: ComparisonRow) -> tuple[int, float]:
    return ORDER.index(row.kind), -max(change.times for change in row.changes)


def _row(
    key: MeasurementKey,
    judgements: Sequence[Judgement | None],
    runs: Sequence[ComparedRun],
    matched: Sequence[Matching],
    book: DriftBook,
) -> ComparisonRow:
    check, measurement, component = key
    due = next(one.due for one in judgements if one is not None)
    why = book.noise.incomparable(measurement)
    same = [
        True,
        *(
            _same_part(runs[0], run, how, component)
            for run, how in zip(runs[1:], matched, strict=True)
        ),
    ]
    values = tuple(one.value if one is not None else None for one in judgements)
    own = [value for value, mine in zip(values, same, strict=True) if mine and value is not None]
    changes = []
    for place, run in enumerate(runs[1:], start=1):
        virtual = runs[0].virtual or run.virtual
        spread = book.noise.spread(measurement, due.unit, same_part=same[place], virtual=virtual)
        if same[place]:
            spread = book.noise.repeated(spread, own)
        changes.append(_change(judgements[0], judgements[place], spread, book, why))
    return ComparisonRow(check, measurement, component, due.unit, values, tuple(changes), why)


def _same_part(first: ComparedRun, later: ComparedRun, how: Matching, component: Component) -> bool:
    """Whether a component is the same part in both runs.

    It is decided by the part's identity if both runs have one, else by the machine.
    """
    shared = set(unique_identities(first.identities).values()) & set(
        unique_identities(later.identities).values()
    )
    if all(first.identities.get(end) in shared for end in component.ends):
        return True
    return first.machine_id == later.machine_id and not how.is_other(component)


def _change(
    before: Judgement | None,
    after: Judgement | None,
    spread: Spread,
    book: DriftBook,
    why: str | None,
) -> ValueChange:
    if before is None or after is None:
        return (
            ValueChange("gone" if after is None else "new")
            if before is not after
            else ValueChange("same")
        )
    a, b = before.value, after.value
    if a is None or b is None:
        return ValueChange("same" if a is b else "gained" if a is None else "lost")
    if before.due.unit != after.due.unit or why is not None:
        return ValueChange("incomparable")
    difference, allowed = b - a, spread.between(a, b)
    share = difference / abs(a) if a else None
    limit = after.due.limit or before.due.limit
    worse = book.worse(after.due.measurement, after.due.unit, limit)
    if not spread.bounds(a, None).beyond(b):
        kind: DifferenceKind = "same"
    elif worse is None:
        kind = "changed"
    else:
        kind = "worse" if spread.bounds(a, worse).beyond(b) else "better"
    times = abs(difference) / allowed if allowed else float("inf") if difference else 0.0
    return ValueChange(kind, difference, share, spread, times)


def _outcomes(runs: Sequence[ComparedRun]) -> Iterator[OutcomeChange]:
    words = tuple(run.verdict.verdict for run in runs)
    if len(set(words)) > 1:
        yield OutcomeChange(None, words, _of_verdicts(words))
    found = [{check.id: check.outcome for check in run.verdict.checks} for run in runs]
    for check in dict.fromkeys(chain.from_iterable(found)):
        outcomes = tuple(one.get(check) for one in found)
        if len(set(outcomes)) > 1:
            yield OutcomeChange(
                check,
                outcomes,
                min((_turn(outcomes[0], one) for one in outcomes[1:]), key=ORDER.index),
            )


def _of_verdicts(words: Sequence[str]) -> DifferenceKind:
    """Not to know any more whether a machine is fit is no better than its FAIL."""
    ranks = [WORDS.index(word) for word in words]
    if max(ranks[1:]) > ranks[0]:
        return "worse"
    return "changed" if "UNJUDGED" in words[1:] else "better"


def _turn(before: Outcome | None, after: Outcome | None) -> DifferenceKind:
    if before == after:
        return "same"
    if before is None:
        return "new"
    if after is None:
        return "gone"
    if worst((before, after)) == after:
        return "worse"
    return "better" if after == "pass" else "changed"  # an error or a skip has nothing to say


def _differences(
    runs: Sequence[ComparedRun], matched: Sequence[Matching]
) -> Iterator[FactDifference]:
    named = [dict(runs[0].facts)]
    for run, how in zip(runs[1:], matched, strict=True):
        named.append(
            {(how.name(component), name): text for (component, name), text in run.facts.items()}
        )
    for key in dict.fromkeys(chain.from_iterable(named)):
        values = tuple(facts.get(key) for facts in named)
        if len(set(values)) > 1:
            yield FactDifference(*key, values)


def run_of(run: Run, name: str) -> ComparedRun:
    """A run, with `name` to distinguish it from others."""
    verdict, inventory = run.verdict, run.inventory
    return ComparedRun(
        name,
        verdict,
        run.start.machine_id,
        virtual=bool(inventory.cpu.virtualised),
        identities=identities(inventory) | _measured(verdict),
        facts=circumstances(
            verdict.provenance, inventory, profile=verdict.profile, scope=verdict.scope
        ),
        seconds=run.seconds,
        site=run.plan.site,
        sealed=not run.seal.old,
        troubles=run.troubles,
    )


def _measured(verdict: Verdict) -> dict[Component, str]:
    """The measured identities by component; they take precedence over the inventory's."""
    judged = (one for check in verdict.checks for one in check.judged)
    return {one.due.component: one.serial for one in judged if one.serial}
