"""Metrics of a run for node-exporter's textfile collector, in Prometheus' text format.

A pure function of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, get_args

from acceptance.baseline.changes import CHANGES
from acceptance.core.record import RunEnded
from acceptance.core.verdict import CheckResult, Judgement, Verdict, VerdictWord
from acceptance.journal.run import Run
from acceptance.reports import explanation
from acceptance.reports.exposition import Metric, metric, render

# Worst first, except for `recorded`, which decides nothing.
MeasurementOutcome = Literal["fail", "error", "skip", "waived", "warn", "recorded", "pass"]


def run_metrics(run: Run) -> bytes:
    """The metrics of a judged run."""
    return render((*_run(run), *_measurements(run.verdict.checks)))


def night_metrics(run: Run) -> bytes:
    """The metrics of the night itself, for their own file.

    They are apart from the run's, so that a skipped night does not overwrite the last verdict.
    """
    skipped = run.verdict.postponed
    return render(
        (
            metric(
                "rigproof_night_started_timestamp_seconds",
                "When the last nightly run was started, one that was skipped included.",
                _moment(run.first.utc),
            ),
            metric(
                "rigproof_nights_skipped",
                (
                    "How many nights in a row were skipped because the machine was in use; 0 "
                    "after one that was not."
                ),
                skipped.in_a_row if skipped else 0,
            ),
            metric(
                "rigproof_nights_skipped_most",
                (
                    "How many such nights in a row are a failure; absent after a night that was "
                    "not skipped."
                ),
                skipped.most if skipped else None,
            ),
        )
    )


def no_run_metrics() -> bytes:
    """The metrics if no run was started: the verdict alone."""
    return render((_verdict("UNJUDGED"),))


def _verdict(word: VerdictWord) -> Metric:
    samples = tuple(({"verdict": one}, float(one == word)) for one in get_args(VerdictWord))
    return Metric(
        "rigproof_run_verdict",
        "1 for the verdict of the last run that was judged, 0 for the others.",
        samples,
    )


def _run(run: Run) -> Iterator[Metric]:
    verdict = run.verdict
    yield _verdict(verdict.verdict)
    about = {
        "run_id": verdict.run_id,
        "profile": verdict.profile,
        "scope": verdict.scope,
        "machine": verdict.provenance.get("machine"),
        "version": verdict.provenance.get("rigproof"),
    }
    yield Metric(
        "rigproof_run_info",
        "The last run; a partial one is no acceptance of the machine.",
        ((about, 1.0),),
    )
    if (first := explanation.of_run(run)) is not None:
        told = {"check": first.check, "component": first.part, "text": first.text}
        yield Metric(
            "rigproof_run_headline",
            "1 for the gravest reason why the last run was no PASS; absent after a PASS.",
            ((told, 1.0),),
        )
    began = run.first
    ended = next((entry for entry in run.entries if isinstance(entry.body, RunEnded)), None)
    yield metric(
        "rigproof_run_started_timestamp_seconds",
        "When the last run began.",
        _moment(began.utc),
    )
    yield metric(
        "rigproof_run_ended_timestamp_seconds",
        "When the last run came to its end; absent when it was cut off.",
        _moment(ended.utc) if ended else None,
    )
    # By the boot clock, which nobody sets: a change of the wall clock does not alter the duration.
    same_boot = ended is not None and began.boot == ended.boot
    yield metric(
        "rigproof_run_duration_seconds",
        "How long the last run took; absent when it was cut off.",
        ended.boot_s - began.boot_s if ended and same_boot else None,
    )
    baseline = run.plan.baseline
    yield metric(
        "rigproof_baseline_timestamp_seconds",
        "When the run began that accepted the machine; absent where none was accepted.",
        _moment(baseline.utc) if baseline else None,
    )
    yield metric(
        "rigproof_run_violations", "What made the last run FAIL.", len(verdict.of_kind("fail"))
    )
    yield metric(
        "rigproof_run_unjudged",
        "What kept the last run from PASS.",
        len(verdict.of_kind("error", "skip")),
    )
    yield metric("rigproof_run_warnings", "Warnings of the last run.", len(verdict.of_kind("warn")))
    yield _changes(verdict)
    outcomes = tuple(({"check": one.id, "outcome": one.outcome}, 1.0) for one in verdict.checks)
    yield Metric(
        "rigproof_check_outcome",
        "1 for the outcome of each check: pass, fail, error or skip.",
        outcomes,
    )


def _measurements(checks: tuple[CheckResult, ...]) -> Iterator[Metric]:
    """Metrics of every due measurement; one that was not measured has an outcome but no value."""
    each = [(_labels(check.id, one), one) for check in checks for one in check.judged]
    yield Metric(
        "rigproof_measurement_value",
        "The worst of what was measured, in the unit of its label.",
        tuple((labels, one.value) for labels, one in each if one.value is not None),
    )
    for name, help_ in (
        ("low", "The limit that a value may not be below."),
        ("high", "The limit that it may not exceed."),
    ):
        bounds = (
            (labels, getattr(one.due.limit, name))
            for labels, one in each
            if one.due.limit is not None
        )
        samples = tuple((labels, bound) for labels, bound in bounds if bound is not None)
        yield Metric(f"rigproof_measurement_limit_{name}", help_, samples)
    yield from _before(each)
    yield Metric(
        "rigproof_measurement_outcome",
        (
            "1 for what came of each measurement: pass, fail, error, skip, waived, warn, or "
            "recorded (held against nothing)."
        ),
        tuple(({**labels, "outcome": _grade(one)}, 1.0) for labels, one in each),
    )


def _before(each: Sequence[tuple[Mapping[str, str | None], Judgement]]) -> Iterator[Metric]:
    """Metrics that compare measurements with their past, where there is one."""
    drifted = [(labels, one.drift) for labels, one in each if one.drift is not None]
    yield Metric(
        "rigproof_measurement_outside",
        (
            "1 when the value lies outside what it was on the nights before, in the repeat too "
            "where one was taken."
        ),
        tuple((labels, float(drift.outside)) for labels, drift in drifted),
    )
    yield Metric(
        "rigproof_measurement_unsteady",
        "1 when the value lay outside what it was before, and the repeat within.",
        tuple((labels, float(drift.unsteady)) for labels, drift in drifted),
    )
    yield Metric(
        "rigproof_measurement_drift",
        "1 for each way in which the value strayed from its past: step, slope, noise, counter, "
        "unsteady, or changed (nothing tells which"
        " side is the worse one).",
        tuple(
            ({**labels, "what": what}, 1.0)
            for labels, drift in drifted
            for what in dict.fromkeys(one.what for one in drift.findings)
        ),
    )
    pasts = [(labels, one.due.past) for labels, one in each if one.due.past is not None]
    yield Metric(
        "rigproof_measurement_usual",
        "The median of the nights before.",
        tuple((labels, past.level.middle) for labels, past in pasts if past.level is not None),
    )
    yield Metric(
        "rigproof_measurement_baseline",
        "The value of the run that accepted the machine.",
        tuple(
            (labels, past.first.middle)
            for labels, past in pasts
            if past.first is not None and past.first.baseline
        ),
    )


def _changes(verdict: Verdict) -> Metric:
    """Changes of the machine since its baseline, counted by event, component and outcome."""
    found = Counter(
        (
            one.event.removeprefix(CHANGES),
            None if one.component is None else str(one.component),
            one.kind,
        )
        for one in verdict.of_kind("fail", "warn")
        if one.event is not None and one.event.startswith(CHANGES)
    )
    samples = (
        ({"what": what, "component": component, "outcome": kind}, float(count))
        for (what, component, kind), count in found.items()
    )
    return Metric(
        "rigproof_machine_changes",
        (
            "Changes of the machine since its baseline that are a failure or a warning: of what "
            "kind, and of which component."
        ),
        tuple(samples),
    )


def _labels(check: str, judged: Judgement) -> dict[str, str | None]:
    due = judged.due
    return {
        "check": check,
        "measurement": due.measurement,
        "component": str(due.component),
        "unit": due.unit,
        "serial": judged.serial,
    }


def _grade(judged: Judgement) -> MeasurementOutcome:
    """The worst finding of a measurement; `recorded` for one without a limit."""
    kinds = {finding.kind for finding in judged.findings}
    worst: MeasurementOutcome | None = next(
        (one for one in get_args(MeasurementOutcome) if one in kinds), None
    )
    if worst is not None:
        return worst
    return "pass" if judged.due.limit is not None and judged.value is not None else "recorded"


def _moment(utc: str) -> float | None:
    """A journal's time in Unix seconds; None if it is not a time."""
    try:
        return datetime.fromisoformat(utc).timestamp()
    except ValueError:
        return None
