"""The container station with an engine that is a fake; tests/station has the real one."""

from __future__ import annotations

import gc
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

import docker
import pytest
import requests
import urllib3
from docker.errors import APIError, DockerException, NotFound
from worded import worded

from acceptance.core.limit import GIB
from acceptance.journal import clock
from acceptance.process.command import CommandError
from acceptance.process.deadline import Deadline
from acceptance.session import context
from acceptance.station import container_args, container_owner
from acceptance.station import docker as station_docker
from acceptance.station.container_args import (
    ContainerJob,
    ContainerMemory,
    ContainerSettings,
    Grant,
)
from acceptance.station.docker import DockerStation

# The SDK leaves sockets of failed attempts to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
REFUSED = (
    "OCI runtime create failed: error setting rlimits for ready process: error setting "
    "rlimit "
    "type 8: operation not permitted"
)


@pytest.fixture(autouse=True, scope="module")
def frozen() -> Iterator[None]:
    """What was there before is none of the SDK's, and looking through it after each test takes
    most of the time.
    """
    gc.freeze()
    yield
    gc.collect()
    gc.unfreeze()


@pytest.fixture(autouse=True)
def collected(frozen: None) -> Iterator[None]:
    yield
    gc.collect()


class Made:
    """A container that was made."""

    def __init__(
        self, containers: Containers, name: str = "", holder: str = "", status: str = "running"
    ) -> None:
        self.containers = containers
        self.labels = {"rigproof.run": name, "rigproof.holder": holder}
        self.name, self.status = name, status
        self.attrs = {"State": {"ExitCode": 0}}
        self.line = socket.socketpair()

    def attach_socket(self, *, params: dict[str, int]) -> socket.socket:
        assert params == {"stdin": 1, "stream": 1}
        self.containers.did("attach")
        return self.line[0]

    def start(self) -> None:
        self.containers.did("start")

    def reload(self) -> None:
        self.status = "exited"

    def logs(self, **_: object) -> Iterator[bytes]:
        yield b"a word\n"

    def stop(self, **_: object) -> None: ...

    def remove(self, *, force: bool, v: bool) -> None:
        self.containers.did(f"remove {self.name}".strip())
        for end in self.line:
            end.close()


class Containers:
    """Stands for the SDK's `client.containers`.

    `fails` holds what an act of this name raises, once each.
    """

    def __init__(self) -> None:
        self.acts: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.api = type("Api", (), {"timeout": 60.0})()
        self.patience_s: list[float] = []
        self.fails: dict[str, list[Exception]] = {}
        self.there: list[Made] = []

    def did(self, act: str) -> None:
        self.acts.append(act)
        if self.fails.get(act):
            raise self.fails[act].pop(0)

    def create(self, **arguments: Any) -> Made:
        self.asked.append(arguments)
        self.patience_s.append(self.api.timeout)
        self.did("create")
        return Made(self)

    def list(self, **_: object) -> list[Made]:
        return self.there


class Client:
    def __init__(self) -> None:
        self.containers = Containers()
        self.api = self.containers.api


@pytest.fixture
def client() -> Client:
    return Client()


def started(client: Client, folder: Path, session: str = "load", **more: Any) -> Any:
    memory, holder = ContainerMemory(GIB, GIB), "boot/pid:[1]/7/9"
    settings = ContainerSettings("sha256:1", Grant("none"), memory, holder, **more)
    where = DockerStation(client, settings)
    context_file = folder / f"session-{session}.json"
    context_file.touch()
    return where.start(context_file, "run-1", Deadline.after(600.0), folder / f"{session}.log")


def test_a_second_session_beside_the_first_is_given_the_same_time_and_another_name(
    client: Client, tmp_path: Path
) -> None:
    first = started(client, tmp_path)
    second = started(client, tmp_path, session="host-load")
    assert client.containers.patience_s == [60.0, 60.0]
    names = [asked["name"] for asked in client.containers.asked]
    assert names == ["rigproof-run-1-load", "rigproof-run-1-host-load"]
    environments = [asked["environment"] for asked in client.containers.asked]
    assert [one["RIGPROOF_SESSION"] for one in environments] == [
        "session-load",
        "session-host-load",
    ]
    first.wait()
    second.wait()


def test_the_line_is_held_before_the_session_starts(client: Client, tmp_path: Path) -> None:
    running = started(client, tmp_path)
    assert client.containers.acts == ["create", "attach", "start"]
    done = running.wait()
    assert (done.returncode, done.stdout) == (0, "a word\n")
    assert client.containers.acts[-1] == "remove"
    (asked,) = client.containers.asked
    owner = tmp_path.stat()
    assert asked["user"] == f"{owner.st_uid}:{owner.st_gid}"
    assert asked["command"] == context.in_container(
        "/rigproof/session-load.json", 615.0, clock.boot_id()
    )
    assert asked["environment"]["RIGPROOF_RUN"] == "run-1"
    assert asked["network_mode"] == "none"
    assert [dict(limit) for limit in asked["ulimits"]] == [
        {"Name": "core", "Soft": 0, "Hard": 0},
        {"Name": "memlock", "Soft": -1, "Hard": -1},
    ]


def test_the_one_place_that_the_container_sees(client: Client, tmp_path: Path) -> None:
    settings = ContainerSettings("sha256:1", Grant("none"), ContainerMemory(GIB, GIB), "x")
    where = DockerStation(client, settings)
    assert (where.name, where.inside(tmp_path), where.notes) == ("docker", Path("/rigproof"), ())


def test_an_engine_that_may_not_give_locked_memory(client: Client, tmp_path: Path) -> None:
    client.containers.fails["start"] = [APIError(REFUSED)]
    started(client, tmp_path).wait()
    assert client.containers.acts == [
        "create",
        "attach",
        "start",
        "remove",
        "create",
        "attach",
        "start",
        "remove",
    ]
    assert [[limit.name for limit in asked["ulimits"]] for asked in client.containers.asked] == [
        ["core", "memlock"],
        ["core"],
    ]


@pytest.mark.parametrize("act", ["create", "attach", "start"])
@pytest.mark.parametrize(
    "error", [APIError("no space left"), requests.exceptions.ReadTimeout(), BrokenPipeError()]
)
def test_a_container_that_cannot_be_started_is_removed(
    client: Client, tmp_path: Path, act: str, error: Exception
) -> None:
    client.containers.fails[act] = [error]
    with pytest.raises(CommandError, match="the container could not be started: "):
        started(client, tmp_path)
    assert client.containers.acts[-1] == ("create" if act == "create" else "remove")
    assert len(client.containers.asked) == 1


def test_an_engine_that_refuses_twice(client: Client, tmp_path: Path) -> None:
    client.containers.fails["start"] = [APIError(REFUSED), APIError(REFUSED)]
    with pytest.raises(CommandError, match="rlimit"):
        started(client, tmp_path)
    assert client.containers.acts.count("remove") == 2


def test_only_folders_that_the_run_has_made_are_mounted(client: Client, tmp_path: Path) -> None:
    made, missing = tmp_path / "data/.rigproof", tmp_path / "other/.rigproof"
    made.mkdir(parents=True)
    started(client, tmp_path, scratch=(made, missing)).wait()
    mounts = client.containers.asked[0]["mounts"]
    assert [mount["Target"] for mount in mounts] == ["/rigproof", str(made)]


def sdk(grant: Grant) -> dict[str, Any]:
    settings = ContainerSettings("sha256:1", grant, ContainerMemory(GIB, GIB), "h")
    job = ContainerJob(["x"], Path("/runs/run-1"), "run-1", "load", (1, 1), {})
    arguments = container_args.create_arguments(settings, job)
    api = docker.APIClient(base_url="unix:///nowhere", version="1.44")
    host = station_docker.to_sdk(arguments)
    keys = {
        "image",
        "command",
        "entrypoint",
        "name",
        "hostname",
        "labels",
        "user",
        "working_dir",
        "environment",
    }
    own = keys | {"stdin_open", "detach"}
    made = {key: host.pop(key) for key in own if key in host}
    assert made["detach"] is False
    found: dict[str, Any] = dict(api.create_host_config(**host)) if "runtime" not in host else {}
    api.close()
    return found


def test_cdi_as_the_engine_is_asked() -> None:
    """No engine that reads CDI specifications is at hand where this is tested: the request's own
    form is all that can be.
    """
    names = ("nvidia.com/gpu=0", "nvidia.com/gpu=GPU-1")
    assert sdk(Grant("cdi", cdi_devices=names))["DeviceRequests"] == [
        {"Driver": "cdi", "Count": 0, "DeviceIDs": list(names), "Capabilities": [], "Options": {}}
    ]
    assert "DeviceRequests" not in sdk(Grant("none"))


def test_device_nodes_and_mounts_as_the_engine_is_asked() -> None:
    found = sdk(
        Grant(
            "devices",
            nodes=("/dev/nvidia0",),
            files=(("/lib/libcuda.so.570", "/opt/x/libcuda.so.1"),),
        )
    )
    assert found["Devices"] == [
        {"PathOnHost": "/dev/nvidia0", "PathInContainer": "/dev/nvidia0", "CgroupPermissions": "rw"}
    ]
    assert [(one["Source"], one["Target"], one["ReadOnly"]) for one in found["Mounts"]] == [
        ("/runs/run-1", "/rigproof", False),
        ("/lib/libcuda.so.570", "/opt/x/libcuda.so.1", True),
    ]
    assert found["CapDrop"] == ["ALL"]
    assert found["ReadonlyRootfs"] is True
    assert found["LogConfig"]["Type"] == "json-file"
    assert "Privileged" not in found or found["Privileged"] is False


# --- leftovers ---


def test_dead_runs_are_swept_and_living_ones_are_not(client: Client) -> None:
    boot = clock.boot_id()
    own = container_owner.name(boot)
    space, number = own.split("/")[1:3]
    dead = f"{boot}/{space}/{number}/1"
    client.containers.there = [
        Made(client.containers, "living", own),
        Made(client.containers, "dead", dead),
        Made(client.containers, "dead-and-ended", dead, "exited"),
        Made(client.containers, "another-machines", f"boot-0/{space}/{number}/1"),
        Made(client.containers, "before-the-restart", f"boot-0/{space}/{number}/1", "exited"),
        Made(client.containers, "unreadable", "", "exited"),
        Made(client.containers, "already-going", dead),
    ]
    client.containers.fails["remove already-going"] = [APIError("removal is already in progress")]
    assert station_docker.sweep(client, boot) == ["dead", "dead-and-ended", "before-the-restart"]
    assert len(client.containers.acts) == 4


# --- the engine ---


class Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True


def serve(path: Path, info: dict[str, Any], version: dict[str, Any]) -> Server:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = (
                info
                if self.path.endswith("/info")
                else version
                if self.path.endswith("/version")
                else None
            )
            body = json.dumps(
                answer if answer is not None else {"message": "no such image"}
            ).encode()
            self.send_response(200 if answer is not None else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def address_string(self) -> str:
            return "unix"

        def log_message(self, *_: object) -> None: ...

    server = Server(str(path), Handler)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    ).start()
    return server


DOCKER = {
    "Version": "28.5.1",
    "ApiVersion": "1.44",
    "Components": [{"Name": "Engine"}, {"Name": "containerd"}],
}
PODMAN = {"Version": "5.4.2", "ApiVersion": "1.41", "Components": [{"Name": "Podman Engine"}]}


def engine(
    folder: Path, info: dict[str, Any], version: dict[str, Any]
) -> station_docker.DockerEngine:
    server = serve(folder / "engine.sock", info, version)
    try:
        found = station_docker.connect(f"unix://{folder}/engine.sock")
        assert station_docker.image_id(found.client, "nothing:1") is None
        found.client.close()
        return found
    finally:
        server.shutdown()
        server.server_close()


def test_what_docker_says_of_itself(tmp_path: Path) -> None:
    (tmp_path / "cdi").mkdir()
    for name in ("a.yaml", "b.json", "c.txt"):
        (tmp_path / "cdi" / name).write_text(f"kind: {name}")
    (tmp_path / "cdi/d.yaml").mkdir()
    info = {
        "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless", "name=cgroupns"],
        "Runtimes": {"runc": {}, "nvidia": {}},
        "CDISpecDirs": [str(tmp_path / "nowhere"), str(tmp_path / "cdi")],
        "KernelVersion": "6.1",
    }
    found = engine(tmp_path, info, DOCKER)
    assert (found.version, found.rootless, found.kernel) == ("Docker 28.5.1", True, "6.1")
    assert found.traits == {"seccomp", "rootless", "cgroupns"}
    assert found.facts.runtimes == {"runc", "nvidia"}
    assert found.facts.cdi_specs == ("kind: a.yaml", "kind: b.json")


def test_what_podman_says_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpu.yaml").write_text("kind: nvidia.com/gpu")
    monkeypatch.setattr(station_docker, "PODMAN_CDI", (str(tmp_path),))
    found = engine(tmp_path, {"SecurityOptions": None, "Runtimes": None}, PODMAN)
    assert (found.version, found.rootless, found.kernel) == ("Podman Engine 5.4.2", False, None)
    assert found.facts.cdi_specs == ("kind: nvidia.com/gpu",)


def test_an_engine_without_a_name(tmp_path: Path) -> None:
    found = engine(tmp_path, {}, {"Version": "1", "ApiVersion": "1.41"})
    assert (found.version, found.facts.cdi_specs, found.facts.runtimes) == (
        "engine 1",
        (),
        frozenset(),
    )


def test_a_socket_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(station_docker, "CONNECT_S", 0.05)
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / "mute.sock"))
        mute.listen()
        with pytest.raises(station_docker.ENGINE_ERRORS) as caught:
            station_docker.connect(f"unix://{tmp_path}/mute.sock")
    assert (
        worded(station_docker.in_one_line(caught.value))
        == "it takes the connection and does not answer"
    )


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("unix://SOCKET", "Connection refused"),
        ("unix://SOCKET.nowhere", "No such file or directory"),
        ("tcp://127.0.0.1:1", "Connection refused"),
        ("moon://x", "Invalid bind address protocol"),
        ("tcp://127.0.0.1:port", "port"),
    ],
)
def test_an_address_where_nothing_is(tmp_path: Path, address: str, told: str) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead.sock"))
    with pytest.raises(station_docker.ENGINE_ERRORS) as caught:
        station_docker.connect(address.replace("SOCKET", str(tmp_path / "dead.sock")))
    assert told in worded(station_docker.in_one_line(caught.value))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (APIError("500 Server Error", explanation="no space left\nmore"), "no space left more"),
        (DockerException("first\nsecond"), "first second"),
        (
            urllib3.exceptions.ProtocolError(
                "Connection broken", ConnectionResetError(104, "reset")
            ),
            "reset",
        ),
        (NotFound(""), "NotFound"),
        (OSError(), "OSError"),
        (DockerException("x" * 999), "x" * 147 + " ... " + "x" * 148),
    ],
)
def test_a_complaint_in_one_line(error: Exception, told: str) -> None:
    assert station_docker.in_one_line(error) == told
