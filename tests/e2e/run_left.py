"""A call of rigproof that has ended, and what it left: journal, verdict.json, junit.xml."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jenkins_schema
from junitparser import Error, Failure, JUnitXml
from junitparser.xunit2 import TestCase

from acceptance.core.record import Body, CheckEnded, Entry
from acceptance.journal import reader
from acceptance.process import orphans


@dataclass(frozen=True)
class Run:
    """A call of rigproof that has ended, and the run it made, if it made one."""

    code: int
    out: str
    err: str
    seconds: float
    folder: Path | None

    @property
    def path(self) -> Path:
        assert self.folder is not None, f"no run was made: {self.err}"
        return self.folder

    @property
    def verdict(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "verdict.json").read_bytes())
        return found

    def entries(self) -> tuple[Entry, ...]:
        return reader.read(self.path, telemetry=True).entries

    def bodies(self, kind: type[Body]) -> list[Any]:
        return [entry.body for entry in self.entries() if isinstance(entry.body, kind)]

    def ended(self) -> dict[str, str]:
        """Outcome by check, as the sessions journalled it."""
        return {body.check: body.outcome for body in self.bodies(CheckEnded)}

    def outcomes(self) -> dict[str, str]:
        """Outcome by check, as the fold found it."""
        return {check["id"]: check["outcome"] for check in self.verdict["checks"]}

    def texts(self, kind: str) -> str:
        """All findings of verdict.json under this key, one a line, each with its note."""
        rows = self.verdict[kind]
        return "\n".join(f"{row['check']}: {row['text']}{row.get('note', '')}" for row in rows)

    def cases(self) -> dict[str, TestCase]:
        """The testcases of junit.xml by name, after it was held against the
        rules of Jenkins' schema.
        """
        data = (self.path / "junit.xml").read_bytes()
        assert jenkins_schema.faults(data) == []
        cases = [
            TestCase.fromelem(case._elem) for suite in JUnitXml.fromstring(data) for case in suite
        ]
        found = {case.name or "": case for case in cases}
        assert len(found) == len(cases), "two testcases share a name"
        return found

    def assert_agrees(self) -> None:
        """Exit code, verdict.json, junit.xml and page say the same, and no process is left."""
        verdict = self.verdict
        assert (
            self.code
            == verdict["exit_code"]
            == {"PASS": 0, "FAIL": 1, "UNJUDGED": 3}[verdict["verdict"]]
        )
        assert self.out.rstrip().splitlines()[-1].startswith(verdict["verdict"])
        assert "Traceback" not in self.out + self.err
        cases = self.cases()
        planned = [check["id"] for check in verdict["checks"]]
        assert [name for name in cases if name != "the whole run"] == planned
        kinds = {"fail": Failure, "error": Error}
        for check in verdict["checks"]:
            results = cases[check["id"]].result
            if check["outcome"] in kinds:
                assert [type(result) for result in results] == [kinds[check["outcome"]]], check[
                    "id"
                ]
            else:
                assert not any(isinstance(result, Failure | Error) for result in results), check[
                    "id"
                ]
        bad = any(
            isinstance(result, Failure | Error) for case in cases.values() for result in case.result
        )
        assert bad or verdict["verdict"] == "PASS" or "skip" in self.outcomes().values()
        assert f'<h1 class="{verdict["verdict"]}">' in (self.path / "report.html").read_text(
            encoding="utf-8"
        )
        assert orphans.find(self.path.name) == {}
