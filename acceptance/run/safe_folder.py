"""Folders that rigproof acts on: read only where nobody else can write.

Sheets set limits, a site's checks are code, and a list of checks decides what is tested. The folder
is opened, and what is opened is checked, so that nothing can be put in its place meanwhile.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from acceptance.core import regular_file
from acceptance.core.message import UserError
from acceptance.run import write_access

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
        if owner := write_access.other_owner(found):
            user = write_access.user(os.geteuid())
            own = "" if above else f"chown {every}{user} {place}, or "
            raise UserError(
                f"{path}: belongs to {owner}, who could {self.harm}: "
                f"{own}copy the {self.files} to {self.place}"
            )
        if write_access.others_may_write(found, above=above):
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
