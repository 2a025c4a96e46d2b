from __future__ import annotations

from pathlib import Path

import pytest

from acceptance import session, station
from acceptance.deadline import Deadline
from acceptance.station import Host, StationError


def test_the_stations_there_are() -> None:
    found, remark = station.choose("host")
    assert (type(found), found.name, remark) == (Host, "host", None)
    found, remark = station.choose("auto")
    assert isinstance(found, Host)
    assert remark is not None
    assert remark.startswith("STATION: host. ")


@pytest.mark.parametrize(("name", "told"), [("docker", "run with --station host"), ("moon", "choose auto or host")])
def test_the_stations_there_are_not(name: str, told: str) -> None:
    with pytest.raises(StationError, match=told):
        station.choose(name)


def test_a_session_runs_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['RIGPROOF_RUN'], sys.argv[1])"
    monkeypatch.setattr(session, "argv", lambda context: ["python3", "-c", code, str(context)])
    context, log = tmp_path / "session.json", tmp_path / "x.log"
    done = Host().start(context, "run-1", Deadline.after(600.0), log).wait()
    assert done.stdout == log.read_text() == f"{tmp_path} run-1 {context}\n"
