"""One junit.xml of all machines: a suite each, those without a fresh verdict first, as errors.

A machine's suite has a testcase for its verdict, and one for each check that kept it from PASS: the
checks that passed are a property with their number, since 10,000 machines of 150 checks would be
ten times what CI takes. What concerns the whole fleet is a suite of its own, the first one. Names
carry the machine, because GitLab counts only the first of two equal ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from junitparser import Error, Failure, TestSuite
from junitparser.xunit2 import TestCase

from acceptance.fleet import comparison
from acceptance.fleet.night import Row
from acceptance.fleet.report import FleetReport
from acceptance.reports.junit import document, result, safe_line, safe_name, unique_names
from acceptance.wording import words

FLEET = "the whole fleet"
_KINDS: dict[str, tuple[type[Failure] | type[Error], str]] = {
    "FAIL": (Failure, "limit"),
    "UNJUDGED": (Error, "unjudged"),
    "fail": (Failure, "limit"),
    "error": (Error, "unjudged"),
}


def render(report: FleetReport) -> bytes:
    """The content of the file."""
    return document(_suites(report))


def _suites(report: FleetReport) -> Iterator[TestSuite]:
    yield _fleet(report)
    names = unique_names((row.machine for row in report.due), FLEET)
    for name, row in zip(names, report.due, strict=True):
        yield _machine(name, row, words.text(report.reasons.get(row.machine, "")))


def _fleet(report: FleetReport) -> TestSuite:
    """What could not be read, and remarks, which fail nothing."""
    suite = TestSuite(FLEET)
    suite.add_property("verdict", report.verdict)
    case = TestCase(FLEET, classname="rigproof.fleet", time=0.0)
    lines = [safe_line(words.text(one)) for one in report.other_troubles]
    if not report.due:
        lines.append("no machine is due")
    if lines:
        case.result = [result(Error, "\n".join(lines), "unjudged")]
    remarks = list(report.remarks)
    if report.compared is not None:
        remarks += comparison.sentences(report.compared)
    if remarks:
        case.system_out = "\n".join(safe_line(words.message(one)) for one in remarks)
    suite.add_testcase(case)
    return suite


def _machine(name: str, row: Row, reason: str) -> TestSuite:
    suite = TestSuite(name)
    suite.hostname = name
    if row.began is not None:
        suite.timestamp = f"{row.began:%Y-%m-%dT%H:%M:%S}"
    about = {
        "verdict": row.verdict,
        "run_id": row.run_id,
        "profile": row.profile,
        "signer": row.signer,
        "checks": None if row.checks is None else str(row.checks),
        "caveats": "; ".join(row.caveats) or None,
        "accepted": "; ".join(words.message(one.message) for one in row.accepted) or None,
        **dict(row.groups),
    }
    for key, value in about.items():
        if value is not None:
            suite.add_property(safe_name(key), safe_line(value))
    case = TestCase(f"{name}: verdict", classname="rigproof.machine", time=0.0)
    if row.verdict != "PASS":
        kind, type_ = _KINDS[row.verdict]
        case.result = [result(kind, safe_line(reason) or row.verdict, type_)]
    suite.add_testcase(case)
    checks = unique_names((check for check, _ in row.not_passed), "verdict")
    for check, (_, outcome) in zip(checks, row.not_passed, strict=True):
        case = TestCase(f"{name}: {check}", classname="rigproof.machine", time=0.0)
        kind, type_ = _KINDS[outcome]
        text = f"{outcome} in run {row.run_id}: verdict.json of the machine says why"
        case.result = [result(kind, safe_line(text), type_)]
        suite.add_testcase(case)
    return suite
