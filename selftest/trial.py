"""A fault played and judged: what its run said, held against what had to be said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import junitparser
from run_left import Run

from acceptance.core.record import CheckEnded, SessionEnded
from acceptance.reports import junit
from selftest.fault import Expect, Fault, Named
from selftest.row import Row

WHOLE_RUN = "the whole run"
NAMED_IMAGE = "which may hold anything: such a run never passes"
# By stress-ng's own measurement, with its two figures.
STARVED = re.compile(r"the workers of \S+ ran for [\d.]+ of [\d.]+ s on average")
KINDS = {"fail": junitparser.Failure, "error": junitparser.Error, "skip": junitparser.Skipped}


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What one testcase of the JUnit says: its kind, and its text with the message."""

    kind: str
    text: str


def told(run: Run) -> dict[str, CaseResult]:
    """What each testcase of the run's JUnit says, by name; `kind` is pass where
    it has no result.
    """
    found = {}
    for name, case in run.cases().items():
        kinds = [
            kind
            for kind, type_ in KINDS.items()
            if any(isinstance(one, type_) for one in case.result)
        ]
        text = "\n".join(f"{one.message or ''}\n{one.text or ''}" for one in case.result)
        found[name] = CaseResult(kinds[0] if kinds else "pass", text)
    return found


def rows(named: Named, run: Run, boot_s: float, home: Path) -> Iterator[Row]:
    """A row for each thing that had to be said of this run."""
    fault = named.fault
    general = whole(fault, run)
    for expect in fault.expect:
        message, wrong = said(expect, run)
        wrong = wrong or general
        yield Row(
            named.family,
            f"{named.name}{f' {expect.name}' if expect.name else ''}",
            fault.seam,
            not wrong,
            by=expect.check,
            message=message,
            seconds=seconds(expect, run, boot_s),
            run_id=run.folder.name if run.folder else "",
            container=container(run),
            journal=str((run.folder / "journal.jsonl").relative_to(home)) if run.folder else "",
            wrong=wrong,
        )


def said(expect: Expect, run: Run) -> tuple[str, str]:
    """The words that were awaited, in a line; and what is wrong with what was
    said, empty where nothing is.
    """
    if expect.check == "start":
        found = _match(expect.says, run.err)
        refused = run.folder is None and not run.out.startswith("PASS")
        if not refused:
            return found, "a run was made, and it was to be refused"
        if "Traceback" in run.err:
            return found, "it ended in a traceback"
        return found, "" if found else f"it said {run.err.strip()[-300:]!r}, not /{expect.says}/"
    if run.folder is None:
        return "", f"no run was made: {run.err.strip()[-300:]}"
    if expect.outcome == "partial":
        line = _closing_line(run)
        found = _match(expect.says, line)
        word, scope = run.verdict["verdict"], run.verdict["scope"]
        right = found and (word, scope) == ("PASS", "partial")
        return found, "" if right else f"it came to {word}, scope {scope}: {line}"
    case = told(run).get(WHOLE_RUN if expect.check == "run" else expect.check)
    if case is None:
        return "", f"the JUnit has no testcase {expect.check}"
    found = _match(expect.says, case.text)
    if case.kind != expect.outcome:
        return (
            found,
            (
                f"{expect.check} came to {case.kind}, not {expect.outcome}: "
                f"{' '.join(case.text.split())[:300]}"
            ),
        )
    if not found:
        said_instead = " ".join(case.text.split())[:300]
        return "", f"{expect.check} said {said_instead!r}, not /{expect.says}/"
    return found, "" if expect.cause is None else _cause(expect, expect.cause, run, case)


def _cause(expect: Expect, due: str, run: Run, case: CaseResult) -> str:
    """What is wrong with the first cause of the awaited finding; empty where nothing is."""
    finding = _finding(expect, run, case)
    if finding is None:
        return f"/{expect.says}/ is in no finding of {expect.check}, so it shows no likely cause"
    causes = [cause["what"] for cause in finding.get("causes", [])]
    if causes[:1] == [due] or (not causes and not due):
        return ""
    shown = repr(causes[0]) if causes else "none"
    return f"the likely cause shown first is {shown}, not {due!r}: {finding['text'][:200]}"


def _finding(expect: Expect, run: Run, case: CaseResult) -> dict[str, Any] | None:
    """The finding of verdict.json at whose line of the JUnit, or below it, the words begin."""
    found = run.verdict
    rows = {
        junit.safe_line(row["text"]): row
        for row in (
            *found["violations"],
            *found.get("duplicates", ()),
            *found["unjudged"],
            *found["waivers"],
        )
        if row["check"] == expect.check
    }
    places: list[tuple[int, dict[str, Any]]] = []
    begins = 0
    for line in case.text.split("\n"):
        if line in rows:
            places.append((begins, rows[line]))
        begins += len(line) + 1
    for (begin, row), (end, _) in pairwise([*places, (begins, {})]):
        match = re.compile(expect.says, re.DOTALL).search(case.text, begin)
        if match is not None and match.start() < end:
            return row
    return None


def _closing_line(run: Run) -> str:
    """The closing line of the run, as its JUnit has it."""
    report = junitparser.JUnitXml.fromstring((run.path / "junit.xml").read_bytes())
    found = [one for suite in report for one in suite.properties()]  # type: ignore[no-untyped-call]
    properties = {one.name: one.value for one in found}
    return str(properties.get("closing_line"))


def _match(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.DOTALL)
    if match is None:
        return ""
    begin = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    return " ".join(text[begin : end if end >= 0 else None].split())[:300]


def whole(fault: Fault, run: Run) -> str:
    """What is wrong with the run as a whole, whatever it said of the fault: exit code, reports
    that disagree, a check wrongly accused.
    """
    if run.code != fault.code:
        return f"it ended with {run.code}, not {fault.code}"
    if run.folder is None:
        return ""
    try:
        run.assert_agrees()
    except AssertionError as error:
        return f"its reports do not agree: {' '.join(str(error).split())[:300]}"
    failures = [one["text"] for one in run.verdict["violations"]]
    if fault.fails not in (None, len(failures)):
        listed = " | ".join(failures)
        return f"the verdict lists {len(failures)} failures, not {fault.fails}: {listed[:600]}"
    own = [WHOLE_RUN if one.check == "run" else one.check for one in fault.expect]
    for name, case in told(run).items():
        if (
            case.kind == "pass"
            or name in own
            or name == WHOLE_RUN
            or any(re.fullmatch(pattern, name) for pattern in fault.also)
        ):
            continue
        return f"{name} was accused too ({case.kind}): {' '.join(case.text.split())[:300]}"
    if any(re.fullmatch(pattern, WHOLE_RUN) for pattern in fault.also):
        return ""
    awaited = [one.says for one in fault.expect if one.check == "run"]
    # What an awaited gate brings with it.
    awaited += [rf"{re.escape(one)} did not pass, so nothing after it was run" for one in own]
    for finding in (*run.verdict["violations"], *run.verdict["unjudged"]):
        text = finding["text"]
        if (
            finding["check"] == "run"
            and NAMED_IMAGE not in text
            and not any(re.search(one, text) for one in awaited)
        ):
            return f"the run was accused too: {text[:300]}"
    return ""


def starved(run: Run) -> str:
    """What a run says of a load that busy processors kept from its time; empty where it says
    nothing of the kind.
    """
    said = "" if run.folder is None else f"{run.texts('violations')}\n{run.texts('unjudged')}"
    found = STARVED.search(said)
    return found[0] if found else ""


def seconds(expect: Expect, run: Run, boot_s: float) -> float:
    """From the start of the command to the end of the check that said it; of the command where
    no such check ended.
    """
    if run.folder is not None:
        for entry in run.entries():
            if isinstance(entry.body, CheckEnded) and entry.body.check == expect.check:
                return round(entry.boot_s - boot_s, 1)
    return round(run.seconds, 1)


def container(run: Run) -> str:
    """The engine's short id of the container that the run's loads were in;
    empty where there was none.
    """
    ids = (
        [one.container for one in run.bodies(SessionEnded) if one.container]
        if run.folder is not None
        else []
    )
    return ids[0][:12] if ids else ""
