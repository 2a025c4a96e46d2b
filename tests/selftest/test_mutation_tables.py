"""Mutations of the tables that judge, as text before and after; and that the shipped tables have
enough of them.
"""

from __future__ import annotations

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
        assert sum(change.startswith("measurement") for change in changes) == text.count(
            "\n[[limit]]\n"
        ), file.name
        assert sum(change.startswith("severity = ") for change in changes) == text.count(
            "\nseverity = "
        ), file.name
    assert len(found["host.toml"]) > 400
    assert sum("gone" in one.change for one in found["xid.toml"]) == 172


def test_the_books_notice_a_limit_that_is_gone_and_an_event_that_weighs_nothing(
    tmp_path: Path,
) -> None:
    ask = tables.noticing(ROOT, tmp_path)
    host, xid = ROOT / "fixtures/models/host.toml", ROOT / "fixtures/events/xid.toml"
    assert ask(host, host.read_text(encoding="utf-8")) == ""
    gone = next(
        one for one in tables.mutations(host) if one.change == 'measurement = "disk_faults" -> gone'
    )
    assert ask(host, gone.table) == "disk_faults: has no limit"
    lost = xid.read_text(encoding="utf-8").replace(
        'BUS"\nseverity = "fatal"', 'BUS"\nseverity = "info"'
    )
    assert ask(xid, lost) == "Xid 79: info in the table, fatal in the book"
