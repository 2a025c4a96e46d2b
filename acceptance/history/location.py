"""Where a machine's history lies: a folder of its own below the folder of the runs."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from acceptance.core import regular_file

DATABASE = "history.sqlite3"
FOLDER = "history"
# What a machine's id may be to be a folder's name as it is: the installation's id is 32 hexadecimal
# digits, a host name may be anything.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def folder(out: Path, machine_id: str) -> Path:
    """`<out>/history/<machine-id>`; the folder need not be there.

    An id that is no plain name is known by its digest.
    """
    plain = _PLAIN.fullmatch(machine_id) is not None
    name = (
        machine_id
        if plain
        else f"id-{hashlib.sha256(machine_id.encode('utf-8', 'replace')).hexdigest()[:32]}"
    )
    return out / FOLDER / name


def require_files(path: Path) -> None:
    """Raise NotRegular where a database, or a file that SQLite keeps beside it, is none that can
    be read without waiting.
    """
    for ending in ("", "-wal", "-shm", "-journal"):
        regular_file.require(path.with_name(f"{path.name}{ending}"))


def database(out: Path, machine_id: str) -> Path:
    """The file that holds a machine's nights."""
    return folder(out, machine_id) / DATABASE
