from __future__ import annotations

import json

import pytest
import samples
from test_junit import HOSTILE

from acceptance.reports import verdict_json

KEYS = [
    "schema", "verdict", "exit_code", "scope", "run_id", "profile", "inventory_declared", "violations", "unjudged", "warnings",
    "waivers", "stale_waivers", "notes", "checks", "provenance",
]  # fmt: skip
TAUGHT = {"symptom", "causes", "next", "shows", "vendor"}
CHECK = ["id", "title", "session", "outcome", "seconds", "measurements"]
MEASUREMENT = ["measurement", "component", "serial", "value", "unit", "limit", "origin", "unlimited", "waived"]


def test_its_shape() -> None:
    content = json.loads(verdict_json.render(*samples.mixed()))
    assert list(content) == KEYS
    assert content["schema"] == verdict_json.SCHEMA == 1
    assert (content["verdict"], content["exit_code"]) == ("FAIL", 1)
    for check in content["checks"]:
        assert list(check) == CHECK
        assert all(list(measurement) == MEASUREMENT for measurement in check["measurements"])
    for row in content["violations"] + content["unjudged"]:
        assert (
            {"check", "text"}
            <= set(row)
            <= {"check", "text", "measurement", "component", "note", "event", "action", *TAUGHT}
        )
    first, lost = content["violations"]
    assert first["note"] == samples.LOOKED
    assert set(first) >= TAUGHT
    assert first["symptom"].startswith("The PCI bus shows another number")
    assert [set(cause) for cause in first["causes"]] == [{"what", "tell"}] * 5
    assert first["next"] == "lspci -D -nn -d 10de:"
    assert (lost["event"], lost["action"], set(lost) >= TAUGHT) == ("xid.79", "reseat it", True)
    assert content["violations"][0]["text"] == "gpu_count on machine: measured 0, limit = 1; basis: declared"
    assert [row["check"] for row in content["violations"]] == ["gpu.present", "cpu.burn"]
    assert {row["check"] for row in content["unjudged"]} == {"run", "cpu.burn", "cpu.last", "kernel_log.during_run"}
    assert [row["check"] for row in content["warnings"]] == ["memory.bandwidth"]
    assert [row["check"] for row in content["waivers"]] == ["storage.health"]
    assert content["notes"] == ["the kernel log was not followed: no rights", "journal-load.jsonl ends in half a line"]
    assert content["provenance"] == samples.PROVENANCE
    values = {m["component"]: m["value"] for check in content["checks"] for m in check["measurements"]}
    assert values["memory"] == 11.0
    assert values["disk:vda"] is None


def test_a_pass() -> None:
    content = json.loads(verdict_json.render(*samples.passing()))
    assert (content["verdict"], content["exit_code"], content["violations"], content["unjudged"]) == ("PASS", 0, [], [])


@pytest.mark.parametrize("text", [text for text in HOSTILE if len(text) < 1000 and "\ud800" not in text])
def test_hostile_text_is_kept_as_it_is(text: str) -> None:
    """Programs read it: JSON escapes what it must, and the text stays what the journal holds."""
    content = json.loads(verdict_json.render(*samples.hostile(text)))
    assert content["provenance"]["machine"] == text
