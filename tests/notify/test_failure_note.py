"""What a night leaves for its failure unit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from acceptance.notify.schedule import failure_note
from acceptance.notify.schedule.failure_note import FailureNote

NIGHT, UNIT = {"INVOCATION_ID": "a1"}, {"MONITOR_INVOCATION_ID": "a1"}


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("run_dir", [None, Path("/runs/a")])
def test_it_is_found_by_the_unit_of_the_same_start(
    tmp_path: Path, run_dir: Path | None, told: bool
) -> None:
    out = tmp_path / "not made by a night that could not begin"
    failure_note.write_note(out, NIGHT, run_dir, told=told)
    assert failure_note.find(out, UNIT) == FailureNote(
        "a1", str(run_dir) if run_dir else None, told
    )


def test_of_another_night_it_says_nothing(tmp_path: Path) -> None:
    failure_note.write_note(tmp_path, NIGHT, None, told=True)
    assert failure_note.find(tmp_path, {"MONITOR_INVOCATION_ID": "a2"}) is None
    assert failure_note.find(tmp_path, {}) is None


def test_without_systemd_there_is_none(tmp_path: Path) -> None:
    failure_note.write_note(tmp_path, {}, None, told=True)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_a_folder_takes_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    failure_note.write_note(tmp_path / "file", NIGHT, None, told=True)
    assert failure_note.find(tmp_path / "file", UNIT) is None


def test_a_folder_whose_name_is_no_utf_8_takes_none(tmp_path: Path) -> None:
    failure_note.write_note(tmp_path, NIGHT, Path(os.fsdecode(b"/runs/\xff")), told=True)
    assert failure_note.find(tmp_path, UNIT) is None


@pytest.mark.parametrize("text", [b"", b"\xff", b"[]", b'{"invocation":"a1"}'])
def test_what_is_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / failure_note.NAME).write_bytes(text)
    assert failure_note.find(tmp_path, UNIT) is None
