"""The recipe holds together: pins, requirements and Dockerfile say the same, and nothing in it
ties it to one builder or one mirror.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from acceptance.station.image import inputs

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "containers"
DOCKERFILE = (RECIPE / "Dockerfile").read_text()
PINS = inputs.read_pins((RECIPE / "pins.txt").read_text())


def instructions() -> list[str]:
    """The Dockerfile's instructions, comments taken out and continued lines joined."""
    lines = [line for line in DOCKERFILE.splitlines() if not line.startswith("#")]
    return [
        " ".join(line.split())
        for line in "\n".join(lines).replace("\\\n", " ").splitlines()
        if line.strip()
    ]


def stages() -> dict[str, tuple[str, list[str]]]:
    """Stage name -> what it starts from, and its instructions."""
    found: dict[str, tuple[str, list[str]]] = {}
    name = ""
    for line in instructions():
        if start := re.fullmatch(r"FROM (\S+) AS (\S+)", line):
            name = start[2]
            found[name] = (start[1], [])
        elif name:
            found[name][1].append(line)
    return found


def taken() -> set[tuple[str, str]]:
    """(place, package) of every call of `take`; "$ID:$VERSION_ID" stands for any base."""
    found = set()
    for line in instructions():
        for how, place, words in re.findall(r"/build/take (install|unpack) (\S+) ([^&]+)", line):
            names = words.split() if how == "install" else [words.split()[1]]
            found |= {(place.strip('"'), name) for name in names}
    return found


def requirements(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", (RECIPE / name).read_text(), re.MULTILINE))


@pytest.mark.parametrize(("argument", "name"), [("BASE", "base"), ("TOOLS_BASE", "tools-base")])
def test_the_default_bases_are_the_pinned_ones(argument: str, name: str) -> None:
    assert f"ARG {argument}={inputs.pinned_version(PINS, 'image', name)}" in instructions()


def test_everything_taken_is_pinned_and_everything_pinned_is_taken() -> None:
    bases = ("debian:13", "ubuntu:24.04")
    expected = {(pin.place, pin.name) for pin in PINS if pin.place in ("trixie", "sid")}
    expected |= {("$ID:$VERSION_ID", pin.name) for pin in PINS if pin.place in bases}
    assert taken() == expected
    by_base = [{pin.name for pin in PINS if pin.place == base} for base in bases]
    assert by_base[0] == by_base[1]


def test_it_builds_with_the_classic_builder_too() -> None:
    assert "# syntax" not in DOCKERFILE
    for line in instructions():
        assert "--mount" not in line
        assert "<<" not in line
        assert not re.match(r"(COPY|ADD) .*--(link|chmod|parents|exclude)", line)


def test_the_image_starts_from_scratch_and_takes_nothing_of_the_building() -> None:
    every = stages()
    chain = [list(every)[-1]]
    while (start := every[chain[-1]][0]) in every:
        chain.append(start)
    assert every[chain[-1]][0] == "scratch"
    for name in chain:
        for line in every[name][1]:
            assert "/build" not in line
            assert not line.startswith("ARG"), "an argument would be in the image's history"
            assert not line.startswith("COPY") or "--from=" in line


def test_no_package_host_is_named() -> None:
    for path in RECIPE.iterdir():
        if path.name != "README.md" and path.is_file():
            assert re.findall(r"\w+://[\w.]+", path.read_text()) == [], path.name


def test_the_requirements_are_those_of_the_harness_and_of_the_pins() -> None:
    cure = "run containers/lock"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    locked = requirements("requirements.txt")
    for text in project["project"]["dependencies"]:
        wanted = Requirement(text)
        assert wanted.name in locked, cure
        assert wanted.specifier.contains(locked[wanted.name]), cure
    assert locked["torch"] == inputs.pinned_version(PINS, "pypi", "torch"), cure
    assert requirements("requirements-build.txt")["hatchling"] == inputs.pinned_version(
        PINS, "pypi", "hatchling"
    ), cure
    for text in project["build-system"]["requires"]:
        assert Requirement(text).specifier.contains(
            requirements("requirements-build.txt")[Requirement(text).name]
        ), cure


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-build.txt"])
def test_every_requirement_is_pinned_by_hash(name: str) -> None:
    blocks = re.split(r"\n(?=[A-Za-z0-9])", (RECIPE / name).read_text())
    packages = [block for block in blocks if not block.startswith("#")]
    assert len(packages) == len(requirements(name))
    for block in packages:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]


def test_torch_brings_cuda_12() -> None:
    locked = requirements("requirements.txt")
    assert locked["nvidia-cuda-runtime-cu12"].startswith("12.8.")
    assert not [name for name in locked if name.endswith("-cu13")]
