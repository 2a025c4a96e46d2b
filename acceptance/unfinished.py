"""Runs that never came to their end: found by the next start, told about, and closed. A crash is evidence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from acceptance import clock, journal, outputs, strays
from acceptance.judge.record import CheckEnded, CheckStarted, Entry, RunClosed, RunEnded, RunStarted, Sample


def candidates(out: Path, last_run: Path | None) -> Iterator[Path]:
    """Folders of runs without a verdict: in the output folder, and the one the lock's last holder wrote to."""
    places = sorted(path.parent for path in out.glob(f"*/{journal.SUPERVISOR}") if not path.parent.is_symlink())
    if last_run is not None and last_run not in places:
        places.append(last_run)
    for place in places:
        if (place / journal.SUPERVISOR).is_file() and not (place / outputs.VERDICT).is_file():
            yield place


def running_check(entries: tuple[Entry, ...]) -> str | None:
    """The check that had begun and not ended when the journal stops."""
    running = None
    for entry in entries:
        if isinstance(entry.body, CheckStarted):
            running = entry.body.check
        elif isinstance(entry.body, CheckEnded) and entry.body.check == running:
            running = None
    return running


def close(run_dir: Path, root: Path = Path("/")) -> str | None:
    """Close one unfinished run and write its reports; returns the sentence that tells of it, or None for another machine's run.

    Raises JournalError when its journal cannot be read or the closing record cannot be written.
    """
    found = journal.read(run_dir, telemetry=True)
    start = next((entry.body for entry in found.entries if isinstance(entry.body, RunStarted)), None)
    if start is None:
        outputs.write_unreadable(run_dir, "the run was ended before its plan was written: nothing was measured")
        return f"an earlier run ({run_dir.name}) was ended before its plan was written: nothing was measured in it"
    if start.machine_id != clock.machine_id(root):
        return None  # a shared folder: that run is another machine's business, and may well be alive
    strays.sweep(start.run_id, root)  # its programs died with it; one that had escaped would spoil the next run
    if not any(isinstance(entry.body, RunEnded) for entry in found.entries):
        body = _closing(found, root)
        with journal.Writer(_segment(run_dir), root) as writer:
            writer.write(body)
        sentence = f"an earlier run ({run_dir.name}) was never finished: {body.detail}"
    else:
        sentence = f"an earlier run ({run_dir.name}) had ended without its reports: they were written now"
    outputs.write(run_dir)
    return sentence


def _closing(found: journal.Journal, root: Path) -> RunClosed:
    running = running_check(found.entries)
    samples = [entry.body.values for entry in found.entries if isinstance(entry.body, Sample)]
    rebooted = clock.boot_id(root) != found.boot_ids[-1]
    what = f"{running} was running" if running else "no check was running"
    why = (
        "the machine was restarted in the middle of it"
        if rebooted
        else "the harness was killed, or could not write any more"
    )
    return RunClosed(running, rebooted, samples[-1] if samples else {}, f"{why}; {what}")


def _segment(run_dir: Path) -> Path:
    number = 1
    while (run_dir / f"{journal.CLOSING}-{number}.jsonl").exists():
        number += 1
    return run_dir / f"{journal.CLOSING}-{number}.jsonl"


def close_all(out: Path, last_run: Path | None, root: Path = Path("/")) -> list[str]:
    """Close every unfinished run of this machine; returns what there is to tell. One that cannot be closed is told, and left as it is."""
    told = []
    for run_dir in candidates(out, last_run):
        if not os.access(run_dir, os.W_OK):
            told.append(
                f"an earlier run ({run_dir}) was never finished, and its folder cannot be written: it stays as it is"
            )
            continue
        try:
            sentence = close(run_dir, root)
        except journal.JournalError as error:
            sentence = f"an earlier run ({run_dir.name}) cannot be closed: {error}"
        if sentence:
            told.append(sentence)
    return told
