"""A run as OCP Test & Validation output, version 2.0: JSON Lines, for pipelines that read it.

Each planned check is a step. Its status says whether it ran, its diagnosis whether the hardware is
good; the format keeps the two apart as rigproof does. Only four pairs of status and result exist:

| verdict | status | result |
|---|---|---|
| PASS | COMPLETE | PASS |
| FAIL | COMPLETE | FAIL |
| UNJUDGED | ERROR | NOT_APPLICABLE |
| not run, because the machine was in use | SKIP | NOT_APPLICABLE |

A measurement's validators are its limits. One that was outside and is waived has them in its
metadata instead, so that a reader who judges again comes to the run's verdict.

Format: specification and schemas of opencomputeproject/ocp-diag-core (`json_spec/output`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from acceptance.core.finding import Finding
from acceptance.core.parts import CPU, MACHINE, Component
from acceptance.core.record import CheckEnded, CheckStarted
from acceptance.core.verdict import CheckResult, Judgement, Verdict
from acceptance.journal.run import Run
from acceptance.machine import gpu as machine_gpu
from acceptance.reports import summary
from acceptance.reports.text import one_line
from acceptance.wording import words

Object = dict[str, Any]
VERSION = {"major": 2, "minor": 0}
THE_RUN = "rigproof.run"  # the step of what is found of the run as a whole
STATUS = {"pass": "COMPLETE", "fail": "COMPLETE", "error": "ERROR", "skip": "SKIP"}
TYPES = {"low": "GREATER_THAN_OR_EQUAL", "high": "LESS_THAN_OR_EQUAL"}


def render(run: Run) -> bytes:
    """The run as JSON Lines."""
    hardware = {one["hardwareInfoId"]: one for one in _hardware(run)}
    times = _times(run)
    bodies = (
        {**artifact, "sequenceNumber": number, "timestamp": utc}
        for number, (utc, artifact) in enumerate(_artifacts(run, hardware, times))
    )
    return b"".join(msgspec.json.encode(_safe(body)) + b"\n" for body in bodies)


def _safe(value: Any) -> Any:
    """The same with every text from outside on one line, without control characters."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, Mapping):
        return {_safe(key): _safe(one) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [_safe(one) for one in value]
    return value


def _times(run: Run) -> Mapping[str, tuple[str, str]]:
    """When each check began and ended, of those that began."""
    found: dict[str, tuple[str, str]] = {}
    for entry in run.entries:
        match entry.body:
            case CheckStarted(check=check):
                found.setdefault(check, (entry.utc, entry.utc))
            case CheckEnded(check=check):
                found[check] = (found.get(check, (entry.utc,))[0], entry.utc)
            case _:
                pass
    return found


def _artifacts(
    run: Run, hardware: Mapping[str, Object], times: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, Object]]:
    verdict, first, last = run.verdict, run.first.utc, run.entries[-1].utc
    yield first, {"schemaVersion": VERSION}
    yield first, {"testRunArtifact": {"testRunStart": _run_start(run, list(hardware.values()))}}
    for number, check in enumerate(verdict.checks):
        began, ended = times.get(check.id, (first, first))
        for utc, artifact in _step(check, hardware, began, ended):
            yield utc, {"testStepArtifact": {"testStepId": str(number), **artifact}}
    for artifact in _whole_run(verdict.findings):
        step = {"testStepId": str(len(verdict.checks)), **artifact}
        yield last, {"testStepArtifact": step}
    yield last, {"testRunArtifact": {"testRunEnd": _run_end(verdict)}}


def _run_start(run: Run, hardware: Sequence[Object]) -> Object:
    provenance, board = summary.provenance(run), run.inventory.board
    versions = (
        ("rigproof", provenance.get("rigproof"), "APPLICATION"),
        ("NVIDIA driver", board.nvidia_driver, "SYSTEM"),
        ("kernel", board.kernel, "SYSTEM"),
        ("BIOS", board.bios_version, "FIRMWARE"),
    )
    software = [
        {"softwareInfoId": name, "name": name, "version": version, "softwareType": kind}
        for name, version, kind in versions
        if version
    ]
    info = {"id": run.start.machine_id, "hardwareInfos": hardware}
    info |= _known(hostname=provenance.get("host"))
    if product := " ".join(filter(None, (board.vendor, board.product))):
        info["platformInfos"] = [{"info": product}]
    return {
        "name": "rigproof",
        "version": provenance.get("rigproof", ""),
        "commandLine": "rigproof",  # the journal has what it did, not how it was called
        "parameters": {
            "profile": run.verdict.profile,
            "scope": run.verdict.scope,
            "shortened": [words.message(one.message) for one in run.verdict.shortened],
            "inventory_declared": run.verdict.inventory_declared,
        },
        "dutInfo": {**info, "softwareInfos": software},
        "metadata": {"run_id": run.verdict.run_id, **provenance},
    }


def _run_end(verdict: Verdict) -> Object:
    if verdict.postponed:
        return {"status": "SKIP", "result": "NOT_APPLICABLE"}
    if verdict.verdict == "UNJUDGED":
        return {"status": "ERROR", "result": "NOT_APPLICABLE"}
    return {"status": "COMPLETE", "result": verdict.verdict}


def _hardware(run: Run) -> Iterator[Object]:
    """The parts that measurements may be of: GPUs, processors, disks, and the machine."""
    inventory = run.inventory
    yield _part(MACHINE, inventory.board.name or "machine", serialNumber=inventory.board.serial)
    yield _part(CPU, inventory.cpu.model or "processors")
    for gpu in machine_gpu.gpus(inventory):
        device = gpu.device
        yield _part(
            gpu.name,
            (device.name if device else None) or "GPU",
            location=gpu.pci_address,
            manufacturer="NVIDIA",
            serialNumber=(device.serial or device.uuid) if device else None,
            version=device.vbios if device else None,
        )
    for disk in inventory.disks or ():
        yield _part(
            disk.component,
            disk.model or "disk",
            serialNumber=disk.serial,
            version=disk.firmware,
        )


def _part(component: Component, name: str, **about: str | None) -> Object:
    return {"hardwareInfoId": str(component), "name": name, **_known(**about)}


def _known(**about: str | None) -> Object:
    return {key: value for key, value in about.items() if value}


def _step(
    check: CheckResult, hardware: Mapping[str, Object], began: str, ended: str
) -> Iterator[tuple[str, Object]]:
    yield began, {"testStepStart": {"name": check.id}}
    for judged in check.judged:
        if judged.value is not None and math.isfinite(judged.value):
            yield ended, {"measurement": _measurement(judged, hardware)}
    for finding in check.findings:
        yield from ((ended, one) for one in _of_finding(finding, hardware))
    if check.outcome == "pass":
        yield ended, {"diagnosis": {"verdict": "within-limits", "type": "PASS"}}
    yield ended, {"testStepEnd": {"status": STATUS[check.outcome]}}


def _whole_run(findings: Iterable[Finding]) -> Iterator[Object]:
    """What is found of the run as a whole, as a last step; none where nothing is."""
    grave = [one for one in findings if one.kind in ("fail", "error")]
    if not grave:
        return
    yield {"testStepStart": {"name": THE_RUN}}
    for finding in grave:
        yield from _of_finding(finding, {})
    failed = any(one.kind == "fail" for one in grave)
    yield {"testStepEnd": {"status": "COMPLETE" if failed else "ERROR"}}


def _of_finding(finding: Finding, hardware: Mapping[str, Object]) -> Iterator[Object]:
    text = words.of(finding)
    match finding.kind:
        case "fail":
            about = "-".join(filter(None, (finding.measurement, finding.code)))
            where = _where(finding.component, hardware) if finding.component else {}
            yield {"diagnosis": {"verdict": about, "type": "FAIL", "message": text, **where}}
        case "error":
            yield {"error": {"symptom": finding.code, "message": text}}
        case _:
            yield {"log": {"severity": "WARNING", "message": f"{finding.kind}: {text}"}}


def _measurement(judged: Judgement, hardware: Mapping[str, Object]) -> Object:
    due = judged.due
    bounds = [
        {"name": name, "type": kind, "value": bound}
        for name, kind in TYPES.items()
        if (bound := getattr(due.limit, name, None)) is not None
    ]
    metadata: Object = {"component": str(due.component), "basis": summary.basis_text(judged)}
    metadata |= _known(serial=judged.serial)
    if judged.waived:
        metadata["waived"] = bounds
    found: Object = {
        "name": due.measurement,
        "value": judged.value,
        "unit": due.unit,
        **_where(due.component, hardware),
        "metadata": metadata,
    }
    if bounds and not judged.waived:
        found["validators"] = bounds
    return found


def _where(component: Component, hardware: Mapping[str, Object]) -> Object:
    """The hardware that something is of: one of ours, else a subcomponent of that name."""
    if str(component) in hardware:
        return {"hardwareInfoId": str(component)}
    return {"subcomponent": {"name": str(component), "type": "UNSPECIFIED"}}
