from __future__ import annotations

import os
from pathlib import Path

import pytest
from engine_stub import Build, calls
from executable import executable

from acceptance.core.message import SetupError
from acceptance.process.deadline import Deadline
from acceptance.station.image import base as bases
from acceptance.station.image import engine as engines


def test_without_a_registry_a_base_is_bootstrapped_and_that_is_said(
    build: Build, stub: Path, said: list[str]
) -> None:
    build()
    assert any(
        "(no such host): taking a base bootstrapped from Debian trixie packages instead" in line
        for line in said
    )
    assert (
        "BASE=rigproof-base:trixie --build-arg TOOLS_BASE=rigproof-base:trixie"
        in calls(stub, "build")[0]
    )
    assert len(calls(stub, "pull")) == 1
    assert len(calls(stub, "import")) == 1


def test_a_bootstrapped_base_is_used_again(build: Build, stub: Path) -> None:
    (stub / "images/rigproof-base_trixie").write_text("null")
    build()
    assert calls(stub, "import") == []


def test_only_the_base_that_is_missing_is_replaced(build: Build, stub: Path) -> None:
    (stub / "images/nvidia_cuda_12.8.1-base-ubuntu24.04").write_text("null")
    build()
    assert (
        "BASE=nvidia/cuda:12.8.1-base-ubuntu24.04 --build-arg TOOLS_BASE=rigproof-base:trixie"
        in calls(stub, "build")[0]
    )


def test_a_registry_that_hangs_is_given_up_on(build: Build, stub: Path, said: list[str]) -> None:
    (stub / "registry-hangs").touch()
    build(answer_s=0.1)
    assert any("(the registry did not answer within 0 s): taking a base" in line for line in said)


def test_nothing_takes_the_place_of_a_base_that_was_named(build: Build) -> None:
    with pytest.raises(
        SetupError, match="the base mine:1 is not here and cannot be pulled: no such host"
    ):
        build(base="mine:1")


def test_only_root_can_bootstrap(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(
        SetupError,
        match=r"bootstrapped by root only: run `sudo rigproof image build` .*once, or bring "
        r"nvidia/cuda",
    ):
        build()


@pytest.mark.parametrize(
    ("switch", "name"), [("no-mirror", "debootstrap"), ("import-fails", "import")]
)
def test_a_base_that_cannot_be_made_tells_why_and_leaves_nothing(
    build: Build,
    stub: Path,
    switch: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (stub / switch).touch()
    made: list[Path] = []

    def folder(prefix: str, dir: str) -> str:
        made.append(tmp_path / f"{prefix}x")
        made[-1].mkdir()
        return str(made[-1])

    monkeypatch.setattr(bases.tempfile, "mkdtemp", folder)
    with pytest.raises(
        SetupError, match=f"the base could not be made: `{name}` ended with exit code 1"
    ):
        build()
    assert [place.exists() for place in made] == [False]


def test_what_is_still_mounted_in_a_base_is_never_removed(tmp_path: Path, stub: Path) -> None:
    said: list[str] = []
    folder = tmp_path / "base"
    (folder / "root/proc").mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(
        f"1 2 0:1 / {folder}/root/proc rw - proc proc rw\n"
    )
    executable(stub / "umount", "#!/bin/sh\nexit 1\n")
    bases.Bootstrap(
        engines.find(), tmp_path / "log", said.append, Deadline.after(9.0), tmp_path
    )._remove(folder)
    assert folder.exists()
    assert said == [f"{folder} is left behind: something is still mounted in it"]


def test_mounts_are_undone_from_the_inside_out() -> None:
    text = (
        "1 2 0:1 / /x/y rw - a b c\n1 2 0:1 / /x/y/proc/z rw - a b c\n1 2 0:1 / /x/yz rw - a b "
        "c\n1 2 0:1 / /x/y/proc rw - a b c\n"
    )
    assert bases.mounted_below(Path("/x/y"), text) == ["/x/y/proc/z", "/x/y/proc"]


@pytest.mark.parametrize(
    ("files", "mirror"),
    [
        (
            {
                "etc/os-release": "ID=debian\n",
                "etc/apt/sources.list.d/debian.sources": "Types: deb\nURIs: http://m/a\n",
            },
            "http://m/a",
        ),
        (
            {
                "etc/os-release": 'ID="debian"\n',
                "etc/apt/sources.list": "# x\ndeb [signed-by=/k] http://m/b bookworm main\n",
            },
            "http://m/b",
        ),
        (
            {
                "etc/os-release": "ID=debian\n",
                "etc/apt/sources.list": "deb http://m/c bookworm main\n",
            },
            "http://m/c",
        ),
        ({"etc/os-release": "ID=debian\n", "etc/apt/sources.list": "\n"}, None),
        (
            {
                "etc/os-release": "ID=ubuntu\nID_LIKE=debian\n",
                "etc/apt/sources.list": "deb http://m/u noble main\n",
            },
            None,
        ),
        ({}, None),
    ],
)
def test_a_debian_host_bootstraps_from_its_own_mirror(
    tmp_path: Path, files: dict[str, str], mirror: str | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert bases.debian_mirror({}, tmp_path) == mirror
    assert bases.debian_mirror({"DEBIAN_MIRROR": "http://named"}, tmp_path) == "http://named"
