"""The engine that is here, the image of this tree, and a corner for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from box import Probe
from rig import Rig

from acceptance.process.deadline import Deadline
from acceptance.station.image import build
from acceptance.station.image.record import ImageRef


@pytest.fixture(scope="session")
def client() -> Iterator[docker.DockerClient]:
    found = docker.DockerClient(base_url="unix:///var/run/docker.sock")
    yield found
    found.close()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> ImageRef:
    """Found, or built from nothing (minutes)."""
    return build.build(
        log_dir=tmp_path_factory.mktemp("logs"), say=print, deadline=Deadline.after(3000.0)
    )


@pytest.fixture
def rig(tmp_path: Path, built: ImageRef) -> Iterator[Rig]:
    corner = Rig(tmp_path)
    yield corner
    corner.clear()


@pytest.fixture
def probe(client: docker.DockerClient, built: ImageRef, tmp_path: Path) -> Callable[..., Probe]:
    def make(**more: Any) -> Probe:
        return Probe(client, built.id, tmp_path / "run", **more)

    return make
