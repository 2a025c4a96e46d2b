"""The folder of a site's own checks is read only where nobody else can write."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import each
from product_session import forked
from raising import raising
from refusal import assert_raises, raised
from site_box import SiteBox

from acceptance import resources
from acceptance.core.message import UserError
from acceptance.core.parts import MACHINE, Component
from acceptance.expect.site_sheets import SiteSheetError
from acceptance.process import command
from acceptance.run import site_collection, site_folder


@pytest.fixture
def box(tmp_path: Path) -> SiteBox:
    made = SiteBox(tmp_path / "checks")
    made.check("mount")
    return made


def test_files_are_read_whole_and_bound(box: SiteBox, tmp_path: Path) -> None:
    box.write("data.txt", "7")
    box.write(".hidden", "")
    (box.folder / "__pycache__").mkdir()
    found = site_folder.read_checks(box.folder)
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
    assert site_folder.read_checks(box.folder).checks.digest != bound.digest


def test_the_folder_itself_may_be_named_by_a_link(box: SiteBox, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(box.folder)
    assert site_folder.read_checks(tmp_path / "link").path == box.folder.resolve()


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
    assert told in raised(UserError, site_folder.read_checks, box.folder)


def test_text_that_is_not_utf_8(box: SiteBox) -> None:
    (box.folder / "mount.toml").write_bytes(b"a = 1\n\xff")
    with pytest.raises(UserError, match=r"mount.toml, line 2: is not UTF-8"):
        _ = site_folder.read_checks(box.folder).checks


def test_files_of_somebody_else(box: SiteBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    if box.folder.stat().st_uid == 0:  # root may always
        site_folder.read_checks(box.folder)
        os.chown(box.folder / "mount.py", 12345, -1)
    assert "chown -R 54321" in raised(UserError, site_folder.read_checks, box.folder)


def test_a_folder_below_that_of_somebody_else(box: SiteBox) -> None:
    """Nobody is told to take another user's home away."""
    if os.geteuid() != 0:
        pytest.skip("only root may give a folder to another user")
    os.chown(box.folder.parent, 12345, -1)
    assert_raises(
        UserError,
        site_folder.read_checks,
        box.folder,
        match=r"runs: copy the checks to a folder of your own$",
    )


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
    return [one.file for one in site_folder.read_sheets(place, named=named)]


def test_sheets_of_both_kinds(sheets: Path) -> None:
    """Beside them may lie a README and hidden files, such as those of git; a sticky folder above
    is no fault.
    """
    sheets.parent.chmod(0o1777)
    for name in ("README.md", ".git", "models/README", "disks/.old.toml"):
        (sheets / name).write_text("x", encoding="utf-8")
    assert read(sheets) == [f"disks/{DISK.name}", f"models/{CARD.name}"]


def test_which_folder(tmp_path: Path) -> None:
    own = tmp_path / site_folder.PLACE
    assert site_folder.find(None, tmp_path) is None
    own.mkdir(parents=True)
    assert site_folder.find(None, tmp_path) == own
    assert site_folder.find(Path("mine"), tmp_path) == Path("mine")
    assert site_folder.find(Path("none"), tmp_path) is None
    assert site_folder.read_sheets(None, named=True) == ()
    # An empty folder is a mistake only where it was named.
    assert read(own, named=False) == []
    assert "holds no sheet" in raised(UserError, read, own)


def test_a_folder_that_may_not_be_seen_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a user would be told PASS by other limits than root."""
    monkeypatch.setattr(Path, "lstat", raising(PermissionError(errno.EACCES, "Permission denied")))
    assert "sheets: cannot be read (Permission denied)" in raised(
        UserError, site_folder.find, None, tmp_path
    )
    assert site_folder.find(Path("none"), tmp_path) is None


def test_a_folder_that_fails_while_it_is_listed(
    sheets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "scandir", raising(OSError(errno.ESTALE, "Stale file handle")))
    assert "sheets: cannot be read (Stale file handle)" in raised(UserError, read, sheets)


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
    assert_raises(
        UserError, read, sheets, match=r"sheets/\w+: cannot be read \(Permission denied\): put"
    )


def _link(place: Path, folder: int = 0o777, file: int = 0o644) -> None:
    """A sheet that lies in a shared folder."""
    shared = place.parent / "shared"
    shared.mkdir()
    shared.chmod(folder)
    (place / "models" / CARD.name).rename(shared / "x.toml").chmod(file)
    (place / "models" / CARD.name).symlink_to(shared / "x.toml")


WRONG_SHEETS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file of the group": (
        lambda place: (place / f"models/{CARD.name}").chmod(0o664),
        f"models/{CARD.name}: others can write to it, and could set limits: chmod -R go-w ",
    ),
    "a file of all": (
        lambda place: (place / f"disks/{DISK.name}").chmod(0o646),
        "others can write to it",
    ),
    "a folder of the group": (
        lambda place: (place / "models").chmod(0o775),
        "models: others can write",
    ),
    "the whole folder": (
        lambda place: (place / ".").chmod(0o757),
        "sheets: others can write to it",
    ),
    "a folder like /tmp": (
        lambda place: (place / "models").chmod(0o1777),
        "models: others can write to it",
    ),
    "a folder above": (lambda place: (place / "..").chmod(0o777), "could set limits: chmod go-w "),
    "a link": (_link, "shared: others can write to it, and could set limits: chmod go-w /"),
    "a dangling link": (
        lambda place: (place / "models" / "y.toml").symlink_to(place / "nothing"),
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
        lambda place: (place / "models/a.toml").write_bytes(b"#" * (site_folder.MOST + 1)),
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


@pytest.mark.parametrize("name", WRONG_SHEETS)
def test_sheets_that_are_refused(sheets: Path, name: str) -> None:
    spoil, told = WRONG_SHEETS[name]
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
    assert_raises(UserError, read, sheets, match=r" chmod go-w \S+/shared/x\.toml$")


def test_a_sheet_of_another_user(sheets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who owns it may make it writable, so root's night would be judged by that user's limits."""
    if os.geteuid() == 0:
        os.chown(sheets / "models" / CARD.name, 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
    assert_raises(
        UserError, read, sheets, match=r"belongs to \w+, who could set limits: chown .*, or copy"
    )


ROOT = Path("/")


@pytest.fixture
def forked_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SiteBox:
    def run(argv: Any, *, env: Any, cwd: Path, **_: object) -> command.ProgramResult:
        return forked(argv, env, cwd, tmp_path)

    monkeypatch.setattr(command, "run", run)
    return SiteBox(tmp_path / "checks")


def test_a_sound_folder(forked_box: SiteBox) -> None:
    forked_box.check("mount")
    forked_box.check("licence")
    found = site_collection.collect(forked_box.folder, ROOT)
    assert [check.id for check in found.checks] == ["site.licence.fast", "site.mount.fast"]
    (check,) = (one for one in found.checks if one.id == "site.mount.fast")
    assert (check.session, check.seconds) == ("site", 1.0)
    assert check.title == "Something of the site is fast enough."
    assert [one.name for one in check.measures] == ["site_mount"]
    assert found.bound.digest == site_folder.read_checks(forked_box.folder).checks.digest
    classes: dict[str, tuple[Component, ...]] = {"machine": (MACHINE,)}
    site_collection.require_classes(found, classes)
    assert site_collection.not_due(found, classes) == []
    assert len(site_collection.not_due(found, {"machine": ()})) == 2
    assert "no class of components" in raised(
        UserError, site_collection.require_classes, found, {"cpu": ()}
    )


MISTAKES = {
    "syntax": ("def test_fast(check):", "def test_fast(check:", r"line 6: is not Python"),
    "imports": ("import pytest", "import pytest, nothere", "line 1: cannot be imported .*nothere"),
    "raises": ("import pytest", "import pytest; 1 / 0", "line 1: cannot be .*ZeroDivisionError"),
    "plugins": ("import pytest\n", "import pytest\npytest_plugins = 'x'\n", "line 2: names plug"),
    "fixture": ("(check)", "(check, programs)", "asks for 'programs'.*did you mean program"),
    "nocheck": ("(check)", "()", "does not take the fixture check"),
    "nocosts": ("@pytest.mark.costs(1)\n", "", "does not say how long it takes"),
    "badcosts": ("costs(1)", "costs(-1)", "costs is costs"),
    "morecosts": ("costs(1)", "costs(1, heats=True)", "costs is costs"),
    "nothing": ('@pytest.mark.measures("site_nothing")\n', "", "measures nothing"),
    "unknown": ('measures("site_unknown")', 'measures("site_unknwn")', "did you mean site_unknown"),
    "twice": (
        'measures("site_twice")',
        'measures("site_twice", "site_twice")',
        "a measurement twice",
    ),
    "undeclared": (
        'check("site_undeclared"',
        'check("site_else"',
        "line 8: test_fast checks 'site_els",
    ),
    "notitle": ('"""Something of the site is fast enough."""', "pass", "has no docstring"),
    "timeout": (
        "@pytest.mark.costs(1)",
        "@pytest.mark.timeout(9)\n@pytest.mark.costs(1)",
        "mark timeout",
    ),
    "xfails": ("@pytest.mark.costs(1)", "@pytest.mark.xfail\n@pytest.mark.costs(1)", "mark xfail"),
    "sessions": ("@pytest.mark.costs(1)", "@pytest.mark.gate\n@pytest.mark.costs(1)", "mark gate"),
    "waits": ("def test_fast", "async def test_fast", "is asynchronous"),
    "empty": ("def test_fast", "def fast", "holds no check"),
    "again": (
        "@pytest.mark.costs(1)",
        "def test_fast():\n    pass\n\n@pytest.mark.costs(1)",
        "defined again",
    ),
    "odd": (
        "@pytest.mark.costs(1)",
        "@pytest.mark.parametrize('a', [1], ids=['a,b'])\n@pytest.mark.costs(1)",
        "hard to name",
    ),
}


def test_every_mistake_is_told_with_file_and_line(forked_box: SiteBox) -> None:
    for stem, (old, new, _) in MISTAKES.items():
        forked_box.wrong(stem, old, new)
    path = forked_box.folder / "odd.py"
    path.write_text(path.read_text().replace("(check)", "(check, a)"))
    forked_box.check("method")
    path = forked_box.folder / "method.py"
    path.write_text(
        path.read_text() + "\n\nclass TestIt:\n    def test_it(self, check):\n        pass\n"
    )
    found = site_collection._collected(site_folder.read_checks(forked_box.folder), ROOT)
    assert [check.id for check in found.checks] == ["site.again.fast", "site.method.fast"]
    for stem, (_, _, told) in {**MISTAKES, "method": ("", "", "is a method")}.items():
        (own,) = [one for one in found.mistakes if re.match(rf"{stem}\.py\b", one)]
        assert re.search(told, own), own
        assert stem == "empty" or re.match(rf"{stem}\.py, line \d+: ", own), own
    assert_raises(
        UserError,
        site_collection.collect,
        forked_box.folder,
        ROOT,
        match=r"22 mistakes, so nothing was started: .*; and 12 more$",
    )


def test_a_wrong_family_is_told(forked_box: SiteBox) -> None:
    forked_box.wrong("mount", "high =", "hihg =", ".toml")
    assert "a mistake, so nothing was started: mount.toml, line 1" in raised(
        UserError, site_collection.collect, forked_box.folder, ROOT
    )


def test_a_file_that_ends_the_collection(forked_box: SiteBox) -> None:
    for end in ("sys.exit(3)", "os._exit(0)"):
        forked_box.wrong("mount", "import pytest", f"import os, sys; {end}")
        assert "the files could not be collected" in raised(
            UserError, site_collection.collect, forked_box.folder, ROOT
        )


def test_torch_is_for_programs(forked_box: SiteBox) -> None:
    forked_box.wrong("mount", "import pytest", "import sys, pytest; sys.modules['torch'] = sys")
    assert "torch was loaded by one of these files" in raised(
        UserError, site_collection.collect, forked_box.folder, ROOT
    )
