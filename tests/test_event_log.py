from __future__ import annotations

from pathlib import Path

import pytest
from runs import machine_root

from acceptance import event_log, journal
from acceptance.event_log import EventLog
from acceptance.judge.record import Event, Note


def test_a_storm_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "STORM", 2)
    path = tmp_path / "journal-x.jsonl"
    log = EventLog(path, machine_root(tmp_path / "root"))
    for code in (79, 79, 79, 79, 48):
        log.event(Event("xid", "fatal", "text", "meaning", "action", code, source="nvml"))
    log.note("a word", trouble=True)
    log.close()
    bodies = [entry.body for entry in journal.read_segment(path).entries]
    assert [body.code for body in bodies if isinstance(body, Event)] == [79, 79, 48]
    told = Note("xid 79: seen more than 2 times; further ones are counted no more")
    assert [body for body in bodies if isinstance(body, Note)] == [told, Note("a word", True)]
