"""The engine's command-line client, as far as building needs it.

Sessions run through the engine's API (`acceptance.station.docker`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acceptance.core.message import SetupError
from acceptance.process import command
from acceptance.process.deadline import Deadline

_ASK_S = 20.0
# The address of the containerd that the distribution's unit starts.
_CONTAINERD = (Path("/run/containerd/containerd.sock"), Path("/var/run/containerd/containerd.sock"))


def gigabytes(size: float) -> str:
    """A number of bytes for people."""
    return f"{size / 1e9:.1f}".removesuffix(".0") + " GB"


@dataclass(frozen=True, slots=True)
class Disk:
    """The folder of the engine's images, what is free there, and the setting that moves it."""

    folder: Path
    free_bytes: int
    setting: str

    def require(self, needed: float, what: str) -> None:
        """Raise SetupError where less than `needed` bytes are free."""
        if self.free_bytes < needed:
            raise SetupError(
                f"{what}: it needs {gigabytes(needed)} in {self.folder}, where "
                f"{gigabytes(self.free_bytes)} are free: make room there, or give the engine "
                f"another folder ({self.setting}), or go without a container: --station host "
                "(make: STATION=host)"
            )


LET_IN = (
    "let yourself in with `sudo usermod -aG docker $USER`, then log in again (members of this "
    "group are as good as root), or go without a container: --station host (make: STATION=host)"
)
CURE = (
    "install and start one with `sudo apt install docker.io` (in a checkout: `sudo make engine`), "
    "or go without a container: --station host (make: STATION=host)"
)


@dataclass(frozen=True, slots=True)
class BuildEngine:
    """An engine that answered. `buildkit`: its client can build with BuildKit."""

    docker: str
    buildkit: bool
    local: bool

    def ask(self, *arguments: str, seconds: float = _ASK_S) -> command.ProgramResult:
        """Run one short command of the client."""
        return command.run([self.docker, *arguments], deadline=Deadline.after(seconds))

    def image_id(self, reference: str) -> str | None:
        """The id of a local image; None where there is none."""
        done = self.ask("image", "inspect", "--format", "{{.Id}}", reference)
        return done.stdout.strip() or None if done.returncode == 0 else None

    def labels(self, reference: str) -> dict[str, str]:
        """An image's labels. Raises SetupError where the image is not here."""
        done = self.ask("image", "inspect", "--format", "{{json .Config.Labels}}", reference)
        if done.returncode != 0:
            raise SetupError(f"there is no image {reference} here: {done.last_lines(1)}")
        return json.loads(done.stdout) or {}

    def images(self, label: str, *, unnamed: bool = False) -> tuple[str, ...]:
        """The ids of the local images with this label, the newest first."""
        dangling = ("--filter", "dangling=true") if unnamed else ()
        done = self.ask("images", "--quiet", "--no-trunc", *dangling, "--filter", f"label={label}")
        return tuple(dict.fromkeys(done.stdout.split())) if done.returncode == 0 else ()

    def size(self, reference: str) -> int | None:
        """The size of a local image in bytes; None where it is not told."""
        done = self.ask("image", "inspect", "--format", "{{.Size}}", reference)
        text = done.stdout.strip()
        return int(text) if done.returncode == 0 and text.isdecimal() else None

    def disk(self, root: Path = Path("/")) -> Disk | None:
        """Where the images lie; None where that is not told, or not on this host.

        containerd's settings are read under `root`.
        """
        done = self.ask("info", "--format", "{{json .}}") if self.local else None
        try:
            info = json.loads(done.stdout) if done and done.returncode == 0 else {}
            folder, setting = _store(info, root)
            return Disk(folder, shutil.disk_usage(folder).free, setting)
        except (OSError, KeyError, TypeError, ValueError, RecursionError):
            return None

    def build_cache(self) -> float:
        """The size of BuildKit's cache in bytes; 0 where it is not told."""
        done = self.ask("system", "df", "--format", "{{json .}}")
        try:
            rows = [json.loads(line) for line in done.stdout.splitlines() if done.returncode == 0]
            (size,) = (row["Size"] for row in rows if row["Type"] == "Build Cache")
            found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kMGTP]?)B", size, re.ASCII)
        except (KeyError, TypeError, ValueError):
            return 0.0
        return float(found[1]) * 1000.0 ** ["", *"kMGTP"].index(found[2]) if found else 0.0

    def bridge_mtu(self) -> tuple[bool, int | None]:
        """Whether there is a bridge network, and its MTU in bytes."""
        done = self.ask(
            "network",
            "inspect",
            "--format",
            '{{index .Options "com.docker.network.driver.mtu"}}',
            "bridge",
        )
        text = done.stdout.strip()
        return done.returncode == 0, int(text) if text.isdecimal() else None


def _store(info: Any, root: Path) -> tuple[Path, str]:
    """The folder of the images by `docker info`, and the setting that moves it.

    Raises KeyError, TypeError, ValueError or OSError where the folder is not told.
    """
    docker, setting = Path(info["DockerRootDir"]), "`data-root` in /etc/docker/daemon.json"
    if not docker.is_absolute():
        raise ValueError
    if ["driver-type", "io.containerd.snapshotter.v1"] not in (info["DriverStatus"] or []):
        return docker, setting
    address = Path(info["Containerd"]["Address"])
    if address.parts[-3:-1] == ("docker", "containerd"):  # started by Docker, and below its folder
        return docker, setting
    if address not in _CONTAINERD:
        raise ValueError
    try:
        settings = tomllib.loads((root / "etc/containerd/config.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        settings = {}
    if settings.get("imports"):  # any of these files may name the folder
        raise ValueError
    folder = Path(settings.get("root", "/var/lib/containerd"))
    if not folder.is_absolute():
        raise ValueError
    return folder, "`root` in /etc/containerd/config.toml"


def find() -> BuildEngine:
    """The engine that answers. Raises SetupError, with the cure, where none does."""
    try:
        docker = command.find("docker")
    except command.ProgramMissing as error:
        raise SetupError(f"there is no container engine: {CURE}") from error
    done = command.run(
        [docker, "version", "--format", "{{.Server.Version}}"], deadline=Deadline.after(_ASK_S)
    )
    if done.timed_out:
        raise SetupError(
            f"the container engine does not answer within {_ASK_S:.0f} s: start it again"
        )
    if done.returncode != 0:
        said = done.last_lines(1)
        if "permission denied" in said:
            raise SetupError(f"the container engine runs and refuses this user: {LET_IN}")
        raise SetupError(f"no container engine answers ({said}): {CURE}")
    buildx = command.run([docker, "buildx", "version"], deadline=Deadline.after(_ASK_S))
    return BuildEngine(docker, buildkit=buildx.returncode == 0, local=_local(docker))


def _local(docker: str) -> bool:
    """Whether the engine is on this host: its address is a socket file here."""
    address = os.environ.get("DOCKER_HOST")
    if not address:
        context = ["context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]
        done = command.run([docker, *context], deadline=Deadline.after(_ASK_S))
        address = done.stdout.strip() if done.returncode == 0 else "unix:///"
    return address.startswith("unix://") or Path(address).is_absolute()
