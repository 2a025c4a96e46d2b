"""junit.xml within the limits of its readers, and what each of them gets to show.
docs/ci/README.md says where the limits are from.
"""

from __future__ import annotations

import random
import re

import jenkins_schema
import journals
import pytest
import samples
from lxml import etree
from msgspec.structs import replace
from test_junit import cases

from acceptance.core.evidence import ToolRan
from acceptance.core.limit import Limit
from acceptance.core.parts import Core
from acceptance.core.record import Body, CheckEnded, Measured
from acceptance.reports import junit
from selftest import drawn_runs

GITLAB_BYTES, GITLAB_OBJECTS, LIBXML_TEXT = 30_000_000, 250_000, 10_000_000
GITHUB_FIELD, GITHUB_TITLE = 65_536, 255
JENKINS_OUTPUT = 100_000  # characters of system-out that are kept of a test that failed


def rendered(bodies: list[Body]) -> bytes:
    return junit.render(samples.run(bodies))


def beyond(limit: Limit) -> float:
    """A value that does not meet a limit."""
    if limit.low is not None:
        return limit.low - 1.0
    assert limit.high is not None
    return limit.high + 1.0


@pytest.fixture(scope="module")
def everything_fails() -> bytes:
    """Eight H200s on which nothing meets its limit, each check with 30 programs
    and notes of many lines.
    """
    machine = drawn_runs.named("8xh200")
    limits = {
        (c.id, due.measurement, due.component): due.limit
        for c in machine.plan.checks
        for due in c.due
    }
    bodies: list[Body] = []
    for body in drawn_runs.bodies(machine, drawn_runs.draw(machine, random.Random(1))):
        if (
            isinstance(body, Measured)
            and (limit := limits[body.check, body.measurement, body.component]) is not None
        ):
            bodies.append(
                replace(body, value=beyond(limit), note="what was looked at, a line of it\n" * 60)
            )
            continue
        if isinstance(body, CheckEnded):
            argv = ("python", "-m", "a.load", *["--an-argument"] * 20)
            bodies += [
                ToolRan(
                    body.check,
                    argv,
                    1,
                    3.0,
                    f"logs/{re.sub(r'[^A-Za-z0-9._-]', '-', body.check)}-{n}.log",
                )
                for n in range(30)
            ]
        bodies.append(body)
    return rendered(bodies)


def test_gitlab_takes_eight_gpus_on_which_everything_fails(everything_fails: bytes) -> None:
    assert jenkins_schema.faults(everything_fails) == []
    root = etree.fromstring(everything_fails)
    assert len(root.findall(".//failure")) > 30
    assert len(everything_fails) < GITLAB_BYTES / 5
    assert sum(1 for _ in root.iter()) < GITLAB_OBJECTS / 5
    assert max(len(element.text or "") for element in root.iter()) < LIBXML_TEXT / 5


def test_github_takes_every_failure_in_an_annotation(everything_fails: bytes) -> None:
    longest = 0
    for case in etree.fromstring(everything_fails).iter("testcase"):
        assert len(f"{case.get('classname')}.{case.get('name')}") < GITHUB_TITLE
        for result in case.iter("failure", "error", "skipped"):
            longest = max(longest, len((result.text or "").encode()))
            assert len(result.get("message", "").encode()) < GITHUB_FIELD
    assert GITHUB_FIELD / 2 < longest < GITHUB_FIELD, "it is the limit that cuts here"


def test_what_is_cut_keeps_what_failed_first_and_what_to_do_last(everything_fails: bytes) -> None:
    told = [case.find("failure") for case in etree.fromstring(everything_fails).iter("testcase")]
    cut = [
        (one.text or "").splitlines()
        for one in told
        if one is not None and "left out here" in (one.text or "")
    ]
    assert cut
    for lines in cut:
        assert ": measured " in lines[1]
        assert re.match(r"(next|what it shows|for the vendor|likely cause \d+): ", lines[-1])
        (said,) = [line for line in lines if "left out here" in line]
        assert re.fullmatch(r"\.\.\. \(\d+ lines left out here; report\.html has them\)", said)


def test_jenkins_keeps_what_stands_beside_a_failure_whole(everything_fails: bytes) -> None:
    for name, case in cases(everything_fails).items():
        assert len(case.system_out or "") < JENKINS_OUTPUT + 30 * 400
        if name != junit.RUN:
            assert (case.system_out or "").splitlines()[-1].endswith("-29.log]]")


def test_a_text_of_many_bytes_a_letter_is_cut_by_bytes() -> None:
    wide = "\u4e2d" * 400
    dues = [journals.due("rate", Core(n), limit=Limit("GB/s", wide, low=1.0)) for n in range(200)]
    check = journals.check("cpu.gemm", *dues)
    low = {("rate", Core(n)): 0.0 for n in range(200)}
    (result,) = cases(rendered(journals.bodies(journals.plan(check), low)))["cpu.gemm"].result
    assert GITHUB_FIELD / 2 < len(result.text.encode()) < GITHUB_FIELD
    assert "left out here" in result.text


def test_a_check_that_ran_a_program_without_end_tells_the_last_ones() -> None:
    bodies = journals.bodies(journals.plan())
    runs = [ToolRan("link.copy", ("tool", str(n)), 0, 1.0) for n in range(junit.MOST_RAN + 3)]
    lines = (
        cases(rendered([*bodies[:-1], *runs, bodies[-1]]))["link.copy"].system_out or ""
    ).splitlines()
    assert "ran 3 more programs before these" in lines
    assert lines[-1] == f"ran tool {junit.MOST_RAN + 2} (exit 0, 1.0 s)"
    assert "ran tool 2 (exit 0, 1.0 s)" not in lines


def test_gitlab_finds_the_first_log_of_every_failure(everything_fails: bytes) -> None:
    """It takes one attachment of a testcase, and no path with brackets or a bar in it."""
    for name, case in cases(everything_fails).items():
        first = re.search(r"\[\[ATTACHMENT\|([^\[\]|]+?)\]\]", case.system_out or "")
        assert (first is None) == (name == junit.RUN)
        assert (
            first is None
            or first[1] == f"/runs/run-1/logs/{name.replace('[', '-').replace(']', '-')}-0.log"
        )


# --- what each reader makes of a small run with every outcome ---


@pytest.fixture
def mixed() -> list[etree._Element]:
    return list(etree.fromstring(junit.render(samples.mixed())).iter("testcase"))


def test_gitlab_shows_the_subject_as_suite_and_the_teaching_as_output(
    mixed: list[etree._Element],
) -> None:
    """It takes classname, name, the content of the result (never its message), and of a failure
    the first attachment.
    """
    shown = {(case.get("classname"), case.get("name")) for case in mixed}
    assert len(shown) == len(mixed)
    assert ("rigproof.gpu", "gpu.present") in shown
    (failure,) = mixed[0].iter("failure")
    assert "\ngpu_count on machine: measured 0, limit = 1; basis: declared\n" in (
        failure.text or ""
    )
    assert "\nlikely cause 1: " in (failure.text or "")
    assert "\nnext: " in (failure.text or "")


def test_github_actions_show_one_group_a_subject_and_one_line_as_message(
    mixed: list[etree._Element],
) -> None:
    """They group by classname or by suite; the message is the annotation's
    text, the content its details.
    """
    for case in mixed:
        assert case.get("classname") != case.getparent().get("name"), (
            "one that is the suite's own would lose its group"
        )
        for result in case.iter("failure", "error", "skipped"):
            message = result.get("message", "")
            assert message == (result.text or "").split("\n")[0]
            assert message
            assert "\n" not in message
        assert len(list(case.iter("failure", "error"))) <= 1, "the first alone is shown"


def test_jenkins_shows_a_package_with_a_class_a_subject(mixed: list[etree._Element]) -> None:
    names = [case.get("classname", "").rpartition(".") for case in mixed]
    assert {package for package, _, _ in names} == {"rigproof"}
    assert all(subject for _, _, subject in names)
