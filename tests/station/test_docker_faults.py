"""What goes wrong with a container in the middle of a run: the run is judged, nothing is left,
and nothing passes that did not. Kills of container and harness, and images that are others, are
played by the self-test.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import box
import docker
import pytest
from box import Probe
from rig import Rig, wait_for
from run_left import Run

from acceptance.core.evidence import ToolRan
from acceptance.core.record import SessionEnded
from acceptance.journal import clock, reader
from acceptance.process import command, orphans
from acceptance.process.deadline import Deadline
from acceptance.run import supervisor
from acceptance.run.planning import prepare
from acceptance.station import docker as station_docker
from acceptance.station.container_args import ContainerMemory, ContainerSettings
from acceptance.station.image.record import ImageRef
from acceptance.station.options import Options
from acceptance.wording import words

pytestmark = [pytest.mark.docker, pytest.mark.timeout(3600)]
Probes = Callable[..., Probe]
ONLY = "cpu.stress_ng,kernel_log.during_run"


class Going:
    """A run in a container that has reached its load, which would last for minutes."""

    def __init__(self, rig: Rig, client: docker.DockerClient) -> None:
        self.rig = rig
        argv = rig.argv("--station", "docker", "--profile", "soak", only=ONLY, burn=200)
        self.process, self.before, self.began, self.folder = box.begin(rig, *argv)
        rig.reached(self.folder, "cpu.stress_ng")
        (self.container,) = box.containers(client, self.folder.name)
        wait_for(
            lambda: any("stress-ng" in line for line in orphans.find(self.folder.name).values())
        )

    def finish(self) -> Run:
        run = self.rig.finish(self.process, self.before, self.began)
        run.assert_agrees()
        return run

    def seconds_since(self, moment: float) -> float:
        return time.monotonic() - moment


def assert_unjudged(run: Run, client: docker.DockerClient, *, host_after: bool = True) -> None:
    assert (run.code, run.verdict["verdict"]) == (3, "UNJUDGED")
    assert box.containers(client, run.path.name) == []
    assert orphans.find(run.path.name) == {}
    assert run.outcomes()["cpu.stress_ng"] == "error"
    ended = {end.session: end.complete for end in run.bodies(SessionEnded)}
    assert ended == (
        {"host-load": False, "host-after": True} if host_after else {"host-load": False}
    )


def test_the_container_is_removed(rig: Rig, client: docker.DockerClient) -> None:
    going = Going(rig, client)
    going.container.remove(force=True)
    run = going.finish()
    assert_unjudged(run, client)
    # Whether it is seen ended or gone depends on the moment.
    assert "the container was removed" in run.texts("unjudged") or "exit code 137" in run.texts(
        "unjudged"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_harness_is_told_to_stop(
    rig: Rig, client: docker.DockerClient, number: signal.Signals
) -> None:
    going = Going(rig, client)
    moment = time.monotonic()
    going.process.send_signal(number)
    run = going.finish()
    assert going.seconds_since(moment) < 20
    assert_unjudged(run, client, host_after=False)
    assert f"stopped by {number.name}" in run.texts("unjudged")


def test_out_of_memory_in_a_run(
    client: docker.DockerClient,
    built: ImageRef,
    tmp_path: Path,
    rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared = prepare(Options(rig.machine, "smoke", only=("memory.stressapptest",), burn_s=2.0))
    memory, holder = ContainerMemory(512 << 20, 64 << 20), box.container_owner.name(clock.boot_id())
    settings = ContainerSettings(built.id, box.Grant("none"), memory, holder)
    where = station_docker.DockerStation(client, settings)
    run_dir = supervisor.new_run_dir(tmp_path / "out")
    verdict = supervisor.Supervisor(prepared, where, run_dir, lambda _: None).run().verdict
    assert verdict.verdict == "UNJUDGED"
    told = "\n".join(words.of(finding) for finding in verdict.of_kind("error"))
    assert (
        "the container used up its memory (0.5 GiB), and the kernel ended a process in it" in told
    )
    assert box.containers(client, run_dir.name) == []


def test_out_of_memory_of_the_session_itself(
    probe: Probes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = probe(room=ContainerMemory(64 << 20, 16 << 20))
    done = made.run(
        monkeypatch, "print('filling'); found = bytearray(b'x') * (256 << 20); print(len(found))"
    )
    assert done.returncode == 137
    assert "the container used up its memory (0.1 GiB)" in words.text(done.last_told(5))


# --- what the session writes, and how it ends ---


def test_a_run_directory_that_cannot_be_written(
    client: docker.DockerClient, built: ImageRef, tmp_path: Path, rig: Rig
) -> None:
    """Root outside may write anywhere; root inside has no capability, and is refused."""

    class Locked(station_docker.DockerStation):
        def start(self, context: Path, run_id: str, deadline: Deadline, log: Path) -> Any:
            context.parent.chmod(0o555)
            return super().start(context, run_id, deadline, log)

    prepared = prepare(Options(rig.machine, "smoke", only=("cpu.stress_ng",), burn_s=1.0))
    holder = box.container_owner.name(clock.boot_id())
    where = Locked(client, ContainerSettings(built.id, box.Grant("none"), box.ROOM, holder))
    run_dir = supervisor.new_run_dir(tmp_path / "out")
    verdict = supervisor.Supervisor(prepared, where, run_dir, lambda _: None).run().verdict
    assert verdict.verdict == "UNJUDGED"
    told = "\n".join(words.of(finding) for finding in verdict.of_kind("error"))
    assert "session host-load ended with exit code 65" in told
    assert "journal-host-load.jsonl: cannot be written (Permission denied)" in told
    assert not any(isinstance(entry.body, ToolRan) for entry in reader.read(run_dir).entries)


def test_its_deadline_outside(probe: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    done = probe().run(monkeypatch, "import time; print('begun'); time.sleep(600)", seconds=3.0)
    assert (done.timed_out, done.stdout) == (True, "begun\n")
    assert time.monotonic() - began < 20


def test_its_deadline_inside(probe: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A harness that hangs, and still holds the line: the session ends by its own clock."""
    monkeypatch.setattr(station_docker, "INSIDE_LATER_S", 0.0)
    running = probe().start(monkeypatch, "import time; time.sleep(600)", seconds=2.0)

    def over() -> bool:
        running.container.reload()
        return str(running.container.status) == "exited"

    wait_for(over, 15.0)
    running.deadline = Deadline.after(60.0)
    assert running.wait().returncode == 143


def test_what_it_starts_ends_with_it(probe: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import subprocess; subprocess.Popen(['setsid', 'sleep', '600']); print('left one')"
    began = time.monotonic()
    assert probe().run(monkeypatch, script).stdout == "left one\n"
    assert time.monotonic() - began < 20


def test_a_flood_is_cut(probe: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "line = 'x' * 9999\nfor _ in range(4000): print(line)\n"
    done = probe().run(monkeypatch, script)
    assert done.returncode == 0
    assert done.truncated
    assert len(done.stdout) == command.CAP_BYTES


def test_a_signal_that_ends_a_session(probe: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process of a container cannot die of a signal of its own: the exit code tells,
    as a shell does.
    """
    assert probe().run(monkeypatch, "import os; os.kill(os.getpid(), 11)").returncode == 128 + 11
