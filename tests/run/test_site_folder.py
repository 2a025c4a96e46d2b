"""The folder of a site's own checks is read only where nobody else can write."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import each
from site_box import SiteBox

from acceptance.core.message import UserError
from acceptance.run import site_folder


@pytest.fixture
def box(tmp_path: Path) -> SiteBox:
    made = SiteBox(tmp_path / "checks")
    made.check("mount")
    return made


def test_files_are_read_whole_and_bound(box: SiteBox, tmp_path: Path) -> None:
    box.write("data.txt", "7")
    box.write(".hidden", "")
    (box.folder / "__pycache__").mkdir()
    found = site_folder.read(box.folder)
    assert set(found.files) == {"mount.py", "mount.toml", "data.txt"}
    bound = found.checks
    assert (bound.folder, [one.name for one in bound.families]) == (
        str(box.folder.resolve()),
        ["mount.toml"],
    )
    copy = tmp_path / "copy"
    found.write(copy)
    assert {one.name: one.read_bytes() for one in copy.iterdir()} == found.files
    assert copy.stat().st_mode & 0o777 == 0o755
    box.write("data.txt", "8")
    assert site_folder.read(box.folder).checks.digest != bound.digest


def test_the_folder_itself_may_be_named_by_a_link(box: SiteBox, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(box.folder)
    assert site_folder.read(tmp_path / "link").path == box.folder.resolve()


def _socket(at: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(at):  # its path must be short
        made.bind("x")


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "writable file": (lambda at: (at / "mount.py").chmod(0o620), "chmod -R go-w"),
    "writable folder": (lambda at: at.chmod(0o702), "others can write to it"),
    "writable parent": (lambda at: at.parent.chmod(0o777), "others can write to it"),
    "link to itself": (
        lambda at: (at.rename(at.parent / "x"), at.symlink_to(at)),
        "checks: cannot be read (Too many levels of symbolic links)",
    ),
    "link to nothing": (lambda at: (at / "x").symlink_to("y"), "it is a link, not a file"),
    "socket": (_socket, "it is a socket, not a file"),
    "link": (lambda at: (at / "x").symlink_to("/etc/passwd"), "it is a link, not a file"),
    "folder": (lambda at: (at / "x").mkdir(), "(it is a folder, not a file): give --checks"),
    "pipe": (lambda at: os.mkfifo(at / "x", 0o600), "it is a named pipe, not a file"),
    "large": (
        lambda at: os.truncate(at / "mount.py", 2 << 20),
        "it holds 2 MiB, and at most 1 MiB",
    ),
    "large together": (
        lambda at: [(at / f"{n}.txt").write_bytes(bytes(1 << 20)) for n in range(8)],
        "mount.py: cannot be read (it holds ",
    ),
    "many": (lambda at: [(at / f"{n}.txt").touch() for n in range(300)], "holds 302 files"),
    "odd name": (lambda at: (at / "a\nb").touch(), "plain letters"),
    "conftest": (lambda at: (at / "conftest.py").touch(), "would steer pytest"),
    "settings": (lambda at: (at / ".pytest.ini").touch(), "would steer pytest"),
    "package": (lambda at: (at / "__init__.py").touch(), "each file of checks stands for itself"),
    "no checks": (lambda at: [one.unlink() for one in at.iterdir()], "holds no file of checks"),
    "no TOML": (lambda at: (at / "mount.toml").unlink(), "there is no mount.toml beside it"),
    "no Python": (lambda at: (at / "x.toml").touch(0o600), "there is no x.py beside it"),
    "capitals": (lambda at: (at / "Mount.py").touch(0o600), "begin it with a small letter"),
    "module": (
        lambda at: [(at / f"json.{end}").touch(0o600) for end in ("py", "toml")],
        "a module",
    ),
    "package of ours": (
        lambda at: [(at / f"numpy.{end}").touch(0o600) for end in ("py", "toml")],
        "a module of this name",
    ),
    "no folder": (lambda at: at.rename(at.parent / "else"), "No such file or directory"),
}


@each("name", WRONG)
def test_what_is_refused(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    box = SiteBox(tmp_path_factory.mktemp("site") / "checks")
    box.check("mount")
    spoil, told = WRONG[name]
    old = os.umask(0o022)
    try:
        spoil(box.folder)
    finally:
        os.umask(old)
    with pytest.raises(UserError) as caught:
        site_folder.read(box.folder)
    assert told in str(caught.value)


def test_text_that_is_not_utf_8(box: SiteBox) -> None:
    (box.folder / "mount.toml").write_bytes(b"a = 1\n\xff")
    with pytest.raises(UserError, match=r"mount.toml, line 2: is not UTF-8"):
        _ = site_folder.read(box.folder).checks


def test_files_of_somebody_else(box: SiteBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    if box.folder.stat().st_uid == 0:  # root may always
        site_folder.read(box.folder)
        os.chown(box.folder / "mount.py", 12345, -1)
    with pytest.raises(UserError, match="chown -R 54321"):
        site_folder.read(box.folder)


def test_a_folder_below_that_of_somebody_else(box: SiteBox) -> None:
    """Nobody is told to take another user's home away."""
    if os.geteuid() != 0:
        pytest.skip("only root may give a folder to another user")
    os.chown(box.folder.parent, 12345, -1)
    with pytest.raises(UserError, match=r"runs: copy the checks to a folder of your own$"):
        site_folder.read(box.folder)
