"""Installing into a tree of its own, with a systemctl that makes the links as systemd does and
tells what it was asked for.
"""

from __future__ import annotations

import dataclasses
import os
from datetime import time
from pathlib import Path

import pytest
from executable import executable
from raising import raising
from schedules import schedule

from acceptance.core.message import UserError
from acceptance.notify.schedule import installation, units
from acceptance.notify.schedule.installation import UnitLocation
from acceptance.process import command
from acceptance.run import outputs

SYSTEMCTL = """#!/bin/sh
echo "$*" >>"$CALLS"
[ "$1" = --user ] && shift
case "$*" in
"enable "*) mkdir -p "$FOLDER/timers.target.wants"; ln -sf "$FOLDER/$2" "$FOLDER/timers.target.wants/$2" ;;
"disable --now "*) rm -f "$FOLDER/timers.target.wants/$3" ;;
"reset-failed"*) exit 1 ;;
esac
if [ "$1" = "$BREAKS" ]; then echo "Failed to connect to bus" >&2; exit 1; fi
"""  # noqa: E501


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which systemd runs; its systemctl leaves nothing running, and a reaper costs
    ten times what it does.
    """
    monkeypatch.setattr(command, "under_reaper", list)
    (tmp_path / "bin").mkdir()
    executable(tmp_path / "bin/systemctl", SYSTEMCTL)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("BREAKS", "")
    root = tmp_path / "root"
    (root / "run/systemd/system").mkdir(parents=True)
    place = UnitLocation.system(root)
    monkeypatch.setenv("FOLDER", str(place.folder))
    place.stamp.parent.mkdir(parents=True)
    return root


def calls(root: Path) -> list[str]:
    path = root.parent / "calls"
    found = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def files(root: Path) -> set[str]:
    return {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_symlink() or path.is_file()
    }


THREE = {f"etc/systemd/system/{name}" for name in (units.SERVICE, units.TIMER, units.FAILED)}


def test_units_are_written_and_the_timer_started(root: Path) -> None:
    place = UnitLocation.system(root)
    done = installation.install(schedule(), place)
    assert calls(root) == ["daemon-reload", f"enable {units.TIMER}", f"restart {units.TIMER}"]
    assert done.running
    assert {str(path.relative_to(root)) for path in done.files} == THREE
    for name, text in units.texts(schedule()).items():
        assert (place.folder / name).read_text() == text
        assert (place.folder / name).stat().st_mode & 0o777 == 0o644


def test_installing_twice_changes_nothing(root: Path) -> None:
    place = UnitLocation.system(root)
    installation.install(schedule(), place)
    before = {path: path.stat().st_mtime_ns for path in place.folder.glob("rigproof*")}
    assert installation.install(schedule(), place).files == ()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(before) == 3


def test_another_time_takes_the_place_of_the_first(root: Path) -> None:
    place = UnitLocation.system(root)
    installation.install(schedule(), place)
    calls(root)
    done = installation.install(schedule(at=time(5, 0)), place)
    assert done.files == (place.folder / units.TIMER,)
    assert f"restart {units.TIMER}" in calls(root), "a running timer goes by its old time"


def test_uninstalling_leaves_nothing(root: Path) -> None:
    before = files(root)
    place = UnitLocation.system(root)
    installation.install(schedule(), place)
    place.stamp.touch()  # as systemd does for a timer that makes up for lost nights
    assert files(root) > before
    calls(root)
    done = installation.uninstall(place)
    assert files(root) == before
    assert not (place.folder / "timers.target.wants").exists()
    assert calls(root) == [
        f"disable --now {units.TIMER}",
        "daemon-reload",
        f"reset-failed {units.SERVICE} {units.FAILED}",
    ]
    assert len(done.files) == 4


def test_other_timers_stay(root: Path) -> None:
    place = UnitLocation.system(root)
    installation.install(schedule(), place)
    other = place.folder / "timers.target.wants/backup.timer"
    other.symlink_to("/lib/systemd/system/backup.timer")
    installation.uninstall(place)
    assert other.is_symlink()


def test_nothing_to_remove(root: Path) -> None:
    assert installation.uninstall(UnitLocation.system(root)).files == ()
    assert calls(root) == []


def test_where_systemd_does_not_run_units_are_written_and_nothing_is_started(root: Path) -> None:
    (root / "run/systemd/system").rmdir()
    place = UnitLocation.system(root)
    assert not installation.install(schedule(), place).running
    assert files(root) == THREE
    link = (
        place.folder / "timers.target.wants" / units.TIMER
    )  # by a `systemctl enable` typed by hand
    link.parent.mkdir()
    link.symlink_to(place.folder / units.TIMER)
    installation.uninstall(place)
    assert files(root) == set()
    assert calls(root) == []


@pytest.mark.parametrize("name", [units.SERVICE, units.TIMER, units.FAILED])
@pytest.mark.parametrize("kind", ["another's", "a link", "a folder", "empty"])
def test_a_unit_of_somebody_else_is_left_alone(root: Path, name: str, kind: str) -> None:
    place = UnitLocation.system(root)
    place.folder.mkdir(parents=True)
    path = place.folder / name
    if kind == "a link":
        (root / "theirs").write_text(units.MARK)
        path.symlink_to(root / "theirs")
    elif kind == "a folder":
        path.mkdir()
    else:
        path.write_text("[Unit]\n" if kind == "another's" else "")
    before = files(root)
    for act in (
        lambda: installation.install(schedule(), place),
        lambda: installation.uninstall(place),
    ):
        with pytest.raises(
            UserError, match=rf"{name}(: cannot be read| is not rigproof's: move it away)"
        ):
            act()
    assert files(root) == before, "neither is anything else written or removed"
    assert calls(root) == []


@pytest.mark.parametrize("step", ["daemon-reload", "enable", "restart"])
def test_systemd_that_refuses_is_quoted(
    root: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BREAKS", step)
    with pytest.raises(
        UserError,
        match=rf"`systemctl {step}.*exit code 1.*: Failed to connect to bus: fix that",
    ):
        installation.install(schedule(), UnitLocation.system(root))


def test_no_systemctl(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root.parent / "bin/systemctl").unlink()
    monkeypatch.setattr(command, "find", _missing)
    with pytest.raises(
        UserError, match="`systemctl daemon-reload` could not be run: no systemctl here"
    ):
        installation.install(schedule(), UnitLocation.system(root))


def _missing(_name: str) -> str:
    raise command.ProgramMissing("no systemctl here")


def test_who_may_not_write_there_is_told_how(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    place = UnitLocation.system(root)
    monkeypatch.setattr(
        Path, "mkdir", raising(PermissionError(13, "Permission denied", "x"))
    )  # root, as whom the tests may run, may write everywhere
    with pytest.raises(
        UserError, match="you may not write there: run it with sudo, or with --user"
    ):
        installation.install(schedule(), place)
    with pytest.raises(UserError, match="you may not write there: make it writable"):
        installation.install(schedule(), dataclasses.replace(place, user=True))


def test_a_full_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(outputs.os, "fchmod", raising(OSError(28, "No space left on device", "x")))
    place = UnitLocation.system(root)
    with pytest.raises(
        UserError,
        match=r"cannot be written \(No space left on device\): make room, then install it",
    ):
        installation.install(schedule(), place)
    assert files(root) == set()


def test_what_cannot_be_removed_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = UnitLocation.system(root)
    installation.install(schedule(), place)

    def refuse(path: Path, **_: object) -> None:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(
        UserError,
        match=r"rigproof-nightly.timer: Read-only file system: fix that, then start again",
    ):
        installation.uninstall(place)


def test_a_folder_that_is_a_file(root: Path) -> None:
    (root / "etc").write_text("")
    with pytest.raises(UserError, match=r"Not a directory|File exists"):
        installation.install(schedule(), UnitLocation.system(root))


def test_a_name_that_no_unit_can_hold(root: Path) -> None:
    with pytest.raises(
        UserError, match="holds a character that no unit can hold: give it another name"
    ):
        installation.install(schedule("\udcff"), UnitLocation.system(root))
    assert files(root) == set()


def test_a_users_own_place(root: Path) -> None:
    place = UnitLocation.of_user({"HOME": "/home/lab"}, root)
    assert place.folder == Path("/home/lab/.config/systemd/user")
    assert place.stamp == Path("/home/lab/.local/share/systemd/timers") / f"stamp-{units.TIMER}"
    other = UnitLocation.of_user(
        {"HOME": "/home/lab", "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"}, root
    )
    assert (other.folder, other.stamp.parent) == (
        Path("/c/systemd/user"),
        Path("/d/systemd/timers"),
    )
    assert place.running


def test_a_users_own_systemd_is_asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = UnitLocation.of_user({"HOME": str(root)}, root)
    monkeypatch.setenv("FOLDER", str(place.folder))
    installation.install(schedule(user=True), place)
    installation.uninstall(place)
    assert all(call.startswith("--user ") for call in calls(root))
    assert files(root) == set()


def test_who_is_to_run_it() -> None:
    assert installation.known_user("root") == "root"
    with pytest.raises(UserError, match="--run-as nobody-here: there is no such user here"):
        installation.known_user("nobody-here")
