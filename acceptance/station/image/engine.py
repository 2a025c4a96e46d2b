"""The engine's command-line client, as far as building needs it.

Sessions run through the engine's API (`acceptance.station.docker`).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from acceptance.process import command
from acceptance.process.deadline import Deadline


class ImageError(Exception):
    """The image cannot be built, found or read; the message is one sentence.

    It has the last lines of a log where there is one.
    """


_ASK_S = 20.0
CURE = "install and start one with `sudo make engine`, or go without a container: STATION=host"


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
        """An image's labels. Raises ImageError where the image is not here."""
        done = self.ask("image", "inspect", "--format", "{{json .Config.Labels}}", reference)
        if done.returncode != 0:
            raise ImageError(f"there is no image {reference} here: {done.last_lines(1)}")
        return json.loads(done.stdout) or {}

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


def find() -> BuildEngine:
    """The engine that answers. Raises ImageError, with the cure, where none does."""
    try:
        docker = command.find("docker")
    except command.ProgramMissing as error:
        raise ImageError(f"there is no container engine: {CURE}") from error
    done = command.run(
        [docker, "version", "--format", "{{.Server.Version}}"], deadline=Deadline.after(_ASK_S)
    )
    if done.timed_out:
        raise ImageError(
            f"the container engine does not answer within {_ASK_S:.0f} s: start it again"
        )
    if done.returncode != 0:
        said = done.last_lines(1)
        if "permission denied" in said:
            raise ImageError(
                "the container engine refuses this user: add the user to the group docker, "
                "or run as root"
            )
        raise ImageError(f"no container engine answers ({said}): {CURE}")
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
