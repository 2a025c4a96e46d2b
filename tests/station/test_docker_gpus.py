"""Described GPU machines that are healthy, through the container station: grant, loads inside,
watch outside, JUnit.

The engine gives the container device nodes that do no harm, and of the driver's libraries the fake
NVML; replayed tools are in a derived image. Faulty ones are played by the self-test in the same
way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from gpu_box import GPU_CHECKS
from run_left import Run

from acceptance.station.image.record import ImageRef
from selftest.fault import Fault
from selftest.images import Images, open_images
from selftest.stage import Stage

pytestmark = [pytest.mark.docker, pytest.mark.timeout(3600)]
RECORDINGS = Path(__file__).resolve().parents[2] / "fixtures/recordings"


@pytest.fixture(scope="module")
def images(
    client: docker.DockerClient, built: ImageRef, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Images]:
    with open_images(client, built.tag, tmp_path_factory.mktemp("images"), RECORDINGS) as found:
        yield found


def played(
    home: Path, library: Path, images: Images, machine: str, *arguments: str, only: str = GPU_CHECKS
) -> Run:
    """A run in the container of which all that keeps it from passing is that
    its image was named.
    """
    rigproof = (str(Path(sys.executable).with_name("rigproof")),)
    fault = Fault(
        "nothing",
        (),
        3,
        machine=machine,
        only=only,
        profile="accept",
        burn=2.0,
        arguments=arguments,
    )
    stage = Stage(home / "stage", fault, library, rigproof, images)
    try:
        run, _ = stage.play()
    finally:
        stage.clear()
    run.assert_agrees()
    told = run.verdict["provenance"]
    assert (told["gpu_grant"], told["image"]) == ("devices", f"{stage.image} (named by --image)")
    assert run.texts("violations") == ""
    (line,) = run.texts("unjudged").splitlines()
    assert "which may hold anything: such a run never passes" in line
    assert run.verdict["verdict"] == "UNJUDGED"
    assert set(run.outcomes().values()) == {"pass"}
    return run


def test_one_gpu_of_two_is_given_alone(tmp_path: Path, library: Path, images: Images) -> None:
    # NVML in the container shows what the description holds; a driver would show the node that was
    # given.
    played(tmp_path, library, images, "2x4090", "--gpus", "1", only="gpu,link.bandwidth_test")
