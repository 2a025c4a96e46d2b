"""verdict.json as programs read it: with the published schema, whatever the run was."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import journals
import jsonschema
import pytest
import samples
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from test_junit import HOSTILE
from thoroughness import examples

from acceptance.core.parts import Gpu
from acceptance.core.plan import Reduction
from acceptance.core.record import RunClosed
from acceptance.core.unmeasured import Unmeasured
from acceptance.journal.run import UnreadableRun
from acceptance.reports import verdict_json

PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "verdict.schema.json"
SCHEMA: dict[str, Any] = json.loads(PUBLISHED.read_bytes())
READER = jsonschema.Draft202012Validator(SCHEMA)
Content = dict[str, Any]

KEYS = [
    "schema",
    "verdict",
    "exit_code",
    "run_id",
    "violations",
    "unjudged",
    "warnings",
    "waivers",
    "stale_waivers",
    "notes",
    "checks",
    "provenance",
    "scope",
    "verified_load",
    "tested_memory",
    "profile",
    "inventory_declared",
    "caveats",
    "headline",
]
TAUGHT = {"symptom", "causes", "next", "shows", "vendor"}
CHECK = ["id", "title", "session", "outcome", "seconds", "measurements"]


def read(data: bytes) -> Content:
    """A file as its reader takes it: held against the published schema first."""
    content: Content = json.loads(data)
    READER.validate(content)
    return content


def closed() -> bytes:
    """The file of a run that was killed in the middle of a check and closed by a later start."""
    bodies = [
        *samples.mixed_bodies()[:-2],
        RunClosed("cpu.burn", True, {}, "the machine was started again"),
    ]
    return verdict_json.render(samples.run(bodies))


REAL: dict[str, Callable[[], bytes]] = {
    "PASS": lambda: verdict_json.render(samples.passing()),
    "FAIL": lambda: verdict_json.render(samples.mixed()),
    "closed": closed,
    "unreadable": lambda: verdict_json.unreadable("run-1", "nothing was measured"),
}


# --- the schema ---


def test_the_published_schema_is_that_of_this_version() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "acceptance.reports.verdict_json"], capture_output=True, check=True
    )
    assert made.stdout == PUBLISHED.read_bytes(), (
        "renew it: python -m acceptance.reports.verdict_json > docs/verdict.schema.json"
    )


def test_the_schema_is_one_and_tells_its_number() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["$id"] == f"urn:rigproof:verdict:{verdict_json.SCHEMA}"
    assert SCHEMA["properties"]["schema"]["enum"] == [verdict_json.SCHEMA]
    told = (PUBLISHED.parent / "verdict.md").read_text(encoding="utf-8")
    assert f"| {verdict_json.SCHEMA} | " in told, (
        "what has changed is told to those who read the file"
    )


def test_every_shape_is_closed_and_said() -> None:
    shapes = [SCHEMA, *SCHEMA["$defs"].values()]
    assert len(shapes) == 25
    for shape in shapes:
        assert shape["description"]
        if "enum" in shape:
            assert shape["enum"] == sorted(Unmeasured)
            continue
        assert shape["additionalProperties"] is False
        assert set(shape["required"]) <= set(shape["properties"])


# --- what is written fits it ---


def test_its_shape() -> None:
    content = read(verdict_json.render(samples.mixed()))
    assert list(content) == KEYS
    assert content["schema"] == verdict_json.SCHEMA == 7
    assert (content["verdict"], content["exit_code"]) == ("FAIL", 1)
    assert all(list(check) == CHECK for check in content["checks"])
    first, lost = content["violations"]
    assert first["note"] == samples.LOOKED
    assert set(first) >= TAUGHT
    assert first["symptom"].startswith("The PCI bus shows another number")
    assert [set(cause) for cause in first["causes"]] == [{"what", "tell"}] * 5
    assert first["next"] == "lspci -D -nn -d 10de:"
    assert (lost["event"], lost["action"], set(lost) >= TAUGHT) == ("xid.79", "reseat it", True)
    assert (
        content["violations"][0]["text"]
        == "gpu_count on machine: measured 0, limit = 1; basis: declared"
    )
    assert [row["check"] for row in content["violations"]] == ["gpu.present", "cpu.burn"]
    assert content["violations"][1]["quote"] == "NVRM: Xid 79"
    assert {row["check"] for row in content["unjudged"]} == {
        "run",
        "cpu.burn",
        "cpu.last",
        "kernel_log.during_run",
    }
    assert [row["check"] for row in content["warnings"]] == ["memory.bandwidth"]
    assert [row["check"] for row in content["waivers"]] == ["storage.health"]
    assert content["notes"] == [
        "the kernel log was not followed: no rights",
        "storage was waived whole: no value of it was held against its limit without a waiver",
        "journal-load.jsonl ends in half a line, which was dropped: '{'",
    ]
    assert content["provenance"] == {**samples.PROVENANCE, "machine_id": "machine-1"}


def test_the_board_is_named_where_its_serial_could_be_read() -> None:
    board = samples.INVENTORY["board"]
    for more, named in (({"serial": "S-1"}, "S-1"), ({}, None)):
        found = samples.seen(samples.passing(), {**samples.INVENTORY, "board": {**board, **more}})
        facts = read(verdict_json.render(found))["provenance"]
        assert (facts.get("board_serial"), facts["bios_version"]) == (named, "1")


def test_what_is_not_known_is_absent() -> None:
    content = read(verdict_json.render(samples.mixed()))
    figures = {
        figure["component"]: figure
        for check in content["checks"]
        for figure in check["measurements"]
    }
    assert figures["memory"] == {
        "measurement": "bandwidth",
        "component": "memory",
        "unit": "GB/s",
        "origin": "class default",
        "waived": False,
        "serial": "SN1",
        "value": 11.0,
        "limit": {"unit": "GB/s", "basis": "half of the peak", "low": 10.0, "warn_low": 12.0},
    }
    assert "value" not in figures["disk:vda"]
    assert "serial" not in figures["core:1"]
    assert (figures["core:1"]["unlimited"], "limit" in figures["core:1"]) == (
        "no limit can be",
        False,
    )
    assert b"null" not in verdict_json.render(samples.mixed())


def test_a_pass() -> None:
    content = read(verdict_json.render(samples.passing()))
    assert (
        content["verdict"],
        content["exit_code"],
        content["violations"],
        content["unjudged"],
    ) == ("PASS", 0, [], [])


def test_a_shortened_run_says_what_is_less() -> None:
    less = Reduction("burn", 1.0, 12.0, "s")
    plan = replace(journals.plan(), scope="partial", shortened=(less,))
    content = read(verdict_json.render(samples.run(journals.bodies(plan))))
    assert (content["verdict"], content["scope"]) == ("PASS", "partial")
    assert content["shortened"] == [SHORTER]
    whole = samples.run(journals.bodies(journals.plan()))
    assert "shortened" not in read(verdict_json.render(whole))


def test_a_run_without_a_plan_has_the_same_shape() -> None:
    content = read(REAL["unreadable"]())
    assert (content["schema"], content["verdict"], content["exit_code"]) == (
        verdict_json.SCHEMA,
        "UNJUDGED",
        3,
    )
    told = "nothing was measured"
    values = {"text": told}
    assert content["unjudged"] == [
        {"check": "run", "text": told, "code": "unreadable", "values": values}
    ]
    assert list(content) == [*KEYS[:12], "headline"]


def test_a_run_that_a_later_start_closed() -> None:
    content = read(closed())
    assert content["verdict"] == "FAIL"
    assert "the machine was started again" in {row["text"] for row in content["unjudged"]}


@each("text", [text for text in HOSTILE if len(text) < 1000 and "\ud800" not in text])
def test_hostile_text_is_kept_as_it_is(text: str) -> None:
    """Programs read it: JSON escapes what it must, and the text stays what the journal holds."""
    content = read(verdict_json.render(samples.hostile(text)))
    assert content["provenance"]["machine"] == text


def test_what_is_no_unicode_fits_too() -> None:
    read(verdict_json.render(samples.hostile("\ud800 lone")))


@settings(max_examples=examples(60))
@given(journals.plans(), st.lists(journals.records, max_size=12))
def test_every_run_that_can_be_judged_fits(
    made: journals.Plan, records: list[journals.Body]
) -> None:
    try:
        found = samples.run([*journals.bodies(made)[:-1], *records])
    except UnreadableRun:
        return
    assert read(verdict_json.render(found))["verdict"] == found.verdict.verdict


# --- what is wrong is refused ---


def without(key: str) -> Callable[[Content], object]:
    return lambda content: content.pop(key)


def put(key: str, value: object) -> Callable[[Content], object]:
    return lambda content: content.update({key: value})


SHORTER = {"load": "burn", "planned": 1.0, "own": 12.0, "unit": "s"}
WRONG: list[tuple[str, str, Callable[[Content], object]]] = [
    ("FAIL", "a key that nobody knows", put("more", 1)),
    ("FAIL", "the number of another shape", put("schema", 1)),
    ("FAIL", "no number", without("schema")),
    ("FAIL", "a verdict that is none", put("verdict", "OK")),
    ("FAIL", "a failing run that says PASS", put("verdict", "PASS")),
    ("FAIL", "a failing run that ends as a passing one", put("exit_code", 0)),
    ("FAIL", "a failing run without a violation", put("violations", [])),
    ("FAIL", "checks, and not what they cover", without("scope")),
    ("PASS", "a full run that was shortened", put("shortened", [SHORTER])),
    ("PASS", "a shortened run of nothing", put("shortened", [])),
    ("PASS", "a pass without a check", put("checks", [])),
    (
        "PASS",
        "a pass with a reason against it",
        put("unjudged", [{"check": "run", "text": "died"}]),
    ),
    ("unreadable", "unjudged for no reason", put("unjudged", [])),
    ("unreadable", "a list that is null", put("notes", None)),
    (
        "FAIL",
        "a finding with a key of its own",
        lambda content: content["violations"][0].update(more=1),
    ),
    ("FAIL", "a finding without its text", lambda content: content["violations"][0].pop("text")),
    ("FAIL", "causes that are none", lambda content: content["violations"][0].update(causes=[])),
    (
        "FAIL",
        "a value that is null",
        lambda content: content["checks"][0]["measurements"][0].update(value=None),
    ),
    (
        "FAIL",
        "a value that is text",
        lambda content: content["checks"][0]["measurements"][0].update(value="1"),
    ),
    (
        "FAIL",
        "a limit without a bound",
        lambda content: content["checks"][2]["measurements"][0]["limit"].pop("low"),
    ),
    (
        "FAIL",
        "an outcome that is none",
        lambda content: content["checks"][0].update(outcome="passed"),
    ),
    ("FAIL", "less than no time", lambda content: content["checks"][0].update(seconds=-1)),
]


@each("which, change", [(which, change) for which, _, change in WRONG])
def test_what_is_wrong_is_refused(which: str, change: Callable[[Content], object]) -> None:
    content = read(REAL[which]())
    change(content)
    with pytest.raises(jsonschema.ValidationError):
        READER.validate(content)


def test_what_a_finding_teaches_stands_apart() -> None:
    missing, event = read(REAL["FAIL"]())["violations"]
    assert {"symptom", "causes", "next", "shows", "vendor"} <= set(missing)
    assert len(missing["causes"]) >= 2
    assert all(set(cause) <= {"what", "tell"} for cause in missing["causes"])
    assert "event" not in missing
    assert (event["event"], event["action"]) == ("xid.79", "reseat it")


def test_what_is_not_known_of_a_cause_is_absent() -> None:
    content = read(REAL["FAIL"]())
    content["violations"][0]["causes"] = [{"what": "a dead card"}]
    READER.validate(content)
    content["violations"][0]["causes"] = [{"what": "a dead card", "tell": ""}]
    assert not READER.is_valid(content)


def test_a_fault_that_two_checks_see_is_one_violation_and_the_other_is_kept_whole() -> None:
    """The check after the load measures what the one before it did."""
    made = journals.plan(
        journals.check("link.before", session="host-before"),
        journals.check("link.after", session="host-after"),
    )
    whole = journals.bodies(made, {("copy", Gpu(0)): 50.0})
    content = read(verdict_json.render(samples.run(whole)))
    (row,) = content["violations"]
    (again,) = content["duplicates"]
    assert (row["check"], row["values"]["also_in"]["items"]) == ("link.before", ["link.after"])
    assert (again["check"], again["values"]["counted_in"]) == ("link.after", "link.before")
    assert again["measurement"] == row["measurement"]
    assert [one["outcome"] for one in content["checks"]] == ["fail", "fail"]
    assert [one.check for one in verdict_json.read(json.dumps(content).encode()).failures] == [
        "link.before",
        "link.after",
    ]
