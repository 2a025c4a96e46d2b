"""A session in a container that is a fake: whatever engine and container do, there is an answer,
and the container is removed.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from known import known
from runs import until
from worded import worded

from acceptance.process.deadline import Deadline
from acceptance.station import docker
from acceptance.station.docker import ContainerSession


class Gone(OSError):
    """The engine does not know the container."""

    status_code = 404


class Container:
    """Does what it is told to: `script` holds one status, or one exception, a
    look; the last one stays.
    """

    def __init__(self, *script: str | Exception, **state: Any) -> None:
        self.script = list(script)
        self.state = {"ExitCode": 0, **state}
        self.output: list[bytes | Exception] = []
        self.done: list[str] = []
        self.obeys = True
        self.status = "created"
        self.attrs: dict[str, Any] = {}

    def reload(self) -> None:
        now = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(now, Exception):
            raise now
        self.status = now
        self.attrs = {"State": {"Status": now, **self.state}}

    def logs(self, *, stream: bool, follow: bool) -> Iterator[bytes]:
        assert stream
        assert follow
        for chunk in self.output:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    def stop(self, *, timeout: int) -> None:
        self.done.append("stop")
        if not self.obeys:
            raise TimeoutError
        self.script = ["exited"]

    def remove(self, *, force: bool, v: bool) -> None:
        assert force
        assert v
        self.done.append("remove")
        if not self.obeys:
            raise ConnectionRefusedError


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker, "POLL_S", 0.0)
    monkeypatch.setattr(docker, "LOST_S", 0.05)
    monkeypatch.setattr(docker, "STOP_S", 0.05)


class Line:
    """Both ends of a session's standard input."""

    def __init__(self) -> None:
        self.inside, self.ours = socket.socketpair()

    def hung_up(self) -> bool:
        return self.inside.recv(1) == b""


@pytest.fixture
def line() -> Iterator[Line]:
    found = Line()
    found.inside.settimeout(10)
    yield found
    found.inside.close()
    found.ours.close()


def running(
    container: Container, line: Line, log: Path, seconds: float = 600.0, cap: int = 1 << 20
) -> ContainerSession:
    return ContainerSession(
        container,
        # As the SDK gives it: closing the file leaves the socket open.
        line.ours.makefile("rb", buffering=0),
        ("python", "-m", "acceptance.session.context"),
        Deadline.after(seconds),
        log,
        3 << 29,
        trouble=(OSError,),
        reason=lambda error: type(error).__name__,
        cap_bytes=cap,
    )


def test_a_session_that_ends_well(line: Line, tmp_path: Path) -> None:
    container = Container("created", "running", "running", "exited")
    container.output = [b"one\n", b"tw", "ö".encode(), b"\n\xff"]
    session = running(container, line, tmp_path / "x.log")
    session.read_on()
    done = session.wait()
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\ntwö\n\ufffd", "")
    assert (done.timed_out, done.truncated, done.log_error) == (False, False, None)
    assert done.argv == ("python", "-m", "acceptance.session.context")
    assert (tmp_path / "x.log").read_bytes() == b"one\ntw\xc3\xb6\n\xff"
    assert container.done == ["remove"]
    assert line.hung_up()


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        *((one, True) for one in ("exited", "dead", "removing", "stopped")),
        *((one, False) for one in ("created", "running", "paused", "restarting")),
    ],
)
def test_its_end(line: Line, tmp_path: Path, status: str, ended: bool) -> None:
    assert running(Container(status), line, tmp_path / "x.log").poll() is ended


def test_the_engine_is_not_asked_all_the_time(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "POLL_S", 600.0)
    session = running(Container("running", "exited"), line, tmp_path / "x.log")
    assert [session.poll() for _ in range(5)] == [False] * 5
    session.stop()
    assert session.poll()


MEMORY = "the container used up its memory (1.5 GiB)"


@pytest.mark.parametrize(
    ("container", "code", "told"),
    [
        (Container("exited", ExitCode=137), 137, ""),
        # Out of memory is never a good end.
        *(
            (Container("exited", ExitCode=code, OOMKilled=True), told, MEMORY)
            for code, told in ((0, 137), (1, 137), (2, 137), (65, 65), (137, 137))
        ),
        (Container("exited", ExitCode=128, Error="a hook failed"), 128, "a hook failed"),
        (Container("running", Gone()), 255, "the container was removed (Gone)"),
    ],
)
def test_what_it_ended_with(
    line: Line, tmp_path: Path, container: Container, code: int, told: str
) -> None:
    done = running(container, line, tmp_path / "x.log").wait()
    assert done.returncode == code
    assert worded(done.describe()).startswith(f"ended with exit code {code} after")
    assert told in worded(done.last_told(5))
    assert container.done == ["remove"]


def test_an_engine_that_is_gone(line: Line, tmp_path: Path) -> None:
    container = Container("running", ConnectionRefusedError())
    container.obeys = False
    container.output = [b"last words\n", ConnectionResetError()]
    session = running(container, line, tmp_path / "x.log")
    buried: list[str] = []
    session.bury = lambda: buried.append("its processes")
    session.read_on()
    done = session.wait()
    assert buried == ["its processes"]
    assert done.returncode == 255
    told = worded(done.last_told(5))
    assert told == "last words\nthe engine no longer answers (ConnectionRefusedError)"
    assert line.hung_up(), "which ends the session, should it still be there"


def test_an_engine_that_is_silent_for_a_moment(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "LOST_S", 600.0)
    container = Container(
        "running", TimeoutError(), TimeoutError(), "running", TimeoutError(), "exited"
    )
    assert running(container, line, tmp_path / "x.log").wait().returncode == 0


def test_a_deadline(line: Line, tmp_path: Path) -> None:
    container = Container("running", ExitCode=143)
    done = running(container, line, tmp_path / "x.log", seconds=0.1).wait()
    assert (done.timed_out, done.returncode) == (True, 143)
    assert container.done == ["stop", "remove"]
    assert line.hung_up()


def test_a_container_that_does_not_stop_does_not_keep_us(line: Line, tmp_path: Path) -> None:
    container = Container("running")
    container.obeys = False
    session = running(container, line, tmp_path / "x.log")
    session.stop()
    assert session.wait().timed_out
    assert container.done == ["stop", "stop", "remove"]


def test_a_flood(line: Line, tmp_path: Path) -> None:
    container = Container("running")
    container.output = [b"a" * 1000] * 100
    session = running(container, line, tmp_path / "x.log", cap=2500)
    session.read_on()
    container.script = ["exited"]
    done = session.wait()
    assert (len(done.stdout), done.truncated) == (2500, True)
    assert (tmp_path / "x.log").stat().st_size == 2500


def test_a_reader_that_never_ends(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = threading.Event()
    container = Container("exited")
    monkeypatch.setattr(container, "logs", lambda **_: iter(free.wait, True))
    session = running(container, line, tmp_path / "x.log")
    session.read_on()
    monkeypatch.setattr(threading.Thread, "join", lambda *_: None)
    try:
        assert session.wait().truncated
    finally:
        free.set()
        assert session._reader is not None
        until(lambda: not session._reader.is_alive(), "the reader has ended")


@pytest.mark.parametrize("where", ["nowhere/x.log", "/dev/full"])
def test_a_log_that_cannot_be_written(line: Line, tmp_path: Path, where: str) -> None:
    container = Container("exited")
    container.output = [b"one\n", b"two\n"]
    session = running(container, line, tmp_path / where)
    session.read_on()
    done = session.wait()
    assert done.stdout == "one\ntwo\n"
    assert known(done.log_error).startswith(str(tmp_path / where))


def test_whatever_happens_it_is_removed(line: Line, tmp_path: Path) -> None:
    container = Container("running", KeyError("a defect of ours"))
    with pytest.raises(KeyError):
        running(container, line, tmp_path / "x.log").wait()
    assert container.done == ["remove"]


def test_the_connection_under_a_stream_is_closed() -> None:
    closed: list[str] = []

    class Response:
        def close(self) -> None:
            closed.append("response")
            raise OSError

    class Stream:
        _response = Response()

        def shutdown(self, _how: int) -> None:
            raise OSError

        def close(self) -> None:
            closed.append("stream")

    docker.hang_up(Stream(), (OSError,))
    assert closed == ["response", "stream", "stream"]
