"""The plan of a run, made once before anything is heated, and the lints before it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from acceptance.core.finding import Criterion, Plausible, Siblings, Waiver, Within
from acceptance.core.limit import Limit
from acceptance.core.message import Listed, Message, Text, english, known
from acceptance.core.nearest import cure, nearest
from acceptance.core.parts import CPU, GPUS, MEMORY, Component, Gpu
from acceptance.core.plan import (
    PREFIX,
    SESSIONS,
    SUBJECT,
    Due,
    Plan,
    PlannedCheck,
    Reduction,
    matches_patterns,
)
from acceptance.core.verdict import covers
from acceptance.expect import loosest
from acceptance.expect.collected import CollectedCheck, Measures, PlanError
from acceptance.expect.limit_book import LimitBook, Override
from acceptance.expect.loosest import Bounds, Problem

# Seconds of a run in which no check runs: the sessions start, a container too, and the evidence is
# sealed. Recorded runs on H100 and H200: 2.2 to 4.7 s in place, 5.1 s in a container.
OVERHEAD_S = 4.0
RARE_S = 600.0  # seconds of load in which a rare fault shows once

_MOST_NEAR = 3  # checks in a message
_MEASURED = "docs/measurements.md lists what is measured"
_CHECKS = "`rigproof plan` lists the checks"

Classes = Mapping[str, Sequence[Component]]
Groups = Mapping[str, Sequence[Sequence[Component]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineUnderTest:
    """What a plan needs to know of the machine under test.

    `components` are its parts by class, with only the GPUs under test; `any_profile` are those of
    all profiles, whose limits are no gaps of this one; those of this one where it is None.
    `siblings` are the equal components by their class, which ratios are made of, `book` has the
    limits of all. `waivers` are those of the machine file, whose name is `file`; None without one.
    `missing` are GPUs that were asked for and cannot be tested. `turns` is the largest number of
    GPUs that share the way to the host; None: all do. `not_offered`, `gaps` and `gpu_functions` are
    the plan's. `shortfalls` say what the check of presence fails for. `cure` ends the error that
    nothing is due, in English.
    """

    components: Classes
    book: LimitBook
    siblings: Groups
    any_profile: Classes | None = None
    waivers: Sequence[Waiver] = ()
    file: str | None = None
    missing: Sequence[Component] = ()
    turns: int | None = None
    not_offered: Sequence[Text] = ()
    gaps: Sequence[Text] = ()
    gpu_functions: Sequence[Component] = ()
    shortfalls: tuple[Message, ...] = ()
    cure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked of a run.

    `loads_s` are the seconds of each load, `own_s` the profile's own. `only` are the patterns of
    the checks that were chosen, empty for all; `narrowed` says that only some of the machine's GPUs
    are tested. `reductions` are what the loads do less of than the profile. `memory_gib`,
    `own_memory_gib` and `cannot_detect` are the plan's.
    """

    profile: str
    loads_s: Mapping[str, float]
    memory_gib: float
    own_s: Mapping[str, float] = field(default_factory=dict)
    own_memory_gib: float | None = None
    reductions: Sequence[Reduction] = ()
    cannot_detect: Sequence[str] = ()
    only: Sequence[str] = ()
    narrowed: bool = False


def _cure(name: str, known_names: Collection[str], where: str) -> str:
    """The cure for a name that there is not; one of a site's own needs the site's checks."""
    beginnings = (PREFIX, f"{SUBJECT}.")
    if name.startswith(beginnings) and not any(one.startswith(beginnings) for one in known_names):
        return "it is one of the site's own: give the folder of its checks with --checks"
    return cure(name, known_names, where)


def _selection_cure(pattern: str, ids: Sequence[str]) -> str:
    """The checks and subjects nearest to a pattern that matches none, and every subject."""
    subjects = list(dict.fromkeys(one.partition(".")[0] for one in ids))
    plain = pattern.strip("*?.")
    near = nearest(plain, [*subjects, *ids, *(one.partition("[")[0] for one in ids)], _MOST_NEAR)
    if not near:  # the name of a check in another subject
        near = nearest(plain.rpartition(".")[2], [one.partition(".")[2] for one in ids], _MOST_NEAR)
        near = tuple(one for one in ids if one.partition(".")[2] in near)
    meant = f"did you mean {' or '.join(near)}? The" if near else "the"
    return f"{meant} subjects are {', '.join(subjects)}, and {_CHECKS}"


def lint(collected: Sequence[CollectedCheck], book: LimitBook) -> None:
    """Check the limits against the measurements of all checks.

    Every limit must be measured, in its unit, and those of the machine file must be able to fail.
    Raises PlanError, also where the machine file limits a measurement that no waiver may excuse:
    that would be a waiver without a bound.
    """
    every = [measures for check in collected for measures in check.measures]
    units = {measures.name: measures.unit for measures in every}
    unwaivable = {measures.name for measures in every if not measures.waivable}
    own = -1  # the index of the machine file's own limit: the book begins with them, in file order
    for entry in book.entries:
        name, where = entry.measurement, entry.origin
        own += entry.own
        row: tuple[str | int, ...] = ("limit", own) if entry.own else ()
        if name not in units:
            cure = _cure(name, units, _MEASURED)
            text = f"a limit for {name}, which no check measures: {cure}"
            raise PlanError(text, where, row and (*row, "measurement"))
        if entry.limit is not None and entry.limit.unit != units[name]:
            text = (
                f"the limit for {name} is in {entry.limit.unit}, but {name} is measured in "
                f"{units[name]}: write it in that unit"
            )
            raise PlanError(text, where, row and (*row, "unit"))
        if entry.own and name in unwaivable:
            text = (
                f"{name} takes no limit of the machine's own, because it proves a fault: remove it"
            )
            raise PlanError(text, where, (*row, "measurement"))
    _lint_own({measures.name: measures.bounds for measures in every}, book)


def _lint_own(bounds: Mapping[str, Bounds], book: LimitBook) -> None:
    """Check that each limit of the machine file can fail, as far as its family allows it.

    Raises PlanError.
    """
    number = -1
    own = [entry.origin for entry in book.entries if entry.own][:1]
    declared = [entry.origin for entry in book.entries if entry.place][:1]
    facts = LimitBook(tuple(entry for entry in book.entries if entry.origin not in own))
    derived = LimitBook(tuple(entry for entry in facts.entries if entry.origin not in declared))
    for entry in book.entries:
        number += entry.own
        row: tuple[str | int, ...] = ("limit", number) if entry.own else entry.place
        if entry.limit is None or not row:
            continue
        name, of = entry.measurement, bounds[entry.measurement]
        before = list(_replaced(entry, facts if entry.own else derived))
        if entry.own and (dropped := _dropped(entry, before)):
            raise PlanError(f"the limit for {name} {dropped}", entry.origin, row)
        found = next(filter(None, _loosened(entry, before, of)), None)
        found = found or loosest.idle_bound(name, entry.limit, of.possible)
        if found:
            key, told = found
            place = (*row, key) if entry.own else row
            raise PlanError(f"the limit for {name}: {told}", entry.origin, place)


def _replaced(entry: Override, others: LimitBook) -> Iterator[Limit]:
    """The limits that would hold without this one, by any component that it is of."""
    same = [one for one in others.entries if one.measurement == entry.measurement]
    names = (
        {one.component: one for one in reversed(same)}  # the first of each applies
        if entry.component is None
        else {entry.component: entry}
    )
    for component, first in names.items():
        found = first if component is None else others.find(entry.measurement, component)
        if found is not None and found.limit is not None:
            yield found.limit


def _dropped(own: Override, before: Sequence[Limit]) -> str | None:
    """A bound that decides without the machine file, and that a limit of its own leaves out.

    A rate with `high` alone in place of a floor could not be too slow. Where one value alone was
    right, its floor is enough.
    """
    given = _sides(own.limit)
    for limit in before:
        missing = _sides(limit) - given
        if missing and (missing == _sides(limit) or "low" in missing):
            key = min(missing)
            return (
                f"has {max(given)} alone, and the one that it replaces has {key}, so nothing that "
                f"failed would fail any more: give {key}"
            )
    return None


def _loosened(entry: Override, before: Sequence[Limit], bounds: Bounds) -> Iterator[Problem | None]:
    """What is looser than the family allows; a declared fact is exact, or has a floor."""
    assert entry.limit is not None
    limit = (
        entry.limit
        if entry.own
        else Limit(entry.limit.unit, entry.limit.basis, low=entry.limit.low)
    )
    yield loosest.beyond(limit, bounds) if entry.own and not before else None
    for one in before:
        yield loosest.looser(entry.measurement, limit, one, bounds)


def _sides(limit: Limit | None) -> set[str]:
    """The bounds of a limit that decide, by name."""
    return {key for key in ("low", "high") if limit and getattr(limit, key) is not None}


def lint_waivers(
    collected: Sequence[CollectedCheck],
    waivers: Iterable[Waiver],
    where: str,
    book: LimitBook,
) -> None:
    """Check that each waiver names something that exists and may be waived, and has a bound.

    Raises PlanError.
    """
    units = [measures.name for check in collected for measures in check.measures]
    checks = [check.id for check in collected]
    subjects = [check.partition(".")[0] for check in checks]
    for number, waiver in enumerate(waivers):
        named = [
            one for check in collected for one in check.measures if one.name == waiver.measurement
        ]
        if waiver.measurement is not None and not named:
            cure = _cure(waiver.measurement, units, _MEASURED)
            text = f"a waiver names {waiver.measurement}, which no check measures: {cure}"
            raise PlanError(text, where, ("waiver", number, "measurement"))
        if not all(one.waivable for one in named):
            text = f"{waiver.measurement} cannot be waived, because it proves a fault: remove it"
            raise PlanError(text, where, ("waiver", number, "measurement"))
        if why := _excuses_anything(waiver, named, book):
            raise PlanError(why, where, ("waiver", number, "worst"))
        if waiver.skip is not None and not any(
            matches_patterns(check.id, [waiver.skip]) for check in collected
        ):
            cure = _cure(waiver.skip, [*checks, *subjects], _CHECKS)
            text = f"a waiver names the check {waiver.skip}, which does not exist: {cure}"
            raise PlanError(text, where, ("waiver", number, "skip"))


def _excuses_anything(waiver: Waiver, named: Sequence[Measures], book: LimitBook) -> str | None:
    """Why the worst value of a waiver bounds nothing, by any limit that it may be held against."""
    if waiver.worst is None or not named:
        return None
    for entry in book.entries:
        limit = entry.limit if entry.measurement == waiver.measurement else None
        if limit is None or not _meets(waiver, entry.component):
            continue
        name, bounds = entry.measurement, named[0].bounds
        if text := loosest.excuses_anything(name, waiver.worst, limit, bounds):
            return text
    return None


def _meets(waiver: Waiver, component: Component | None) -> bool:
    return component is None or waiver.component is None or component.matches(waiver.component)


def _siblings(
    check: CollectedCheck, measures: Measures, component: Component, groups: Groups
) -> Siblings | None:
    """What a ratio between equal components is made of; None for any other measurement.

    Raises PlanError where the check does not measure that, or no group holds the component: the
    ratio would be believed as it was recorded.
    """
    if measures.ratio_of is None:
        return None
    if not any(one.name == measures.ratio_of for one in check.measures):
        raise PlanError(
            f"{measures.name} is a ratio of {measures.ratio_of}, which {check.id} does not measure"
        )
    group = next((one for one in groups.get(measures.per, ()) if component in one), None)
    if group is None:
        raise PlanError(f"{measures.name} on {component}: nothing says which components are equal")
    return Siblings(measures.ratio_of, tuple(group))


def dues(
    check: CollectedCheck,
    components: Mapping[str, Sequence[Component]],
    book: LimitBook,
    groups: Groups,
) -> tuple[Due, ...]:
    """Everything that one check owes on this machine.

    `groups` are the equal components by their class.

    Raises PlanError for an unknown class of components, for a component that has neither a limit
    nor a reason for none, and for a ratio of which nothing says what it is made of.
    """
    found: list[Due] = []
    for measures in check.measures:
        if measures.per not in components:
            raise PlanError(
                f"{check.id} measures per {measures.per}, which is no class of components"
            )
        for component in components[measures.per]:
            held = book.find(measures.name, component)
            if measures.fact and (held is None or held.limit is None):
                continue
            if held is None:
                raise PlanError(
                    f"{measures.name} on {component} has no limit, and nothing says why none can be"
                )
            origin, why = held.origin, held.unlimited
            ceiling = book.ceiling(measures.name, component)
            criteria: list[Criterion] = []
            if ceiling is not None:
                criteria.append(Plausible(ceiling))
            if held.limit is not None:
                criteria.append(Within(held.limit))
            ratio = _siblings(check, measures, component, groups)
            if ratio is not None:
                criteria.append(ratio)
            found.append(
                Due(
                    measures.name,
                    component,
                    measures.unit,
                    tuple(criteria),
                    origin,
                    why,
                    measures.waivable,
                )
            )
    return tuple(found)


def _gaps(
    checks: Sequence[CollectedCheck], planned: Sequence[PlannedCheck], machine: MachineUnderTest
) -> Iterator[Message]:
    """What keeps a full run from passing.

    A GPU that no check loads, or a limit for a component that this machine does not show.
    """
    classes = machine.any_profile or machine.components
    loaded = {due.component for check in planned if check.gpu_load_s for due in check.due}
    for gpu in classes["gpu"]:
        if gpu not in loaded:
            yield Message(
                english("gpu_not_loaded", "{gpu}: no check of this plan loads it"),
                {"gpu": str(gpu)},
            )
    shown = {
        (one.name, name)
        for check in checks
        for one in check.measures
        for name in classes.get(one.per, ())
    }
    for entry in machine.book.entries:
        part = entry.component
        if machine.missing and part and any(isinstance(end, Gpu) for end in part.ends):
            continue  # a GPU is missing, which fails
        missing = part is not None and (entry.measurement, part) not in shown
        if entry.limit is not None and missing:
            about = known(
                origin=entry.origin,
                measurement=entry.measurement,
                component=str(part),
            )
            yield Message(
                english(
                    "limit_of_nothing",
                    "{origin}: a limit for {measurement} on {component}, which this machine does "
                    "not show",
                ),
                about,
            )


def _verified(check: CollectedCheck, due: Sequence[Due], gpus: int) -> tuple[Component, ...]:
    """The parts of which a check's load verifies every result.

    GPUs, where there are any, by the loads that compare every result of them all; processors and
    RAM where wrong results of theirs are counted.
    """
    if check.load is None:
        return ()
    compared = {GPUS} if gpus and check.work.compares else set()
    counted = {one.component for one in due if one.unit == "count"} & {CPU, MEMORY}
    return tuple(part for part in (GPUS, CPU, MEMORY) if part in compared | counted)


def _rare_faults(
    planned: Sequence[PlannedCheck], classes: Mapping[str, Sequence[Component]]
) -> Iterator[Message]:
    """How often a fault that shows once in ten minutes of load is missed, by part of the machine.

    Only seconds in which every result is verified count. Faults come independently of each other,
    so `exp(-seconds / 600)` of the runs meet none. Nothing is said of a part on which that is less
    than one in 200, nor of one that this machine has not or that its file does not declare.
    """
    for part, kind in ((GPUS, "gpu"), (CPU, "cpu"), (MEMORY, "memory")):
        if not classes.get(kind, (part,)):
            continue
        seconds = sum(check.load_s for check in planned if part in check.verifies)
        missed = math.exp(-seconds / RARE_S)
        if not seconds:
            yield Message(
                english(
                    "rare_faults_no_load",
                    "a fault on {component} that shows only now and then is missed: no load of "
                    "this run verifies its results there",
                ),
                {"component": str(part)},
            )
        elif round(100.0 * missed):
            about = known(
                component=str(part), seconds=f"{seconds:.0f}", missed=f"{100.0 * missed:.0f}"
            )
            yield Message(
                english(
                    "rare_faults_missed",
                    "a fault on {component} that shows once in ten minutes of load is missed in "
                    "{missed} of 100 such runs ({seconds} s of verified load)",
                ),
                about,
            )


def _evidence(check: CollectedCheck) -> Listed | Message:
    """What a check is judged from."""
    if check.follows:
        return Listed(check.follows)
    return Message(
        english("a_load_of_gpus", "a check that keeps the GPUs at work")
        if check.follows_load == "gpus"
        else english("a_load_check", "a check that loads the machine")
    )


def _unfounded(pattern: str, check: CollectedCheck, profile: str) -> PlanError:
    """That what was asked for is judged from what this run does not do, with the cure."""
    load = "a load of GPUs" if check.follows_load == "gpus" else "a load"
    evidence = " or ".join(check.follows) or load
    return PlanError(
        f"--only {pattern}: {check.id} is judged from {evidence}, and this selection of the "
        f"profile {profile} runs none: select it too, or choose a profile that runs it"
    )


def waivers_of_nothing(
    collected: Sequence[CollectedCheck],
    classes: Mapping[str, Sequence[Component]],
    waivers: Iterable[Waiver],
    declared_in: str,
) -> Iterator[Message]:
    """The waivers that cover nothing that the checks measure on this machine."""
    shown = [
        (check.id, Due(one.name, component, one.unit, (), ""))
        for check in collected
        for one in check.measures
        for component in classes.get(one.per, ())
    ]
    for waiver in waivers:
        if not any(covers(waiver, check, due) for check, due in shown):
            about = known(
                origin=declared_in,
                what=waiver.measurement or waiver.skip,
                component=waiver.component,
            )
            yield Message(
                english(
                    "waiver_of_nothing",
                    "{origin}: the waiver of {what}[ on {component}] matches nothing on this "
                    "machine: correct or remove it",
                ),
                about,
            )


def build(
    collected: Sequence[CollectedCheck], digest: str, machine: MachineUnderTest, request: Request
) -> Plan:
    """The plan of one run; `digest` is that of the package that `collected` the checks.

    The order is by session; in each session gates come first and checks that heat last, those
    marked `last` after them, otherwise the order of `collected` stays. Reductions of loads that are
    due make a whole run partial, and it keeps its gaps.

    Raises PlanError when a lint finds a contradiction, or a pattern of `only` selects nothing that
    is due.
    """
    lint(collected, machine.book)
    lint_waivers(collected, machine.waivers, machine.file or "the machine file", machine.book)
    ids = [check.id for check in collected]
    for pattern in request.only:
        if not any(matches_patterns(one, [pattern]) for one in ids):
            raise PlanError(f"--only {pattern} matches no check: {_selection_cure(pattern, ids)}")
    planned, unfounded = _planned(collected, machine, request)
    _require_due(planned, unfounded, machine, request)
    loads = {check.load for check in collected if any(one.id == check.id for one in planned)}
    shortened = [one for one in request.reductions if one.unit != "s" or one.load in loads]
    selection = bool(request.only) or request.narrowed
    return Plan(
        profile=request.profile,
        scope="partial" if selection or shortened else "full",
        checks=tuple(planned),
        waivers=tuple(machine.waivers),
        loads_s=dict(request.loads_s),
        memory_gib=request.memory_gib,
        cannot_detect=(*request.cannot_detect, *_rare_faults(planned, machine.components)),
        not_tested=(
            *machine.not_offered,
            *(
                Message(
                    english(
                        "evidence_not_planned",
                        "{check}: it is judged from {evidence}, and this plan runs none of that",
                    ),
                    {"check": one.id, "evidence": _evidence(one)},
                )
                for one in unfounded
            ),
        ),
        gaps=() if selection else (*machine.gaps, *_gaps(collected, planned, machine)),
        inventory_declared=machine.file is not None,
        digest=digest,
        gpus=tuple(machine.components["gpu"]),
        overhead_s=OVERHEAD_S,
        gpu_functions=tuple(machine.gpu_functions),
        shortened=() if selection else tuple(shortened),
        own_memory_gib=request.own_memory_gib,
    )


def _planned(
    collected: Sequence[CollectedCheck], machine: MachineUnderTest, request: Request
) -> tuple[list[PlannedCheck], list[CollectedCheck]]:
    """The checks that are due in their order, and those whose evidence is not in this plan."""
    planned: list[PlannedCheck] = []
    unfounded: list[CollectedCheck] = []
    for check in sorted(
        collected,
        key=lambda check: (
            SESSIONS.index(check.session),
            not check.gate,
            check.work.heats,
            check.last,
        ),
    ):
        if request.only and not matches_patterns(check.id, request.only):
            continue
        if check.load is not None and check.load not in request.loads_s:
            continue  # this profile does not run that load
        due = dues(check, machine.components, machine.book, machine.siblings)
        if due and not check.has_evidence(planned):
            unfounded.append(check)
        elif due:
            planned.append(_planned_check(check, due, machine, request))
    return planned, unfounded


def _planned_check(
    check: CollectedCheck, due: tuple[Due, ...], machine: MachineUnderTest, request: Request
) -> PlannedCheck:
    gpus, cores = len(machine.components["gpu"]), len(machine.components["core"])
    turns = gpus if machine.turns is None else machine.turns
    load_s = request.loads_s[check.load] if check.load else 0.0
    return PlannedCheck(
        check.id,
        check.title,
        check.session,
        check.calculated_s(request.loads_s, request.memory_gib, gpus, cores, turns),
        due,
        check.gate,
        check.slack + check.slack_per_gib * request.memory_gib,
        load_s if check.work.busy else 0.0,
        verifies=_verified(check, due, gpus),
        load_s=load_s,
        own_s=request.own_s.get(check.load, load_s) if check.load else 0.0,
    )


def _require_due(
    planned: Sequence[PlannedCheck],
    unfounded: Sequence[CollectedCheck],
    machine: MachineUnderTest,
    request: Request,
) -> None:
    """Raise PlanError where nothing is due, or nothing of a pattern that was asked for."""
    empty = [
        pattern
        for pattern in request.only
        if not any(matches_patterns(check.id, [pattern]) for check in planned)
    ]
    for pattern in empty:
        for check in unfounded:
            if matches_patterns(check.id, [pattern]):
                raise _unfounded(pattern, check, request.profile)
    if not planned:
        raise PlanError(
            f"nothing is due: no check of this selection applies to this machine{machine.cure}"
        )
    if empty and not machine.missing:  # a check of missing GPUs alone owes nothing
        raise PlanError(
            f"--only {empty[0]}: nothing of it is due on this machine in the profile "
            f"{request.profile}{machine.cure}"
        )
