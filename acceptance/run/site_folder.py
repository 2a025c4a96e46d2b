"""The folder of a site's own checks (`--checks`): read once, whole, where nobody else can write.

The bytes that were read are planned and bound by their digest. The run has its own copy of them,
which its session reads, so that what runs is what was planned, whatever becomes of the folder.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from acceptance.core import regular_file
from acceptance.core.site import FILE_NAME, FamilyFile, SiteChecks, folder_digest
from acceptance.run import write_access

MOST_FILES = 256
FILE_BYTES, ALL_BYTES = 1 << 20, 8 << 20
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


class SiteFolderError(Exception):
    """The folder of `--checks` cannot be used; the message is one sentence with the cure."""


@dataclass(frozen=True, slots=True)
class SiteFolder:
    """The files of a folder, each with its content, as they were read."""

    path: Path
    files: Mapping[str, bytes]

    @property
    def checks(self) -> SiteChecks:
        """What binds them in a plan. Raises SiteFolderError for a TOML file that is not UTF-8."""
        families = tuple(
            FamilyFile(name, self._text(name, content))
            for name, content in sorted(self.files.items())
            if name.endswith(".toml")
        )
        return SiteChecks(str(self.path), folder_digest(self.files), families)

    def _text(self, name: str, content: bytes) -> str:
        try:
            return content.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1
            raise SiteFolderError(
                f"{self.path / name}, line {line}: is not UTF-8 text: save it as UTF-8"
            ) from error

    def write(self, place: Path) -> None:
        """Write a copy into a new folder, which others can read, as the run. Raises OSError."""
        place.mkdir(mode=0o755)
        for name, content in self.files.items():
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(place / name, flags, 0o644), "wb") as file:
                file.write(content)


def read(given: Path) -> SiteFolder:
    """The folder of a site's checks.

    Raises SiteFolderError where it is none, others can write to it, a folder above it, or a file in
    it, or it holds what does not belong there.
    """
    try:
        path = given.resolve(strict=True)
        for place in path.parents:
            _require_safe(place, place.stat(), above=True)
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _require_safe(path, os.fstat(opened))
            files = dict(_contents(path, opened))
        finally:
            os.close(opened)
    except OSError as error:
        what = error.strerror or str(error)
        raise SiteFolderError(
            f"--checks {given}: cannot be read ({what}): give the folder of your own checks"
        ) from error
    _require_pairs(path, files)
    return SiteFolder(path, files)


def _contents(folder: Path, opened: int) -> Iterator[tuple[str, bytes]]:
    """The files of the open folder; hidden files and caches of Python are left out."""
    left = ALL_BYTES
    with os.scandir(opened) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        if name in STEERING:
            raise SiteFolderError(
                f"{folder / name}: would steer pytest, and rigproof reads no such file: "
                f"{STEERING[name]}; remove it"
            )
    own = [name for name in names if not name.startswith(".") and name not in _CACHES]
    if len(own) > MOST_FILES:
        raise SiteFolderError(
            f"{folder}: holds {len(own)} files, and at most {MOST_FILES} are read: give a folder "
            "of checks alone"
        )
    for name in own:
        try:
            content = _content(folder / name, name, opened, min(FILE_BYTES, left))
        except OSError as error:
            raise SiteFolderError(
                f"{folder / name}: cannot be read ({error.strerror}): let this user read it, or "
                "remove it"
            ) from error
        left -= len(content)
        yield name, content


def _content(path: Path, name: str, folder: int, most: int) -> bytes:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        raise SiteFolderError(f"{path}: is a link: put the file itself into the folder")
    if stat.S_ISDIR(found.st_mode):
        raise SiteFolderError(
            f"{path}: is a folder: checks and what they need lie side by side in one folder"
        )
    if not name.isascii() or not name.isprintable():
        raise SiteFolderError(f"{str(path)!a}: give it a name of plain letters and digits")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise SiteFolderError(f"{path}: is no file: remove it")
        _require_safe(path, found, all_of=path.parent)
        content = file.read(most + 1)
    if len(content) > most:
        raise SiteFolderError(
            f"{path}: is too large: at most {regular_file.size(FILE_BYTES)} of a file and "
            f"{regular_file.size(ALL_BYTES)} of all are read"
        )
    return content


def _require_safe(
    path: Path, found: os.stat_result, *, above: bool = False, all_of: Path | None = None
) -> None:
    """Raise SiteFolderError where somebody else than this user and root can change the path.

    The path is a folder `above` what is read, or read itself. `all_of` is the folder that the cure
    is for, where that is not the path.
    """
    quoted = shlex.quote(str(all_of or path))
    whole = "" if above else "-R "
    if owner := write_access.other_owner(found):
        own = "" if above else f"chown {whole}{write_access.user(os.geteuid())} {quoted}, or "
        raise SiteFolderError(
            f"{path}: belongs to {owner}, who could change what rigproof runs: "
            f"{own}copy the checks to a folder of your own"
        )
    if write_access.others_may_write(found, above=above):
        raise SiteFolderError(
            f"{path}: others can write to it, and could change what rigproof runs: "
            f"chmod {whole}go-w {quoted}"
        )


def _require_pairs(folder: Path, files: Mapping[str, bytes]) -> None:
    """Raise SiteFolderError unless each file of checks has its TOML file beside it."""
    stems = {
        end: {name.removesuffix(end) for name in files if name.endswith(end)}
        for end in (".py", ".toml")
    }
    if not stems[".py"]:
        raise SiteFolderError(
            f"{folder}: holds no file of checks: docs/checks-of-your-own.md shows one"
        )
    for stem in sorted(stems[".py"]):
        if not FILE_NAME.fullmatch(stem):
            raise SiteFolderError(
                f"{folder / stem}.py: its name becomes part of the ids of its checks: begin it "
                "with a small letter, and use small letters, digits and underscores"
            )
        # Python would take the file for that module, or that module for the file.
        if stem in sys.stdlib_module_names or importlib.util.find_spec(stem) is not None:
            raise SiteFolderError(
                f"{folder / stem}.py: Python has a module of this name: give it another name"
            )
    for missing, there, stem in (
        *((".toml", ".py", one) for one in sorted(stems[".py"] - stems[".toml"])),
        *((".py", ".toml", one) for one in sorted(stems[".toml"] - stems[".py"])),
    ):
        raise SiteFolderError(
            f"{folder / stem}{there}: there is no {stem}{missing} beside it: each file of checks "
            "has its measurements and limits in a TOML file of the same name"
        )
