from __future__ import annotations

from pathlib import Path

import pytest
from runs import machine_root
from worded import worded

from acceptance.core.record import Body, Event, Note
from acceptance.journal import segment
from acceptance.watch import event_log
from acceptance.watch.event_log import EventLog


def logged(folder: Path, *events: Event, note: str = "") -> tuple[EventLog, list[Body]]:
    """The log of these events, and what it has in its file."""
    path = folder / "journal-x.jsonl"
    log = EventLog(path, machine_root(folder / "root"))
    for one in events:
        log.event(one)
    if note:
        log.note(note, trouble=True)
    log.close()
    return log, [entry.body for entry in segment.read_segment(path).entries]


def test_a_storm_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "STORM", 2)
    events = (
        Event("xid", "fatal", "text", "meaning", "action", code, source="nvml")
        for code in (79, 79, 79, 79, 48)
    )
    _, bodies = logged(tmp_path, *events, note="a word")
    assert [body.code for body in bodies if isinstance(body, Event)] == [79, 79, 48]
    told = Note("xid 79: seen more than 2 times; further ones are counted no more")
    assert worded([body for body in bodies if isinstance(body, Note)]) == [
        told,
        Note("a word", True),
    ]


def test_ever_other_events_fill_no_disk_and_hide_no_graver_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of memory that fail have each a code of their own."""
    monkeypatch.setattr(event_log, "MAX_KINDS", 3)
    log, bodies = logged(
        tmp_path,
        *(
            Event("memory-failure", "warning", "text", "meaning", "action", page)
            for page in (*range(50), 1)
        ),
        Event("xid", "fatal", "text", "meaning", "action", 79),
        Event("oom", "fatal", "text", "meaning", "action", hardware=False),
    )
    assert len(log._seen) == 5
    assert [body.code for body in bodies if isinstance(body, Event)] == [0, 1, 2, 1, 79, None]
    told = "more than 3 different events of severity warning: further ones are left out"
    assert worded([body for body in bodies if isinstance(body, Note)]) == [Note(told)]
