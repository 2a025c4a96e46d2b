from __future__ import annotations

import sys
from pathlib import Path

import pytest

from acceptance.core.message import Message
from acceptance.core.record import Note
from acceptance.process.deadline import Deadline
from acceptance.session import context as session_context
from acceptance.station.base import HostStation
from acceptance.wording import words


def test_this_host_is_called_so_and_needs_no_more_words(tmp_path: Path) -> None:
    host = HostStation()
    assert (host.name, dict(host.provenance), host.notes, host.inside(tmp_path)) == (
        "host",
        {},
        (),
        tmp_path,
    )


def test_why_it_is_the_host_goes_into_the_reports() -> None:
    remark = Message("no_client")
    host = HostStation(remark)
    assert host.provenance == {"station_remark": words.message(remark)}
    assert host.notes == (Note(remark, trouble=False),)


def test_a_session_runs_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['RIGPROOF_RUN'], sys.argv[1])"
    monkeypatch.setattr(
        session_context,
        "argv",
        lambda context, site=None: [sys.executable, "-ISc", code, str(context)],
    )
    context, log = tmp_path / "session.json", tmp_path / "x.log"
    done = HostStation().start(context, "run-1", Deadline.after(600.0), log).wait()
    assert done.stdout == log.read_text() == f"{tmp_path} run-1 {context}\n"
