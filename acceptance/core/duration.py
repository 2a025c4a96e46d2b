"""The start and the duration of a run, from its journal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.core.record import Entry, RunClosed, RunStarted


def first_record(entries: Sequence[Entry]) -> Entry | None:
    """The first record of the run."""
    return next((entry for entry in entries if isinstance(entry.body, RunStarted)), None)


def seconds(entries: Sequence[Entry]) -> float | None:
    """How long the run took, in seconds; None without a first record.

    It ends with the last entry of the boot in which it began.
    """
    start = first_record(entries)
    if start is None:
        return None
    last = max(
        entry.boot_s
        for entry in entries
        if entry.boot == start.boot and not isinstance(entry.body, RunClosed)
    )
    return last - start.boot_s
