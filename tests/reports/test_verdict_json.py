"""verdict.json as programs read it: with the published schema, whatever the run was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import hostile
import journals
import jsonschema
import pytest
import samples
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from thoroughness import examples

from acceptance.core.message import Unmeasured
from acceptance.core.parts import Gpu
from acceptance.core.plan import Reduction
from acceptance.core.record import RunClosed
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


def test_the_published_schema_is_that_of_this_version_and_tells_its_number() -> None:
    assert verdict_json.text() == PUBLISHED.read_text(encoding="utf-8"), (
        "renew it: python -m acceptance.reports.verdict_json > docs/verdict.schema.json"
    )
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["$id"] == f"urn:rigproof:verdict:{verdict_json.SCHEMA}"
    assert SCHEMA["properties"]["schema"]["enum"] == [verdict_json.SCHEMA]
    told = (PUBLISHED.parent / "verdict.md").read_text(encoding="utf-8")
    assert f"| {verdict_json.SCHEMA} | " in told, "what has changed is told to its readers"


def test_every_shape_is_closed_and_said() -> None:
    for shape in (SCHEMA, *SCHEMA["$defs"].values()):
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
    assert (content["schema"], content["verdict"], content["exit_code"]) == (7, "FAIL", 1)
    assert all(list(check) == CHECK for check in content["checks"])
    first, lost = content["violations"]
    assert first["note"] == samples.LOOKED
    assert set(first) >= TAUGHT
    assert [set(cause) for cause in first["causes"]] == [{"what", "tell"}] * 5
    assert (first["next"], "event" in first) == ("lspci -D -nn -d 10de:", False)
    assert (first["check"], first["code"]) == ("gpu.present", "outside_limit")
    assert (lost["event"], lost["action"], set(lost) >= TAUGHT) == ("xid.79", "reseat it", True)
    assert (lost["check"], lost["quote"]) == ("cpu.burn", "NVRM: Xid 79")
    assert {name: {row["check"] for row in content[name]} for name in CHECKED} == CHECKED
    assert len(content["notes"]) == 3
    assert content["provenance"] == {**samples.PROVENANCE, "machine_id": "machine-1"}
    first["causes"] = [{"what": "a dead card"}]
    READER.validate(content)
    first["causes"] = [{"what": "a dead card", "tell": ""}]
    assert not READER.is_valid(content), "what is not known of a cause is absent"


CHECKED = {
    "unjudged": {"run", "cpu.burn", "cpu.last", "kernel_log.during_run"},
    "warnings": {"memory.bandwidth"},
    "waivers": {"storage.health"},
}


def test_the_board_is_named_where_its_serial_could_be_read() -> None:
    board = samples.INVENTORY["board"]
    for more, named in (({"serial": "S-1"}, "S-1"), ({}, None)):
        found = samples.seen(samples.passing(), {**samples.INVENTORY, "board": {**board, **more}})
        facts = read(verdict_json.render(found))["provenance"]
        assert (facts.get("board_serial"), facts["bios_version"]) == (named, "1")


def test_what_is_not_known_is_absent() -> None:
    data = verdict_json.render(samples.mixed())
    figures = {
        figure["component"]: figure
        for check in read(data)["checks"]
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
    core = figures["core:1"]
    assert core["unlimited"] == "no limit can be"
    assert not {"serial", "limit"} & set(core)
    assert "value" not in figures["disk:vda"]
    assert b"null" not in data


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
    told = {"text": "nothing was measured"}
    row = {"check": "run", **told, "code": "unreadable", "values": told}
    assert (content["schema"], content["verdict"], content["exit_code"], content["unjudged"]) == (
        verdict_json.SCHEMA,
        "UNJUDGED",
        3,
        [row],
    )
    assert list(content) == [*KEYS[:12], "headline"]
    after = read(closed())
    assert after["verdict"] == "FAIL"
    assert "the machine was started again" in {row["text"] for row in after["unjudged"]}
    passed = read(REAL["PASS"]())
    assert [passed[name] for name in ("verdict", "exit_code", "violations", "unjudged")] == [
        "PASS",
        0,
        [],
        [],
    ]


@each("text", hostile.FRAGMENTS)
def test_hostile_text_is_kept_as_it_is(text: str) -> None:
    """Programs read it: JSON escapes what it must, and the text stays what the journal holds."""
    content = read(verdict_json.render(samples.hostile(text)))
    kept = text.encode("utf-8", "replace").decode()
    assert content["provenance"]["machine"] == (text if kept == text else mock.ANY)


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


def test_a_fault_that_two_checks_see_is_one_violation_and_the_other_is_kept_whole() -> None:
    """The check after the load measures what the one before it did."""
    before, after = "link.before", "link.after"
    made = journals.plan(
        journals.check(before, session="host-before"), journals.check(after, session="host-after")
    )
    whole = journals.bodies(made, {("copy", Gpu(0)): 50.0})
    content = read(verdict_json.render(samples.run(whole)))
    ((row,), (again,)) = content["violations"], content["duplicates"]
    assert (row["check"], row["values"]["also_in"]["items"]) == (before, [after])
    assert (again["check"], again["values"]["counted_in"]) == (after, before)
    assert again["measurement"] == row["measurement"]
    assert [one["outcome"] for one in content["checks"]] == ["fail", "fail"]
    failures = verdict_json.read(json.dumps(content).encode()).failures
    assert [one.check for one in failures] == [before, after]
