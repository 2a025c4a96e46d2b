"""Which FAILs of a machine do not stand any more, in a file for the readers on its node.

The readers (deploy/slurm/verdict) follow no rule of their own: of a FAIL that the file `ended`
beside the runs does not name they say FAIL. Each line has the run of a FAIL and what ended it, a
run or an acceptance, which must be there too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from acceptance.core import regular_file
from acceptance.core.message import Message, english
from acceptance.fleet.night import History, Judged
from acceptance.fleet.verdicts import Trouble, collect_machine, quoted
from acceptance.journal import run_folder
from acceptance.journal.segment import JournalError
from acceptance.wording.errors import said

FILE = "ended"


def write(folders: Iterable[Path], judged: Judged) -> list[Message]:
    """Bring the files of the machines up to date, in each folder that has one of the machine.

    Returns what could not be written. A machine without a FAIL gets none.
    """
    places = tuple(folders)
    return [
        message
        for one in (*judged.due, *judged.others)
        for folder in places
        if (message := _write(folder / one.machine, one.ended)) is not None
    ]


def write_machine(
    folder: Path, now: datetime, signers: Path | None = None
) -> tuple[History, tuple[Trouble, ...], Message | None]:
    """Read the runs in the folder of one machine, and bring its file up to date.

    Returns what is known of it, what could not be read, and why the file could not be written.
    """
    place = folder.resolve()
    found = collect_machine(place, now, signers)
    history = History.of(found, place.name, now, None, signed=signers is not None)
    return history, found.troubles, _write(place, history.ended)


def _write(folder: Path, ended: Mapping[str, str]) -> Message | None:
    path = folder / FILE
    told = "".join(f"{run} {by}\n" for run, by in sorted(ended.items())).encode()
    try:
        before = regular_file.read(path, regular_file.SMALL_RECORD) if path.exists() else b""
        if before != told and folder.is_dir():
            run_folder.write_whole(path, told, then=run_folder.START_AGAIN, mode=0o644)
    except (OSError, JournalError) as error:
        return Message(
            english(
                "fleet_ended_unwritten",
                "{path} cannot be written ({why}), so the readers on the node go on to say FAIL: "
                "make it writable and collect again",
            ),
            {"path": quoted(path), "why": said(error)},
        )
    return None
