"""verdict.json: the verdict for programs.

Its shape is declared here and published in `docs/verdict.schema.json`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from acceptance.core import message
from acceptance.core.finding import Finding, Waiver
from acceptance.core.limit import Limit
from acceptance.core.message import Message, Unmeasured, Values, english
from acceptance.core.plan import LimitSet, Session
from acceptance.core.record import Declared, Fact, Outcome, Postponed
from acceptance.core.verdict import EXIT_CODES, CheckResult, Judgement, VerdictWord
from acceptance.journal.run import Run
from acceptance.reports import explanation, plain_json, summary, verified_load
from acceptance.reports.explanation import Explanation, Headline, explain
from acceptance.reports.locations import Locations, find_locations
from acceptance.reports.summary import Caveat
from acceptance.reports.text import one_line
from acceptance.wording import words
from acceptance.wording.errors import WordedError

SCHEMA: Literal[7] = 7  # increases with every change of the shape: docs/verdict.md
DIALECT = "https://json-schema.org/draft/2020-12/schema"
ID = f"urn:rigproof:verdict:{SCHEMA}"

Text = Annotated[str, Meta(min_length=1)]


class Cause(Struct, frozen=True, forbid_unknown_fields=True):
    """A likely cause."""

    what: Annotated[Text, Meta(description="what may be wrong")]
    tell: (
        Annotated[Text, Meta(description="how to tell it from the others, or what was measured")]
        | UnsetType
    ) = UNSET
    measured: (
        Annotated[bool, Meta(description="true where this run's own measurements confirm it")]
        | UnsetType
    ) = UNSET


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that the reader must know: a violation, what could not be judged, a warning, or
    what a waiver accepted.
    """

    check: Annotated[str, Meta(description="the check's id; `run` for what concerns the whole run")]
    text: Annotated[
        str,
        Meta(description="one line: what was measured on which component, the limit, its basis"),
    ]
    code: Annotated[Text, Meta(description="what `text` says, whatever the language and wording")]
    values: Annotated[Values, Meta(description="what `text` is filled with, by name")]
    measurement: Annotated[str, Meta(description="the measurement it is about")] | UnsetType = UNSET
    component: Annotated[str, Meta(description="the component it is about")] | UnsetType = UNSET
    note: Annotated[str, Meta(description="what was looked at, in lines")] | UnsetType = UNSET
    quote: Annotated[str, Meta(description="the kernel's own line")] | UnsetType = UNSET
    event: (
        Annotated[Text, Meta(description="kind and code of the event it is about, such as xid.79")]
        | UnsetType
    ) = UNSET
    action: Annotated[Text, Meta(description="what an event asks for by itself")] | UnsetType = (
        UNSET
    )
    symptom: (
        Annotated[Text, Meta(description="what this looks like to whoever uses the machine")]
        | UnsetType
    ) = UNSET
    causes: (
        Annotated[
            tuple[Cause, ...],
            Meta(
                min_length=1,
                description="likely causes: those that were measured, then the most likely first",
            ),
        ]
        | UnsetType
    ) = UNSET
    causes_excluded: (
        Annotated[int, Meta(ge=1, description="how many more the run's own measurements exclude")]
        | UnsetType
    ) = UNSET
    next: (
        Annotated[Text, Meta(description="the next command to type, or what to do")] | UnsetType
    ) = UNSET
    shows: (
        Annotated[Text, Meta(description="what of that command's output to look at")] | UnsetType
    ) = UNSET
    vendor: Annotated[Text, Meta(description="what to send the vendor")] | UnsetType = UNSET


class Bounds(Struct, frozen=True, forbid_unknown_fields=True):
    """A limit, in the unit of its measurement.

    A bound itself is an allowed value; `low` or `high` is always there.
    """

    unit: str
    basis: Annotated[Text, Meta(description="where the limit comes from, in one sentence")]
    low: Annotated[float, Meta(description="a value below it is a failure")] | UnsetType = UNSET
    high: Annotated[float, Meta(description="a value above it is a failure")] | UnsetType = UNSET
    warn_low: Annotated[float, Meta(description="a value below it is a warning")] | UnsetType = (
        UNSET
    )
    warn_high: Annotated[float, Meta(description="a value above it is a warning")] | UnsetType = (
        UNSET
    )


class Before(Struct, frozen=True, forbid_unknown_fields=True):
    """What a measurement was before this run, in its unit: on the nights before, and when the
    machine was accepted.
    """

    outside: Annotated[
        bool, Meta(description="whether this run's value lies outside what it was before")
    ]
    unsteady: Annotated[
        bool, Meta(description="whether it did in the first measurement, and not in the repeat")
    ]
    nights: Annotated[int, Meta(ge=1, description="how many nights `median` is of")] | UnsetType = (
        UNSET
    )
    median: float | UnsetType = UNSET
    low: (
        Annotated[float, Meta(description="a value below it lies outside those nights")] | UnsetType
    ) = UNSET
    high: (
        Annotated[float, Meta(description="a value above it lies outside those nights")] | UnsetType
    ) = UNSET
    baseline: (
        Annotated[float, Meta(description="the value of the run that accepted the machine")]
        | UnsetType
    ) = UNSET


class Figure(Struct, frozen=True, forbid_unknown_fields=True):
    """One measurement of one component that was due, with what it was held against."""

    measurement: str
    component: str
    unit: str
    origin: Annotated[
        str, Meta(description="the file or rule that the limit, or the lack of one, is from")
    ]
    waived: Annotated[bool, Meta(description="whether a waiver was needed")]
    serial: (
        Annotated[str, Meta(description="the component's own serial number or UUID")] | UnsetType
    ) = UNSET
    value: (
        Annotated[
            float, Meta(description="the worst of what was measured; absent when nothing was")
        ]
        | UnsetType
    ) = UNSET
    again: Annotated[float, Meta(description="the worst of the repeat")] | UnsetType = UNSET
    before: Before | UnsetType = UNSET
    limit: Bounds | UnsetType = UNSET
    unlimited: (
        Annotated[str, Meta(description="why there is no limit, where there is none")] | UnsetType
    ) = UNSET
    unmeasured: (
        Annotated[
            Unmeasured,
            Meta(
                description="why a skip left it out: this part cannot have it, rigproof may not "
                "read it, it failed to answer (which no waiver covers), or it was left out because "
                "of something else that is at fault"
            ),
        ]
        | UnsetType
    ) = UNSET


class Check(Struct, frozen=True, forbid_unknown_fields=True):
    """A planned check with all that was due from it."""

    id: Annotated[
        str, Meta(description="<subject>.<function>[parameter], the same on every machine")
    ]
    title: str
    session: Annotated[
        Session,
        Meta(
            description="when it runs: on the host before the load; in a load of GPUs alone beside "
            "one of processors, RAM and disks; in a load by itself; after the load; last, the "
            "checks of the site's own"
        ),
    ]
    outcome: Outcome
    seconds: Annotated[float, Meta(ge=0)]
    measurements: tuple[Figure, ...]
    load_s: (
        Annotated[
            float,
            Meta(gt=0, description="how many seconds the profile gave its load, where it has one"),
        ]
        | UnsetType
    ) = UNSET


class Skipped(Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing was run, because the machine was in use."""

    reasons: Annotated[tuple[str, ...], Meta(description="who or what was using it")]
    in_a_row: Annotated[int, Meta(ge=1, description="how many runs in a row that makes")]
    most: Annotated[int, Meta(ge=1, description="how many in a row are a failure")]


class SiteSheet(Struct, frozen=True, forbid_unknown_fields=True):
    """A sheet of the site."""

    file: Annotated[Text, Meta(description="its path in the folder, such as models/x.toml")]
    model: Annotated[Text, Meta(description="the model of GPU or disk that it is of")]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="of the file")]
    replaces: Annotated[bool, Meta(description="whether rigproof has a sheet of this model too")]


class Looser(Struct, frozen=True, forbid_unknown_fields=True):
    """A limit that is looser by the site's sheets than by rigproof's own."""

    measurement: str
    component: str
    kind: Annotated[
        Literal["limit", "ceiling"],
        Meta(description="what judges the value, or the most that is possible"),
    ]
    own: Annotated[Bounds, Meta(description="by rigproof's own sheets")]
    limit: (
        Annotated[Bounds, Meta(description="by the site's; absent where there is none")] | UnsetType
    ) = UNSET


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """What the limits of the run come from, but for the machine file."""

    version: Annotated[
        Text,
        Meta(description="of rigproof's own; ends in +changes where installed files are others"),
    ]
    digest: Annotated[
        str,
        Meta(pattern="^[0-9a-f]{64}$", description="SHA-256 over rigproof's own and the site's"),
    ]
    overlay: Annotated[
        tuple[SiteSheet, ...], Meta(description="the sheets of the site that were there")
    ]
    looser: Annotated[
        tuple[Looser, ...], Meta(description="what is due and looser by the site's sheets")
    ]
    folder: Annotated[Text, Meta(description="the site's folder of sheets")] | UnsetType = UNSET


class Shortened(Struct, frozen=True, forbid_unknown_fields=True):
    """Less of a load than the profile's own."""

    load: Annotated[Text, Meta(description="the load, or what it fills or writes: memory, disk:X")]
    planned: Annotated[float, Meta(ge=0, description="of this run")]
    own: Annotated[float, Meta(gt=0, description="of the profile, on this machine")]
    unit: Literal["s", "GiB"]


class VerifiedLoad(Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds in which every result of a part was verified."""

    component: Annotated[Text, Meta(description="gpus (all of them at once), cpu or memory")]
    seconds: Annotated[float, Meta(ge=0, description="of the checks that passed or failed")]
    planned: Annotated[float, Meta(ge=0, description="of all planned checks")]
    own: Annotated[float, Meta(ge=0, description="of these checks at the profile's own seconds")]


class MemoryShare(Struct, frozen=True, forbid_unknown_fields=True):
    """How much of a part's memory was tested."""

    component: Annotated[Text, Meta(description="memory, or a GPU")]
    share: Annotated[float, Meta(ge=0, description="of all its memory")]
    gib: Annotated[float, Meta(ge=0, description="of the RAM")] | UnsetType = UNSET
    own_gib: (
        Annotated[float, Meta(ge=0, description="that the profile fills here by default")]
        | UnsetType
    ) = UNSET


class DeclaredLimit(Struct, frozen=True, forbid_unknown_fields=True):
    """A limit of the machine file's own."""

    measurement: str
    unit: str
    component: (
        Annotated[str, Meta(description="absent where it is of every component")] | UnsetType
    ) = UNSET
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET


class DeclaredWaiver(Struct, frozen=True, forbid_unknown_fields=True):
    """A waiver of the machine file."""

    reason: Text
    measurement: str | UnsetType = UNSET
    skip: (
        Annotated[str, Meta(description="the check or subject that may be left out")] | UnsetType
    ) = UNSET
    component: str | UnsetType = UNSET
    worst: Annotated[float, Meta(description="the worst value that is accepted")] | UnsetType = (
        UNSET
    )


class Declaration(Struct, frozen=True, forbid_unknown_fields=True):
    """What the machine file declares; of a run without one nothing."""

    facts: Annotated[
        dict[str, Fact], Meta(description="by key, such as `gpus`, `gpu0.model` or `cpu.cores`")
    ]
    limits: tuple[DeclaredLimit, ...]
    waivers: tuple[DeclaredWaiver, ...]


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The gravest reason for a FAIL or an UNJUDGED, for whoever shows one line of a run."""

    text: Annotated[Text, Meta(description="what happened, on which part, in which check")]
    closing: Annotated[
        Text,
        Meta(description="the closing line: the verdict, this, what it does not cover, counts"),
    ]
    check: Annotated[str, Meta(description="the check's id; `run` for what concerns the whole run")]
    to_do: Annotated[Text, Meta(description="`text`, the likeliest cause, and what to do")]
    more: Annotated[int, Meta(ge=0, description="how many more reasons of its kind there are")]
    component: Annotated[str, Meta(description="the component it is about")] | UnsetType = UNSET
    cause: Annotated[Text, Meta(description="the likeliest cause")] | UnsetType = UNSET
    next: (
        Annotated[Text, Meta(description="the next command to type, or what to do")] | UnsetType
    ) = UNSET


class File(Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict of a run of rigproof and every reason for it.

    The lists are always there; an empty one says that there is none.
    """

    schema: Annotated[
        Literal[7], Meta(description="the number of this shape; another is another shape")
    ]
    verdict: Annotated[
        VerdictWord,
        Meta(description="PASS, FAIL, or UNJUDGED: nothing failed and something is not known"),
    ]
    exit_code: Annotated[Literal[0, 1, 3], Meta(description="0 PASS, 1 FAIL, 3 UNJUDGED")]
    run_id: str
    violations: Annotated[tuple[Row, ...], Meta(description="what makes the verdict FAIL")]
    unjudged: Annotated[
        tuple[Row, ...],
        Meta(description="what could not be measured: errors, and skips not waived"),
    ]
    warnings: Annotated[
        tuple[Row, ...], Meta(description="within the limit, outside what is usual")
    ]
    waivers: Annotated[
        tuple[Row, ...], Meta(description="what a waiver of the machine file accepted")
    ]
    stale_waivers: Annotated[
        tuple[str, ...], Meta(description="waivers that this run did not need")
    ]
    notes: Annotated[tuple[str, ...], Meta(description="worth knowing; decides nothing")]
    checks: Annotated[
        tuple[Check, ...], Meta(description="every planned check; empty where no plan was written")
    ]
    provenance: Annotated[
        dict[str, str], Meta(description="where the run came from: versions, host, image, commands")
    ]
    duplicates: (
        Annotated[
            tuple[Row, ...],
            Meta(
                min_length=1,
                description="failures of other checks that see a fault of `violations` too; "
                "`values.counted_in` is the check that lists it",
            ),
        ]
        | UnsetType
    ) = UNSET
    limits: (
        Annotated[Limits, Meta(description="absent where the run was of an older rigproof")]
        | UnsetType
    ) = UNSET
    skipped: Skipped | UnsetType = UNSET
    scope: (
        Annotated[
            Literal["full", "partial"],
            Meta(description="a partial run is no acceptance of the machine"),
        ]
        | UnsetType
    ) = UNSET
    shortened: (
        Annotated[
            tuple[Shortened, ...],
            Meta(
                min_length=1,
                description="why a run of every check on every GPU is partial all the same",
            ),
        ]
        | UnsetType
    ) = UNSET
    verified_load: (
        Annotated[tuple[VerifiedLoad, ...], Meta(description="absent of the shape before this one")]
        | UnsetType
    ) = UNSET
    tested_memory: (
        Annotated[tuple[MemoryShare, ...], Meta(description="absent of the shape before this one")]
        | UnsetType
    ) = UNSET
    profile: str | UnsetType = UNSET
    inventory_declared: (
        Annotated[bool, Meta(description="whether somebody said what should be in the machine")]
        | UnsetType
    ) = UNSET
    declared: (
        Annotated[Declaration, Meta(description="absent where the run was of an older rigproof")]
        | UnsetType
    ) = UNSET
    baseline: (
        Annotated[Text, Meta(description="the run of the baseline that the machine was held to")]
        | UnsetType
    ) = UNSET
    caveats: (
        Annotated[
            tuple[Caveat, ...],
            Meta(description="what the verdict does not cover"),
        ]
        | UnsetType
    ) = UNSET
    headline: Annotated[Head, Meta(description="absent of a PASS")] | UnsetType = UNSET

    @property
    def failures(self) -> tuple[Row, ...]:
        """Every failure of every check, those too of which another check's is counted."""
        return self.violations + (() if self.duplicates is UNSET else self.duplicates)


def _verdict(
    word: VerdictWord, violations: dict[str, int], unjudged: dict[str, int]
) -> dict[str, Any]:
    """A rule that types cannot express: the exit code and the reasons that go with a verdict."""
    code = {"const": EXIT_CODES[word]}
    then = {"exit_code": code, "violations": violations, "unjudged": unjudged}
    return {"if": {"properties": {"verdict": {"const": word}}}, "then": {"properties": then}}


def schema() -> dict[str, Any]:
    """The JSON Schema of verdict.json, draft 2020-12."""
    (_,), components = msgspec.json.schema_components([File], ref_template="#/$defs/{name}")
    top = components.pop("File")
    none, some = {"maxItems": 0}, {"minItems": 1}
    planned = ["scope", "profile", "inventory_declared"]
    rules = [
        _verdict("PASS", none, none),
        _verdict("FAIL", some, {}),
        _verdict("UNJUDGED", none, some),
        # Only a run without a plan in its journal may lack these, and such a run is no PASS.
        {"if": {"properties": {"checks": some}}, "then": {"required": planned}},
        {
            "if": {"required": ["shortened"]},
            "then": {"required": ["scope"], "properties": {"scope": {"const": "partial"}}},
        },
        {
            "if": {"properties": {"verdict": {"const": "PASS"}}},
            "then": {"properties": {"checks": some}},
        },
    ]
    # A docstring is wrapped in the source; a description is one line.
    for one in (top, *components.values()):
        one["description"] = " ".join(one["description"].split())
    components["Bounds"]["anyOf"] = [{"required": ["low"]}, {"required": ["high"]}]
    return {
        "$schema": DIALECT,
        "$id": ID,
        **top,
        "title": "verdict.json of rigproof",
        "allOf": rules,
        "$defs": components,
    }


def text() -> str:
    """The schema as in the file `docs/verdict.schema.json`."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode("utf-8") + "\n"


T = TypeVar("T")
_NOTHING = Explanation(None, (), None, None)


def _known(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value


def _text(told: message.Text | None) -> str | None:
    return None if told is None else words.text(told)


def _row(finding: Finding, where: Locations) -> Row:
    advice = explain(finding, where) or _NOTHING
    return Row(
        check=finding.check,
        text=words.of(finding),
        code=finding.code,
        values=words.values(finding),
        measurement=_known(finding.measurement),
        component=UNSET if finding.component is None else str(finding.component),
        note=_known(_text(words.note_beside(finding))),
        quote=_known(finding.quote),
        event=_known(finding.event or None),
        action=_known(words.action(finding)),
        symptom=_known(advice.symptom),
        causes=tuple(Cause(one.what, one.tell, one.measured or UNSET) for one in advice.causes)
        if advice.causes
        else UNSET,
        causes_excluded=advice.excluded or UNSET,
        next=_known(advice.next),
        shows=_known(advice.shows),
        vendor=_known(advice.vendor),
    )


def _bounds(limit: Limit) -> Bounds:
    return Bounds(
        unit=limit.unit,
        basis=words.text(limit.basis),
        low=_known(limit.low),
        high=_known(limit.high),
        warn_low=_known(limit.warn_low),
        warn_high=_known(limit.warn_high),
    )


def _before(judged: Judgement) -> Before | UnsetType:
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
    return (
        Skipped(tuple(map(words.text, night.reasons)), night.in_a_row, night.most)
        if night
        else UNSET
    )


def _figure(judged: Judgement) -> Figure:
    due = judged.due
    return Figure(
        measurement=due.measurement,
        component=str(due.component),
        unit=due.unit,
        origin=words.text(due.origin),
        waived=judged.waived,
        serial=_known(judged.serial),
        value=_known(judged.value),
        again=_known(judged.again),
        before=_before(judged),
        limit=_bounds(due.limit) if due.limit else UNSET,
        unlimited=_known(_text(due.unlimited)),
        unmeasured=_known(judged.unmeasured),
    )


def _check(check: CheckResult, load_s: float) -> Check:
    return Check(
        check.id,
        check.title,
        check.session,
        check.outcome,
        round(max(0.0, check.seconds), 3),
        tuple(map(_figure, check.judged)),
        _known(load_s or None),
    )


def render(run: Run) -> bytes:
    """The content of verdict.json."""
    verdict, where = run.verdict, find_locations(run)
    load_s = {check.id: check.load_s for check in run.plan.checks}
    baseline = run.plan.baseline

    def rows(*kinds: str) -> tuple[Row, ...]:
        return tuple(_row(finding, where) for finding in verdict.of_kind(*kinds))

    content = File(
        schema=SCHEMA,
        verdict=verdict.verdict,
        exit_code=verdict.exit_code,
        run_id=verdict.run_id,
        violations=rows("fail"),
        duplicates=tuple(_row(finding, where) for finding in verdict.duplicates()) or UNSET,
        unjudged=rows("error", "skip"),
        warnings=rows("warn"),
        waivers=rows("waived"),
        stale_waivers=tuple(map(words.message, summary.stale_waivers(verdict))),
        notes=(
            *map(words.message, (*run.notes, *verdict.changed)),
            *(
                f"{subject} was waived whole: no value of it was held against its limit without a "
                "waiver"
                for subject in summary.waived_whole(verdict)
            ),
            *map(words.message, run.torn),
        ),
        checks=tuple(_check(check, load_s.get(check.id, 0.0)) for check in verdict.checks),
        provenance={**summary.provenance(run), **_machine(run)},
        limits=_limits(run.start.limits),
        skipped=_skipped(verdict.postponed),
        scope=verdict.scope,
        shortened=tuple(
            Shortened(one.load, one.planned, one.own, one.unit) for one in verdict.shortened
        )
        or UNSET,
        verified_load=tuple(
            VerifiedLoad(str(one.component), one.seconds, one.planned, one.own)
            for one in verified_load.load_times(run)
        ),
        tested_memory=tuple(
            MemoryShare(str(one.component), one.share, _known(one.gib), _known(one.own_gib))
            for one in verified_load.tested_memory(run)
        ),
        profile=verdict.profile,
        inventory_declared=verdict.inventory_declared,
        declared=_declared(run.start.declared, verdict.waivers),
        baseline=_known(baseline.run_id if baseline is not None else None),
        caveats=summary.caveats(run),
        headline=_head(run),
    )
    return plain_json.render(content)


def _head(run: Run) -> Head | UnsetType:
    found = explanation.of_run(run)
    return UNSET if found is None else _as_head(found, one_line(summary.closing_line(run)))


def _as_head(found: Headline, closing: str) -> Head:
    return Head(
        found.text,
        closing,
        found.check,
        found.to_do(),
        found.more,
        _known(found.part),
        _known(found.cause),
        _known(found.next or found.action),
    )


def head(file: File) -> Head | None:
    """The headline of a verdict; None of a PASS."""
    return None if file.headline is UNSET else file.headline


def _declared(declared: Declared | None, waivers: Iterable[Waiver]) -> Declaration | UnsetType:
    if declared is None:
        return UNSET
    return Declaration(
        declared.facts,
        tuple(
            DeclaredLimit(
                one.measurement,
                one.unit,
                _known(one.component),
                _known(one.low),
                _known(one.high),
            )
            for one in declared.limits
        ),
        tuple(
            DeclaredWaiver(
                one.reason,
                _known(one.measurement),
                _known(one.skip),
                _known(one.component),
                _known(one.worst),
            )
            for one in waivers
        ),
    )


def _limits(limits: LimitSet | None) -> Limits | UnsetType:
    if limits is None:
        return UNSET
    return Limits(
        version=limits.version,
        digest=limits.digest,
        overlay=tuple(
            SiteSheet(one.file, one.model, one.sha256, one.replaces) for one in limits.sheets
        ),
        looser=tuple(
            Looser(
                one.measurement,
                str(one.component),
                one.kind,
                _bounds(one.own),
                _bounds(one.limit) if one.limit is not None else UNSET,
            )
            for one in limits.looser
        ),
        folder=_known(limits.folder),
    )


def _machine(run: Run) -> dict[str, str]:
    """Which machine it was, and what makes machines of a fleet comparable; unknown is absent."""
    board, nvml = run.inventory.board, run.inventory.nvml
    found = {
        "machine_id": run.start.machine_id,
        "board_serial": board.serial,
        "gpu_model": _each_once(device.name for device in nvml.devices),
        "gpus": str(len(nvml.devices) or ""),
        "gpu_vbios": _each_once(device.vbios for device in nvml.devices),
        "nvidia_driver": board.nvidia_driver,
        "bios_version": board.bios_version,
        "virtual": "yes" if run.inventory.cpu.virtualised else None,
    }
    return {name: text for name, text in found.items() if text}


def _each_once(names: Iterable[str | None]) -> str:
    return ", ".join(sorted({name for name in names if name}))


class UnreadableVerdict(WordedError):
    """A file is no verdict of this format; the message completes a sentence about the file."""


class _Head(Struct):
    """verdict.json of any version, as far as every version has it."""

    schema: int


_DECODER = msgspec.json.Decoder(File)
_HEAD = msgspec.json.Decoder(_Head)


def read(content: bytes) -> File:
    """The verdict in a file, which the schema's own rules hold for.

    Raises UnreadableVerdict.
    """
    try:
        found = _DECODER.decode(content)
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or of another shape
        raise _unreadable(content, error) from error
    code, violations, unjudged = found.exit_code, bool(found.violations), bool(found.unjudged)
    planned = UNSET not in (found.scope, found.profile, found.inventory_declared)
    rules = {
        "PASS": not violations and not unjudged and bool(found.checks) and found.skipped is UNSET,
        "FAIL": violations,
        "UNJUDGED": not violations and unjudged,
    }
    agrees = code == EXIT_CODES[found.verdict] and rules[found.verdict]
    shortened = found.shortened is UNSET or found.scope == "partial"
    if not agrees or (found.checks and not planned) or not shortened:
        raise UnreadableVerdict(
            english(
                "verdict_contradicts",
                "contradicts itself: its reasons or its exit code {code} do not go with {verdict}",
            ),
            verdict=found.verdict,
            code=code,
        )
    for check in found.checks:
        for figure in check.measurements:
            if figure.value is not UNSET and not math.isfinite(figure.value):
                raise UnreadableVerdict(
                    english(
                        "verdict_not_finite",
                        "contradicts itself: {measurement} is no finite number",
                    ),
                    measurement=figure.measurement,
                )
        if found.verdict == "PASS" and not _is_passed(check):
            raise UnreadableVerdict(
                english(
                    "verdict_check_not_passed",
                    "contradicts itself: it is a PASS, and by its own values {check} did not pass",
                ),
                check=check.id,
            )
    return found


def _is_passed(check: Check) -> bool:
    """Whether a check is one of a PASS: nothing of it failed, is missing or is outside its limit,
    but for what a waiver accepted.
    """
    return check.outcome in ("pass", "skip") and all(
        figure.waived or figure.limit is UNSET or _is_within(figure.value, figure.limit)
        for figure in check.measurements
    )


def _is_within(value: float | UnsetType, limit: Bounds) -> bool:
    return (
        value is not UNSET
        and (limit.low is UNSET or value >= limit.low)
        and (limit.high is UNSET or value <= limit.high)
    )


def _unreadable(content: bytes, error: Exception) -> UnreadableVerdict:
    try:
        schema = _HEAD.decode(content).schema
    except (ValueError, RecursionError):
        return UnreadableVerdict("no_verdict", why=str(error))
    if schema > SCHEMA:
        return UnreadableVerdict(
            english(
                "verdict_newer",
                "is written in format {found}, newer than this rigproof reads ({known}): install "
                "a newer rigproof",
            ),
            found=schema,
            known=SCHEMA,
        )
    if schema < SCHEMA:
        return UnreadableVerdict(
            english(
                "verdict_older",
                "is written in format {found}, older than this rigproof reads ({known}): "
                "`rigproof report RUN_DIR` writes it anew",
            ),
            found=schema,
            known=SCHEMA,
        )
    return UnreadableVerdict("no_verdict", why=str(error))


def unreadable(run_id: str, reason: Message | str) -> bytes:
    """The file of a run whose journal holds no plan: only the reason is known."""
    text = words.text(reason)
    refusal = Row("run", text, english("unreadable", "{text}"), {"text": text})
    content = File(SCHEMA, "UNJUDGED", 3, run_id, (), (refusal,), (), (), (), (), (), {})
    finding = Finding("error", "run", refusal.code, refusal.values)
    found = explanation.headline(finding, None, text, Locations({}), 0)
    first = _as_head(found, f"{content.verdict}: {found.text}")
    return plain_json.render(structs.replace(content, headline=first))


if __name__ == "__main__":
    sys.stdout.write(text())
