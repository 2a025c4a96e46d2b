from __future__ import annotations

import dataclasses
import gc
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import journals
import msgspec
import pytest
from docker.errors import APIError
from machine_tree import NO_DMI, Programs, Tree, completed
from raising import raising
from worded import worded

from acceptance.core.limit import Limit
from acceptance.core.message import Message, SetupError
from acceptance.core.parts import MACHINE, Gpu
from acceptance.core.plan import Plan
from acceptance.core.record import Note
from acceptance.journal import clock
from acceptance.machine.inventory import Inventory, NvmlAnswer, NvmlDevice
from acceptance.observe.inventory import observe
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.station import container_args, container_owner, docker, preflight
from acceptance.station.base import HostStation
from acceptance.station.container_args import DriverFiles, EngineFacts
from acceptance.station.image import build as image_build
from acceptance.station.options import Options
from acceptance.wording.errors import WordedError, WordedUserError


@pytest.fixture(scope="module")
def inventory() -> Inventory:
    return observe()


class Images:
    def get(self, reference: str) -> Any:
        if reference == "bad ref":
            raise APIError("400 Client Error", explanation="invalid reference format")
        return SimpleNamespace(id=f"sha256:{reference}")


def an_engine(**more: Any) -> docker.DockerEngine:
    client: Any = SimpleNamespace(images=Images())
    given: dict[str, Any] = {
        "client": client,
        "version": "Docker 20.10",
        "traits": frozenset({"seccomp"}),
        "facts": EngineFacts(),
        "kernel": os.uname().release,
        **more,
    }
    return docker.DockerEngine(**given)


Answers = Callable[[str | None], docker.DockerEngine]


@pytest.fixture
def sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sockets in place of the machine's own."""
    monkeypatch.setattr(
        preflight,
        "addresses",
        lambda *_: tuple(f"unix://{tmp_path}/{name}.sock" for name in ("one", "two", "three")),
    )
    return tmp_path


def connects(monkeypatch: pytest.MonkeyPatch, answer: Answers) -> None:
    monkeypatch.setattr(docker, "connect", answer)


# --- where an engine may be ---


@pytest.mark.parametrize(
    ("environment", "uid", "found"),
    [
        ({"DOCKER_HOST": "tcp://x:1"}, 0, (None,)),
        (
            {"DOCKER_HOST": ""},
            0,
            (
                "unix:///var/run/docker.sock",
                "unix:///run/user/0/docker.sock",
                "unix:///run/podman/podman.sock",
            ),
        ),
        (
            {},
            1000,
            (
                "unix:///var/run/docker.sock",
                "unix:///run/user/1000/docker.sock",
                "unix:///run/user/1000/podman/podman.sock",
            ),
        ),
        (
            {"XDG_RUNTIME_DIR": "/x"},
            1000,
            (
                "unix:///var/run/docker.sock",
                "unix:///x/docker.sock",
                "unix:///x/podman/podman.sock",
            ),
        ),
    ],
)
def test_addresses(environment: dict[str, str], uid: int, found: tuple[str | None, ...]) -> None:
    assert preflight.addresses(environment, uid) == found


def test_the_first_that_answers(sockets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, asked = an_engine(), []

    def connect(address: str | None) -> docker.DockerEngine:
        asked.append(address)
        if address and "two" in address:
            raise ConnectionRefusedError(111, "Connection refused")
        return made

    connects(monkeypatch, connect)
    for name in ("two", "three"):
        (sockets / f"{name}.sock").touch()
    found = preflight.engine({}, 1000)
    assert (found.engine, found.address) == (made, f"unix://{sockets}/three.sock")
    assert asked == [f"unix://{sockets}/{name}.sock" for name in ("two", "three")]


def test_none_is_there(sockets: Path) -> None:
    none = preflight.EngineProbe(None, (Message("no_engine"),))
    assert preflight.engine({}, 1000) == none


def test_why_none_answers(sockets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[Exception] = [
        PermissionError(13, "Permission denied"),
        ConnectionRefusedError(111, "Connection refused"),
    ]

    def connect(_address: str | None) -> docker.DockerEngine:
        if errors:
            raise errors.pop(0)
        return an_engine(kernel="5.10-in-a-vm")

    connects(monkeypatch, connect)
    for name in ("one", "two", "three"):
        (sockets / f"{name}.sock").touch()
    found = preflight.engine({}, 1000)
    assert found.engine is None
    assert worded(found.why) == (
        f"unix://{sockets}/one.sock runs and refuses this user (Permission denied)",
        f"unix://{sockets}/two.sock does not answer (Connection refused)",
        f"unix://{sockets}/three.sock runs under another kernel (5.10-in-a-vm) than this machine's",
    )


def test_who_is_refused_is_told_how_to_be_let_in(
    sockets: Path, monkeypatch: pytest.MonkeyPatch, inventory: Inventory
) -> None:
    """Another engine is no cure for one that runs."""

    connects(monkeypatch, raising(PermissionError(13, "Permission denied")))
    (sockets / "one.sock").touch()
    _, remark = choose("auto", inventory)
    with pytest.raises(WordedUserError) as refused:
        choose("docker", inventory)
    for told in (worded(remark), str(refused.value)):
        assert "one.sock runs and refuses this user (Permission denied)" in told
        assert "`sudo usermod -aG docker $USER`" in told
        assert "log in again" in told or "a new login" in told
        assert "as good as root" in told
        assert "make engine" not in told


@pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning"
)  # the SDK leaves the socket of a failed attempt open
def test_the_environments_engine_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    where = f"unix://{tmp_path}/dead.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead.sock"))
    monkeypatch.setenv("DOCKER_HOST", where)
    (why,) = worded(preflight.engine().why)
    assert why == f"DOCKER_HOST={where} does not answer (Connection refused)"
    gc.collect()


# --- which station ---


def choose(
    name: str,
    inventory: Inventory,
    reference: str | None = None,
    said: list[str] | None = None,
    plan: Plan | None = None,
) -> Any:
    say = (said if said is not None else []).append
    options = Options(station=name, image=reference, out=Path("/nowhere"))
    return preflight.choose(options, plan or journals.plan(), inventory, say)


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> docker.DockerEngine:
    """An engine that answers, an image that is there, no leftovers."""
    made = an_engine()
    monkeypatch.setattr(
        preflight, "engine", lambda: preflight.EngineProbe(made, (), "unix:///x.sock")
    )
    monkeypatch.setattr(docker, "sweep", lambda *_: [])
    told = SimpleNamespace(provenance=lambda: {"image": "rigproof:1", "image_id": "sha256:1"})
    monkeypatch.setattr(image_build, "build", lambda **_: told)
    monkeypatch.setattr(command, "find", lambda program: f"/usr/bin/{program}")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    return made


def test_the_host_asks_no_engine(inventory: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "engine", lambda: pytest.fail("it was asked"))
    assert choose("host", inventory) == (HostStation(), None)
    assert preflight.station_notice("host") is None


def test_without_an_engine(inventory: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        preflight, "engine", lambda: preflight.EngineProbe(None, (Message("no_engine"),))
    )
    where, remark = choose("auto", inventory)
    assert worded(remark).startswith("STATION: host, because there is no container engine. ")
    assert "make engine" in worded(remark)
    assert "\n" not in worded(remark)
    assert where == HostStation(remark)
    assert preflight.station_notice("auto") == remark
    for call in (lambda: choose("docker", inventory), lambda: preflight.station_notice("docker")):
        with pytest.raises(
            WordedUserError, match="no container can be had: there is no container engine: "
        ):
            call()


def test_a_container(
    inventory: Inventory, answering: docker.DockerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "sweep", lambda *_: ["run-7"])
    said: list[str] = []
    for name in ("auto", "docker"):
        where, remark = choose(name, inventory, said=said)
        assert remark is None
    assert isinstance(where, docker.DockerStation)
    assert (where.name, where.settings.image, where.notes) == ("docker", "sha256:1", ())
    assert where.client is answering.client
    assert where.settings.memory == container_args.container_memory(inventory.memory.total_bytes)
    assert where.settings.holder == container_owner.name(clock.boot_id())
    assert where.settings.traits == {"seccomp"}
    assert dict(where.provenance) == {
        "engine": "Docker 20.10",
        "gpu_grant": "none",
        "image": "rigproof:1",
        "image_id": "sha256:1",
    }
    assert said == ["a container of the run run-7, which is dead, was removed"] * 2


@pytest.mark.usefixtures("answering")
def test_the_client_builds_with_the_engine_that_was_found(
    inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []

    def build(**_: Any) -> Any:
        seen.append(os.environ.get("DOCKER_HOST"))
        raise SetupError("no")

    monkeypatch.setattr(image_build, "build", build)
    with pytest.raises(SetupError):
        choose("docker", inventory)
    assert (seen, os.environ.get("DOCKER_HOST")) == (["unix:///x.sock"], None)
    monkeypatch.setattr(preflight, "engine", lambda: preflight.EngineProbe(an_engine(), (), None))
    monkeypatch.setenv("DOCKER_HOST", "unix:///y.sock")
    with pytest.raises(SetupError):
        choose("docker", inventory)
    assert (seen[1], os.environ["DOCKER_HOST"]) == ("unix:///y.sock", "unix:///y.sock")


@pytest.mark.usefixtures("answering")
def test_without_the_engines_client_no_image_can_be_built(
    inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(program: str) -> str:
        raise command.ProgramMissing(f"{program} is not installed")

    monkeypatch.setattr(command, "find", find)
    assert "the command `docker`, which builds the image, is not installed" in worded(
        choose("auto", inventory)[1]
    )
    with pytest.raises(WordedUserError, match="the command `docker`"):
        choose("docker", inventory)
    assert choose("docker", inventory, "mine:1")[0].settings.image == "sha256:mine:1"


@pytest.mark.usefixtures("answering")
def test_an_image_that_the_user_named_is_stamped(inventory: Inventory) -> None:
    where, _ = choose("docker", inventory, "mine:1")
    assert where.settings.image == where.provenance["image_id"] == "sha256:mine:1"
    assert where.provenance["image"] == "mine:1 (named by --image)"
    assert where.notes == (Note(preflight.custom_image_reason("mine:1"), trouble=True),)


@pytest.mark.usefixtures("answering")
def test_an_image_that_is_not_here(inventory: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WordedUserError, match="invalid reference format"):
        choose("docker", inventory, "bad ref")
    monkeypatch.setattr(docker, "image_id", lambda *_: None)
    with pytest.raises(
        WordedUserError,
        match="there is no image mine:1 here: name one that `docker images` lists, or leave --im",
    ):
        choose("docker", inventory, "mine:1")


@pytest.mark.usefixtures("answering")
def test_an_engine_that_fails_after_its_first_answer(
    inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(
        docker, "sweep", raising(APIError("500 Server Error", explanation="the disk is full"))
    )
    with pytest.raises(WordedUserError, match=r"the container engine fails \(the disk is full\): "):
        choose("auto", inventory)


# --- GPUs; and a run that will stop before any load needs no container ---

COUNTED = journals.check(
    "gpu.present",
    journals.due("gpu_count", MACHINE, "count", Limit("count", "a basis", low=2.0)),
    *(
        journals.due("gpu_answers", one, "count", Limit("count", "a basis", low=1.0))
        for one in (Gpu(0), Gpu(1))
    ),
    session="host-before",
    gate=True,
)


def seen(tree: Tree, *devices: NvmlDevice) -> Inventory:
    answer = msgspec.json.encode(NvmlAnswer("570", "12.8", devices, None, None)).decode()
    programs = Programs(nvml=completed(answer), dmidecode=completed(*NO_DMI))
    return observe(tree.root, deadline=Deadline.after(9), run=programs, dmidecode="dmidecode")


def device(number: int) -> NvmlDevice:
    return NvmlDevice(
        number, f"GPU-{number}", "H200", f"0000:0{number + 1}:00.0", None, None, 1, None, None
    )


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.cpus([(0,)])
    made.memory(64)
    made.gpu(0x01)
    made.gpu(0x02)
    return made


def of_gpus(plan: Plan, *gpus: str) -> Plan:
    """The plan of a run that tests these GPUs."""
    return msgspec.structs.replace(plan, gpus=gpus)


BOTH = (Gpu(0), Gpu(1))


@pytest.mark.usefixtures("answering")
def test_gpus_are_granted_or_it_is_said_why_not(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    inventory = seen(tree, device(0), device(1))
    monkeypatch.setattr(container_args, "find", lambda _: DriverFiles())
    with pytest.raises(WordedError, match="no device node for gpu0, gpu1"):
        choose("auto", inventory, plan=of_gpus(journals.plan(), *BOTH))
    with pytest.raises(WordedError, match="no device node for gpu1"):
        choose("auto", inventory, plan=of_gpus(journals.plan(), Gpu(1)))
    assert choose("auto", inventory, plan=journals.plan())[0].settings.grant.mode == "none", (
        "no GPU is asked for"
    )
    libraries = dict.fromkeys(container_args.NEEDED, "/x")
    node_of = {f"0000:0{number + 1}:00.0": f"/dev/nvidia{number}" for number in (0, 1)}
    nodes = frozenset({*node_of.values(), *container_args.CONTROL_NODES})
    monkeypatch.setattr(container_args, "find", lambda _: DriverFiles(nodes, node_of, libraries))
    where, _ = choose("auto", inventory, plan=of_gpus(journals.plan(), *BOTH))
    assert (where.settings.grant.mode, where.provenance["gpu_grant"]) == ("devices", "devices")
    where, _ = choose("auto", inventory, plan=of_gpus(journals.plan(), Gpu(1)))
    assert "/dev/nvidia1" in str(where.settings.grant)
    assert "/dev/nvidia0" not in str(where.settings.grant)


@pytest.mark.usefixtures("answering")
def test_a_gpu_that_is_not_set_up(tree: Tree) -> None:
    plan = of_gpus(journals.plan(COUNTED, journals.check()), *BOTH)
    assert not preflight.stops_at_the_gate(plan, seen(tree, device(0), device(1)))
    unknown = seen(tree, device(0))
    assert preflight.stops_at_the_gate(plan, unknown), "it has no device node"
    one = msgspec.structs.replace(COUNTED, due=COUNTED.due[:2])
    assert not preflight.stops_at_the_gate(journals.plan(one), unknown), "it is not asked for"
    assert not preflight.stops_at_the_gate(of_gpus(journals.plan(), *BOTH), unknown)
    shared = dataclasses.replace(seen(tree, device(0)), pci=())
    assert preflight.stops_at_the_gate(plan, shared), "the bus shows none that NVML has"
    unread = tuple(dataclasses.replace(function, answers=None) for function in seen(tree).pci or ())
    both = dataclasses.replace(seen(tree, device(0), device(1)), pci=unread)
    assert preflight.stops_at_the_gate(plan, both)
    where, line = choose("docker", unknown, plan=plan)
    assert where == HostStation()
    assert "the run stops there" in worded(line)


@pytest.mark.usefixtures("answering")
def test_a_gpu_that_is_missing_stops_nothing_unless_the_run_shall_fail_fast(
    tree: Tree, inventory: Inventory
) -> None:
    plan = of_gpus(journals.plan(COUNTED), Gpu(0))
    lost = seen(tree, device(0), dataclasses.replace(device(1), error="GPU is lost"))
    bare = dataclasses.replace(inventory, pci=())
    for missing in (lost, bare):
        assert not preflight.stops_at_the_gate(plan, missing)
        assert preflight.stops_at_the_gate(plan, missing, fail_fast=True)
    whole = seen(tree, device(0), device(1))
    assert not preflight.stops_at_the_gate(plan, whole, fail_fast=True)
