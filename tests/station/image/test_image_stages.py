"""What a build costs is said before it, and what it leaves behind is ours and small."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from engine_stub import Build, calls

from acceptance.core.message import SetupError
from acceptance.station.image import build as image_build
from acceptance.station.image import engine as engines

SOCKET = "/run/containerd/containerd.sock"
CONTAINERD = [["driver-type", "io.containerd.snapshotter.v1"]]


def info(status: list[list[str]] | None = None, address: str = "", root: str = "/srv/d") -> str:
    """What `docker info` says of where the images lie."""
    found = {"DockerRootDir": root, "DriverStatus": status, "Containerd": {"Address": address}}
    return json.dumps(found)


def df(cache: str) -> str:
    """What `docker system df` says, with this size of the build cache."""
    sizes = {"Images": "36.18GB", "Build Cache": cache}
    return "".join(json.dumps({"Type": one, "Size": size}) + "\n" for one, size in sizes.items())


@pytest.fixture
def free(stub: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What is free where the engine's images lie."""
    found = {"bytes": 100e9}
    (stub / "info").write_text(info())
    monkeypatch.setattr(
        shutil, "disk_usage", lambda _folder: SimpleNamespace(free=int(found["bytes"]))
    )
    return found


def test_what_it_costs_is_said_first(
    build: Build, said: list[str], free: dict[str, float], stub: Path
) -> None:
    (stub / "registry").touch()
    build()
    for part in (
        "downloads about 4.4 GB",
        "about 6 minutes",
        "occupies about 18 GB in /srv/d, where 100 GB are free",
    ):
        assert part in said[0]


def test_a_full_disk_is_said_before_anything_is_fetched(
    build: Build, free: dict[str, float], stub: Path
) -> None:
    free["bytes"] = 17.9e9
    with pytest.raises(
        SetupError,
        match=r"needs 18 GB in /srv/d, where 17\.9 GB are free: make room.*STATION=host",
    ):
        build()
    assert not calls(stub, "build") + calls(stub, "pull")


@pytest.mark.parametrize("buildkit", [True, False])
def test_the_next_build_needs_little(
    build: Build, said: list[str], free: dict[str, float], stub: Path, buildkit: bool
) -> None:
    (stub / "earlier").touch()
    free["bytes"] = 3e9
    if buildkit:
        (stub / "has-buildx").touch()
    # An earlier image, but the stages that make the build quick are not here: removed, or the image
    # came from a file.
    for cache in ("", "Cannot connect\n", df("0B"), df("9.99GB"), df("999kB"), df("all of it")):
        (stub / "df").write_text(cache)
        with pytest.raises(SetupError, match="needs 18 GB"):
            build()
    if buildkit:
        (stub / "df").write_text(df("10.2GB"))
    else:
        (stub / "images/rigproof-stage_python").write_text("null")
    build()
    assert "an earlier one is here: seconds where only rigproof has changed" in said[0]
    assert "about 4.4 GB to download" in said[0]
    free["bytes"] = 1e9
    (stub / "images").joinpath(next(Path(stub / "images").glob("rigproof_*")).name).unlink()
    with pytest.raises(SetupError, match="needs 2 GB"):
        build()


def test_an_engine_that_does_not_tell_its_folder_is_believed(
    build: Build, said: list[str], stub: Path, free: dict[str, float]
) -> None:
    for told in (
        *("", "Cannot connect", "[]", info(root=""), info(CONTAINERD)),
        info(CONTAINERD, "/run/k3s/containerd/containerd.sock"),
        json.dumps({"DockerRootDir": "/srv/d", "DriverStatus": CONTAINERD}),
    ):
        (stub / "info").write_text(told)
        assert engines.find().disk() is None, told
    free["bytes"] = 1e9
    build()
    assert "occupies about 18 GB, more than half" in said[0]


@pytest.mark.parametrize(
    ("address", "settings", "folder", "cure"),
    [
        (SOCKET, None, "/var/lib/containerd", "root` in /etc/containerd/config.toml"),
        (SOCKET, "version = 3\n", "/var/lib/containerd", "root` in /etc/containerd/config.toml"),
        (SOCKET, 'root = "/srv/c"\n', "/srv/c", "root` in /etc/containerd/config.toml"),
        (SOCKET, 'imports = ["/etc/containerd/conf.d/*.toml"]\n', None, ""),
        (SOCKET, 'root = "c"\n', None, ""),
        (SOCKET, "root = \n", None, ""),
        (f"/var/run/docker{SOCKET[4:]}", None, "/srv/d", "data-root` in /etc/docker/daemon.json"),
    ],
)
def test_an_engine_that_keeps_its_images_in_containerd_needs_the_room_there(
    free: dict[str, float],
    stub: Path,
    tmp_path: Path,
    address: str,
    settings: str | None,
    folder: str | None,
    cure: str,
) -> None:
    (stub / "info").write_text(info(CONTAINERD, address))
    (tmp_path / "etc/containerd").mkdir(parents=True)
    if settings is not None:
        (tmp_path / "etc/containerd/config.toml").write_text(settings)
    disk = engines.find().disk(tmp_path)
    assert (None if disk is None else str(disk.folder)) == folder
    if disk is not None:
        free["bytes"] = 1e9
        with pytest.raises(SetupError, match=f"^x: it needs 101 GB in {folder}, .*`{cure}"):
            disk.require(101e9, "x")


def test_no_unnamed_image_of_ours_stays(build: Build, said: list[str], stub: Path) -> None:
    """The newest of a stage with packages gets its name, so that nothing is downloaded again."""
    unnamed = stub / "unnamed"
    for stage, ids in (
        ("python", "sha256:new\nsha256:old\n"),
        ("tools", "sha256:tools\n"),
        ("proof", "sha256:proof\n"),
        ("harness", "sha256:harness\n"),
        ("finals", "sha256:final\nsha256:derived\n"),
        ("of-somebody", "sha256:theirs\n"),
    ):
        (unnamed / stage).write_text(ids)
    build()
    assert {path.name: path.read_text() for path in unnamed.iterdir() if path.read_text()} == {
        "finals": "sha256:derived\n",
        "of-somebody": "sha256:theirs\n",
    }
    assert [line.split()[1:] for line in calls(stub, "tag")] == [
        ["sha256:tools", "rigproof-stage:tools"],
        ["sha256:new", "rigproof-stage:python"],
    ]
    removed = [line.split()[2] for line in calls(stub, "image") if line.split()[1] == "rm"]
    assert removed == ["sha256:final", "sha256:proof", "sha256:harness", "sha256:old"]
    assert not [line for line in (stub / "calls").read_text().splitlines() if "prune" in line]


def test_an_image_in_use_stays_and_is_told(build: Build, said: list[str], stub: Path) -> None:
    (stub / "unnamed/proof").write_text("sha256:proof\n")
    (stub / "in-use").touch()
    build()
    assert said[-1].endswith("builds that are in use and were not removed: 1")


def test_a_build_that_goes_on_keeps_its_stages(
    build: Build, stub: Path, tmp_path: Path, said: list[str]
) -> None:
    (stub / "unnamed/proof").write_text("sha256:proof\n")
    (tmp_path / "root/run/lock").mkdir(parents=True)
    with image_build.build_lock(tmp_path / "root") as other:
        assert other is not None
        build()
    assert (stub / "unnamed/proof").read_text()
    next((stub / "images").glob("rigproof_*")).unlink()
    build()
    assert not (stub / "unnamed/proof").read_text()


def test_every_stage_of_the_recipe_is_known() -> None:
    recipe = Path(__file__).resolve().parents[3] / "containers/Dockerfile"
    lines = recipe.read_text().splitlines()
    for stage in image_build.STAGES:
        (start,) = (n for n, line in enumerate(lines) if line.endswith(f" AS {stage}"))
        assert lines[start + 1] == f"LABEL org.rigproof.stage={stage}"
    named = {line.rpartition(" AS ")[2] for line in lines if line.startswith("FROM ")}
    assert named == {*image_build.STAGES, "rigproof"}
    assert set(image_build.KEPT) <= set(image_build.STAGES)
