from __future__ import annotations

import jenkins_schema
import journals
import samples
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped
from junitparser.xunit2 import TestCase
from thoroughness import examples, some

from acceptance.core.message import Message
from acceptance.core.parts import Core, Gpu
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
from acceptance.core.unmeasured import Unmeasured
from acceptance.journal.run import Run, UnreadableRun
from acceptance.reports import junit, summary
from acceptance.reports.explanation import labelled_lines
from acceptance.reports.locations import NO_LOCATIONS
from acceptance.reports.text import quoted_code

HOSTILE = [
    "<script>alert(1)</script>",
    "a]]>b <![CDATA[ &amp; &#0; \"quoted\" 'too'",
    "\x00\x01\x08\x0b\x1b[31mred\x1b[0m\x7f\x9b",
    "\U0001d558 \U0001f525 \uffff \ufdd0",
    "\ud800 lone",
    "one\r\ntwo\nthree\rfour",
    "x" * 3_000_000,
    "\x1b" * 1_000_000,
]


def cases(data: bytes) -> dict[str, TestCase]:
    found = [TestCase.fromelem(case._elem) for suite in JUnitXml.fromstring(data) for case in suite]
    return {case.name or "": case for case in found}


def test_a_run_with_every_outcome() -> None:
    found = samples.mixed()
    verdict = found.verdict
    data = junit.render(found)
    assert jenkins_schema.faults(data) == []
    read = cases(data)
    assert list(read) == [*(check.id for check in verdict.checks), junit.RUN]
    kinds = {name: [type(result) for result in case.result] for name, case in read.items()}
    assert kinds == {
        "gpu.present": [Failure],
        "storage.health": [Skipped],
        "memory.bandwidth": [],
        "cpu.gemm[f64]": [],
        "cpu.burn": [Failure],  # the Xid speaks louder than the tool's end
        "cpu.last": [Error],
        "kernel_log.during_run": [Error],
        junit.RUN: [Error],
    }
    assert read["gpu.present"].classname == "rigproof.gpu"
    message, first, *rest = read["gpu.present"].result[0].text.splitlines()
    assert read["gpu.present"].result[0].message == message
    assert message.startswith("gpu.present: ")
    assert message.endswith(" (gpu_count 0, limit = 1)")
    assert first == "gpu_count on machine: measured 0, limit = 1; basis: declared"
    assert rest == [
        *samples.LOOKED.splitlines(),
        *(
            quoted_code(f"{label}: {text}")
            for label, text in labelled_lines(verdict.of_kind("fail")[0], NO_LOCATIONS)
        ),
    ]
    assert "\nnext: lspci -D -nn -d 10de:\n" in read["gpu.present"].result[0].text
    assert (
        "\nwhat to do: reseat it\nlikely cause 1: its power broke off: "
        in read["cpu.burn"].result[0].text
    )
    assert "next:" not in read["gpu.present"].system_out, "it is told once"
    assert (
        read["gpu.present"]
        .system_out.splitlines()[-1]
        .startswith("fail: gpu_count on machine: measured 0, limit")
    )
    assert read["storage.health"].result[0].type == "waived"
    assert "never ran: stopped by SIGINT" in read["cpu.last"].result[0].message


def test_numbers_are_properties_of_their_testcase() -> None:
    found = samples.mixed()
    properties = {
        p.name: p.value for p in cases(junit.render(found))["memory.bandwidth"].properties()
    }
    assert properties == {
        "bandwidth[memory]": "11",
        "bandwidth[memory].unit": "GB/s",
        "bandwidth[memory].serial": "SN1",
        "bandwidth[memory].low": "10",
        "bandwidth[memory].warn_low": "12",
        "bandwidth[memory].basis": "half of the peak (class default)",
    }


def test_provenance_is_in_the_suite_and_logs_are_attached() -> None:
    found = samples.mixed()
    data = junit.render(found)
    (suite,) = JUnitXml.fromstring(data)
    properties = {p.name: p.value for p in suite.properties()}
    assert properties["verdict"] == "FAIL"
    assert properties["run_id"] == "run-1"
    assert properties["commit"] == "abc"
    assert properties["stale_waiver_1"] == "bandwidth on memory: never needed"
    assert suite.hostname == "box"
    assert suite.timestamp == "2026-01-01T00:00:00"
    out = cases(data)["memory.bandwidth"].system_out
    assert "[[ATTACHMENT|/runs/run-1/logs/memory.bandwidth-1.log]]" in out
    assert "ran python -m load (exit 0, 3.0 s)" in out


def left_out() -> Run:
    """A run that a failed check ended, with a load that was refused before."""
    checks = [journals.check(name) for name in ("gpu.present", "vram.patterns", "cpu.last")]
    made = journals.plan(*checks)
    ids = tuple(check.id for check in checks)
    gone = Message("gpus_fallen_off_before", {"gpus": "gpu1"})
    return samples.run(
        [
            RunStarted("run-1", made, samples.PROVENANCE, "machine-1"),
            SessionStarted("load", made.digest, ids),
            CheckStarted("vram.patterns"),
            SkippedRecord("vram.patterns", gone),
            CheckEnded("vram.patterns", "skip", gone, 0.0),
            CheckStarted("gpu.present"),
            *(
                Measured("gpu.present", due.measurement, due.component, due.unit, -1.0)
                for due in checks[0].due
            ),
            CheckEnded("gpu.present", "fail", "too low", 0.1),
            SessionEnded("load", True, "exit 2", 1.0),
            RunEnded(False, Message("gate_not_passed", {"check": "gpu.present"})),
        ]
    )


def test_what_was_left_out_on_purpose_is_not_run_and_no_error() -> None:
    run = left_out()
    assert run.verdict.verdict == "FAIL"
    assert summary.closing_line(run).endswith(": 0 passed, 1 failed, 2 not run")
    found = cases(junit.render(run))
    kinds = {name: type(found[name].result[0]) for name in found if name != junit.RUN}
    assert kinds == {"gpu.present": Failure, "vram.patterns": Skipped, "cpu.last": Skipped}
    assert found["cpu.last"].result[0].type == "not run"
    assert "gpu.present did not pass" in found["cpu.last"].result[0].message


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
    planned = journals.check("link.copy", *dues)
    records = [one for one in journals.bodies(journals.plan(planned))]
    given_ = iter(whys)
    for at, body in enumerate(records):
        if isinstance(body, Measured):
            why = next(given_)
            records[at] = SkippedRecord(
                "link.copy", "a reason", "copy", body.component, why=why and Unmeasured(why)
            )
    case = cases(junit.render(samples.run(records)))["link.copy"]
    assert (type(case.result[0]), case.result[0].type) == (kind, type_)
    shown = {one.name: one.value for one in case.properties() if "unmeasured" in one.name}
    assert shown == {
        f"copy[gpu{number}].unmeasured": why for number, why in enumerate(whys) if why is not None
    }


def test_a_passing_run_has_no_result_and_no_testcase_of_its_own() -> None:
    found = samples.passing()
    data = junit.render(found)
    assert jenkins_schema.faults(data) == []
    assert {name: case.result for name, case in cases(data).items()} == {"link.copy": []}
    assert b' failures="0"' in data
    assert b'<property name="verdict" value="PASS"/>' in data


@each("text", some(HOSTILE, 4))
def test_hostile_text_stays_text(text: str) -> None:
    found = samples.hostile(text)
    data = junit.render(found)
    assert jenkins_schema.faults(data) == []
    assert set(cases(data)) == {"subject.one", "subject.two", "subject.three", junit.RUN}
    assert len(data) < 400_000
    assert b"<script" not in data
    assert b"\x1b" not in data


def test_every_core_of_a_large_machine_keeps_its_line_and_its_log() -> None:
    check = journals.check("cpu.gemm", *(journals.due("rate", Core(n)) for n in range(512)))
    made = journals.plan(check)
    low = {("rate", Core(n)): 1.0 for n in range(512)}
    found = samples.run(journals.bodies(made, low))
    case = cases(junit.render(found))["cpu.gemm"]
    assert len(case.result[0].text.splitlines()) == 1 + 512
    assert "rate on core:511: 1 GB/s, limit >= 100 GB/s" in case.system_out


@settings(max_examples=examples(60))
@given(journals.plans(), st.lists(journals.records, max_size=12))
def test_every_planned_check_has_one_testcase(
    made: journals.Plan, records: list[journals.Body]
) -> None:
    try:
        found = samples.run([*journals.bodies(made)[:-1], *records])
    except UnreadableRun:
        return
    verdict = found.verdict
    data = junit.render(found)
    assert jenkins_schema.faults(data) == []
    read = cases(data)
    assert [name for name in read if name != junit.RUN] == [check.id for check in made.checks]
    red = any(
        isinstance(result, Failure | Error) for case in read.values() for result in case.result
    )
    assert (
        red or verdict.verdict == "PASS" or any(check.outcome == "skip" for check in verdict.checks)
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
