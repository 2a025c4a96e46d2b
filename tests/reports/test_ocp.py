"""OCP output as a reader takes it: the artifacts of version 2.0, and nothing else.

The shapes below are our reading of the published schemas (opencomputeproject/ocp-diag-core,
json_spec/output, at 028b3dbc): which keys exist, which are required, and their words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import hostile
import journals
import jsonschema
import samples
from cases import each
from thoroughness import some

from acceptance.core.finding import Waiver
from acceptance.core.limit import Limit
from acceptance.core.parts import MEMORY
from acceptance.core.record import Postponed, RunEnded
from acceptance.core.verdict import VerdictWord
from acceptance.journal.run import Run
from acceptance.reports import ocp

Json = dict[str, Any]
TEXT, NUMBER, ANY = {"type": "string"}, {"type": "number"}, {"type": "object"}


def shape(required: Json, **optional: Json) -> Json:
    """An object of the format: any other key is a mistake, and so is a key that says null."""
    known = {**required, **optional}
    return {
        "type": "object",
        "properties": known,
        "required": list(required),
        "additionalProperties": False,
    }


def one_of(*names: str) -> Json:
    return {"enum": list(names)}


def list_of(item: Json) -> Json:
    return {"type": "array", "items": item}


SOFTWARE = shape(
    {"name": TEXT, "softwareInfoId": TEXT},
    version=TEXT,
    softwareType=one_of("UNSPECIFIED", "FIRMWARE", "SYSTEM", "APPLICATION"),
)
HARDWARE = shape(
    {"name": TEXT, "hardwareInfoId": TEXT},
    version=TEXT,
    location=TEXT,
    serialNumber=TEXT,
    manufacturer=TEXT,
)
DUT = shape(
    {"id": TEXT},
    hostname=TEXT,
    platformInfos=list_of(shape({"info": TEXT})),
    softwareInfos=list_of(SOFTWARE),
    hardwareInfos=list_of(HARDWARE),
)
STATUS = one_of("COMPLETE", "ERROR", "SKIP")
START = shape(
    {"name": TEXT, "version": TEXT, "commandLine": TEXT, "parameters": ANY, "dutInfo": DUT},
    metadata=ANY,
)
END = shape({"status": STATUS, "result": one_of("NOT_APPLICABLE", "PASS", "FAIL")})
COMPONENT = shape(
    {
        "name": TEXT,
        "type": one_of("UNSPECIFIED", "ASIC", "ASIC-SUBSYSTEM", "BUS", "FUNCTION", "CONNECTOR"),
    }
)
VALIDATOR = shape(
    {"type": one_of("GREATER_THAN_OR_EQUAL", "LESS_THAN_OR_EQUAL"), "value": NUMBER}, name=TEXT
)
WHERE: Json = {"hardwareInfoId": TEXT, "subcomponent": COMPONENT}
MEASUREMENT = shape(
    {"name": TEXT, "value": NUMBER},
    unit=TEXT,
    validators=list_of(VALIDATOR),
    metadata=ANY,
    **WHERE,
)
DIAGNOSIS = shape(
    {"verdict": TEXT, "type": one_of("PASS", "FAIL", "UNKNOWN")}, message=TEXT, **WHERE
)
LOG = shape({"severity": one_of("INFO", "DEBUG", "WARNING", "ERROR", "FATAL"), "message": TEXT})
STEP = shape(
    {"testStepId": TEXT},
    testStepStart=shape({"name": TEXT}),
    testStepEnd=shape({"status": STATUS}),
    measurement=MEASUREMENT,
    diagnosis=DIAGNOSIS,
    error=shape({"symptom": TEXT}, message=TEXT),
    log=LOG,
)
ARTIFACT = shape(
    {"sequenceNumber": {"type": "integer"}, "timestamp": TEXT},
    schemaVersion=shape({"major": {"const": 2}, "minor": {"const": 0}}),
    testRunArtifact={**shape({}, testRunStart=START, testRunEnd=END), "minProperties": 1},
    testStepArtifact={**STEP, "minProperties": 2, "maxProperties": 2},
)
READER = jsonschema.Draft202012Validator({**ARTIFACT, "minProperties": 3, "maxProperties": 3})


def read(run: Run) -> list[Json]:
    """The artifacts of a run's file, each with one thing in it, in order and numbered."""
    data = ocp.render(run)
    found: list[Json] = [json.loads(line) for line in data.splitlines()]
    assert data.endswith(b"\n")
    for number, one in enumerate(found):
        READER.validate(one)
        assert one["sequenceNumber"] == number
        assert datetime.fromisoformat(one["timestamp"])
    first, second, *_, last = found
    assert "schemaVersion" in first
    assert [*second["testRunArtifact"], *last["testRunArtifact"]] == ["testRunStart", "testRunEnd"]
    return found


def end(found: Sequence[Json]) -> tuple[str, str]:
    """How the run ended: status and result."""
    told = found[-1]["testRunArtifact"]["testRunEnd"]
    return told["status"], told["result"]


def steps(found: Sequence[Json]) -> dict[str, list[Json]]:
    """The artifacts of each step by its name; each begins once and ends once, last."""
    by_id: dict[str, list[Json]] = {}
    for one in (one["testStepArtifact"] for one in found if "testStepArtifact" in one):
        by_id.setdefault(one["testStepId"], []).append(one)
    for first, *between, last in by_id.values():
        assert ("testStepStart" in first, "testStepEnd" in last) == (True, True)
        assert not any({"testStepStart", "testStepEnd"} & set(one) for one in between)
    named = {one[0]["testStepStart"]["name"]: one for one in by_id.values()}
    assert len(named) == len(by_id)
    return named


def of_kind(artifacts: Sequence[Json], kind: str) -> list[Json]:
    return [one[kind] for one in artifacts if kind in one]


def judged_again(found: Sequence[Json]) -> str:
    """The result that a reader comes to by the diagnoses and the statuses alone."""
    every = [one for artifacts in steps(found).values() for one in artifacts]
    if any(one["type"] == "FAIL" for one in of_kind(every, "diagnosis")):
        return "FAIL"
    lacking = any(one["status"] == "ERROR" for one in of_kind(every, "testStepEnd"))
    return "NOT_APPLICABLE" if lacking else "PASS"


FLOOR = Limit("GB/s", "half of the peak", low=12.0)
CHECK = journals.check("memory.bandwidth", journals.due("bandwidth", MEMORY, "GB/s", FLOOR))
WAIVER = Waiver(reason="one module", measurement="bandwidth", component="memory", worst=10.0)
WAIVED = samples.run(
    journals.bodies(journals.plan(CHECK, waivers=[WAIVER]), {("bandwidth", MEMORY): 11.0})
)
CUT_OFF = samples.run([*samples.mixed_bodies()[:3], RunEnded(False, "stopped")])
NOT_RUN = samples.run([journals.bodies(journals.plan())[0], Postponed(("in use",), 1, 7)])


@each(
    "run, ends, word",
    [
        (samples.passing(), ("COMPLETE", "PASS"), "PASS"),
        (samples.mixed(), ("COMPLETE", "FAIL"), "FAIL"),
        (WAIVED, ("COMPLETE", "PASS"), "PASS"),
        (CUT_OFF, ("ERROR", "NOT_APPLICABLE"), "UNJUDGED"),
        (NOT_RUN, ("SKIP", "NOT_APPLICABLE"), "UNJUDGED"),
    ],
    told=["passing", "with every outcome", "waived", "cut off", "a night that was not run"],
)
def test_a_run_ends_as_its_verdict(run: Run, ends: tuple[str, str], word: VerdictWord) -> None:
    found = read(run)
    assert (run.verdict.verdict, end(found)) == (word, ends)
    assert judged_again(found) == ends[1] or ends[0] == "SKIP"
    assert {one.id for one in run.verdict.checks} <= set(steps(found)) or ends[0] == "SKIP"


def holds(bound: Json, value: float) -> bool:
    low = bound["type"] == "GREATER_THAN_OR_EQUAL"
    return bool(value >= bound["value"] if low else value <= bound["value"])


def test_each_check_is_a_step_with_its_values_and_limits() -> None:
    run = samples.mixed()
    found = steps(read(run))
    for check in run.verdict.checks:
        artifacts = found[check.id]
        assert artifacts[-1]["testStepEnd"]["status"] == ocp.STATUS[check.outcome]
        told = of_kind(artifacts, "measurement")
        assert [(one["name"], one["value"], one.get("unit")) for one in told] == [
            (one.due.measurement, one.value, one.due.unit)
            for one in check.judged
            if one.value is not None
        ]
        failed = any(one["type"] == "FAIL" for one in of_kind(artifacts, "diagnosis"))
        within = all(holds(two, one["value"]) for one in told for two in one.get("validators", ()))
        assert failed == (check.outcome == "fail")
        assert within or failed, "what is outside its limit is no pass for any reader"
    # what is found of the run is a step of its own
    grave = [one for one in run.verdict.findings if one.kind in ("fail", "error")]
    assert len(found[ocp.THE_RUN]) == len(grave) + 2 > 2


def test_a_waived_value_does_not_fail_again() -> None:
    (value,) = of_kind(steps(read(WAIVED))["memory.bandwidth"], "measurement")
    assert (value["value"], value.get("validators", [])) == (11.0, [])
    assert value["metadata"]["waived"] == [
        {"name": "low", "type": "GREATER_THAN_OR_EQUAL", "value": 12.0}
    ]


def test_the_parts_of_the_machine_are_named() -> None:
    _, start, *_ = read(samples.seen(samples.mixed()))
    device = start["testRunArtifact"]["testRunStart"]["dutInfo"]
    assert (device["hostname"], device["platformInfos"]) == ("box", [{"info": "Maker"}])
    parts = {one["hardwareInfoId"]: one for one in device["hardwareInfos"]}
    assert list(parts) == ["machine", "cpu", "gpu0", "disk:nvme0n1"]
    gpu = {key: parts["gpu0"][key] for key in ("name", "serialNumber", "location")}
    assert gpu == {"name": "NVIDIA H200", "serialNumber": "77", "location": "0000:01:00.0"}
    versions = {one["name"]: one["version"] for one in device["softwareInfos"]}
    assert versions == {"rigproof": "0.1.0", "kernel": "6", "BIOS": "1"}


@each("text", some([hostile.EVERYTHING, *hostile.FLOODS.values()], 2))
def test_text_from_outside_stays_in_its_line(text: str) -> None:
    run = samples.run(hostile.attack(text[:100_000]))
    assert end(read(run))[1] != "PASS" or run.verdict.verdict == "PASS"
