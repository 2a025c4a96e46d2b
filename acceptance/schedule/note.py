"""What a night that systemd started leaves for its failure unit: whether everybody was told, and of which run.

An exit code cannot say that: Python's own for a program that broke off is that of FAIL, and a run whose verdict stands may have found a
webhook that does not answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from acceptance import outputs, regular_file
from acceptance.journal import JournalError

NAME = ".told"  # in the folder of the runs
# The same name of one start, as systemd gives it to the night (since 232) and to what it starts by OnFailure= (since 251): systemd.exec(5).
OWN, OTHERS = "INVOCATION_ID", "MONITOR_INVOCATION_ID"


class Note(msgspec.Struct, frozen=True):
    """Of which start it is; the run's folder, None where no run came about; and whether everybody was told."""

    invocation: str
    run_dir: str | None
    told: bool


def leave(out: Path, environment: Mapping[str, str], run_dir: Path | None, *, told: bool) -> None:
    """Leave it where systemd started the night. Where that does not work the failure unit finds none, and tells everybody again."""
    invocation = environment.get(OWN)
    if invocation:
        with contextlib.suppress(JournalError, OSError, UnicodeError):  # a folder's name may be no UTF-8
            content = msgspec.json.encode(Note(invocation, str(run_dir) if run_dir is not None else None, told))
            outputs.put(out / NAME, content, then="start again")


def find(out: Path, environment: Mapping[str, str]) -> Note | None:
    """What the night left that has failed now; None where it left nothing."""
    invocation = environment.get(OTHERS)
    try:
        found = msgspec.json.decode(regular_file.read(out / NAME, regular_file.SMALL_RECORD), type=Note)
    except (OSError, ValueError):
        return None
    return found if invocation and found.invocation == invocation else None
