"""Unfinished runs: found by the next start, reported, and closed.

A crash is evidence.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from acceptance.core.record import (
    CheckEnded,
    CheckStarted,
    Entry,
    RunClosed,
    RunEnded,
    RunStarted,
    Sample,
    SessionEnded,
)
from acceptance.core.verdict import UnreadableRun
from acceptance.journal import clock, reader, run_folder, segment
from acceptance.journal import run as journal_run
from acceptance.process import orphans
from acceptance.run import outputs

# The readings of a GPU's last sample to report, with their units.
GPU_READINGS = {"temperature_c": "degC", "power_w": "W", "sm_clock_mhz": "MHz"}


def candidates(out: Path, last_run: Path | None) -> Iterator[Path]:
    """Folders of runs without a verdict.

    Those in the output folder, and the one in the lock file if it belongs to this user. Every user
    may write to the lock file, so its content must not lead root to write, and to kill, anywhere.
    """
    places = sorted(
        path.parent for path in out.glob(f"*/{reader.SUPERVISOR}") if not path.parent.is_symlink()
    )
    with contextlib.suppress(OSError, ValueError):
        if last_run is not None and last_run.stat().st_uid == os.geteuid():
            known = {place.resolve() for place in places}
            places += [last_run] if last_run.resolve() not in known else []
    yield from filter(_open, places)


def _open(place: Path) -> bool:
    with contextlib.suppress(OSError):
        return (place / reader.SUPERVISOR).exists() and not (place / run_folder.VERDICT).is_file()
    return False  # not readable: another user's


def running_check(entries: tuple[Entry, ...]) -> str | None:
    """The check that had begun and not ended when the journal stops, in an unfinished session."""
    running = None
    for entry in entries:
        if isinstance(entry.body, CheckStarted):
            running = entry.body.check
        elif isinstance(entry.body, SessionEnded) or (
            isinstance(entry.body, CheckEnded) and entry.body.check == running
        ):
            running = None
    return running


def close(run_dir: Path, root: Path = Path("/")) -> str | None:
    """Close one unfinished run and write its reports.

    Returns the sentence that reports it, or None for another machine's run. Raises JournalError
    when its journal cannot be read or the closing record cannot be written, UnreadableRun when it
    cannot be judged.
    """
    found = reader.read(run_dir)
    if found.machine_id not in (None, clock.machine_id(root)):
        # a shared folder: the run belongs to another machine, and may be alive
        return None
    start = next(
        (entry.body for entry in found.entries if isinstance(entry.body, RunStarted)), None
    )
    if start is None:
        outputs.write_unreadable(
            run_dir, "the run was ended before its plan was written: nothing was measured"
        )
        return (
            f"an earlier run ({run_dir.name}) was ended before its plan was written: nothing "
            "was "
            "measured in it"
        )
    # its programs died with it; an orphan would spoil the next run
    orphans.sweep(start.run_id, root)
    closed = next(
        (entry.body for entry in found.entries if isinstance(entry.body, RunClosed)), None
    )
    if closed is None and any(isinstance(entry.body, RunEnded) for entry in found.entries):
        sentence = (
            f"an earlier run ({run_dir.name}) had ended without its reports: they were written now"
        )
    else:
        if closed is None:
            closed = _closing(found, root)
            with segment.Writer(_segment(run_dir), root) as writer:
                writer.write(closed)
        sentence = f"an earlier run ({run_dir.name}) was never finished: {closed.detail}"
    outputs.write(journal_run.read(run_dir))
    return sentence


def _closing(journal: reader.Journal, root: Path) -> RunClosed:
    running = running_check(journal.entries)
    last = _last_samples(journal.run_dir)
    # The first boot is the supervisor's; a record of an earlier attempt to close the run may be
    # from a later boot.
    rebooted = clock.boot_id(root) != journal.boot_ids[0]
    what = f"{running} was running" if running else "no check was running"
    why = (
        "the machine was restarted before it came to its end"
        if rebooted
        else "the harness was killed, or could not write any more"
    )
    values = {
        f"{gpu} {name}" if gpu else name: value
        for gpu, readings in last.items()
        for name, value in readings.items()
    }
    return RunClosed(running, rebooted, values, "; ".join((f"{why}; {what}", *_last_words(last))))


def _last_samples(run_dir: Path) -> dict[str | None, dict[str, float]]:
    """The last readings of the machine's own sensors (None) and of each GPU.

    Of a GPU only GPU_READINGS.
    """
    last: dict[str | None, dict[str, float]] = {}
    for name in (reader.TELEMETRY, reader.GPU_TELEMETRY):
        for entry in reader.read_last_entries(run_dir / name):
            if isinstance(entry.body, Sample):
                last[entry.body.component] = entry.body.values
    return {
        gpu: readings
        if gpu is None
        else {name: readings[name] for name in GPU_READINGS if name in readings}
        for gpu, readings in last.items()
    }


def _last_words(last: dict[str | None, dict[str, float]]) -> Iterator[str]:
    """The last readings of each GPU, for the sentence that reports the run.

    They show whether it was hot, short of power, or working normally.
    """
    for gpu, readings in last.items():
        parts = [
            f"{readings[name]:.0f} {unit}"
            for name, unit in GPU_READINGS.items()
            if name in readings
        ]
        if gpu is not None and parts:
            yield f"{gpu} was last seen at {', '.join(parts)}"


def _segment(run_dir: Path) -> Path:
    number = 1
    while (run_dir / f"{reader.CLOSING}-{number}.jsonl").exists():
        number += 1
    return run_dir / f"{reader.CLOSING}-{number}.jsonl"


def close_all(out: Path, last_run: Path | None, root: Path = Path("/")) -> list[str]:
    """Close every unfinished run of this machine; returns the sentences to report.

    A run that cannot be closed is reported and left as it is.
    """
    notes = []
    for run_dir in candidates(out, last_run):
        if not os.access(run_dir, os.W_OK):
            notes.append(
                f"an earlier run ({run_dir}) was never finished, and its folder cannot be "
                "written: it stays as it is"
            )
            continue
        try:
            sentence = close(run_dir, root)
        except (segment.JournalError, UnreadableRun) as error:
            sentence = f"an earlier run ({run_dir.name}) cannot be closed: {error}"
        if sentence:
            notes.append(sentence)
    return notes
