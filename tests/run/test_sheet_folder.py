"""The folder of the site's sheets: who may write it, and what may lie in it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from acceptance import resources
from acceptance.core.message import UserError
from acceptance.expect.site_sheets import SiteSheetError
from acceptance.run import sheet_folder

CARD = resources.locate("models") / "geforce-rtx-4090.toml"
DISK = resources.locate("disks") / "samsung-990-pro.toml"


@pytest.fixture
def sheets(tmp_path: Path) -> Path:
    """A folder with a sheet of each kind."""
    place = tmp_path / "sheets"
    for name, file in (("models", CARD), ("disks", DISK)):
        (place / name).mkdir(parents=True)
        (place / name / file.name).write_bytes(file.read_bytes())
        (place / name / file.name).chmod(0o644)
        (place / name).chmod(0o755)
    place.chmod(0o755)
    return place


def read(place: Path, *, named: bool = True) -> list[str]:
    return [one.file for one in sheet_folder.read(place, named=named)]


def test_sheets_of_both_kinds(sheets: Path) -> None:
    """Beside them may lie a README and hidden files, such as those of git."""
    for name in ("README.md", ".git", "models/README", "disks/.old.toml"):
        (sheets / name).write_text("x", encoding="utf-8")
    assert read(sheets) == [f"disks/{DISK.name}", f"models/{CARD.name}"]


def test_which_folder(tmp_path: Path) -> None:
    assert sheet_folder.find(None, tmp_path) is None
    own = tmp_path / sheet_folder.PLACE
    own.mkdir(parents=True)
    assert sheet_folder.find(None, tmp_path) == own
    assert sheet_folder.find(Path("mine"), tmp_path) == Path("mine")
    assert sheet_folder.find(Path("none"), tmp_path) is None
    assert sheet_folder.read(None, named=True) == ()


def test_a_folder_that_may_not_be_seen_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a user would be told PASS by other limits than root."""

    def refused(self: Path) -> os.stat_result:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "lstat", refused)
    with pytest.raises(
        UserError, match=r"sheets: cannot be read \(Permission denied\): put sheets"
    ):
        sheet_folder.find(None, tmp_path)
    assert sheet_folder.find(Path("none"), tmp_path) is None


def test_a_folder_that_fails_while_it_is_listed(
    sheets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(opened: int) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), opened)

    monkeypatch.setattr(os, "scandir", stale)
    with pytest.raises(UserError, match=r"sheets: cannot be read \(Stale file handle\): put"):
        read(sheets)


def test_a_folder_that_can_be_listed_and_not_entered(
    sheets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of the mode 0744 of another user; for root there is none."""
    stat = Path.stat

    def refused(self: Path, **how: bool) -> os.stat_result:
        if self.parent == sheets:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
        return stat(self, **how)

    monkeypatch.setattr(Path, "stat", refused)
    with pytest.raises(UserError, match=r"sheets/\w+: cannot be read \(Permission denied\): put"):
        read(sheets)


def test_an_empty_folder_is_a_mistake_only_where_it_was_named(tmp_path: Path) -> None:
    assert read(tmp_path, named=False) == []
    with pytest.raises(UserError, match="holds no sheet: put GPU sheets into"):
        read(tmp_path)


def _open(name: str, mode: int) -> Callable[[Path], None]:
    return lambda place: (place / name).chmod(mode)


def _link(place: Path, folder: int = 0o777, file: int = 0o644) -> None:
    """A sheet that lies in a shared folder."""
    shared = place.parent / "shared"
    shared.mkdir()
    shared.chmod(folder)
    (shared / "x.toml").write_bytes(CARD.read_bytes())
    (shared / "x.toml").chmod(file)
    (place / "models" / CARD.name).unlink()
    (place / "models" / CARD.name).symlink_to(shared / "x.toml")


def _dangling(place: Path) -> None:
    (place / "models" / "y.toml").symlink_to(place / "nothing")


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file of the group": (
        _open(f"models/{CARD.name}", 0o664),
        f"models/{CARD.name}: others can write to it, and could set limits: chmod -R go-w ",
    ),
    "a file of all": (_open(f"disks/{DISK.name}", 0o646), "others can write to it"),
    "a folder of the group": (_open("models", 0o775), "models: others can write"),
    "the whole folder": (_open(".", 0o757), "sheets: others can write to it"),
    "a folder like /tmp": (_open("models", 0o1777), "models: others can write to it"),
    "a folder above": (_open("..", 0o777), "could set limits: chmod go-w "),
    "a link": (_link, "shared: others can write to it, and could set limits: chmod go-w /"),
    "a dangling link": (
        _dangling,
        "y.toml: cannot be read (No such file or directory): put sheets there",
    ),
    "a link to itself": (
        lambda place: (place / "models" / "y.toml").symlink_to(place / "models" / "y.toml"),
        "y.toml: cannot be read (Too many levels of symbolic links)",
    ),
    "a misspelt folder": (
        lambda place: (place / "models").rename(place / "model"),
        "model: is no",
    ),
    "a file beside": (lambda place: (place / "a.toml").write_text(""), "a.toml: is no folder of"),
    "another file": (
        lambda place: (place / "models/a.txt").write_text(""),
        "a.txt: is no sheet: a sheet is a file *.toml; remove, move or rename it",
    ),
    "not UTF-8": (
        lambda place: (place / "models/a.toml").write_bytes(b"name = '\xff'"),
        "a.toml, line 1: is not UTF-8 text: save it as UTF-8",
    ),
    "a named pipe": (lambda place: os.mkfifo(place / "models/a.toml"), "it is a named pipe, not"),
    "too large": (
        lambda place: (place / "models/a.toml").write_bytes(b"#" * (sheet_folder.MOST + 1)),
        "at most 1 MiB are read",
    ),
    "no sheet in it": (
        lambda place: (place / "models/a.toml").write_text("x = 1\n"),
        "sheets/models/a.toml, line 1: x is no key that rigproof knows",
    ),
    "no folder": (
        lambda place: place.rename(place.parent / "x"),
        "sheets: cannot be read (No such",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(sheets: Path, name: str) -> None:
    spoil, told = WRONG[name]
    above = sheets.parent.stat().st_mode
    spoil(sheets)
    try:
        with pytest.raises((UserError, SiteSheetError)) as refusal:
            read(sheets)
    finally:
        sheets.parent.chmod(above)
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_cure_of_a_linked_sheet_changes_that_file_alone(sheets: Path) -> None:
    _link(sheets, 0o755, 0o666)
    with pytest.raises(UserError, match=r" chmod go-w \S+/shared/x\.toml$"):
        read(sheets)


def test_a_sticky_folder_above_is_no_fault(sheets: Path) -> None:
    sheets.parent.chmod(0o1777)
    assert len(read(sheets)) == 2


def test_a_sheet_of_another_user(sheets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who owns it may make it writable, so root's night would be judged by that user's limits."""
    if os.geteuid() == 0:
        os.chown(sheets / "models" / CARD.name, 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with pytest.raises(
        UserError,
        match=r"belongs to \w+, who could set limits: chown .*, or copy",
    ):
        read(sheets)
