"""verdict.json: the verdict for programs."""

from __future__ import annotations

from typing import Any

import msgspec

from acceptance.journal import Journal
from acceptance.judge.judgement import Finding
from acceptance.judge.verdict import Verdict
from acceptance.reports import plain_json
from acceptance.reports.places import Places, places
from acceptance.reports.teaching import teaching

SCHEMA = 1


def _finding(finding: Finding, where: Places) -> dict[str, Any]:
    told = teaching(finding, where)
    row = {
        "check": finding.check,
        "measurement": finding.measurement,
        "component": finding.component,
        "text": finding.text,
        "note": finding.note,
        "event": finding.event,
        "action": finding.action,
        "symptom": told and told.symptom,
        "causes": [{"what": what, "tell": tell} for what, tell in told.causes] if told and told.causes else None,
        "next": told and told.next,
        "shows": told and told.shows,
        "vendor": told and told.vendor,
    }
    return {key: value for key, value in row.items() if value is not None}


def render(verdict: Verdict, found: Journal) -> bytes:
    """The file's content, a function of the verdict alone but for what was torn."""
    where = places(found)
    content = {
        "schema": SCHEMA,
        "verdict": verdict.verdict,
        "exit_code": verdict.exit_code(),
        "scope": verdict.scope,
        "run_id": verdict.run_id,
        "profile": verdict.profile,
        "inventory_declared": verdict.inventory_declared,
        "violations": [_finding(one, where) for one in verdict.of_kind("fail")],
        "unjudged": [_finding(one, where) for one in verdict.of_kind("error", "skip")],
        "warnings": [_finding(one, where) for one in verdict.of_kind("warn")],
        "waivers": [_finding(one, where) for one in verdict.of_kind("waived")],
        "stale_waivers": list(verdict.stale_waivers),
        "notes": [*verdict.notes, *found.torn],
        "checks": [
            {
                "id": check.id,
                "title": check.title,
                "session": check.session,
                "outcome": check.outcome,
                "seconds": round(check.seconds, 3),
                "measurements": [
                    {
                        "measurement": judged.due.measurement,
                        "component": judged.due.component,
                        "serial": judged.serial,
                        "value": judged.value,
                        "unit": judged.due.unit,
                        "limit": msgspec.to_builtins(judged.due.limit),
                        "origin": judged.due.origin,
                        "unlimited": judged.due.unlimited,
                        "waived": judged.waived,
                    }
                    for judged in check.judged
                ],
            }
            for check in verdict.checks
        ],
        "provenance": verdict.provenance,
    }
    return plain_json.render(content)
