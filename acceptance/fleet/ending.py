"""What ends a FAIL: the one rule, for everything that reads the verdicts of a machine. Pure.

A FAIL is ended by a later PASS that measures what failed, under a machine file that declares at
least as much, or by somebody who accepts it by name (`acceptances`). What a PASS does not show, or
a verdict of an older version does not say, ends nothing.

What failed is measured by a PASS if the same check measured it on every component that was due when
it failed, against a limit that is not looser and without a waiver, and under a load that is not
shorter. What failed without a measurement, such as by an event, is measured if its check passed on
the same components.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from acceptance.baseline.changes import CHANGES
from acceptance.core.finding import DRIFT, RUN
from acceptance.core.message import Message, english, known
from acceptance.core.record import Fact, Outcome
from acceptance.reports.verdict_json import Bounds, Check, Declaration, DeclaredWaiver, Figure, File

POSTPONED = "postponed"  # the event of nights that were skipped: any run ends them
LOG = "kernel_log."  # the checks that see what no other one reports
Key = tuple[str, str]  # measurement and component
Range = tuple[float | None, float | None]  # low and high


class Held(NamedTuple):
    """A due measurement: what it was held against, and whether it was measured.

    `past` says that it was compared with earlier nights, `first` with the baseline.
    """

    measured: bool
    waived: bool
    limit: Range
    past: bool
    first: bool


class Judged(NamedTuple):
    """A check: its outcome, the seconds of its load, and its measurements."""

    outcome: Outcome
    load_s: float
    held: Mapping[Key, Held]

    @property
    def waived(self) -> bool:
        """Whether nothing of it was judged without a waiver."""
        return bool(self.held) and all(one.waived for one in self.held.values())


@dataclass(frozen=True, slots=True)
class Proof:
    """What a verdict shows, as far as it decides whether a PASS ends a FAIL.

    `declared` is None where the verdict does not say it. `looser` are the limits that the site's
    sheets make looser, by kind, measurement and component.
    """

    checks: Mapping[str, Judged]
    declared: Declaration | None
    looser: Mapping[tuple[str, str, str], Range]


class Violation(NamedTuple):
    """Something that failed."""

    check: str
    measurement: str | None
    component: str | None
    event: str | None


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed in a run. `proof` is None where no more is known than that it failed."""

    violations: tuple[Violation, ...] = ()
    proof: Proof | None = field(default=None, hash=False)
    baseline: str | None = None


def failure(file: File, proof: Proof) -> Failure:
    """What failed by a verdict."""
    return Failure(
        tuple(
            dict.fromkeys(
                Violation(row.check, *map(_text, (row.measurement, row.component, row.event)))
                for row in file.failures
            )
        ),
        proof,
        _text(file.baseline),
    )


def proof(file: File) -> Proof:
    """What a verdict shows."""
    looser = () if file.limits is UNSET else file.limits.looser
    return Proof(
        {check.id: _judged(check) for check in file.checks},
        None if file.declared is UNSET else file.declared,
        {(one.kind, one.measurement, one.component): _range(one.limit) for one in looser},
    )


def _judged(check: Check) -> Judged:
    held = {(one.measurement, one.component): _held(one) for one in check.measurements}
    return Judged(check.outcome, 0.0 if check.load_s is UNSET else check.load_s, held)


def _held(one: Figure) -> Held:
    before = one.before
    return Held(
        one.value is not UNSET,
        one.waived,
        _range(one.limit),
        before is not UNSET and before.nights is not UNSET,
        before is not UNSET and before.baseline is not UNSET,
    )


def _range(limit: Bounds | UnsetType) -> Range:
    if limit is UNSET:
        return None, None
    return _number(limit.low), _number(limit.high)


def _number(bound: float | UnsetType) -> float | None:
    return None if bound is UNSET else bound


def _text(text: str | UnsetType) -> str | None:
    return None if text is UNSET else text


def obstacle(failed: Failure, passed: Proof, baseline: str | None) -> Message | None:
    """Why a PASS does not end a FAIL; None where it does.

    `baseline` is the run of the baseline that the PASS was compared with.
    """
    return next(obstacles(failed, passed, baseline), None)


def obstacles(failed: Failure, passed: Proof, baseline: str | None) -> Iterator[Message]:
    """Everything that keeps a PASS from ending a FAIL."""
    was = failed.proof
    if was is None or was.declared is None:
        yield Message(
            english(
                "end_failure_unknown",
                "nothing says what failed and what its machine file declared: accept the FAIL by "
                "`rigproof fleet accept`",
            )
        )
        return
    if passed.declared is None:
        yield Message(
            english(
                "end_pass_unknown",
                "its verdict does not say what its machine file declares: test it again with this "
                "rigproof",
            )
        )
        return
    for one in failed.violations:
        yield from _unmeasured(one, failed, was, passed, baseline)
    yield from _declared_less(was, was.declared, passed, passed.declared)


# --- whether what failed was measured ---


def _unmeasured(
    one: Violation, failed: Failure, was: Proof, passed: Proof, baseline: str | None
) -> Iterator[Message]:
    event = one.event or ""
    drifted = event.startswith(f"{DRIFT}.")
    changed = event.startswith(CHANGES)
    if (changed or drifted) and failed.baseline is not None and failed.baseline != baseline:
        yield Message(
            english("end_other_baseline", "it was not compared with the baseline of run {run}"),
            {"run": failed.baseline},
        )
    if changed or (one.check == RUN and event == POSTPONED):
        return
    if one.check not in was.checks:  # the whole run's: only what looks as far shows that it is gone
        due = [] if event else [name for name, check in was.checks.items() if not check.waived]
    else:
        due = [one.check]
    if event and not drifted:  # it may show in the kernel log alone
        log = [(name, check) for name, check in was.checks.items() if name.startswith(LOG)]
        due += [name for name, check in log if not check.waived]
    for name in dict.fromkeys(due):
        measurement = one.measurement if name == one.check else None
        yield from _check_unmeasured(name, measurement, was.checks[name], passed, drifted=drifted)
    part = one.component
    if part in _components(was, measured=False) - _components(passed, measured=True):
        yield _lacking(f"{one.check} ({part})")


def _check_unmeasured(
    name: str, measurement: str | None, was: Judged, passed: Proof, *, drifted: bool
) -> Iterator[Message]:
    now = passed.checks.get(name)
    if now is None or (measurement is None and now.outcome != "pass"):
        yield _lacking(name)
        return
    if now.load_s < was.load_s:
        yield Message(
            english(
                "end_shorter", "the load of {check} lasted {seconds} s, and {due} s when it failed"
            ),
            {"check": name, "seconds": now.load_s, "due": was.load_s},
        )
    if measurement is None:
        here = {part for (_, part), held in now.held.items() if held.measured}
        gone = {part for (_, part), held in was.held.items() if not held.waived} - here
        yield from (_lacking(f"{name} ({part})") for part in sorted(gone))
        return
    for (what, part), then in was.held.items():
        if what != measurement:
            continue
        held = now.held.get((what, part))
        figure = f"{what} ({part})"
        if held is None or not held.measured:
            yield _lacking(figure)
        elif held.waived and not then.waived:
            yield Message(english("end_waived", "{what} needed a waiver"), {"what": figure})
        elif is_looser(held.limit, then.limit):
            yield Message(
                english("end_looser", "the limit for {what} is looser than when it failed"),
                {"what": figure},
            )
        elif drifted and ((then.past and not held.past) or (then.first and not held.first)):
            yield Message(
                english(
                    "end_no_past",
                    "{what} was not compared with earlier nights or the baseline as when it failed",
                ),
                {"what": figure},
            )


def _components(proof: Proof, *, measured: bool) -> set[str]:
    return {
        part
        for check in proof.checks.values()
        for (_, part), held in check.held.items()
        if held.measured or not measured
    }


def _lacking(what: str) -> Message:
    return Message(english("end_not_measured", "it does not measure {what}"), {"what": what})


# --- whether at least as much is declared ---


def _declared_less(
    was: Proof, then: Declaration, passed: Proof, now: Declaration
) -> Iterator[Message]:
    yield from fewer_facts(now.facts, then.facts)
    waived = {_of(one) for one in then.waivers}
    for one in now.waivers:
        if _of(one) not in waived:
            what = _text(one.measurement) or _text(one.skip)
            about = known(what=what, component=_text(one.component))
            yield Message(
                english(
                    "end_more_waivers",
                    "its machine file waives {what}[ on {component}], which was not waived",
                ),
                about,
            )
    for key in _looser_limits(was, then, passed, now):
        yield Message(
            english("end_looser_file", "its machine file allows more of {what}"), {"what": key}
        )
    for (kind, measurement, part), limit in passed.looser.items():
        before = was.looser.get((kind, measurement, part))
        if before is None or is_looser(limit, before):
            yield Message(
                english("end_looser_sheets", "the site's sheets allow more of {what}"),
                {"what": f"{measurement} ({part})"},
            )


def fewer_facts(facts: Mapping[str, Fact], than: Mapping[str, Fact]) -> Iterator[Message]:
    """What is declared less than before: a fact that is missing, smaller, or another text."""
    for key, was in than.items():
        now = facts.get(key)
        if now is None:
            yield Message(
                english(
                    "end_not_declared", "its machine file does not declare {key}, which was {was}"
                ),
                {"key": key, "was": _said(was)},
            )
        elif now != was and (isinstance(was, str) or isinstance(now, str) or now < was):
            yield Message(
                english(
                    "end_declares_less",
                    "its machine file declares {key} = {now}, where {was} was declared",
                ),
                {"key": key, "was": _said(was), "now": _said(now)},
            )


def _said(fact: Fact) -> str:
    return str(fact).lower() if isinstance(fact, bool) else str(fact)


def _of(one: DeclaredWaiver) -> tuple[object, ...]:
    """What a waiver excuses, whatever its reason."""
    return one.measurement, one.skip, one.component, one.worst


def _looser_limits(was: Proof, then: Declaration, passed: Proof, now: Declaration) -> Iterator[str]:
    """The measurements whose limit is looser by the machine file than it was.

    A limit of one of the two files alone is held against what the other run was judged by.
    """
    before, after = _own(then), _own(now)
    for key in {**before, **after}:
        if key in before and key in after:
            looser = is_looser(after[key], before[key])
        elif key in after:
            judged = _limits(was, key)
            looser = not judged or any(is_looser(after[key], one) for one in judged)
        else:
            judged = _limits(passed, key)
            looser = not judged or any(is_looser(one, before[key]) for one in judged)
        if looser:
            measurement, part = key
            yield f"{measurement} ({part})" if part else measurement


def _own(declared: Declaration) -> dict[tuple[str, str | None], Range]:
    return {
        (one.measurement, _text(one.component)): (_number(one.low), _number(one.high))
        for one in declared.limits
    }


def _limits(proof: Proof, key: tuple[str, str | None]) -> list[Range]:
    """The limits by which a measurement was judged, on one component or on all."""
    measurement, part = key
    return [
        held.limit
        for check in proof.checks.values()
        for (what, where), held in check.held.items()
        if what == measurement and part in (None, where)
    ]


def is_looser(limit: Range, other: Range) -> bool:
    """Whether a limit allows a value that another one does not."""
    (low, high), (other_low, other_high) = limit, other
    below = other_low is not None and (low is None or low < other_low)
    return below or (other_high is not None and (high is None or high > other_high))
