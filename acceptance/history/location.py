"""The folder of a machine's history, below the folder of the runs."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

DATABASE = "history.sqlite3"
FOLDER = "history"
# Ids that can be a file's name as they are: an installation's id is 32 hexadecimal digits, but a
# host name may be anything.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def folder(out: Path, machine_id: str) -> Path:
    """`<out>/history/<machine-id>`; the folder need not exist.

    For an id that is not a plain name, its digest is used.
    """
    return out / FOLDER / file_name(machine_id)


def file_name(id_: str) -> str:
    """An id of a machine or a run as a file's name: the id if it is a plain name, or its digest."""
    if _PLAIN.fullmatch(id_):
        return id_
    return f"id-{hashlib.sha256(id_.encode('utf-8', 'replace')).hexdigest()[:32]}"


def database(out: Path, machine_id: str) -> Path:
    """The file of an older rigproof's history, which `rigproof history convert` reads."""
    return folder(out, machine_id) / DATABASE
