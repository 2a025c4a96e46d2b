"""GPUs by CDI on a real engine, with a specification over device nodes that do no harm.

It takes Docker from 25 on with CDI switched on; RIGPROOF_TEST_CDI names the socket of one beside
the machine's own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gpu_machine
import pytest
from box import Probe
from second import carry

from acceptance.machine.gpu import Gpu
from acceptance.process.command import CommandError
from acceptance.station import container_args, docker
from acceptance.station.container_args import DriverFiles
from acceptance.station.image.record import ImageRef

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]
ADDRESS = os.environ.get("RIGPROOF_TEST_CDI", "unix:///var/run/docker.sock")
TAG = "rigproof-test:cdi"
NODES = {
    "GPU-rigproof-test0": (1, 5),
    "GPU-rigproof-test1": (10, 229),
}  # what /dev/zero and /dev/fuse are
YAML = """\
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
"""


@dataclass
class Cdi:
    """An engine that reads CDI specifications, with one of ours."""

    engine: docker.DockerEngine
    image: str
    spec: Path


@pytest.fixture(scope="module")
def engine(built: ImageRef) -> Iterator[tuple[docker.DockerEngine, str, Path]]:
    found = docker.connect(ADDRESS)
    folders = [Path(folder) for folder in found.client.info().get("CDISpecDirs") or ()]
    folder = next((one for one in folders if os.access(one, os.W_OK)), None)
    if folder is None:
        found.client.close()
        pytest.skip(
            f"{found.version} reads no CDI specifications: name one that does with "
            "RIGPROOF_TEST_CDI"
        )
    if "RIGPROOF_TEST_CDI" in os.environ:
        carry(built, ADDRESS, TAG)
    yield found, TAG if "RIGPROOF_TEST_CDI" in os.environ else built.id, folder
    found.client.close()


def device(name: str, number: int) -> dict[str, object]:
    major, minor = NODES[name]
    path = f"/dev/rigproof-test{number}"
    node = {
        "path": path,
        "hostPath": path,
        "type": "c",
        "major": major,
        "minor": minor,
        "permissions": "rw",
    }
    return {
        "name": name,
        "containerEdits": {"deviceNodes": [node], "env": [f"RIGPROOF_TEST{number}=given"]},
    }


@pytest.fixture(params=["json", "yaml"])
def cdi(
    engine: tuple[docker.DockerEngine, str, Path], request: pytest.FixtureRequest
) -> Iterator[Cdi]:
    found, image, folder = engine
    devices = [device(name, number) for number, name in enumerate(NODES)]
    if request.param == "json":
        text = json.dumps({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices})
    else:
        edits = [
            f"- name: {one['name']}\n  containerEdits: {json.dumps(one['containerEdits'])}\n"
            for one in devices
        ]
        text = YAML + "".join(edits)
    spec = folder / f"rigproof-test.{request.param}"
    for number, (major, minor) in enumerate(NODES.values()):
        os.mknod(f"/dev/rigproof-test{number}", 0o020600, os.makedev(major, minor))
        Path(f"/dev/rigproof-test{number}").chmod(0o666)
    spec.write_text(text)
    yield Cdi(found, image, spec)
    spec.unlink()
    for number in range(len(NODES)):
        Path(f"/dev/rigproof-test{number}").unlink()


def gpu(number: int) -> Gpu:
    return gpu_machine.gpu(number, uuid=f"GPU-rigproof-test{number}")


LOOK = """
import json, os
there = sorted(name for name in os.listdir("/dev") if name.startswith("rigproof-test"))
for name in there:
    open(f"/dev/{name}", "r+b", buffering=0).close()
print(json.dumps({"nodes": there, "given": sorted(name for name in os.environ if name.startswith("RIGPROOF_TEST"))}))
"""  # noqa: E501


@pytest.mark.parametrize("due", [(0, 1), (1,), ()])
def test_the_gpus_that_are_due_are_given_and_no_others(
    cdi: Cdi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, due: tuple[int, ...]
) -> None:
    facts = docker.connect(ADDRESS).facts
    grant = container_args.choose([gpu(number) for number in due], facts, DriverFiles())
    assert grant.mode == ("cdi" if due else "none")
    made = Probe(cdi.engine.client, cdi.image, tmp_path / "run", cdi.engine.traits, grant)
    made.owned_by(12345, 12345)
    found = made.ask(monkeypatch, LOOK)
    assert found == {
        "nodes": [f"rigproof-test{number}" for number in due],
        "given": [f"RIGPROOF_TEST{number}" for number in due],
    }


def test_a_device_that_the_engine_does_not_know_is_refused(
    cdi: Cdi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant = container_args.Grant("cdi", cdi_devices=("nvidia.com/gpu=GPU-rigproof-nothing",))
    made = Probe(cdi.engine.client, cdi.image, tmp_path / "run", cdi.engine.traits, grant)
    with pytest.raises(
        CommandError, match=r"the container could not be started: .*GPU-rigproof-nothing"
    ):
        made.start(monkeypatch, LOOK)
