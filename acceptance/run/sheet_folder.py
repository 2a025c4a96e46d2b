"""The folder of the site's sheets: which one, who may write it, and what it holds.

One folder for each machine, whoever starts the run: a place in the home of a user would give the
nightly run of root other limits than the acceptance by hand.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from acceptance.core import regular_file
from acceptance.core.limit_set import SiteSheet
from acceptance.expect import site_sheets
from acceptance.expect.site_sheets import DISKS, MODELS, SiteSheetError
from acceptance.run import write_access

PLACE = "etc/rigproof/sheets"  # below the root
NONE = "none"  # in place of a folder: rigproof's own sheets alone
MOST = 1 << 20  # bytes of a sheet: the largest of rigproof's own has some KiB


def find(given: Path | None, root: Path) -> Path | None:
    """The folder that `--sheets` names, or the machine's own if it is there; None without one.

    Raises SiteSheetError where this user may not see whether it is there: its sheets would be left
    out without a word.
    """
    if given is not None:
        return None if str(given) == NONE else given
    place = root / PLACE
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(place, error) from error
    return place


def read(folder: Path | None, *, named: bool) -> tuple[SiteSheet, ...]:
    """The sheets of a folder.

    A folder that the user `named` must hold one at least. Raises SiteSheetError, SheetError and
    DiskSheetError.
    """
    if folder is None:
        return ()
    try:
        if not folder.is_dir():
            raise SiteSheetError(
                f"{folder}: there is no such folder of sheets: correct its name, or give "
                f"--sheets {NONE} to use rigproof's own sheets alone"
            )
        files = list(_files(folder))
        if named and not files:
            raise SiteSheetError(
                f"--sheets {folder}: holds no sheet: put GPU sheets into {folder / MODELS} and "
                f"disk sheets into {folder / DISKS}, each a file *.toml ({site_sheets.DOCUMENT})"
            )
        texts = [(name, _text(path)) for name, path in files]
    except OSError as error:
        raise _unreadable(folder, error) from error
    try:
        return site_sheets.read(texts)
    except SiteSheetError as error:
        raise SiteSheetError(f"{folder}/{error}") from error


def _unreadable(folder: Path, error: OSError) -> SiteSheetError:
    return SiteSheetError(
        f"{error.filename or folder}: cannot be read ({error.strerror}): put a sheet there that "
        f"you may read, or give --sheets {NONE} to use rigproof's own sheets alone"
    )


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The sheets of a folder by name; what is neither a sheet nor hidden nor a README is refused.

    A sheet in a folder of a misspelt name would be left out without a word.
    """
    _require_only_own(folder)
    kinds = []
    for path in sorted(folder.iterdir()):
        if path.name in (MODELS, DISKS) and path.is_dir():
            kinds.append(path)
        elif not _is_beside(path):
            raise SiteSheetError(
                f"{path}: is no folder of sheets: GPU sheets go into {folder / MODELS}, disk "
                f"sheets into {folder / DISKS}; remove or move it"
            )
    for kind in kinds:
        _require_only_own(kind)
        for path in sorted(kind.iterdir()):
            if _is_beside(path):
                continue
            if path.suffix != ".toml":
                raise SiteSheetError(
                    f"{path}: is no sheet: a sheet is a file *.toml; remove, move or rename it"
                )
            _require_only_own(path)
            yield f"{kind.name}/{path.name}", path


def _is_beside(path: Path) -> bool:
    return path.name.startswith((".", "README"))


def _require_only_own(path: Path) -> None:
    """Refuse a file or folder that others than this user and root may write, or replace."""
    real = path.resolve()
    for place in (real, *real.parents):
        found = place.stat()
        if owner := write_access.other_owner(found):
            raise SiteSheetError(
                f"{path}: {place} belongs to {owner}, who could set limits: copy the sheets to "
                f"a folder of root's or your own, such as /{PLACE}"
            )
        if write_access.others_may_write(found, above=place != real):
            if place == real:
                what, then = "others than its owner may write it", "whoever may would set limits"
            else:
                what = f"others than its owner may write {place}"
                then = "whoever may could put other sheets there"
            raise SiteSheetError(
                f"{path}: {what}, and {then}: `chmod go-w {shlex.quote(str(place))}`"
            )


def _text(path: Path) -> str:
    try:
        return regular_file.read(path, MOST).decode("utf-8")
    except UnicodeDecodeError as error:
        raise SiteSheetError(
            f"{path}: is not UTF-8 (byte {error.start}): save it as UTF-8"
        ) from error
