"""The folder of the site's sheets: which one, who may write it, and what it holds.

One folder for each machine, whoever starts the run: a place in the home of a user would give the
nightly run of root other limits than the acceptance by hand.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator
from pathlib import Path

from acceptance.core.message import UserError
from acceptance.core.plan import SiteSheet
from acceptance.expect import site_sheets
from acceptance.expect.site_sheets import DISKS, MODELS, SiteSheetError
from acceptance.run import safe_folder

PLACE = "etc/rigproof/sheets"  # below the root
NONE = "none"  # in place of a folder: rigproof's own sheets alone
MOST = 1 << 20  # bytes of a sheet: the largest of rigproof's own has some KiB
SHEETS = safe_folder.SiteFiles(
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


def read(folder: Path | None, *, named: bool) -> tuple[SiteSheet, ...]:
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
        yield f"{path.parent.name}/{path.name}", safe_folder.text(path, content)


def _names(folder: Path) -> list[str]:
    with SHEETS.open(folder) as opened:
        return [name for name in opened.names() if not name.startswith((".", "README"))]
