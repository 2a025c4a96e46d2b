"""The engine itself: not there, mute, another one than the machine's, and gone
in the middle of a run.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import box
import docker
import pytest
from junitparser import JUnitXml
from rig import Rig, wait_for
from second import Second, carry

from acceptance.core.record import SessionEnded
from acceptance.journal import clock
from acceptance.process import deadline, orphans
from acceptance.station import container_args
from acceptance.station import docker as station_docker
from acceptance.station.image.record import ImageRef

pytestmark = [pytest.mark.docker, pytest.mark.timeout(3600)]
ONLY = "cpu.stress_ng,kernel_log.during_run"


@pytest.fixture(params=["nobody listens", "nobody answers"])
def unwell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """DOCKER_HOST of an engine that is not well, and what is said of it."""
    where = tmp_path / "engine.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(where))
        if request.param == "nobody answers":
            server.listen()
        why = {
            "nobody listens": "Connection refused",
            "nobody answers": "it takes the connection and does not answer",
        }
        yield f"unix://{where}", why[request.param]


def test_without_an_engine_the_host_is_taken_and_everybody_is_told(
    rig: Rig, unwell: tuple[str, str]
) -> None:
    address, why = unwell
    rig.variables["DOCKER_HOST"] = address
    argv = [
        "accept",
        "--machine",
        str(rig.machine),
        "--profile",
        "smoke",
        "--burn",
        "1",
        "--only",
        ONLY,
    ]
    run = rig.run([*argv, "--out", str(rig.out)])
    run.assert_agrees()
    assert run.verdict["verdict"] == "PASS"
    line = f"STATION: host, because DOCKER_HOST={address} does not answer ({why})."
    assert " ".join(run.out.split()).count(line) == 1
    assert any(note.startswith(line) for note in run.verdict["notes"])
    assert run.verdict["provenance"]["station"] == "host"
    assert run.verdict["provenance"]["station_remark"].startswith(line)
    suite = next(iter(JUnitXml.fromstring((run.path / "junit.xml").read_bytes())))
    assert {one.name: one.value for one in suite.properties()}["station_remark"].startswith(line)
    assert "STATION: host, because" in (run.path / "report.html").read_text()


@pytest.fixture(scope="module")
def second(built: ImageRef) -> Iterator[Second]:
    # A short path: one of a socket has 107 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="rigproof-engine-", dir="/var/tmp"))
    engine = Second(folder)
    try:
        engine.start()
        carry(built, engine.socket, "rigproof-test:small")
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_second_engine(rig: Rig, second: Second, client: docker.DockerClient) -> None:
    rig.variables["DOCKER_HOST"] = second.socket
    run = rig.accept("--station", "docker", "--image", "rigproof-test:small", only=ONLY)
    run.assert_agrees()
    assert set(run.outcomes().values()) == {"pass"}, run.texts("unjudged")
    other = docker.DockerClient(base_url=second.socket)
    assert run.verdict["provenance"]["image_id"] == other.images.get("rigproof-test:small").id
    assert other.containers.list(all=True, filters={"label": container_args.LABEL}) == []
    other.close()


def test_the_engine_is_killed_in_the_middle(rig: Rig, second: Second) -> None:
    rig.variables["DOCKER_HOST"] = second.socket
    argv = rig.argv(
        "--station",
        "docker",
        "--image",
        "rigproof-test:small",
        "--profile",
        "soak",
        only=ONLY,
        burn=200,
    )
    process, before, began, folder = box.begin(rig, *argv)
    rig.reached(folder, "cpu.stress_ng")
    wait_for(lambda: any("stress-ng" in line for line in orphans.find(folder.name).values()))
    second.kill()
    moment = time.monotonic()
    # Its containers go on without it, their standard input open: the harness ends the load itself.
    run = rig.finish(process, before, began)
    assert time.monotonic() - moment < 40
    run.assert_agrees()
    assert orphans.find(folder.name) == {}
    assert "outlived" not in " ".join(run.verdict["notes"]), (
        "it was ended before anything else was measured"
    )
    assert (run.code, run.verdict["verdict"]) == (3, "UNJUDGED")
    assert "the engine no longer answers (" in run.texts("unjudged")
    assert run.outcomes() == {"cpu.stress_ng": "error", "kernel_log.during_run": "pass"}
    assert {end.session: end.complete for end in run.bodies(SessionEnded)} == {
        "host-load": False,
        "host-after": True,
    }
    # It comes back, and the next start removes what it could not.
    second.start()
    other = docker.DockerClient(base_url=second.socket)
    assert station_docker.sweep(other, clock.boot_id()) == [run.path.name]
    assert box.containers(other, run.path.name) == []
    other.close()


def test_an_engine_under_another_kernel_is_not_this_machines(
    rig: Rig, built: ImageRef, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A container of Kata or gVisor, or of an engine behind a forwarded socket: the session
    itself refuses.
    """
    monkeypatch.setattr(clock, "boot_id", lambda *_: "another-boot")
    client = docker.DockerClient(base_url="unix:///var/run/docker.sock")
    made = box.Probe(client, built.id, tmp_path / "run", held_by="x")
    done = (
        made.station()
        .start(
            made.run_dir / "session.json",
            made.run_id,
            deadline.Deadline.after(60.0),
            tmp_path / "log",
        )
        .wait()
    )
    client.close()
    assert done.returncode == 64
    assert "does not run under this machine's kernel" in done.last_lines()
    assert os.environ.get("DOCKER_HOST") is None
