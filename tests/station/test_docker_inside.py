"""From inside a running session: what it may do, and what it may not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from box import Probe

from acceptance.process.command import CommandError
from acceptance.station.container_args import LIBRARIES_INSIDE, Grant

pytestmark = [pytest.mark.docker, pytest.mark.timeout(3600)]
Probes = Callable[..., Probe]

LOOK = """
import json, os, socket, resource
from pathlib import Path
def attempt(what):
    try:
        what()
    except OSError as error:
        return error.strerror
    return None
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
def connect(address):
    with socket.socket() as one:
        one.settimeout(5)
        one.connect(address)
def writable():
    for folder, folders, _ in os.walk("/", followlinks=False):
        folders[:] = [name for name in folders if (folder, name) not in (("/", "proc"), ("/", "sys"))]
        if attempt(lambda: os.close(os.open(f"{folder}/.written", os.O_CREAT | os.O_WRONLY, 0o600))) is None:
            os.unlink(f"{folder}/.written")
            yield folder
mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
limit = Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory.max")
pids = Path("/sys/fs/cgroup/pids/pids.max"), Path("/sys/fs/cgroup/pids.max")
read = lambda paths: next((path.read_text().strip() for path in paths if path.exists()), None)
print(json.dumps({
    "interfaces": sorted(name for _, name in socket.if_nameindex()),
    "connect": [attempt(lambda: connect(one)) for one in (("127.0.0.1", 1), ("1.1.1.1", 53), ("169.254.169.254", 80))],
    "engine": os.path.exists("/var/run/docker.sock"),
    "capabilities": [status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "no_new_privileges": status["NoNewPrivs"].strip(),
    "seccomp": status["Seccomp"].strip(),
    "ids": [os.getuid(), os.getgid()],
    "writable": sorted(writable()),
    "filesystem": {mount[1]: mount[2] for mount in mounts},
    "root": next(mount[3].split(",")[0] for mount in mounts if mount[1] == "/"),
    "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
    "there": [path for path in HOSTS if os.path.exists(path)],
    "mknod": attempt(lambda: os.mknod("/tmp/node", 0o020600, os.makedev(1, 11))),
    "mount": os.system("mount -t tmpfs none /tmp 2>/dev/null") != 0,
    "chown": attempt(lambda: (open("/tmp/x", "w").close(), os.chown("/tmp/x", 4242, 4242))),
    "kmsg": os.path.exists("/dev/kmsg"),
    "shm": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize,
    "memory": read(limit),
    "pids": read(pids),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "set_user": attempt(lambda: os.setuid(4242)),
    "stdin": os.readlink("/proc/self/fd/0"),
    "run": os.environ["RIGPROOF_RUN"],
    "hostname": socket.gethostname(),
}))
"""  # noqa: E501


@pytest.fixture
def marker() -> Iterator[Path]:
    """A file of the host that everybody may read."""
    path = Path("/var/tmp") / f"rigproof-marker-{os.getpid()}"
    path.write_text("of the host")
    path.chmod(0o644)
    yield path
    path.unlink()


@pytest.mark.parametrize("uid", [0, 12345])
def test_what_a_session_may_do(
    probe: Probes, monkeypatch: pytest.MonkeyPatch, marker: Path, uid: int
) -> None:
    made = probe()
    made.owned_by(uid, uid)
    hosts = [
        "/etc/machine-id",
        str(marker),
        "/var/run/docker.sock",
        str(made.run_dir),
        str(Path(__file__).parent),
    ]
    found = made.ask(monkeypatch, f"HOSTS = {hosts!r}\n{LOOK}")
    assert found["interfaces"] == ["lo"]
    assert found["connect"] == [
        "Connection refused",
        "Network is unreachable",
        "Network is unreachable",
    ]
    assert found["capabilities"] == ["0000000000000000"] * 5
    assert (found["no_new_privileges"], found["seccomp"]) == ("1", "2")
    assert found["ids"] == [uid, uid]
    assert found["root"] == "ro"
    # Beside the run directory only memory that goes with the container: root owns the folder of its
    # own device nodes.
    own = {"/rigproof", "/tmp", "/dev/shm", "/dev/mqueue"} | ({"/dev"} if uid == 0 else set())
    assert set(found["writable"]) == own
    kinds = {found["filesystem"][place] for place in own - {"/rigproof"}}
    assert kinds == {"tmpfs", "mqueue"}
    assert found["there"] == []
    assert max(found["processes"]) < 50, "the host's processes are not there"
    assert found["mknod"] == "Operation not permitted"
    assert found["mount"]
    assert found["chown"] == "Operation not permitted"
    assert found["set_user"] == "Operation not permitted"
    assert not found["kmsg"]
    assert not found["engine"]
    assert found["shm"] == made.room.shm_bytes
    assert found["memory"] == str(made.room.memory_bytes)
    assert found["pids"] == "16384"
    assert found["core"] == [0, 0]
    assert found["stdin"] == "/dev/null"
    assert (found["run"], found["hostname"]) == (made.run_id, "rigproof")


def test_what_it_writes_is_the_owners(probe: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    made = probe()
    made.owned_by(12345, 54321)
    made.ask(monkeypatch, "open('/rigproof/found', 'w').write('x'); print(1)")
    found = (made.run_dir / "found").stat()
    assert (found.st_uid, found.st_gid) == (12345, 54321)


# --- GPUs as device nodes, with nodes that do no harm ---

NODES = {
    "/dev/rigproof-test0": (1, 5),
    "/dev/rigproof-test-ctl": (10, 229),
}  # what /dev/zero and /dev/fuse are


@pytest.fixture
def nodes() -> Iterator[list[str]]:
    for path, (major, minor) in NODES.items():
        os.mknod(path, 0o020600, os.makedev(major, minor))
        Path(path).chmod(0o666)
    yield list(NODES)
    for path in NODES:
        Path(path).unlink()


NODE_LOOK = """
import json, os, stat
found, zeros = {}, ""
for path in NODES:
    kind = os.stat(path)
    with open(path, "r+b", buffering=0) as device:
        found[path] = [os.major(kind.st_rdev), os.minor(kind.st_rdev), stat.S_ISCHR(kind.st_mode)]
        zeros = device.read(4).hex() if path.endswith("0") else zeros
try:
    open("/opt/host-driver/libcuda.so.1", "r+b")
    written = True
except OSError as error:
    written = error.strerror
print(json.dumps({
    "nodes": found, "zeros": zeros, "written": written,
    "libraries": {name: open(f"/opt/host-driver/{name}").read() for name in os.listdir("/opt/host-driver")},
    "path": os.environ["LD_LIBRARY_PATH"],
    "void": os.environ["NVIDIA_VISIBLE_DEVICES"],
}))
"""  # noqa: E501


def test_device_nodes_and_libraries(
    probe: Probes, monkeypatch: pytest.MonkeyPatch, nodes: list[str], tmp_path: Path
) -> None:
    library = tmp_path / "a library, of: the host.so"
    library.write_text("the driver")
    grant = Grant(
        "devices",
        nodes=tuple(nodes),
        files=((str(library), f"{LIBRARIES_INSIDE}/libcuda.so.1"),),
        environment={"LD_LIBRARY_PATH": LIBRARIES_INSIDE, "NVIDIA_VISIBLE_DEVICES": "void"},
    )
    made = probe(grant=grant)
    made.owned_by(12345, 12345)
    library.chmod(0o666)
    found: dict[str, Any] = made.ask(monkeypatch, f"NODES = {nodes!r}\n{NODE_LOOK}")
    assert found == {
        "nodes": {path: [*numbers, True] for path, numbers in NODES.items()},
        "zeros": "00000000",
        "written": "Read-only file system",
        "libraries": {"libcuda.so.1": "the driver"},
        "path": LIBRARIES_INSIDE,
        "void": "void",
    }


def test_a_device_node_that_is_gone_is_said(probe: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    made = probe(grant=Grant("devices", nodes=("/dev/rigproof-nothing",)))
    with pytest.raises(
        CommandError, match=r"the container could not be started: .*/dev/rigproof-nothing"
    ):
        made.start(monkeypatch, "")


def test_cdi_on_an_engine_without_it_is_refused_and_not_ignored(
    probe: Probes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = probe(grant=Grant("cdi", cdi_devices=("nvidia.com/gpu=rigproof-test",)))
    with pytest.raises(CommandError, match="the container could not be started: "):
        made.start(monkeypatch, "")
