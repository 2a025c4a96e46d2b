"""Read the reports of a run back: exit 0 only if they say PASS, name the station, and agree.

python .ci/read_back.py RUN_DIR STATION
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from junitparser import JUnitXml

run, station = Path(sys.argv[1]), sys.argv[2]
verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
report = JUnitXml.fromfile(str(run / "junit.xml"))
suites = list(report)
cases = [case for suite in suites for case in suite]
properties = {one.name: one.value for suite in suites for one in suite.properties()}
print(
    f"{verdict['verdict']}: {len(cases)} testcases, {report.failures} failures, "
    f"{report.errors} errors"
)
assert verdict["verdict"] == "PASS", verdict["violations"] + verdict["unjudged"]
assert report.failures == report.errors == 0
assert [case.name for case in cases] == [check["id"] for check in verdict["checks"]]
assert properties["verdict"] == "PASS"
assert properties["station"] == verdict["provenance"]["station"] == station
if station == "docker":
    assert properties["image_id"].startswith("sha256:")
    assert properties["image_versions"]
    print(f"image {properties['image']}, engine {properties['engine']}")
assert properties["package_digest"] == verdict["provenance"]["package_digest"]
assert (run / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
