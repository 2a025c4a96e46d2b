"""Reads the reports of a run back as others would: exits 0 only when they say PASS and agree with each other."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from junitparser import JUnitXml

run = Path(sys.argv[1])
verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
report = JUnitXml.fromfile(str(run / "junit.xml"))
suites = list(report)
cases = [case for suite in suites for case in suite]
properties = {one.name: one.value for suite in suites for one in suite.properties()}
print(f"{verdict['verdict']}: {len(cases)} testcases, {report.failures} failures, {report.errors} errors")
assert verdict["verdict"] == "PASS", verdict["violations"] + verdict["unjudged"]
assert report.failures == report.errors == 0
assert {f"{case.classname}.{case.name}" for case in cases} == {f"rigproof.{check['id']}" for check in verdict["checks"]}
assert properties["verdict"] == "PASS"
assert properties["package_digest"] == verdict["provenance"]["package_digest"]
assert (run / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
