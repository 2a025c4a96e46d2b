"""The folders of a site: its own checks (`--checks`) and its sheets.

Sheets set limits, a site's checks are code, and a list of checks decides what is tested. So a
folder is read only where nobody but this user and root can write. It is opened, and what is opened
is checked, so that nothing can be put in its place meanwhile.

Checks are read once, whole. The bytes that were read are planned and bound by their digest. The run
has its own copy of them, which its session reads, so that what runs is what was planned, whatever
becomes of the folder.

One folder of sheets serves each machine, whoever starts the run: a place in the home of a user
would give the nightly run of root other limits than the acceptance by hand.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import shlex
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from acceptance.core import regular_file
from acceptance.core.message import UserError
from acceptance.core.plan import FILE_NAME, FamilyFile, SiteChecks, SiteSheet, folder_digest
from acceptance.expect import site_sheets
from acceptance.expect.site_sheets import DISKS, MODELS, SiteSheetError

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def user_name(uid: int) -> str:
    """The name of a user, or the number where it has none."""
    import pwd  # only for a message

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def other_owner(found: os.stat_result) -> str | None:
    """The owner, by name, where that is neither this user nor root."""
    return None if found.st_uid in (0, os.geteuid()) else user_name(found.st_uid)


def others_may_write(found: os.stat_result, *, above: bool = False) -> bool:
    """Whether the group or everyone may write it.

    In a folder `above` what matters, the sticky bit (as /tmp has it) keeps others from replacing
    what is not theirs.
    """
    return bool(found.st_mode & _OTHERS) and not (above and bool(found.st_mode & stat.S_ISVTX))


_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
Require = Callable[[Path, os.stat_result], None]


@dataclass(frozen=True, slots=True)
class SafeFolder:
    """An open folder. `require` refuses a file that somebody else can write."""

    path: Path
    descriptor: int
    require: Require

    def names(self) -> list[str]:
        """The names in the folder, sorted. Raises OSError."""
        with os.scandir(self.descriptor) as entries:
            return sorted(entry.name for entry in entries)

    def read(self, name: str, most: int) -> bytes:
        """The content of a file. Raises OSError where it is none, a link or too large."""
        path = self.path / name
        found = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        regular_file.check(path, found, most)
        file = os.open(name, _FLAGS | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=self.descriptor)
        try:
            found = os.fstat(file)
            regular_file.check(path, found, most)
            self.require(path, found)
            return regular_file.content(file, path, most)
        finally:
            os.close(file)


@contextlib.contextmanager
def open_folder(path: Path, require: Require) -> Iterator[SafeFolder]:
    """A folder that meets `require`, open. Raises OSError where it is none, or a link."""
    opened = os.open(path, _FLAGS | os.O_DIRECTORY)
    try:
        require(path, os.fstat(opened))
        yield SafeFolder(path, opened, require)
    finally:
        os.close(opened)


@dataclass(frozen=True, slots=True)
class SiteFiles:
    """What a site has in a folder, and what its errors say.

    `harm` is what somebody who can write there could do, `place` where else the files may be, and
    `cure` what to do about a folder that cannot be read.
    """

    files: str
    harm: str
    place: str
    cure: str

    @contextlib.contextmanager
    def open(self, given: Path, *, linked: bool = False) -> Iterator[SafeFolder]:
        """A folder of the site; only this user and root can write to it, and to those above it.

        A link to it is followed. One that holds what a file is `linked` to need not be the site's:
        no cure changes what else is in it. Raises UserError, and in place of any OSError.
        """
        with self.readable(given):
            path = _real(given)
            for place in reversed(path.parents):
                self._require(place, place.stat(), above=True)
            with open_folder(path, functools.partial(self._require, alone=linked)) as opened:
                yield opened

    def read(self, path: Path, most: int) -> bytes:
        """The content of a file. A link to it is followed. Raises UserError."""
        with self.readable(path):
            real, home = _real(path), _real(path.parent)
        with self.open(real.parent, linked=real.parent != home) as folder:
            return folder.read(real.name, most)

    @contextlib.contextmanager
    def readable(self, given: Path) -> Iterator[None]:
        """Raise UserError in place of an OSError of a folder, or of a file in it."""
        try:
            yield
        except OSError as error:
            name = error.filename  # of a folder that is listed a number
            path = given / name if isinstance(name, str) and name != str(given) else given
            why = error.strerror or str(error)
            raise UserError(f"{path}: cannot be read ({why}): {self.cure}") from error

    def _require(
        self, path: Path, found: os.stat_result, *, above: bool = False, alone: bool = False
    ) -> None:
        """Raise UserError where somebody else than this user and root can change the path.

        It is a folder `above` what is read, or read itself. The cure changes it `alone`, or all
        that is in the folder.
        """
        every = "" if above or alone else "-R "
        changed = path.parent if every and not stat.S_ISDIR(found.st_mode) else path
        place = shlex.quote(str(changed))
        if owner := other_owner(found):
            user = user_name(os.geteuid())
            own = "" if above else f"chown {every}{user} {place}, or "
            raise UserError(
                f"{path}: belongs to {owner}, who could {self.harm}: "
                f"{own}copy the {self.files} to {self.place}"
            )
        if others_may_write(found, above=above):
            raise UserError(
                f"{path}: others can write to it, and could {self.harm}: chmod {every}go-w {place}"
            )


def text(path: Path, content: bytes) -> str:
    """The text of a file. Raises UserError where it is not UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line}: is not UTF-8 text: save it as UTF-8") from error


def _real(given: Path) -> Path:
    """The path without links. Raises OSError with the path that was given, not that of a link."""
    try:
        return Path(os.path.realpath(given, strict=True))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(given)) from error


MOST_FILES = 256
FILE_BYTES, ALL_BYTES = 1 << 20, 8 << 20
CHECKS = SiteFiles(
    "checks",
    "change what rigproof runs",
    "a folder of your own",
    "give --checks the folder of your own checks, with files alone that this user may read, side "
    f"by side, {FILE_BYTES >> 20} MiB each and {ALL_BYTES >> 20} MiB together at most",
)
# What would steer pytest: it is started without any of them, and a folder that has one expects
# otherwise.
STEERING = {
    "conftest.py": "move its fixtures into the files that use them",
    **dict.fromkeys(
        (
            *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"),
            *("tox.ini", "setup.cfg", "pyproject.toml"),
        ),
        "rigproof has its own settings of pytest",
    ),
    "__init__.py": "each file of checks stands for itself",
}
_CACHES = frozenset({"__pycache__"})


@dataclass(frozen=True, slots=True)
class SiteFolder:
    """The files of a folder, each with its content, as they were read."""

    path: Path
    files: Mapping[str, bytes]

    @property
    def checks(self) -> SiteChecks:
        """What binds them in a plan. Raises UserError for a TOML file that is not UTF-8."""
        families = tuple(
            FamilyFile(name, _text(self.path / name, content))
            for name, content in sorted(self.files.items())
            if name.endswith(".toml")
        )
        return SiteChecks(str(self.path), folder_digest(self.files), families)

    def write(self, place: Path) -> None:
        """Write a copy into a new folder, which others can read, as the run. Raises OSError."""
        place.mkdir(mode=0o755)
        for name, content in self.files.items():
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(place / name, flags, 0o644), "wb") as file:
                file.write(content)


def read_checks(given: Path) -> SiteFolder:
    """The folder of a site's checks.

    Raises UserError where it is none, others can write to it, a folder above it, or a file in it,
    or it holds what does not belong there.
    """
    with CHECKS.open(given) as folder:
        files = dict(_contents(folder))
        _require_pairs(folder.path, files)
        return SiteFolder(folder.path, files)


def _contents(folder: SafeFolder) -> Iterator[tuple[str, bytes]]:
    """The files of the folder; hidden files and caches of Python are left out."""
    names = folder.names()
    for name in names:
        if name in STEERING:
            raise UserError(
                f"{folder.path / name}: would steer pytest, and rigproof reads no such file: "
                f"{STEERING[name]}; remove it"
            )
    own = [name for name in names if not name.startswith(".") and name not in _CACHES]
    if len(own) > MOST_FILES:
        raise UserError(
            f"{folder.path}: holds {len(own)} files, and at most {MOST_FILES} are read: give a "
            "folder of checks alone"
        )
    left = ALL_BYTES
    for name in own:
        if not name.isascii() or not name.isprintable():
            raise UserError(
                f"{str(folder.path / name)!a}: give it a name of plain letters and digits"
            )
        content = folder.read(name, min(FILE_BYTES, left))
        left -= len(content)
        yield name, content


def _text(path: Path, content: bytes) -> str:
    """The text of a TOML file, without a mark of its encoding and with the line ends of Unix."""
    return text(path, content).removeprefix("\ufeff").replace("\r\n", "\n")


def _require_pairs(folder: Path, files: Mapping[str, bytes]) -> None:
    """Raise UserError unless each file of checks has its TOML file beside it."""
    stems = {
        end: {name.removesuffix(end) for name in files if name.endswith(end)}
        for end in (".py", ".toml")
    }
    if not stems[".py"]:
        raise UserError(f"{folder}: holds no file of checks: docs/checks-of-your-own.md shows one")
    for stem in sorted(stems[".py"]):
        if not FILE_NAME.fullmatch(stem):
            raise UserError(
                f"{folder / stem}.py: its name becomes part of the ids of its checks: begin it "
                "with a small letter, and use small letters, digits and underscores"
            )
        # Python would take the file for that module, or that module for the file.
        if stem in sys.stdlib_module_names or importlib.util.find_spec(stem) is not None:
            raise UserError(
                f"{folder / stem}.py: Python has a module of this name: give it another name"
            )
    for missing, there, stem in (
        *((".toml", ".py", one) for one in sorted(stems[".py"] - stems[".toml"])),
        *((".py", ".toml", one) for one in sorted(stems[".toml"] - stems[".py"])),
    ):
        raise UserError(
            f"{folder / stem}{there}: there is no {stem}{missing} beside it: each file of checks "
            "has its measurements and limits in a TOML file of the same name"
        )


PLACE = "etc/rigproof/sheets"  # below the root
NONE = "none"  # in place of a folder: rigproof's own sheets alone
MOST = 1 << 20  # bytes of a sheet: the largest of rigproof's own has some KiB
SHEETS = SiteFiles(
    "sheets",
    "set limits",
    f"a folder of root's or your own, such as /{PLACE}",
    f"put sheets there that you may read, or give --sheets {NONE} to use rigproof's own sheets "
    "alone",
)


def find(given: Path | None, root: Path) -> Path | None:
    """The folder that `--sheets` names, or the machine's own if it is there; None without one.

    Raises UserError where this user may not see whether it is there: its sheets would be left
    out without a word.
    """
    if given is not None:
        return None if str(given) == NONE else given
    place = root / PLACE
    with SHEETS.readable(place), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        place.lstat()
        return place
    return None


def read_sheets(folder: Path | None, *, named: bool) -> tuple[SiteSheet, ...]:
    """The sheets of a folder.

    A folder that the user `named` must hold one at least. Raises UserError, SiteSheetError and
    SetupError.
    """
    if folder is None:
        return ()
    texts = list(_texts(folder))
    if named and not texts:
        raise UserError(
            f"--sheets {folder}: holds no sheet: put GPU sheets into {folder / MODELS} and "
            f"disk sheets into {folder / DISKS}, each a file *.toml ({site_sheets.DOCUMENT})"
        )
    try:
        return site_sheets.read(texts)
    except SiteSheetError as error:
        raise SiteSheetError(f"{folder}/{error}") from error


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    """The sheets of a folder by name; what is neither a sheet nor hidden nor a README is refused.

    A sheet in a folder of a misspelt name would be left out without a word.
    """
    kinds = [folder / name for name in _names(folder)]
    for kind in kinds:
        with SHEETS.readable(kind):  # its folder may be listed by who may not enter it
            known = kind.name in (MODELS, DISKS) and stat.S_ISDIR(kind.stat().st_mode)
        if not known:
            raise UserError(
                f"{kind}: is no folder of sheets: GPU sheets go into {folder / MODELS}, disk "
                f"sheets into {folder / DISKS}; remove or move it"
            )
    for path in [kind / name for kind in kinds for name in _names(kind)]:
        if path.suffix != ".toml":
            raise UserError(
                f"{path}: is no sheet: a sheet is a file *.toml; remove, move or rename it"
            )
        content = SHEETS.read(path, MOST)
        yield f"{path.parent.name}/{path.name}", text(path, content)


def _names(folder: Path) -> list[str]:
    with SHEETS.open(folder) as opened:
        return [name for name in opened.names() if not name.startswith((".", "README"))]
