"""What `scripts/sbom.py` makes of the recipe and of an image, and what the workflow may do."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from known import known

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def sbom() -> ModuleType:
    spec = known(importlib.util.spec_from_file_location("sbom", ROOT / "scripts/sbom.py"))
    module = importlib.util.module_from_spec(spec)
    known(spec.loader).exec_module(module)
    return module


def purls(made: dict[str, Any]) -> set[str]:
    return {each["purl"] for each in made["components"]}


def test_the_recipe_has_every_pin(sbom: ModuleType) -> None:
    text = (ROOT / "containers/pins.txt").read_text()
    torch = sbom.pypi("torch", "2.10.0")
    made = sbom.of_recipe({"components": [torch]}, text, "1.2.3")
    assert {
        "pkg:pypi/torch@2.10.0",
        "pkg:docker/debian@trixie-slim",
        "pkg:deb/debian/gpu-burn@0%2Bgit20240115%2Bds-5?distro=trixie",
        "pkg:deb/ubuntu/fio?distro=ubuntu-24.04",  # any revision of it
    } <= purls(made)
    assert (
        len(made["components"]) == len([each for each in sbom.pins(text) if each[0] != "pypi"]) + 1
    )


def test_an_image_has_its_packages_and_tools(sbom: ModuleType, tmp_path: Path) -> None:
    pin = {"place": "sid", "name": "nvbandwidth", "pinned": "0.9+ds-1", "used": "0.9+ds-2"}
    on_base = {"place": "debian:13", "name": "fio", "pinned": "3.39-1", "used": "3.39-1"}
    image = {
        "base": "Debian GNU/Linux 13 (trixie)",
        "pins": [pin, on_base],
        "python": {"python": "3.13.5", "torch": "2.10.0"},
        "proofs": {},
    }
    (tmp_path / "image.json").write_text(json.dumps(image))
    (tmp_path / "dpkg").write_text("fio\t3.39-1\tamd64\nlibc6\t2.41-12\tamd64\n")
    words = [str(tmp_path / "image.json"), str(tmp_path / "dpkg"), "sha256:1"]
    for out in ("a", "b"):
        assert sbom.main(["image", *words, str(tmp_path / out)]) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    made = json.loads((tmp_path / "a").read_bytes())
    assert made["metadata"]["component"]["version"] == "sha256:1"
    assert purls(made) == {
        "pkg:deb/debian/fio@3.39-1?arch=amd64&distro=debian-13",
        "pkg:deb/debian/libc6@2.41-12?arch=amd64&distro=debian-13",
        "pkg:deb/debian/nvbandwidth@0.9%2Bds-2?distro=sid",
        "pkg:pypi/torch@2.10.0",
    }
    assert sbom.main(["image"]) == 2


def test_the_workflow_may_do_no_more_than_it_must() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "files": {"contents": "read"},
        "publish": {"id-token": "write"},
        "release": {"contents": "write"},
    }
    assert jobs["publish"]["environment"]["name"] == "pypi"
    uses = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert [each for each in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each)] == []
