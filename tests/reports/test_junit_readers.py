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
from thoroughness import ALL

from acceptance.core.evidence import ToolRan
from acceptance.core.limit import Limit
from acceptance.core.parts import Core
from acceptance.core.plan import Due
from acceptance.core.record import Body, CheckEnded, Measured
from acceptance.reports import junit
from selftest import drawn_runs

GITLAB_BYTES, GITLAB_OBJECTS, LIBXML_TEXT = 30_000_000, 250_000, 10_000_000
GITHUB_FIELD, GITHUB_TITLE = 65_536, 255
JENKINS_OUTPUT = 100_000  # characters of system-out that are kept of a test that failed


# Few GPUs with long notes have as much to say as many.
LOOKED = "what was looked at, a line of it" * (1 if ALL else 6)


def missed(due: Due) -> float | None:
    """A value that does not meet its limit."""
    limit = due.limit
    if limit is None:
        return None
    return limit.low - 1.0 if limit.low is not None else (limit.high or 0.0) + 1.0


def programs(check: str) -> list[Body]:
    argv = ("python", "-m", "a.load", *["--an-argument"] * 20)
    safe = re.sub(r"[^A-Za-z0-9._-]", "-", check)
    return [ToolRan(check, argv, 1, 3.0, f"logs/{safe}-{n}.log") for n in range(30)]


@pytest.fixture(scope="module")
def everything_fails() -> bytes:
    """Eight H200s on which nothing meets its limit (two in `make test`), each check with 30
    programs and notes of many lines.
    """
    machine = drawn_runs.named("8xh200" if ALL else "2x4090")
    dues = {
        (c.id, due.measurement, due.component): due for c in machine.plan.checks for due in c.due
    }
    bodies: list[Body] = []
    for body in drawn_runs.bodies(machine, drawn_runs.draw(machine, random.Random(1))):
        told = body
        if isinstance(body, Measured):
            value = missed(dues[body.check, body.measurement, body.component])
            if value is not None:
                told = replace(body, value=value, note=f"{LOOKED}\n" * 60)
        bodies += [*(programs(body.check) if isinstance(body, CheckEnded) else []), told]
    return junit.render(samples.run(bodies))


def test_gitlab_takes_eight_gpus_on_which_everything_fails(everything_fails: bytes) -> None:
    """It takes one attachment of a testcase, and no path with brackets or a bar in it."""
    assert jenkins_schema.faults(everything_fails) == []
    root = etree.fromstring(everything_fails)
    assert len(root.findall(".//failure")) > 30
    assert len(everything_fails) < GITLAB_BYTES / 5
    assert sum(1 for _ in root.iter()) < GITLAB_OBJECTS / 5
    assert max(len(element.text or "") for element in root.iter()) < LIBXML_TEXT / 5
    for name, case in cases(everything_fails).items():
        out = case.system_out or ""
        assert len(out) < JENKINS_OUTPUT + 30 * 400
        first = re.search(r"\[\[ATTACHMENT\|([^\[\]|]+?)\]\]", out)
        assert (first is None) == (name == junit.RUN)
        if first is not None:
            safe = name.replace("[", "-").replace("]", "-")
            assert first[1] == f"/runs/run-1/logs/{safe}-0.log"
            assert out.splitlines()[-1].endswith("-29.log]]")


def test_github_takes_every_failure_in_an_annotation(everything_fails: bytes) -> None:
    longest = 0
    for case in etree.fromstring(everything_fails).iter("testcase"):
        assert len(f"{case.get('classname')}.{case.get('name')}") < GITHUB_TITLE
        for result in case.iter("failure", "error", "skipped"):
            longest = max(longest, len((result.text or "").encode()))
            assert len(result.get("message", "").encode()) < GITHUB_FIELD
    assert GITHUB_FIELD / 2 < longest < GITHUB_FIELD, "it is the limit that cuts here"


def test_what_is_cut_keeps_what_failed_first_and_what_to_do_last(everything_fails: bytes) -> None:
    texts = [one.text or "" for one in etree.fromstring(everything_fails).iter("failure")]
    cut = [text.splitlines() for text in texts if "left out here" in text]
    assert cut
    for lines in cut:
        assert ": measured " in lines[1]
        assert re.match(r"(next|what it shows|for the vendor|likely cause \d+): ", lines[-1])
        (said,) = [line for line in lines if "left out here" in line]
        assert re.fullmatch(r"\.\.\. \(\d+ lines left out here; report\.html has them\)", said)


def test_what_each_reader_shows_of_a_small_run() -> None:
    """GitLab takes classname, name and the content of the result, never its message; GitHub
    groups by classname or by suite, and takes the message as the annotation's text and the first
    result alone; Jenkins shows a package with a class a subject.
    """
    found = list(etree.fromstring(junit.render(samples.mixed())).iter("testcase"))
    assert len({(case.get("classname"), case.get("name")) for case in found}) == len(found)
    (failure,) = found[0].iter("failure")
    told = ("gpu_count on machine: ", "likely cause 1: ", "next: ")
    assert [one for one in told if f"\n{one}" not in (failure.text or "")] == []
    for case in found:
        package, _, subject = case.get("classname", "").rpartition(".")
        assert (package, bool(subject)) == ("rigproof", True)
        assert case.get("classname") != case.getparent().get("name"), "it would lose its group"
        results = list(case.iter("failure", "error", "skipped"))
        assert len(results) <= 1
        for result in results:
            message = result.get("message", "")
            assert message == (result.text or "").split("\n")[0] != ""


def test_a_text_of_many_bytes_a_letter_is_cut_by_bytes_and_no_core_of_many_is() -> None:
    floors = [Limit("GB/s", text, low=1.0) for text in ("\u4e2d" * 400, "floor")]
    for floor, count, cut in ((floors[0], 200, True), (floors[1], 512, False)):
        dues = [journals.due("rate", Core(n), limit=floor) for n in range(count)]
        plan = journals.plan(journals.check("cpu.gemm", *dues))
        low = {("rate", Core(n)): 0.0 for n in range(count)}
        case = cases(junit.render(samples.run(journals.bodies(plan, low))))["cpu.gemm"]
        text = case.result[0].text
        assert ("left out here" in text) is cut
        assert len(text.encode()) < GITHUB_FIELD
        whole = len(text.splitlines()) == 1 + count
        assert (len(text.encode()) > GITHUB_FIELD / 2) if cut else whole
        assert f"rate on core:{count - 1}: 0 GB/s, limit >= 1 GB/s" in case.system_out


def test_a_check_that_ran_a_program_without_end_tells_the_last_ones() -> None:
    *bodies, last = journals.bodies(journals.plan())
    runs = [ToolRan("link.copy", ("tool", str(n)), 0, 1.0) for n in range(junit.MOST_RAN + 3)]
    found = cases(junit.render(samples.run([*bodies, *runs, last])))
    lines = (found["link.copy"].system_out or "").splitlines()
    assert "ran 3 more programs before these" in lines
    assert lines[-1] == f"ran tool {junit.MOST_RAN + 2} (exit 0, 1.0 s)"
    assert "ran tool 2 (exit 0, 1.0 s)" not in lines
