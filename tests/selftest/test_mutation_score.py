"""The score, the sample, and the reviewed list of mutations that nobody can tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cases import each

from selftest.mutation import equivalents, score, subjects
from selftest.mutation.score import Result, Score

ROOT = Path(__file__).resolve().parents[2]
ENTRY = """[[equivalent]]
path = "acceptance/core/x.py"
line = "if a < b:"
change = "a < b -> a <= b"
why = "a and b are never equal here"
"""


def result(by: str, why: str | None = None, path: str = "acceptance/core/x.py") -> Result:
    return Result(path, 3, "if a < b:", "compared", "a < b -> a <= b", by, why)


def test_what_nobody_noticed_is_told_with_its_place_and_lowers_the_score() -> None:
    table = Score((result("t"), result("t"), result(""), result("", "a and b are never equal")))
    assert table.counts("acceptance/") == (4, 2, 1, 1)
    assert len(table.missed) == 1
    lines = list(table.lines())
    assert (
        lines[-1] == "NOT noticed: acceptance/core/x.py:3: a < b -> a <= b   [compared; if a < b:]"
    )
    assert any(line.startswith("all") and line.endswith("66.7 %") for line in lines)


def test_an_equivalent_mutation_that_a_test_noticed_is_none() -> None:
    table = Score((result("tests/t.py::test_x", "nobody can tell the difference"),))
    assert table.wrong
    assert list(table.lines())[-1].endswith("noticed by tests/t.py::test_x")


@each(
    "noticed, of, share",
    [(3, 3, "100 %"), (99_999, 100_000, "99.9 %"), (0, 4, "0.0 %"), (0, 0, "-")],
)
def test_only_all_is_100_percent(noticed: int, of: int, share: str) -> None:
    assert score.share_of(noticed, of) == share


def test_what_was_missed_can_be_tried_again(tmp_path: Path) -> None:
    table = Score((result("t"), result("", path="acceptance/core/y.py")))
    (tmp_path / "mutation.json").write_text(json.dumps(table.to_json_object()), encoding="utf-8")
    assert score.missed_before(tmp_path / "mutation.json") == {
        ("acceptance/core/y.py", "if a < b:", "a < b -> a <= b")
    }


def test_a_sample_does_not_change_with_what_is_added_elsewhere() -> None:
    def key(one: int) -> tuple[str, ...]:
        return (f"line {one}",)

    everything = list(range(1000))
    found = score.sample(everything, 100, key)
    assert found == sorted(set(found))
    assert len(found) == 100
    grown = score.sample([*range(-10, 0), *everything], 100, key)
    assert len(set(grown) & set(found)) >= 90
    assert score.sample(everything, 2000, key) == everything


def listed(tmp_path: Path, text: str) -> equivalents.Known:
    file = tmp_path / "equivalents.toml"
    file.write_text(text, encoding="utf-8")
    return equivalents.read(file)


def test_a_listed_mutation_is_excused_and_no_other(tmp_path: Path) -> None:
    known = listed(tmp_path, ENTRY)
    assert (
        known.why("acceptance/core/x.py", "if a < b:", "a < b -> a <= b")
        == "a and b are never equal here"
    )
    assert known.why("acceptance/core/x.py", "if a < b:", "a < b -> a > b") is None
    assert known.why("acceptance/core/y.py", "if a < b:", "a < b -> a <= b") is None


def test_an_entry_that_no_mutation_matches_any_more_is_stale(tmp_path: Path) -> None:
    known = listed(tmp_path, ENTRY)
    there = ("acceptance/core/x.py", "if a < b:", "a < b -> a <= b")
    assert known.stale([there], ["acceptance/core/x.py"]) == []
    assert known.stale([(there[0], "if a < c:", there[2])], ["acceptance/core/x.py"]) == list(
        known.entries
    )
    assert known.stale([], ["acceptance/core/y.py"]) == []  # not looked at


@each(
    "text, told",
    [
        (ENTRY + ENTRY, "stands twice"),
        (ENTRY.replace("a and b are never equal here", "equivalent"), "say in a sentence"),
        (ENTRY.replace("why", "because"), "unknown field"),
        ("[[equivalent", "equivalents.toml: "),
    ],
)
def test_a_list_that_cannot_be_right_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(equivalents.ListError, match=told):
        listed(tmp_path, text)


def test_the_shipped_list_can_be_read() -> None:
    known = equivalents.read(ROOT / "selftest/mutation/equivalents.toml")
    assert {one.path for one in known.entries} <= {one.path for one in subjects.SUBJECTS}


def test_all_that_judges_is_mutated_and_every_test_file_is_there() -> None:
    paths = {one.path for one in subjects.SUBJECTS}
    for folder in ("core", "diagnosis", "expect", "tools"):
        for file in (ROOT / "acceptance" / folder).rglob("*.py"):
            assert file.name == "__init__.py" or str(file.relative_to(ROOT)) in paths, file
    for one in subjects.SUBJECTS:
        assert (ROOT / one.path).is_file()
        assert all((ROOT / name).is_file() for stage in one.stages for name in stage), one.path
