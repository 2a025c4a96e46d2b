"""The misbehaving tools of the end-to-end tests again, through the container: they enter it in a derived image."""

from __future__ import annotations

import re
from pathlib import Path

import box
import docker
import fakes
import pytest
from rig import Rig
from test_e2e_tools import BOTH, CHECKS, FAULTS

from acceptance.image.record import ImageRef

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]
INSIDE = "/opt/fakes"


def steps(folder: Path, fault: str) -> list[str]:
    """Lay the fakes out beside the Dockerfile, and the steps that put them in front of the tools."""
    place = folder / "fakes"
    place.mkdir(parents=True)
    for tool in CHECKS:
        fakes.write(place, tool, fault)
    for path in place.rglob("*"):
        path.write_text(path.read_text().replace(str(place), INSIDE))
    return [f"COPY fakes {INSIDE}", f"RUN chmod -R a+rX {INSIDE}", f"ENV PATH={INSIDE}:$PATH"]


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(rig: Rig, client: docker.DockerClient, built: ImageRef, tmp_path: Path, fault: str) -> None:
    outcome, said = FAULTS[fault]
    with box.derived(
        built, "rigproof-test:faulty", *steps(tmp_path / "image", fault), folder=tmp_path / "image"
    ) as image:
        run = rig.accept("--station", "docker", "--image", image, only=BOTH)
    run.assert_agrees()
    assert run.verdict["verdict"] == ("FAIL" if outcome == "fail" else "UNJUDGED")
    for tool, check in CHECKS.items():
        assert run.ended()[check] == run.outcomes()[check] == outcome
        told = run.texts("violations" if outcome == "fail" else "unjudged")
        assert re.search(said.replace("TOOL", tool), told), told
    assert box.containers(client, run.path.name) == []


def test_a_hanging_tool_is_stopped_at_its_deadline(
    rig: Rig, client: docker.DockerClient, built: ImageRef, tmp_path: Path
) -> None:
    with box.derived(
        built, "rigproof-test:faulty", *steps(tmp_path / "image", "hangs"), folder=tmp_path / "image"
    ) as image:
        run = rig.accept("--station", "docker", "--image", image, only="cpu.stress_ng")
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    assert run.outcomes() == {"cpu.stress_ng": "error"}
    assert "did not end within its time" in run.texts("unjudged")
    assert box.containers(client, run.path.name) == []


def test_a_tool_that_is_not_in_the_image_is_a_skip(rig: Rig, built: ImageRef, tmp_path: Path) -> None:
    gone = "RUN rm -f /usr/bin/stress-ng"
    with box.derived(built, "rigproof-test:faulty", gone, folder=tmp_path) as image:
        run = rig.accept("--station", "docker", "--image", image, only="cpu.stress_ng")
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    assert run.outcomes() == {"cpu.stress_ng": "skip"}
