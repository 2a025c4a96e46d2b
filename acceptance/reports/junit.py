"""junit.xml, built from the fold: one testcase a planned check, never-run ones as errors.

Readers: Jenkins, GitLab (which counts only the first of two equal names, so a testcase is named by its whole id) and the usual GitHub
actions. Numbers are properties of their testcase, which Jenkins' xunit schema does not know and its junit plugin and test databases
read; provenance is properties of the suite.
"""

from __future__ import annotations

from collections.abc import Iterator

from junitparser import Error, Failure, JUnitXml, Skipped, TestSuite
from junitparser.xunit2 import TestCase

from acceptance.journal import Journal
from acceptance.judge.judgement import Judged
from acceptance.judge.measurement import number
from acceptance.judge.record import RunStarted, ToolRan
from acceptance.judge.verdict import CheckResult, Verdict
from acceptance.reports import summary
from acceptance.reports.text import one_line

RUN = "the whole run"


def render(verdict: Verdict, found: Journal) -> bytes:
    """The file's content."""
    suite = TestSuite("rigproof")
    started = next((entry for entry in found.entries if isinstance(entry.body, RunStarted)), None)
    if started:
        suite.timestamp = started.utc.rstrip("Z").partition(".")[0]
    if host := verdict.provenance.get("host"):
        suite.hostname = one_line(host)
    for name, value in _provenance(verdict):
        suite.add_property(name, one_line(value))
    for check in verdict.checks:
        suite.add_testcase(_case(check, found))
    troubles = [finding for finding in verdict.findings if finding.kind in ("fail", "error")]
    if troubles:
        case = TestCase(RUN, classname="rigproof.run", time=0.0)
        told = "\n".join(summary.told(troubles))
        kind = Failure if any(finding.kind == "fail" for finding in troubles) else Error
        case.result = [_result(kind, told, "run")]
        suite.add_testcase(case)
    suite.update_statistics()
    suite.time = _seconds(suite.time)
    report = JUnitXml("rigproof")
    report.add_testsuite(suite)
    report.update_statistics()
    # Not in Jenkins' schema, which counts skipped tests at the suite alone.
    del report._elem.attrib["skipped"]
    report._elem.set("time", suite._elem.get("time"))
    written: bytes = report.tostring()
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + written + b"\n"


def _provenance(verdict: Verdict) -> Iterator[tuple[str, str]]:
    yield "verdict", verdict.verdict
    yield "closing_line", summary.closing_line(verdict)
    yield "run_id", verdict.run_id
    yield "profile", verdict.profile
    yield "scope", verdict.scope
    yield from verdict.provenance.items()
    for index, waiver in enumerate(verdict.stale_waivers, start=1):
        yield f"stale_waiver_{index}", waiver


def _case(check: CheckResult, found: Journal) -> TestCase:
    subject = check.id.partition(".")[0]
    case = TestCase(one_line(check.id), classname=f"rigproof.{one_line(subject)}", time=_seconds(check.seconds))
    for judged in check.judged:
        for key, value in _numbers(judged):
            case.add_property(one_line(key), one_line(value))
    told = [finding for finding in check.findings if finding.kind == check.outcome]
    waived = [finding for finding in check.findings if finding.kind == "waived"] if check.outcome == "skip" else []
    text = "\n".join(summary.told(told or waived))
    if check.outcome == "fail":
        case.result = [_result(Failure, text, "limit")]
    elif check.outcome == "error":
        case.result = [_result(Error, text, "unjudged")]
    elif check.outcome == "skip":
        case.result = [_result(Skipped, text, "waived" if waived and not told else "skipped")]
    case.system_out = "\n".join(_lines(check, found))
    return case


def _seconds(seconds: float) -> float:
    """Never negative or in scientific notation, which no schema of these knows."""
    return round(max(0.0, seconds), 3)


def _result(kind: type[Failure] | type[Error] | type[Skipped], text: str, type_: str) -> Failure | Error | Skipped:
    result = kind(message=text.split("\n")[0], type_=type_)
    result.text = text
    return result


def _numbers(judged: Judged) -> Iterator[tuple[str, str]]:
    """`cpu_gemm_f64[cpu]` and its unit, limits and basis, each a property of its own, as Jenkins and test databases read them."""
    key = f"{judged.due.measurement}[{judged.due.component}]"
    if judged.value is not None:
        yield key, repr(judged.value).removesuffix(".0")
    yield f"{key}.unit", judged.due.unit
    if judged.serial:
        yield f"{key}.serial", judged.serial
    limit = judged.due.limit
    if limit is not None:
        for name in ("low", "high", "warn_low", "warn_high"):
            bound = getattr(limit, name)
            if bound is not None:
                yield f"{key}.{name}", number(bound)
    yield f"{key}.basis", summary.basis_text(judged)


def _lines(check: CheckResult, found: Journal) -> Iterator[str]:
    yield one_line(check.title)
    for judged in check.judged:
        about = f"{judged.due.measurement} on {judged.due.component}: {summary.value_text(judged)}"
        yield one_line(f"{about}, {'limit ' if judged.due.limit else ''}{summary.limit_text(judged)}")
    for finding in check.findings:
        yield f"{finding.kind}: {one_line(finding.text)}"
        if finding.kind != check.outcome:  # what made the outcome is told whole in the result beside this
            yield from summary.details(finding)
    for entry in found.entries:
        body = entry.body
        if isinstance(body, ToolRan) and body.check == check.id:
            yield one_line(f"ran {' '.join(body.argv)} (exit {body.returncode}, {body.seconds:.1f} s)")
            if body.log:
                yield one_line(f"[[ATTACHMENT|{found.run_dir / body.log}]]")
