"""The self-test as a program: the rows of what is played in a corner of its own, and what
happens to them when somebody stops it.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from rig import Rig

from selftest.__main__ import _said
from selftest.catalogue import Theatre
from selftest.row import Row


def points(left: list[str]) -> Generator[Row, None, None]:
    """Two interruptions; `left` says that what they were played on was cleared."""
    try:
        for number in (1, 2):
            yield Row(
                "interruption",
                f"point {number}",
                "process",
                True,
                message="told",
                journal="out/run/journal.jsonl",
            )
    finally:
        left.append("cleared")


def test_rows_tell_where_their_journals_are(tmp_path: Path) -> None:
    theatre, left = Theatre(tmp_path, tmp_path, (), None), list[str]()
    (tmp_path / "corner").mkdir()
    rows = list(_said(theatre, Rig(tmp_path / "corner"), points(left)))
    assert [row.journal for row in rows] == ["corner/out/run/journal.jsonl"] * 2
    assert left == ["cleared"]


def test_once_it_is_over_no_further_point_is_played(tmp_path: Path) -> None:
    theatre, left = Theatre(tmp_path, tmp_path, (), None), list[str]()
    (tmp_path / "corner").mkdir()
    told = _said(theatre, Rig(tmp_path / "corner"), points(left))
    assert next(told).caught
    theatre.over = True
    (rest,) = told
    assert (rest.caught, "the self-test was stopped" in rest.wrong) == (False, True)
    assert left == ["cleared"]
