from __future__ import annotations

import jenkins_schema
import journals
import samples
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped
from junitparser.xunit2 import TestCase
from thoroughness import examples

from acceptance.core.message import Message, Unmeasured
from acceptance.core.parts import Gpu
from acceptance.core.record import (
    CheckEnded,
    CheckStarted,
    Measured,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
)
from acceptance.core.record import Skipped as SkippedRecord
from acceptance.journal.run import UnreadableRun
from acceptance.reports import junit, summary
from acceptance.reports.explanation import labelled_lines
from acceptance.reports.locations import Locations
from acceptance.reports.text import quoted_code
from acceptance.wording import words


def cases(data: bytes) -> dict[str, TestCase]:
    found = [TestCase.fromelem(case._elem) for suite in JUnitXml.fromstring(data) for case in suite]
    return {case.name or "": case for case in found}


def test_a_run_with_every_outcome() -> None:
    found = samples.mixed()
    data = junit.render(found)
    assert jenkins_schema.faults(data) == []
    read = cases(data)
    assert list(read) == [*(check.id for check in found.verdict.checks), junit.RUN]
    assert {name: [type(result) for result in case.result] for name, case in read.items()} == {
        "gpu.present": [Failure],
        "storage.health": [Skipped],
        "memory.bandwidth": [],
        "cpu.gemm[f64]": [],
        "cpu.burn": [Failure],  # the Xid speaks louder than the tool's end
        "cpu.last": [Error],
        "kernel_log.during_run": [Error],
        junit.RUN: [Error],
    }
    present, (failure,) = read["gpu.present"], read["gpu.present"].result
    message, first, *rest = failure.text.splitlines()
    assert (present.classname, failure.message) == ("rigproof.gpu", message)
    assert message.startswith("gpu.present: ")
    assert message.endswith(" (gpu_count 0, limit = 1)")
    assert first == words.of(found.verdict.of_kind("fail")[0])
    assert rest == [
        *samples.LOOKED.splitlines(),
        *(
            quoted_code(f"{label}: {text}")
            for label, text in labelled_lines(found.verdict.of_kind("fail")[0], Locations())
        ),
    ]
    assert "\nnext: lspci -D -nn -d 10de:\n" in failure.text
    assert "\nwhat to do: reseat it\nlikely cause 1: " in read["cpu.burn"].result[0].text
    assert "next:" not in present.system_out, "it is told once"
    assert present.system_out.splitlines()[-1].startswith(f"fail: {first}"[:40])
    assert read["storage.health"].result[0].type == "waived"
    assert "stopped by SIGINT" in read["cpu.last"].result[0].message


def test_a_passing_run_has_no_result_and_no_testcase_of_its_own() -> None:
    data = junit.render(samples.passing())
    assert jenkins_schema.faults(data) == []
    assert {name: case.result for name, case in cases(data).items()} == {"link.copy": []}
    (suite,) = JUnitXml.fromstring(data)
    assert (suite.failures, {p.name: p.value for p in suite.properties()}["verdict"]) == (0, "PASS")


def test_provenance_is_in_the_suite_and_numbers_and_logs_in_their_testcase() -> None:
    data = junit.render(samples.mixed())
    (suite,) = JUnitXml.fromstring(data)
    assert {p.name: p.value for p in suite.properties()}.items() >= {
        "verdict": "FAIL",
        "run_id": "run-1",
        "commit": "abc",
        "stale_waiver_1": "bandwidth on memory: never needed",
    }.items()
    assert (suite.hostname, suite.timestamp) == ("box", "2026-01-01T00:00:00")
    case = cases(data)["memory.bandwidth"]
    assert "[[ATTACHMENT|/runs/run-1/logs/memory.bandwidth-1.log]]" in case.system_out
    assert "ran python -m load (exit 0, 3.0 s)" in case.system_out
    assert {p.name: p.value for p in case.properties()} == {
        "bandwidth[memory]": "11",
        "bandwidth[memory].unit": "GB/s",
        "bandwidth[memory].serial": "SN1",
        "bandwidth[memory].low": "10",
        "bandwidth[memory].warn_low": "12",
        "bandwidth[memory].basis": "half of the peak (class default)",
    }


def test_what_was_left_out_on_purpose_is_not_run_and_no_error() -> None:
    """A failed check ends a run, of which a load was refused before."""
    made = journals.plan(
        *(journals.check(name) for name in ("gpu.present", "vram.patterns", "cpu.last"))
    )
    gone = Message("gpus_fallen_off_before", {"gpus": "gpu1"})
    run = samples.run(
        [
            RunStarted("run-1", made, samples.PROVENANCE, "machine-1"),
            SessionStarted("load", made.digest, tuple(check.id for check in made.checks)),
            CheckStarted("vram.patterns"),
            SkippedRecord("vram.patterns", gone),
            CheckEnded("vram.patterns", "skip", gone, 0.0),
            CheckStarted("gpu.present"),
            Measured("gpu.present", "copy", Gpu(0), "GB/s", -1.0),
            CheckEnded("gpu.present", "fail", "too low", 0.1),
            SessionEnded("load", True, "exit 2", 1.0),
            RunEnded(False, Message("gate_not_passed", {"check": "gpu.present"})),
        ]
    )
    assert run.verdict.verdict == "FAIL"
    assert summary.closing_line(run).endswith(": 0 passed, 1 failed, 2 not run")
    found = cases(junit.render(run))
    kinds = {name: type(found[name].result[0]) for name in found if name != junit.RUN}
    assert kinds == {"gpu.present": Failure, "vram.patterns": Skipped, "cpu.last": Skipped}
    assert found["cpu.last"].result[0].type == "not run"
    assert "gpu.present" in found["cpu.last"].result[0].message


@each(
    "whys, kind, type_",
    [
        (("not_offered", "not_offered"), Skipped, "not_offered"),
        (("not_permitted", "not_permitted"), Skipped, "not_permitted"),
        (("not_offered", "not_permitted"), Skipped, "skipped"),
        (("not_offered", "no_answer"), Error, "unjudged"),
        ((None, None), Skipped, "skipped"),
    ],
)
def test_a_skip_says_why_nothing_was_measured(
    whys: tuple[str | None, ...], kind: type, type_: str
) -> None:
    dues = [journals.due("copy", Gpu(number)) for number in range(len(whys))]
    given_ = iter(whys)
    records = [
        SkippedRecord("link.copy", "a reason", "copy", body.component, why=why and Unmeasured(why))
        if isinstance(body, Measured) and ((why := next(given_)), True)
        else body
        for body in journals.bodies(journals.plan(journals.check("link.copy", *dues)))
    ]
    case = cases(junit.render(samples.run(records)))["link.copy"]
    assert (type(case.result[0]), case.result[0].type) == (kind, type_)
    shown = {one.name: one.value for one in case.properties() if "unmeasured" in one.name}
    assert shown == {
        f"copy[gpu{number}].unmeasured": why for number, why in enumerate(whys) if why is not None
    }


@settings(max_examples=examples(60))
@given(journals.plans(), st.lists(journals.records, max_size=12))
def test_every_planned_check_has_one_testcase(
    made: journals.Plan, records: list[journals.Body]
) -> None:
    try:
        found = samples.run([*journals.bodies(made)[:-1], *records])
    except UnreadableRun:
        return
    data = junit.render(found)
    assert jenkins_schema.faults(data) == []
    read = cases(data)
    assert [name for name in read if name != junit.RUN] == [check.id for check in made.checks]
    results = [result for case in read.values() for result in case.result]
    assert (
        any(isinstance(one, Failure | Error) for one in results)
        or found.verdict.verdict == "PASS"
        or any(check.outcome == "skip" for check in found.verdict.checks)
    )


@each(
    "data, fault",
    [
        (b"<testsuites", "no XML"),
        (b"<testsuite/>", "the root is testsuite"),
        (b'<testsuites skipped="1"/>', "testsuites has skipped"),
        (b'<testsuites time="1e5"/>', "time 1e5"),
        (b'<testsuites><testsuite name="a"/></testsuites>', "testsuite lacks "),
        (b"<testsuites>text</testsuites>", "text in testsuites"),
        (b"<testsuites><b/></testsuites>", "b is no element"),
        (
            b'<testsuites><testsuite name="a" tests="2" failures="0" errors="0" skipped="0" '
            b'time="0"><testcase name="b"/></testsuite>'
            b"</testsuites>",
            "the suite counts",
        ),
        (
            b'<testsuites><testsuite name="a" tests="2" failures="0" errors="0" skipped="0" '
            b'time="0"><testcase name="b"/>'
            b'<testcase name="b"/></testsuite></testsuites>',
            "the name b stands twice",
        ),
        (
            b'<testsuites><testsuite name="a" tests="1" failures="1" errors="1" skipped="0" '
            b'time="0"><testcase name="b"><failure/>'
            b"<error/></testcase></testsuite></testsuites>",
            "two results",
        ),
    ],
)
def test_the_checker_sees_what_breaks_the_rules(data: bytes, fault: str) -> None:
    assert any(fault in found for found in jenkins_schema.faults(data))
