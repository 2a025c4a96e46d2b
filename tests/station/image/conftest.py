"""An engine that is only a script, and a build that goes through it."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
from engine_stub import Build, install
from runs import known_provenance

from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.station.image import base as image_base
from acceptance.station.image import build as image_build
from acceptance.station.image import inputs
from acceptance.station.image.record import ImageRef

real_files = inputs.files


@pytest.fixture(autouse=True)
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts end at once, so nothing is gained by a tenth of a second between two looks."""
    monkeypatch.setattr(image_base, "POLL_S", 0.005)


@pytest.fixture(autouse=True)
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts leave nothing running, and a reaper costs ten times what a script does."""
    monkeypatch.setattr(command, "under_reaper", list)
    known_provenance(monkeypatch)


@functools.cache
def context_files(root: Path = inputs._ROOT) -> dict[str, Path]:
    """The recipe with one module of the package: what else the wheel is made from is
    test_image_inputs' matter.
    """
    found = real_files(root)
    module = f"source/{Path(image_build.__file__).relative_to(root)}"
    return {
        name: path
        for name, path in found.items()
        if not name.startswith("source/acceptance/") or name == module
    }


@pytest.fixture(autouse=True)
def small_context(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.stem != "test_image_inputs":
        monkeypatch.setattr(inputs, "files", context_files)


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    for name in ("DOCKER_HOST", "DEBIAN_MIRROR", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return folder


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def build(tmp_path: Path, said: list[str], stub: Path) -> Build:
    root = tmp_path / "root"
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text("")

    def run(base: str | None = None, answer_s: float = 20.0) -> ImageRef:
        return image_build.build(
            log_dir=tmp_path / "logs",
            say=said.append,
            deadline=Deadline.after(60.0),
            base=base,
            root=root,
            answer_s=answer_s,
        )

    return run
