"""junit.xml, built from the fold: one testcase per planned check, never-run ones as errors.

A check that was left out on purpose, because another one ended the run or its GPU had fallen off
the bus, is skipped: what made it so is a failure or an error of its own.

Readers: Jenkins, GitLab (which counts only the first of two equal names, so a testcase is named by
its whole id) and the usual GitHub actions. Numbers are properties of their testcase: Jenkins' xunit
schema does not know those, but its junit plugin and test databases read them. Provenance is
properties of the suite.

Text from outside is untrusted here too: no name is longer than CI stores, no two testcases have the
same name, and only `_attachment` writes the words at which CI fetches a file. A line is cut at
2,000 characters, so that a tool's megabytes add some tens of kilobytes, and a testcase's text is
cut where the readers stop taking it (docs/ci/README.md): eight GPUs in which everything fails stay
far below the 30 MB that GitLab takes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestSuite
from junitparser.xunit2 import TestCase

from acceptance.core.evidence import ToolRan
from acceptance.core.finding import Finding
from acceptance.core.language import ENGLISH
from acceptance.core.limit import number
from acceptance.core.message import Unmeasured
from acceptance.core.verdict import CheckResult, Judgement
from acceptance.journal.run import Run
from acceptance.reports import explanation, summary
from acceptance.reports.locations import Locations, find_locations
from acceptance.reports.text import one_line, quoted_code
from acceptance.wording import words

RUN = "the whole run"
# characters of a name; GitLab and test databases hold 255, which leaves room for the mark of a cut
NAME = 200
# bytes of a failure's text: GitHub allows 64 KiB in an annotation, and rejects the whole report if
# one has more
RESULT = 60_000
# bytes of system-out: Jenkins keeps 100,000 characters of a failed test
OUTPUT = 90_000
MOST_RAN = 200  # programs listed for one check, the last ones
_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_ATTACHMENT = "[[ATTACHMENT|"


def safe_line(text: str) -> str:
    """One line of text from outside, with requests to attach a file disarmed.

    CI would attach any file of the machine it runs on. Its pages show backticks as they are, so
    code stands in quotation marks.
    """
    return quoted_code(one_line(text)).replace(_ATTACHMENT, "[ [ATTACHMENT|")


def safe_name(text: str) -> str:
    """A name from outside, on one line and no longer than CI stores."""
    return one_line(text, NAME)


def unique_names(ids: Iterable[str], reserved: str = RUN) -> Iterator[str]:
    """A name for each testcase: its check's id, with a number if sanitized ids are equal.

    None is named `reserved`.
    """
    taken = {reserved}
    for text in ids:
        name = own = safe_name(text)
        number_ = 2
        while name in taken:
            name, number_ = f"{own} ({number_})", number_ + 1
        taken.add(name)
        yield name


def render(run: Run) -> bytes:
    """The content of junit.xml."""
    suite, verdict, where = (
        TestSuite("rigproof"),
        run.verdict,
        find_locations(run),
    )
    if utc := _UTC.match(run.first.utc):
        suite.timestamp = utc[0]
    if host := verdict.provenance.get("host"):
        suite.hostname = safe_name(host)
    for name, value in _properties(run):
        suite.add_property(safe_name(name), safe_line(value))
    put_off = [finding for finding in verdict.findings if verdict.postponed]
    for name, check in zip(
        unique_names([check.id for check in verdict.checks]), verdict.checks, strict=True
    ):
        suite.add_testcase(_case(name, check, run, where, put_off))
    troubles = [finding for finding in verdict.findings if finding.kind in ("fail", "error")]
    if troubles:
        case = TestCase(RUN, classname="rigproof.run", time=0.0)
        lines = _finding_text(troubles, where)
        kind = Failure if any(finding.kind == "fail" for finding in troubles) else Error
        case.result = [result(kind, lines, "run")]
        suite.add_testcase(case)
    return document([suite])


def document(suites: Iterable[TestSuite]) -> bytes:
    """The content of a file of these suites, with their counts."""
    report = JUnitXml("rigproof")
    for suite in suites:
        suite.update_statistics()
        suite.time = _seconds(suite.time)
        report.append(suite)  # add_testsuite looks at every suite before it
    report.update_statistics()
    # Not in Jenkins' schema, which counts skipped tests only in the suite.
    del report._elem.attrib["skipped"]
    report._elem.set("time", f"{_seconds(report.time)}")
    written: bytes = report.tostring()
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + written + b"\n"


def _properties(run: Run) -> Iterator[tuple[str, str]]:
    verdict = run.verdict
    yield "verdict", verdict.verdict
    yield "closing_line", summary.closing_line(run)
    if (first := explanation.of_run(run)) is not None:
        yield "headline", first.to_do()
    yield "run_id", verdict.run_id
    yield "profile", verdict.profile
    yield "scope", summary.scope(verdict)
    if verdict.shortened:
        yield "shortened", summary.reductions(verdict.shortened)
    yield from summary.provenance(run).items()
    for index, waiver in enumerate(summary.stale_waivers(verdict), start=1):
        yield f"stale_waiver_{index}", words.message(waiver)


def _case(
    name: str, check: CheckResult, run: Run, where: Locations, put_off: Sequence[Finding]
) -> TestCase:
    """The testcase of one planned check; `put_off` says why nothing of the plan was run."""
    subject = check.id.partition(".")[0]
    case = TestCase(name, classname=f"rigproof.{safe_name(subject)}", time=_seconds(check.seconds))
    for judged in check.judged:
        for key, value in _numbers(judged):
            case.add_property(safe_name(key), safe_line(value))
    findings = [finding for finding in check.findings if finding.kind == check.outcome]
    waived = (
        [finding for finding in check.findings if finding.kind == "waived"]
        if check.outcome == "skip"
        else []
    )
    text = _finding_text(findings or waived or put_off, where)
    if check.outcome == "fail":
        case.result = [result(Failure, text, "limit")]
    elif check.outcome == "error":
        case.result = [result(Error, text, "unjudged")]
    elif check.outcome == "skip":
        left_out = "not run" if summary.was_not_run(check) else _lack(findings)
        case.result = [result(Skipped, text, "waived" if waived and not findings else left_out)]
    case.system_out = "\n".join(
        (*_limit_lines(list(_lines(check, where)), OUTPUT), *_ran(check.id, run))
    )
    return case


def _lack(findings: Sequence[Finding]) -> str:
    """Why a skipped check measured nothing, where all that was due of it lacks for one reason."""
    codes = {finding.code for finding in findings}
    return codes.pop() if len(codes) == 1 and codes <= set(Unmeasured) else "skipped"


def _finding_text(findings: Sequence[Finding], where: Locations) -> str:
    """The findings of a testcase below their headline, where they decided its outcome."""
    judged = [finding for finding in findings if finding.kind in ("fail", "error")]
    first = explanation.of_findings(judged, where)
    lines = [*([first.line()] if first else []), *summary.finding_lines(findings, where)]
    return "\n".join(_limit_lines(list(map(safe_line, lines)), RESULT))


def _limit_lines(lines: Sequence[str], size: int) -> Sequence[str]:
    """The lines if they fit into `size` bytes, else the first and the last of them.

    The first say what failed, and the last say what to do.
    """
    sizes = [len(line.encode("utf-8")) + 1 for line in lines]
    if sum(sizes) <= size:
        return lines
    room = size - NAME  # room for the line that says so
    head = _fitting(sizes, 2 * room // 3)
    tail = _fitting(sizes[:head:-1], room // 3)
    left_out = ENGLISH.ngettext(
        "... ({n} line left out here; report.html has them)",
        "... ({n} lines left out here; report.html has them)",
        len(lines) - head - tail,
    )
    return (*lines[:head], left_out, *lines[len(lines) - tail :])


def _fitting(sizes: Sequence[int], size: int) -> int:
    """How many of these, from the first on, have at most `size` bytes together."""
    return sum(total <= size for total in itertools.accumulate(sizes))


def _seconds(seconds: float) -> float:
    """Seconds, never negative or in scientific notation, which the schemas do not allow."""
    return round(max(0.0, seconds), 3)


def result(
    kind: type[Failure] | type[Error] | type[Skipped], text: str, type_: str
) -> Failure | Error | Skipped:
    """What came of a testcase: the first line is its message."""
    found = kind(message=text.split("\n")[0], type_=type_)
    found.text = text
    return found


def _numbers(judged: Judgement) -> Iterator[tuple[str, str]]:
    """Properties of a measurement: `cpu_gemm_f64[cpu]`, its unit, limits and basis.

    Each is a property of its own, as Jenkins and test databases read them.
    """
    # Cut before suffixes are added, so that a value and its unit keep different names.
    key = one_line(f"{judged.due.measurement}[{judged.due.component}]", NAME - 30)
    if judged.value is not None:
        yield key, repr(judged.value).removesuffix(".0")
    yield f"{key}.unit", judged.due.unit
    if judged.unmeasured is not None:
        yield f"{key}.unmeasured", judged.unmeasured
    if judged.serial:
        yield f"{key}.serial", judged.serial
    limit = judged.due.limit
    if limit is not None:
        for name in ("low", "high", "warn_low", "warn_high"):
            bound = getattr(limit, name)
            if bound is not None:
                yield f"{key}.{name}", number(bound)
    yield f"{key}.basis", summary.basis_text(judged)


def _lines(check: CheckResult, where: Locations) -> Iterator[str]:
    yield safe_line(check.title)
    for judged in check.judged:
        about = f"{judged.due.measurement} on {judged.due.component}: {summary.value_text(judged)}"
        yield safe_line(
            f"{about}, {'limit ' if judged.due.limit else ''}{summary.limit_text(judged)}"
        )
    for finding in check.findings:
        yield f"{finding.kind}: {safe_line(words.of(finding))}"
        # details of findings that made the outcome are in the result
        if finding.kind != check.outcome:
            yield from map(safe_line, explanation.details(finding, where))


def _ran(check: str, run: Run) -> Iterator[str]:
    """The programs that a check ran, each with its log.

    They come last, because readers that shorten the text keep its end.
    """
    bodies = [
        entry.body
        for entry in run.entries
        if isinstance(entry.body, ToolRan) and entry.body.check == check
    ]
    if len(bodies) > MOST_RAN:
        yield ENGLISH.ngettext(
            "ran {n} more program before these",
            "ran {n} more programs before these",
            len(bodies) - MOST_RAN,
        )
    for body in bodies[-MOST_RAN:]:
        yield safe_line(f"ran {' '.join(body.argv)} (exit {body.returncode}, {body.seconds:.1f} s)")
        if body.log:
            yield from _attachment(run.folder, body.log)


def _attachment(run_dir: Path, log: str) -> Iterator[str]:
    """Ask CI to attach a log.

    Sessions write the names, so a name that leads out of the run's folder, or would be changed by
    `one_line`, is ignored.
    """
    path, inside = f"{run_dir / log}", Path(log)
    if (
        one_line(path) == path
        and "]]" not in path
        and not inside.is_absolute()
        and ".." not in inside.parts
    ):
        yield f"{_ATTACHMENT}{path}]]"
