from __future__ import annotations

from pathlib import Path

import pytest
from runs import machine_root
from worded import worded

from acceptance.core.record import Event, Note
from acceptance.journal import segment
from acceptance.watch import event_log
from acceptance.watch.event_log import EventLog


def test_a_storm_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "STORM", 2)
    path = tmp_path / "journal-x.jsonl"
    log = EventLog(path, machine_root(tmp_path / "root"))
    for code in (79, 79, 79, 79, 48):
        log.event(Event("xid", "fatal", "text", "meaning", "action", code, source="nvml"))
    log.note("a word", trouble=True)
    log.close()
    bodies = [entry.body for entry in segment.read_segment(path).entries]
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
    path = tmp_path / "journal-x.jsonl"
    log = EventLog(path, machine_root(tmp_path / "root"))
    for page in range(50):
        log.event(Event("memory-failure", "warning", "text", "meaning", "action", page))
    log.event(Event("memory-failure", "warning", "text", "meaning", "action", 1))
    log.event(Event("xid", "fatal", "text", "meaning", "action", 79))
    log.event(Event("oom", "fatal", "text", "meaning", "action", hardware=False))
    log.close()
    assert len(log._seen) == 5
    bodies = [entry.body for entry in segment.read_segment(path).entries]
    assert [body.code for body in bodies if isinstance(body, Event)] == [0, 1, 2, 1, 79, None]
    told = "more than 3 different events of severity warning: further ones are left out"
    assert worded([body for body in bodies if isinstance(body, Note)]) == [Note(told)]
