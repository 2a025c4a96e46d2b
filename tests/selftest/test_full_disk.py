"""A disk that is to be full, and a run that needed less than the room that was left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from run_left import Run

from selftest import disk
from selftest.points import Point

FILES = {"journal.jsonl", "junit.xml", "report.html", "verdict.json"}
FULL = "rigproof: No space left on device: make room, then start again\n"


@dataclass
class Machine:
    """A disk and the runs on it, each of which needs so many pages and leaves such files."""

    folder: Path
    needs: list[tuple[int, set[str]]]
    used_pages: int = 10
    room: int = 0
    rooms: list[int] = field(default_factory=list)

    def used(self) -> tuple[int, int]:
        return self.used_pages, 4

    def leave(self, pages: int) -> None:
        self.room = pages
        self.rooms.append(pages)

    def make_room(self) -> None:
        self.room = 1 << 20

    def argv(self) -> list[str]:
        return []

    def start(self, _argv: list[str]) -> Any:
        return SimpleNamespace(left=dict)

    def finish(self, _started: Any) -> Run:
        need, files = self.needs.pop(0)
        path = self.folder / f"run-{len(self.needs)}"
        path.mkdir()
        for name in files:
            (path / name).write_text('{"verdict": "PASS"}')
        self.used_pages += min(need, self.room)
        fits = need <= self.room
        return Run(0 if fits else 3, "", "" if fits else FULL, 1.0, path)


@pytest.fixture(autouse=True)
def reports_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_run: Run) -> Iterator[str]:
        return iter(())

    monkeypatch.setattr(disk, "agrees", nothing)
    monkeypatch.setattr(disk, "Cut", lambda *_: None)
    monkeypatch.setattr(disk, "segments", lambda _folder: {})


@pytest.mark.parametrize(
    ("needs", "rooms", "wrong"),
    [
        # The clean run wrote 100 pages, its reports 20 of them.
        ([(100, set())], [79], False),
        # 70 pages were enough, and all was there: again, with room for less than that.
        ([(70, FILES), (70, set())], [79, 49], False),
        # It needed less the second time, too: told, not tried for ever.
        ([(70, FILES), (40, FILES)], [79, 49], True),
        # It says that it is whole, and a report is missing: that is a miss, at once.
        ([(70, FILES - {"report.html"})], [79], True),
    ],
)
def test_only_a_whole_run_with_room_is_made_once_more(
    tmp_path: Path, needs: list[tuple[int, set[str]]], rooms: list[int], wrong: bool
) -> None:
    machine = Machine(tmp_path, needs)
    course = disk._Disks(machine, machine, 1, 100, 30, 20, FILES)  # type: ignore[arg-type]
    full, _ = course.start(Point(1, "reports", 0.0), None)
    assert (machine.rooms, machine.needs) == (rooms, [])
    assert bool(full.wrong) is wrong
