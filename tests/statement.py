"""Statement: what a run says, as far as a change of layout or of names must leave it alone.

Verdict, exit code, closing lines, findings with their checks, measurements, components and texts,
and the value of every measurement. `fixtures/verdicts/` holds the statements of the recorded runs
and of the runs of the self-test; its README says how they are made.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from acceptance.reports.text import degrees, quoted_code

VERDICTS = Path(__file__).resolve().parent.parent / "fixtures/verdicts"
RECORDED = VERDICTS / "recorded.json"
KINDS = {"fail": "violations", "error": "unjudged", "warn": "warnings", "waived": "waivers"}
_PATH = re.compile(r"(?<![\w.])/[\w./%:+-]+")
_HEX = re.compile(r"\b(?=[0-9a-f-]*[0-9])[0-9a-f-]{12,}\b")
_LAST = re.compile(r"its last lines: .*", re.DOTALL)
_NUMBER = re.compile(r"(?<![A-Za-z_\d])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")

# How many more findings there are, as a closing line has it after the headline.
_MORE = re.compile(r" \(\d+ more (?:failure|finding)s?(?:; |(?=\)))")

Statement = dict[str, Any]


def of(folder: Path, screen: str) -> Statement:
    """The statement of the run in a folder that holds its verdict.json; `screen` is what its
    command printed.
    """
    verdict = json.loads((folder / "verdict.json").read_bytes())
    findings = [
        " | ".join(
            (kind, row["check"], row.get("measurement", ""), row.get("component", ""), row["text"])
        )
        for kind, key in KINDS.items()
        for row in verdict[key]
    ]
    return {
        "verdict": verdict["verdict"],
        "exit_code": verdict["exit_code"],
        "scope": verdict.get("scope"),
        "closing": [
            paperwork(line, verdict)
            for line in screen.splitlines()
            if line.startswith(verdict["verdict"])
        ],
        "outcomes": {check["id"]: check["outcome"] for check in verdict["checks"]},
        "findings": findings,
        "notes": verdict["notes"],
        "values": {
            f"{check['id']} {one['measurement']} {one['component']}": one["value"]
            for check in verdict["checks"]
            for one in check["measurements"]
            if "value" in one
        },
    }


def paperwork(line: str, verdict: dict[str, Any]) -> str:
    """A closing line without its headline: the verdict, what it does not cover, and the counts."""
    head = verdict.get("headline", {})
    for told in filter(None, (head.get("to_do"), head.get("text"))):
        said = degrees(quoted_code(told))  # as a terminal shows it
        line = line.replace(f": {said} (", " (", 1).replace(f": {said}: ", ": ", 1)
    line = _MORE.sub(" (", line, count=1)
    return line.replace(" (): ", ": ")


def masked(text: str) -> str:
    """A text without what is of one run only: paths, ids, quoted output and numbers (those of a
    component's name stay).
    """
    return _NUMBER.sub("#", _HEX.sub("#", _PATH.sub("/#", _LAST.sub("its last lines: #", text))))
