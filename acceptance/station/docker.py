"""The container station: sessions in a container of Docker or Podman.

The only module that knows the engine's SDK.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import docker
import requests
import urllib3
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

from acceptance.core import plain_text, regular_file
from acceptance.core.message import Message, Text
from acceptance.core.record import Note
from acceptance.journal import clock
from acceptance.process import command, orphans
from acceptance.process.deadline import Deadline
from acceptance.session import context as session_context
from acceptance.station import container_args
from acceptance.station import container_owner as holders
from acceptance.station.container_args import (
    LABEL,
    LABEL_HOLDER,
    ContainerJob,
    ContainerSettings,
)
from acceptance.station.container_session import ContainerSession, hang_up
from acceptance.station.gpu_grant import EngineFacts
from acceptance.wording.errors import behind

CONNECT_S = 10.0  # an engine that accepts a connection and does not answer counts as absent
ANSWER_S = 60.0  # a slow disk needs some seconds to create a container from an image of 8 GB
FOLLOW_S = 10.0
INSIDE_LATER_S = 15.0  # the deadline inside is a fallback: the one outside gives the better message
# The client's own exceptions, and those of the libraries under it that it lets through.
ENGINE_ERRORS: tuple[type[Exception], ...] = (
    DockerException,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    ValueError,
)
# Podman's folders, which its Docker-compatible API does not report
PODMAN_CDI = (
    "/etc/cdi",
    "/var/run/cdi",
)


@dataclass(frozen=True, slots=True)
class DockerEngine:
    """An engine that answered.

    `traits` are its security options by name: seccomp, rootless, userns, selinux ...

    `kernel` is the release of the kernel that it runs under.
    """

    client: docker.DockerClient
    version: str
    traits: frozenset[str]
    facts: EngineFacts
    kernel: str | None = None

    @property
    def rootless(self) -> bool:
        """Whether the engine and everything in its containers run as an ordinary user."""
        return "rootless" in self.traits


def connect(address: str | None) -> DockerEngine:
    """The engine at this address, or the one that the environment names.

    Raises the exceptions in ENGINE_ERRORS.
    """
    require_listener(address or os.environ.get("DOCKER_HOST", ""))
    client = (
        docker.DockerClient(base_url=address, timeout=CONNECT_S)
        if address
        else docker.from_env(timeout=CONNECT_S)
    )
    info, version = client.info(), client.version()
    client.api.timeout = ANSWER_S
    name = next(
        (part["Name"] for part in version.get("Components") or () if part.get("Name")), "engine"
    )
    text = f"{'Docker' if name == 'Engine' else name} {version.get('Version', '')}".strip()
    return DockerEngine(
        client, text, traits(info), _facts(info, podman="odman" in name), info.get("KernelVersion")
    )


def require_listener(address: str) -> None:
    """Raise OSError where nothing listens on a socket of this host.

    The SDK would leave its own end of the socket open.
    """
    if address.startswith("unix://"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as ours:
            ours.settimeout(CONNECT_S)
            ours.connect(address.removeprefix("unix://"))


def traits(info: Mapping[str, Any]) -> frozenset[str]:
    """The names of an engine's security options.

    Each option is a text such as `name=seccomp,profile=default`.
    """
    options = [part for option in info.get("SecurityOptions") or () for part in option.split(",")]
    return frozenset(part.removeprefix("name=") for part in options if part.startswith("name="))


def _facts(info: Mapping[str, Any], *, podman: bool) -> EngineFacts:
    """The engine's runtimes, and the CDI specifications that it reads.

    Docker reports these from version 25 on, where CDI is switched on.
    """
    specs = []
    for folder in info.get("CDISpecDirs") or (PODMAN_CDI if podman else ()):
        # a folder or a file without read permission cannot be relied on
        with contextlib.suppress(OSError):
            for path in sorted(Path(folder).glob("*")):
                if path.suffix in (".json", ".yaml", ".yml"):
                    content = regular_file.read(path, regular_file.SMALL_RECORD)
                    specs.append(content.decode("utf-8", errors="replace"))
    return EngineFacts(frozenset(info.get("Runtimes") or ()), tuple(specs))


def image_id(client: docker.DockerClient, reference: str) -> str | None:
    """The id of a local image; None where there is none.

    Raises the exceptions in ENGINE_ERRORS, also for a malformed reference.
    """
    try:
        identity: str = client.images.get(reference).id
    except NotFound:
        return None
    return identity


@dataclass(frozen=True, slots=True)
class DockerStation:
    """Sessions run in a container of the engine.

    It has no network, a read-only root and no capabilities; only the run directory is writable, and
    our own folders on the tested filesystems, as far as the run has made them.
    """

    client: docker.DockerClient
    settings: ContainerSettings
    provenance: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    name: str = "docker"

    def inside(self, run_dir: Path) -> Path:
        """The run directory inside."""
        return Path(container_args.RUN_DIR_INSIDE)

    def start(self, context: Path, run_id: str, deadline: Deadline, log: Path) -> ContainerSession:
        """Create the container, attach to its standard input, and start it.

        Tries again without unlimited locked memory where the engine may not grant that: a rootless
        one, or one with few rights of its own.
        """
        argv = session_context.in_container(
            str(container_args.RUN_DIR_INSIDE / context.name),
            deadline.remaining() + INSIDE_LATER_S,
            clock.boot_id(),
        )
        owner = context.parent.stat()
        job = ContainerJob(
            argv,
            context.parent,
            run_id,
            context.stem.removeprefix("session-"),
            (owner.st_uid, owner.st_gid),
            session_context.environment(run_id, context),
        )
        self.client.api.timeout = ANSWER_S  # it may follow another session already
        try:
            try:
                made, stdin = self._started(job, memlock=True)
            except APIError as error:
                if "memlock" not in str(error) and "rlimit" not in str(error):
                    raise
                made, stdin = self._started(job, memlock=False)
        except ENGINE_ERRORS as error:
            raise command.CommandError("container_not_started", why=in_one_line(error)) from error
        self.client.api.timeout = FOLLOW_S
        running = ContainerSession(
            made,
            stdin,
            tuple(argv),
            deadline,
            log,
            self.settings.memory.memory_bytes,
            trouble=ENGINE_ERRORS,
            reason=in_one_line,
            bury=lambda: orphans.sweep(run_id, session=context.stem),
        )
        running.read_on()
        return running

    def _started(self, job: ContainerJob, *, memlock: bool) -> tuple[Container, Any]:
        there = tuple(one for one in self.settings.scratch if one.is_dir())
        settings = replace(self.settings, scratch=there)
        arguments = container_args.create_arguments(settings, job, memlock=memlock)
        made = self.client.containers.create(**to_sdk(arguments))
        stdin = None
        try:
            # Attached before the start: from here on the session ends with the harness.
            stdin = made.attach_socket(params={"stdin": 1, "stream": 1})
            made.start()
        except ENGINE_ERRORS:
            if stdin is not None:
                hang_up(stdin, ENGINE_ERRORS)
            with contextlib.suppress(*ENGINE_ERRORS):
                made.remove(force=True, v=True)
            raise
        return made, stdin


def to_sdk(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Our plain arguments with the SDK's own types where it requires them."""
    found = dict(arguments)
    found["ulimits"] = [Ulimit(**one) for one in found["ulimits"]]
    found["mounts"] = [Mount(type="bind", **one) for one in found["mounts"]]
    requested = found.pop("cdi_devices")
    if requested:
        found["device_requests"] = [DeviceRequest(driver="cdi", device_ids=requested)]
    found["log_config"] = LogConfig(type=LogConfig.types.JSON, config={"max-size": "32m"})
    return found


def in_one_line(error: BaseException) -> Text:
    """An engine's error in one line; for a failed connection, the root cause."""
    text = getattr(error, "explanation", None)
    if not text:
        for one in behind(error):
            if isinstance(one, TimeoutError | requests.exceptions.Timeout):
                return Message("engine_connection_mute")
            if isinstance(one, OSError) and one.strerror:
                return one.strerror
    said = " ".join(str(text or error).split()) or type(error).__name__
    return plain_text.shortened(said, 300)


def sweep(client: docker.DockerClient, boot_id: str) -> list[str]:
    """Remove the containers of dead runs, never those of a live one; returns the run ids.

    A container whose run is in an unknown state is removed only when it has ended. Raises the
    exceptions in ENGINE_ERRORS.
    """
    removed = []
    for found in client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True):
        alive = holders.lives(found.labels.get(LABEL_HOLDER, ""), boot_id)
        if alive is None:
            alive = found.status not in ("exited", "dead")
        if not alive:
            with contextlib.suppress(APIError):  # another process is removing it
                found.remove(force=True, v=True)
                removed.append(found.labels.get(LABEL, ""))
    return removed
