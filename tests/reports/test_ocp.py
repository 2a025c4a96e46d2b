"""OCP output as a reader takes it: the artifacts of version 2.0, and nothing else.

The shapes below are our reading of the published schemas (opencomputeproject/ocp-diag-core,
json_spec/output, at 028b3dbc): which keys exist, which are required, and their words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal

import journals
import msgspec
import pytest
import samples
from cases import each
from test_junit import HOSTILE
from thoroughness import some

from acceptance.core.limit import Limit
from acceptance.core.parts import MEMORY
from acceptance.core.record import Body, Postponed, RunEnded
from acceptance.core.verdict import VerdictWord
from acceptance.core.waiver import Waiver
from acceptance.journal.run import Run
from acceptance.reports import ocp


class Shape(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An object of the format: any other key is a mistake."""


class SchemaVersion(Shape):
    major: Literal[2]
    minor: Literal[0]


class SoftwareInfo(Shape):
    name: str
    softwareInfoId: str
    version: str | None = None
    softwareType: Literal["UNSPECIFIED", "FIRMWARE", "SYSTEM", "APPLICATION"] | None = None


class HardwareInfo(Shape):
    name: str
    hardwareInfoId: str
    version: str | None = None
    location: str | None = None
    serialNumber: str | None = None
    manufacturer: str | None = None


class PlatformInfo(Shape):
    info: str


class DutInfo(Shape):
    id: str
    hostname: str | None = None
    platformInfos: list[PlatformInfo] | None = None
    softwareInfos: list[SoftwareInfo] | None = None
    hardwareInfos: list[HardwareInfo] | None = None


class RunStart(Shape):
    name: str
    version: str
    commandLine: str
    parameters: dict[str, Any]
    dutInfo: DutInfo
    metadata: dict[str, Any] | None = None


class RunEnd(Shape):
    status: Literal["COMPLETE", "ERROR", "SKIP"]
    result: Literal["NOT_APPLICABLE", "PASS", "FAIL"]


class RunArtifact(Shape):
    testRunStart: RunStart | None = None
    testRunEnd: RunEnd | None = None


class StepStart(Shape):
    name: str


class StepEnd(Shape):
    status: Literal["COMPLETE", "ERROR", "SKIP"]


class Subcomponent(Shape):
    name: str
    type: Literal["UNSPECIFIED", "ASIC", "ASIC-SUBSYSTEM", "BUS", "FUNCTION", "CONNECTOR"]


class Validator(Shape):
    type: Literal["GREATER_THAN_OR_EQUAL", "LESS_THAN_OR_EQUAL"]
    value: float
    name: str | None = None

    def holds(self, value: float) -> bool:
        low = self.type == "GREATER_THAN_OR_EQUAL"
        return value >= self.value if low else value <= self.value


class Measurement(Shape):
    name: str
    value: float
    unit: str | None = None
    validators: list[Validator] = []
    hardwareInfoId: str | None = None
    subcomponent: Subcomponent | None = None
    metadata: dict[str, Any] | None = None


class Diagnosis(Shape):
    verdict: str
    type: Literal["PASS", "FAIL", "UNKNOWN"]
    message: str | None = None
    hardwareInfoId: str | None = None
    subcomponent: Subcomponent | None = None


class Error(Shape):
    symptom: str
    message: str | None = None


class Log(Shape):
    severity: Literal["INFO", "DEBUG", "WARNING", "ERROR", "FATAL"]
    message: str


class StepArtifact(Shape):
    testStepId: str
    testStepStart: StepStart | None = None
    testStepEnd: StepEnd | None = None
    measurement: Measurement | None = None
    diagnosis: Diagnosis | None = None
    error: Error | None = None
    log: Log | None = None


class Artifact(Shape):
    sequenceNumber: int
    timestamp: datetime
    schemaVersion: SchemaVersion | None = None
    testRunArtifact: RunArtifact | None = None
    testStepArtifact: StepArtifact | None = None


def kinds(shape: Shape, *but: str) -> list[str]:
    """The keys of an object that are there, without these."""
    names = (field.name for field in msgspec.structs.fields(shape))
    return [name for name in names if name not in but and getattr(shape, name) is not None]


def read(data: bytes) -> list[Artifact]:
    """The artifacts of a file, each with one thing in it, in order and numbered."""
    assert data.endswith(b"\n")
    found = [msgspec.json.decode(line, type=Artifact) for line in data.splitlines()]
    assert [one.sequenceNumber for one in found] == list(range(len(found)))
    for one in found:
        (kind,) = kinds(one, "sequenceNumber", "timestamp")
        inner = getattr(one, kind)
        if kind != "schemaVersion":
            assert len(kinds(inner, "testStepId")) == 1
    first, second, *_, last = found
    assert first.schemaVersion is not None
    assert second.testRunArtifact is not None
    assert second.testRunArtifact.testRunStart is not None
    assert last.testRunArtifact is not None
    assert last.testRunArtifact.testRunEnd is not None
    return found


def end(found: Sequence[Artifact]) -> tuple[str, str]:
    """How the run ended: status and result."""
    last = found[-1].testRunArtifact
    assert last is not None
    assert last.testRunEnd is not None
    return last.testRunEnd.status, last.testRunEnd.result


def steps(found: Sequence[Artifact]) -> dict[str, list[StepArtifact]]:
    """The artifacts of each step by its name; each begins once and ends once, last."""
    by_id: dict[str, list[StepArtifact]] = {}
    for one in found:
        if one.testStepArtifact is not None:
            by_id.setdefault(one.testStepArtifact.testStepId, []).append(one.testStepArtifact)
    named = {}
    for artifacts in by_id.values():
        assert artifacts[0].testStepStart is not None
        assert artifacts[-1].testStepEnd is not None
        assert not any(one.testStepStart or one.testStepEnd for one in artifacts[1:-1])
        assert artifacts[0].testStepStart.name not in named
        named[artifacts[0].testStepStart.name] = artifacts
    return named


def judged_again(found: Sequence[Artifact]) -> str:
    """The result that a reader comes to by the diagnoses and the statuses alone."""
    every = [one for artifacts in steps(found).values() for one in artifacts]
    if any(one.diagnosis is not None and one.diagnosis.type == "FAIL" for one in every):
        return "FAIL"
    lacking = any(
        one.testStepEnd is not None and one.testStepEnd.status == "ERROR" for one in every
    )
    return "NOT_APPLICABLE" if lacking else "PASS"


@pytest.mark.parametrize(
    ("made", "ends", "word"),
    [
        (samples.passing, ("COMPLETE", "PASS"), "PASS"),
        (samples.mixed, ("COMPLETE", "FAIL"), "FAIL"),
    ],
)
def test_a_run_ends_as_its_verdict(
    made: Callable[[], Run], ends: tuple[str, str], word: VerdictWord
) -> None:
    run = made()
    assert run.verdict.verdict == word
    found = read(ocp.render(run))
    assert end(found) == ends
    assert judged_again(found) == ends[1]


def test_a_run_that_was_cut_off_is_no_result() -> None:
    bodies: list[Body] = [*samples.mixed_bodies()[:3], RunEnded(False, "stopped")]
    run = samples.run(bodies)
    assert run.verdict.verdict == "UNJUDGED"
    found = read(ocp.render(run))
    assert end(found) == ("ERROR", "NOT_APPLICABLE")
    assert judged_again(found) == "NOT_APPLICABLE"
    assert {one.id for one in run.verdict.checks} <= set(steps(found))


def test_each_check_is_a_step_with_its_values_and_limits() -> None:
    run = samples.mixed()
    found = steps(read(ocp.render(run)))
    for check in run.verdict.checks:
        artifacts = found[check.id]
        assert artifacts[-1].testStepEnd is not None
        assert artifacts[-1].testStepEnd.status == ocp.STATUS[check.outcome]
        values = [one.measurement for one in artifacts if one.measurement is not None]
        assert [(one.name, one.value, one.unit) for one in values] == [
            (one.due.measurement, one.value, one.due.unit)
            for one in check.judged
            if one.value is not None
        ]
        failed = [one for one in artifacts if one.diagnosis and one.diagnosis.type == "FAIL"]
        outside = [
            one for one in values if not all(bound.holds(one.value) for bound in one.validators)
        ]
        assert bool(failed) == (check.outcome == "fail")
        assert not outside or failed, "what is outside its limit is no pass for any reader"


def test_a_waived_value_does_not_fail_again() -> None:
    floor = Limit("GB/s", "half of the peak", low=12.0)
    check = journals.check("memory.bandwidth", journals.due("bandwidth", MEMORY, "GB/s", floor))
    waiver = Waiver(reason="one module", measurement="bandwidth", component="memory", worst=10.0)
    made = journals.plan(check, waivers=[waiver])
    run = samples.run(journals.bodies(made, {("bandwidth", MEMORY): 11.0}))
    found = read(ocp.render(run))
    assert end(found) == ("COMPLETE", run.verdict.verdict) == ("COMPLETE", "PASS")
    assert judged_again(found) == "PASS"
    (value,) = [
        one.measurement for one in steps(found)["memory.bandwidth"] if one.measurement is not None
    ]
    assert (value.value, value.validators) == (11.0, [])
    assert value.metadata is not None
    assert value.metadata["waived"] == [
        {"name": "low", "type": "GREATER_THAN_OR_EQUAL", "value": 12.0}
    ]


def test_the_parts_of_the_machine_are_named() -> None:
    _, start, *_ = read(ocp.render(samples.seen(samples.mixed())))
    assert start.testRunArtifact is not None
    assert start.testRunArtifact.testRunStart is not None
    device = start.testRunArtifact.testRunStart.dutInfo
    assert device.hostname == "box"
    assert device.platformInfos == [PlatformInfo("Maker")]
    parts = {one.hardwareInfoId: one for one in device.hardwareInfos or ()}
    assert list(parts) == ["machine", "cpu", "gpu0", "disk:nvme0n1"]
    gpu = parts["gpu0"]
    assert (gpu.name, gpu.serialNumber, gpu.location) == ("NVIDIA H200", "77", "0000:01:00.0")
    versions = {one.name: one.version for one in device.softwareInfos or ()}
    assert versions == {"rigproof": "0.1.0", "kernel": "6", "BIOS": "1"}


def test_what_is_found_of_the_run_is_a_step_of_its_own() -> None:
    run = samples.mixed()
    grave = [one for one in run.verdict.findings if one.kind in ("fail", "error")]
    assert grave
    assert len(steps(read(ocp.render(run)))[ocp.THE_RUN]) == len(grave) + 2


@each("text", some(HOSTILE, 4))
def test_text_from_outside_stays_in_its_line(text: str) -> None:
    found = read(ocp.render(samples.hostile(text)))
    assert end(found)[1] != "PASS" or samples.hostile(text).verdict.verdict == "PASS"


def test_a_night_that_was_not_run_is_skipped() -> None:
    bodies = [journals.bodies(journals.plan())[0], Postponed(("in use",), 1, 7)]
    assert end(read(ocp.render(samples.run(bodies)))) == ("SKIP", "NOT_APPLICABLE")
