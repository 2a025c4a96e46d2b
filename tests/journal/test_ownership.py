"""What root left in a user's folder, with the command that gives it back."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from worded import worded

from acceptance.__main__ import main
from acceptance.cli import read
from acceptance.history import errors
from acceptance.history.errors import HistoryError
from acceptance.journal import run_folder, segment
from acceptance.reports import text
from acceptance.run import supervisor

DENIED = PermissionError(errno.EACCES, "Permission denied")


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An output folder of user 1000, in which root has run rigproof once."""
    found = tmp_path / "our reports"
    (found / "by-root/logs").mkdir(parents=True)
    (found / "by-user").mkdir()
    (found / "by-root/report.html").touch()
    (found / "history.sqlite").touch()
    (found / "latest").symlink_to("by-root")
    roots = ("by-root", "history.sqlite", "latest")

    def owner(path: Path) -> int:
        path.lstat()
        inside = path.relative_to(found).parts if path.is_relative_to(found) else ("outside",)
        return 0 if inside and inside[0] in (*roots, "outside") else 1000

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "access", lambda path, _mode: owner(Path(path)) == 1000)
    monkeypatch.setattr(run_folder, "_owner", owner)
    return found


def test_the_topmost_place_is_named(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, place in (
        ("by-root/report.html", "by-root"),
        ("by-root/logs/new", "by-root"),
        ("history.sqlite", "history.sqlite"),
    ):
        assert run_folder.left_by_root(out / path) == out / place
    for path in ("by-user/report.html", "/", "/etc/passwd", "../other"):
        assert run_folder.left_by_root(out / path) is None, path
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert run_folder.left_by_root(out / "by-root") is None
    assert run_folder.left_in(out) is None


def test_what_stands_in_the_way_is_said_at_the_start(out: Path) -> None:
    assert worded(run_folder.left_in(out)) == (
        f"root left files in '{out}' that you cannot change (by-root, history.sqlite): "
        f"`sudo chown -R $USER: '{out}'` makes them yours"
    )
    for name in ("by-root/report.html", "by-root/logs", "by-root", "history.sqlite"):
        place = out / name
        place.rmdir() if place.is_dir() else place.unlink()
    assert run_folder.left_in(out) is None


def test_every_refusal_names_the_cure(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cure = f"root left it there: `sudo chown -R $USER: '{out}/by-root'` makes it yours"
    assert cure in str(supervisor._output_error(out / "by-root", DENIED))
    for place, found in (("by-root", True), ("by-user", False)):
        with pytest.raises(HistoryError) as refused, errors.history_errors(out):
            raise PermissionError(errno.EACCES, "Permission denied", str(out / place / "nights"))
        assert (cure in str(refused.value)) == found

    def refuse(_path: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(out / "by-root/x"))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(segment.JournalError) as caught:
        run_folder.write_whole(out / "by-root/report.html", b"")
    assert cure in str(caught.value)
    with pytest.raises(errors.HistoryError) as failed, errors.history_errors(out / "by-root/x"):
        refuse(out)
    assert cure in str(failed.value)
    monkeypatch.setattr(read, "run", refuse)
    assert main(["read", "stress-ng", "x"]) == 3
    assert text.quoted_code(cure) in capsys.readouterr().err


def test_another_trouble_names_no_owner(out: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    assert run_folder.reason(full, out / "by-root") == "No space left on device"
    assert run_folder.reason(DENIED, out / "by-user") == "Permission denied"
