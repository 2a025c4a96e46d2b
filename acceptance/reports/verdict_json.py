"""verdict.json: the verdict for programs, in the shape that `verdict_file` declares and `docs/verdict.schema.json` publishes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TypeVar

from msgspec import UNSET, UnsetType

from acceptance.journal import Journal
from acceptance.judge.judgement import Finding, Judged
from acceptance.judge.measurement import Limit
from acceptance.judge.record import Postponed
from acceptance.judge.verdict import CheckResult, Verdict
from acceptance.reports import plain_json
from acceptance.reports.places import Places, places
from acceptance.reports.teaching import Teaching, teaching
from acceptance.reports.verdict_file import SCHEMA as SCHEMA
from acceptance.reports.verdict_file import Before, Bounds, Cause, Check, Figure, File, Row, Skipped

T = TypeVar("T")
_NOTHING = Teaching(None, (), None, None)


def _known(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value


def _row(finding: Finding, where: Places) -> Row:
    told = teaching(finding, where) or _NOTHING
    return Row(
        check=finding.check,
        text=finding.text,
        measurement=_known(finding.measurement),
        component=_known(finding.component),
        note=_known(finding.note),
        quote=_known(finding.quote),
        event=_known(finding.event or None),
        action=_known(finding.action or None),
        symptom=_known(told.symptom),
        causes=tuple(Cause(what, tell or UNSET) for what, tell in told.causes) if told.causes else UNSET,
        next=_known(told.next),
        shows=_known(told.shows),
        vendor=_known(told.vendor),
    )


def _bounds(limit: Limit) -> Bounds:
    return Bounds(**{key: value for key, value in dataclasses.asdict(limit).items() if value is not None})


def _before(judged: Judged) -> Before | UnsetType:
    past, drifted = judged.due.past, judged.drift
    if past is None or drifted is None:
        return UNSET
    level, first = past.level, past.first
    return Before(
        nights=level.nights if level else UNSET,
        median=level.middle if level else UNSET,
        low=_known(level.bounds.low if level else None),
        high=_known(level.bounds.high if level else None),
        baseline=first.middle if first and first.baseline else UNSET,
        outside=drifted.outside,
        unsteady=drifted.unsteady,
    )


def _skipped(night: Postponed | None) -> Skipped | UnsetType:
    return Skipped(night.reasons, night.in_a_row, night.most) if night else UNSET


def _figure(judged: Judged) -> Figure:
    due = judged.due
    return Figure(
        measurement=due.measurement,
        component=due.component,
        unit=due.unit,
        origin=due.origin,
        waived=judged.waived,
        serial=_known(judged.serial),
        value=_known(judged.value),
        again=_known(judged.again),
        before=_before(judged),
        limit=_bounds(due.limit) if due.limit else UNSET,
        unlimited=_known(due.unlimited),
    )


def _check(check: CheckResult) -> Check:
    figures = tuple(map(_figure, check.judged))
    return Check(check.id, check.title, check.session, check.outcome, round(max(0.0, check.seconds), 3), figures)


def render(verdict: Verdict, found: Journal) -> bytes:
    """The file's content, a function of the verdict alone but for what was torn."""
    where = places(found)

    def rows(*kinds: str) -> tuple[Row, ...]:
        return tuple(_row(finding, where) for finding in verdict.of_kind(*kinds))

    content = File(
        schema=SCHEMA,
        verdict=verdict.verdict,
        exit_code=verdict.exit_code(),
        run_id=verdict.run_id,
        violations=rows("fail"),
        unjudged=rows("error", "skip"),
        warnings=rows("warn"),
        waivers=rows("waived"),
        stale_waivers=verdict.stale_waivers,
        notes=(*verdict.notes, *verdict.changed, *_waived_whole(verdict), *found.torn),
        checks=tuple(map(_check, verdict.checks)),
        provenance=verdict.provenance,
        skipped=_skipped(verdict.postponed),
        scope=verdict.scope,
        profile=verdict.profile,
        inventory_declared=verdict.inventory_declared,
    )
    return plain_json.render(content)


def _waived_whole(verdict: Verdict) -> Iterator[str]:
    for subject in verdict.waived_whole():
        yield f"{subject} was waived whole: no value of it was held against its limit without a waiver"


def unreadable(run_id: str, reason: str) -> bytes:
    """The file of a run whose journal holds no plan: nothing is known but why."""
    content = File(SCHEMA, "UNJUDGED", 3, run_id, (), (Row("run", reason),), (), (), (), (), (), {})
    return plain_json.render(content)
