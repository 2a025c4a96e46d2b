"""The real engine, the real image and the real station, for tests that look at
what a container may do.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
from rig import BUSY, Rig, wait_for

from acceptance.journal import clock
from acceptance.process import command
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.session import context
from acceptance.station import container_owner
from acceptance.station import docker as station_docker
from acceptance.station.container_args import LABEL, ContainerMemory, ContainerSettings, Grant
from acceptance.wording import words

ROOM = ContainerMemory(1 << 30, 64 << 20)


def engine(
    *arguments: str, seconds: float = 120.0, host: str | None = None, stdin: Path | None = None
) -> ProgramResult:
    """The engine's own client, which must succeed."""
    where = ["--host", host] if host else []
    argv = [command.find("docker"), *where, *arguments]
    if stdin is not None:
        argv = ["sh", "-c", 'file=$1; shift; exec "$@" <"$file"', "sh", str(stdin), *argv]
    done = command.run(argv, deadline=Deadline.after(seconds))
    assert done.returncode == 0, f"{argv}: {words.message(done.describe())}: {done.last_lines()}"
    return done


def containers(client: docker.DockerClient, run_id: str) -> list[Any]:
    """The containers of one run that are still there."""
    found: list[Any] = client.containers.list(
        all=True, filters={"label": f"{LABEL}={run_id}"}, ignore_removed=True
    )
    return found


def begin(rig: Rig, *arguments: str) -> tuple[subprocess.Popen[str], set[Path], float, Path]:
    """Start a run, when nobody else has the machine: its process, what `Rig.finish` wants to
    know, and its folder.
    """
    for _ in range(60):
        before, began = rig.runs(), time.monotonic()
        process = rig.start(arguments)
        wait_for(
            lambda before=before, process=process: (
                rig.runs() - before or process.poll() is not None
            ),
            300.0,
        )  # type: ignore[misc]
        if process.poll() is None:
            return process, before, began, rig.started_run(before)
        err = process.communicate()[1]
        assert BUSY in err, err
        time.sleep(2.0)
    raise AssertionError("the machine was never free")


@dataclass
class Probe:
    """Starts programs of ours in the place of a session, through the real station."""

    client: docker.DockerClient
    image: str
    run_dir: Path
    traits: frozenset[str] = frozenset()
    grant: Grant = field(default_factory=lambda: Grant("none"))
    room: ContainerMemory = ROOM
    held_by: str = ""

    def __post_init__(self) -> None:
        self.run_dir.mkdir()
        (self.run_dir / "session.json").write_text("{}")
        self.run_id = f"probe-{os.getpid()}-{time.monotonic_ns()}"

    def station(self) -> station_docker.DockerStation:
        held_by = self.held_by or container_owner.name(clock.boot_id())
        settings = ContainerSettings(self.image, self.grant, self.room, held_by, self.traits)
        return station_docker.DockerStation(self.client, settings)

    def owned_by(self, uid: int, gid: int) -> None:
        """Give the run directory to somebody."""
        for path in (self.run_dir, *self.run_dir.iterdir()):
            os.chown(path, uid, gid)

    def start(self, monkeypatch: Any, script: str, seconds: float = 60.0) -> Any:
        """Start a Python program in place of pytest, under the image's own reaper."""
        program = self.run_dir / "probe.py"
        program.write_text(script)
        program.chmod(0o644)
        inner = ["/opt/rigproof/venv/bin/python", "-c", LIKE_A_SESSION, "/rigproof/probe.py"]
        monkeypatch.setattr(
            context, "in_container", lambda _context, left, _boot: [*inner, f"{left:.0f}"]
        )
        return self.station().start(
            self.run_dir / "session.json",
            self.run_id,
            Deadline.after(seconds),
            self.run_dir / "session.log",
        )

    def run(self, monkeypatch: Any, script: str, seconds: float = 60.0) -> ProgramResult:
        done = self.start(monkeypatch, script, seconds).wait()
        assert isinstance(done, ProgramResult)
        assert containers(self.client, self.run_id) == []
        return done

    def ask(self, monkeypatch: Any, script: str) -> Any:
        """What the program prints as JSON."""
        done = self.run(monkeypatch, script)
        assert done.returncode == 0, words.message(done.describe()) + done.last_lines(20)
        return json.loads(done.stdout)


# session.main with another program in pytest's place.
LIKE_A_SESSION = """
import os, sys
from acceptance.process import reaper
argv = [sys.executable, "-I", "-S", reaper.__file__, f"stdin:{sys.argv[2]}", "3", "--", sys.executable, "-u", sys.argv[1]]
os.execv(argv[0], argv)
"""  # noqa: E501
