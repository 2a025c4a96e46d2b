"""Mutations of the tables that judge, as text before and after; and that the shipped tables have
enough of them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from cases import each

from selftest.mutation import tables
from selftest.mutation.data import limit_mutations, weight_mutations

ROOT = Path(__file__).resolve().parents[2]
LIMIT = '[[limit]]\nmeasurement = "a"\nunit = "ratio"\nlow = 0.90\nwarn_low = 0.95\nbasis = "b"\n'


def test_a_limit_is_taken_away_turned_round_and_loosened() -> None:
    assert [one.change for one in limit_mutations(LIMIT)] == [
        'measurement = "a" -> gone',
        "low = 0.90 -> high = 0.90",
        "low = 0.90 -> low = 0.09",
        "warn_low = 0.95 -> warn_high = 0.95",
        "warn_low = 0.95 -> warn_low = 0.095",
        "warn_low = 0.95 -> gone",
    ]


def test_a_family_without_a_limit_of_it() -> None:
    head = '[[measurement]]\nnames = [\n    "a", "b",\n]\n'
    other = "\n[measurement.noise]\nother = 1\n"
    limit = "\n[measurement.limit]\nhigh = 0\n"
    gone, *bounds = limit_mutations(head + limit + other)
    assert gone.change == "limit of a -> gone"
    assert tomllib.loads(gone.table) == {
        "measurement": [{"no_limit": "gone", "names": ["a", "b"], "noise": {"other": 1}}]
    }
    assert [one.change for one in bounds] == ["high = 0 -> low = 0", "high = 0 -> high = 10"]


@each(
    "bound, looser",
    [
        ("high = 0", "high = 10"),
        ("high = 15", "high = 150"),
        ("low = 3", "low = 0"),
        ("low = 25", "low = 2"),
    ],
)
def test_whole_numbers_stay_whole(bound: str, looser: str) -> None:
    assert f"{bound} -> {looser}" in [
        one.change for one in limit_mutations(f"[[limit]]\n{bound}\n")
    ]


def test_a_limit_that_is_gone_leaves_the_others() -> None:
    gone = next(iter(limit_mutations(LIMIT + LIMIT.replace('"a"', '"c"'))))
    assert gone.table == LIMIT.replace('"a"', '"c"')


def test_shares_of_an_architecture() -> None:
    found = [
        one.change for one in limit_mutations("short = { f64 = 0.5, f16 = .2 }\ncopy = 0.65 # x")
    ]
    assert found == [
        "short = { f64 = 0.5, f16 = .2 } -> short = { f64 = 0.05, f16 = .2 }",
        "short = { f64 = 0.5, f16 = .2 } -> short = { f64 = 0.5, f16 = 0.02 }",
        "copy = 0.65 # x -> copy = 0.065 # x",
    ]


@each(
    "text, changes",
    [
        ('severity = "error"', ['severity = "error" -> severity = "info"']),
        ('severity = "info"', ['severity = "info" -> severity = "fatal"']),
        ('0 = "info" # none', ['0 = "info" # none -> 0 = "fatal" # none']),
        ("hardware = true", ["hardware = true -> hardware = false"]),
        ("codes = [11021, 11022]", ["11021 -> gone", "11022 -> gone"]),
        ("[xid.79]\nmeaning = 'x'", ["[xid.79] -> gone"]),
        ("count = 3", ["count = 3 -> count = 30"]),
        ("meaning = 'error'", []),
    ],
)
def test_weights_of_events(text: str, changes: list[str]) -> None:
    assert [one.change for one in weight_mutations(text)] == changes


def test_no_limit_and_no_weight_of_the_shipped_tables_is_left_out() -> None:
    found = {file.name: tables.mutations(file) for file in tables.files(ROOT)}
    for file in tables.files(ROOT):
        text = file.read_text(encoding="utf-8")
        changes = [one.change for one in found[file.name]]
        assert sum(change.startswith(("measurement", "limit of")) for change in changes) == (
            text.count("\n[[limit]]\n") + text.count("\n[measurement.limit]\n")
        ), file.name
        assert sum(change.startswith("severity = ") for change in changes) == text.count(
            "\nseverity = "
        ), file.name
    families = [file for file in tables.files(ROOT) if file.parent.name == "measurements"]
    assert sum(len(found[file.name]) for file in families) > 200
    assert sum("gone" in one.change for one in found["xid.toml"]) == 172


def test_the_lint_notices_a_limit_that_is_gone_and_an_event_that_weighs_nothing(
    tmp_path: Path,
) -> None:
    ask = tables.noticing(ROOT, tmp_path)
    disks, xid = ROOT / "fixtures/measurements/storage.toml", ROOT / "fixtures/events/xid.toml"
    assert ask(disks, disks.read_text(encoding="utf-8")) == ""
    gone = next(
        one for one in tables.mutations(disks) if one.change == "limit of disk_faults -> gone"
    )
    assert ask(disks, gone.table) == "disk_faults: has no limit"
    lost = xid.read_text(encoding="utf-8").replace(
        'BUS"\nseverity = "fatal"', 'BUS"\nseverity = "info"'
    )
    assert ask(xid, lost) == "Xid 79: info in the table, fatal by its source"
