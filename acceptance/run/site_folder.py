"""The folder of a site's own checks (`--checks`): read once, whole, where nobody else can write.

The bytes that were read are planned and bound by their digest. The run has its own copy of them,
which its session reads, so that what runs is what was planned, whatever becomes of the folder.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from acceptance.core.message import UserError
from acceptance.core.plan import FILE_NAME, FamilyFile, SiteChecks, folder_digest
from acceptance.run import safe_folder
from acceptance.run.safe_folder import SafeFolder

MOST_FILES = 256
FILE_BYTES, ALL_BYTES = 1 << 20, 8 << 20
CHECKS = safe_folder.SiteFiles(
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


def read(given: Path) -> SiteFolder:
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
    return safe_folder.text(path, content).removeprefix("\ufeff").replace("\r\n", "\n")


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
