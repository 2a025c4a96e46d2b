"""The programs that a check of an earlier session ran, as journal and logs keep them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from acceptance.core import regular_file
from acceptance.core.evidence import ToolRan
from acceptance.core.plan import Session, segment_of
from acceptance.core.record import records
from acceptance.journal import segment
from acceptance.process.command import ProgramResult


def programs(run_dir: Path, sessions: Sequence[Session], check: str) -> tuple[ProgramResult, ...]:
    """The programs of a check, in the order in which they ended.

    Empty for a check that ran none. Raises OSError for a log that cannot be read, JournalError for
    a segment.
    """
    found = []
    for name in sessions:
        path = run_dir / segment_of(name)
        entries = segment.read_segment(path).entries if path.is_file() else ()
        for _, ran in records(entries, ToolRan):
            if ran.check == check and ran.log is not None:
                out, err = (_text(run_dir / log) for log in (ran.log, f"{ran.log}.err"))
                found.append(ProgramResult(ran.argv, ran.returncode, out, err, ran.seconds))
    return tuple(found)


def _text(path: Path) -> str:
    return regular_file.read(path, regular_file.RECORDING).decode("utf-8", "replace")
