"""The container station: sessions in a container of Docker or Podman.

The only module that knows the engine's SDK.

A session in a container: followed, ended, and its container removed in every case.

It uses only a few methods of the client's container object (`reload`, `status`, `attrs`, `logs`,
`stop`, `remove`), so that a fake can replace it.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import docker
import requests
import urllib3
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

from acceptance.core import plain_text, regular_file
from acceptance.core.limit import GIB
from acceptance.core.message import Message, Text, english
from acceptance.core.record import Note
from acceptance.journal import clock
from acceptance.process import command, orphans
from acceptance.process.command import CAP_BYTES, ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.session import context as session_context
from acceptance.station import container_args
from acceptance.station import container_owner as holders
from acceptance.station.container_args import (
    LABEL,
    LABEL_HOLDER,
    ContainerJob,
    ContainerSettings,
    EngineFacts,
)
from acceptance.wording.errors import behind

# the reaper inside gives its processes 3 s to end, and as long again to those that do not
STOP_S = 10
POLL_S = 0.2  # more frequent polling takes processor time from the load
LOST_S = 10.0
ENDED = ("exited", "dead", "removing", "stopped")
# exit code of a shell after SIGKILL, with which the kernel ends a process when memory runs out
KILLED = 137
NO_ANSWER = 255  # exit code of ssh after a broken connection


def hang_up(stdin: Any, trouble: tuple[type[Exception], ...]) -> None:
    """Close a session's standard input, which ends the session.

    The socket is shut down first: closing alone leaves it open while the client has a file on it.
    """
    line = getattr(stdin, "_sock", stdin)
    with contextlib.suppress(*trouble):
        line.shutdown(socket.SHUT_RDWR)
    _disconnect(stdin, trouble)
    for one in (stdin, line):
        with contextlib.suppress(*trouble):
            one.close()


def _disconnect(stream: Any, trouble: tuple[type[Exception], ...]) -> None:
    """Close the connection of one of the client's streams.

    The client would leave it to the garbage collector.
    """
    response = getattr(stream, "_response", None)
    if response is not None:
        with contextlib.suppress(*trouble):
            response.close()


@dataclass(slots=True)
class ContainerSession:
    """A session in a container.

    `stdin` is its standard input: the session ends when that is closed, or when this process dies.
    `trouble` are the exceptions that the engine's client raises; `reason` says what one means.
    `bury` ends the session's processes without the engine: an engine that dies leaves its
    containers running, and their standard input open.
    """

    container: Any
    stdin: Any
    argv: tuple[str, ...]
    deadline: Deadline
    log: Path
    memory_bytes: int
    trouble: tuple[type[Exception], ...]
    reason: Callable[[BaseException], Text] = str
    bury: Callable[[], object] = tuple
    cap_bytes: int = CAP_BYTES
    _began: float = field(default_factory=time.monotonic)
    _asked: float = float("-inf")
    _silent_since: float | None = None
    _over: bool = False
    _lost: Message | None = None
    _output: bytearray = field(default_factory=bytearray)
    _dropped: bool = False
    _log_error: str | None = None
    _reader: threading.Thread | None = None

    @property
    def container_id(self) -> str:
        """The engine's id of the container."""
        return str(self.container.id)

    def read_on(self) -> None:
        """Begin to record the session's output."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.ExitStack() as stack:
            file: IO[bytes] | None = None
            try:
                file = stack.enter_context(regular_file.create(self.log))
            except OSError as error:
                self._log_error = f"{self.log}: {error.strerror}"
            with contextlib.suppress(*self.trouble):  # an engine that goes away: `poll` reports it
                chunks = self.container.logs(stream=True, follow=True)
                stack.callback(_disconnect, chunks, self.trouble)
                for chunk in chunks:
                    keep = chunk[: self.cap_bytes - len(self._output)]
                    self._dropped = self._dropped or len(keep) < len(chunk)
                    self._output += keep
                    if file and keep and not self._log_error:
                        try:
                            file.write(keep)
                        # a full disk: the output in memory is still judged
                        except OSError as error:
                            self._log_error = f"{self.log}: {error.strerror}"

    def poll(self) -> bool:
        """Whether the session has ended.

        It also counts as ended when the engine does not answer for LOST_S seconds, or no longer
        knows the container.
        """
        now = time.monotonic()
        if self._over or now < self._asked + POLL_S:
            return self._over
        try:
            self.container.reload()
        except self.trouble as error:
            self._silent_since = self._silent_since or now
            gone = getattr(error, "status_code", None) == 404
            if gone or time.monotonic() >= self._silent_since + LOST_S:
                code = (
                    english("container_removed", "the container was removed ({why})")
                    if gone
                    else english("engine_gone", "the engine no longer answers ({why})")
                )
                self._lost, self._over = Message(code, {"why": self.reason(error)}), True
        else:
            self._silent_since = None
            self._over = self.container.status in ENDED
        self._asked = time.monotonic()
        return self._over

    def stop(self) -> None:
        """Close the session's standard input, which ends it; then stop the container.

        No effect when it has ended.
        """
        self._hang_up()
        with contextlib.suppress(*self.trouble):
            self.container.stop(timeout=STOP_S)
        # do not wait longer for an engine that does not obey
        self.deadline = self.deadline.sooner(STOP_S)
        self._asked = float("-inf")

    def _hang_up(self) -> None:
        stdin, self.stdin = self.stdin, None
        if stdin is not None:
            hang_up(stdin, self.trouble)

    def wait(self) -> ProgramResult:
        """Wait for the session's end, collect its result, and always remove the container."""
        timed_out = False
        try:
            while not self.poll():
                if self.deadline.passed():
                    timed_out = True
                    self.stop()
                    break
                time.sleep(POLL_S)
            if self._lost:
                self.bury()
            return self._completed(timed_out=timed_out)
        finally:
            self._hang_up()
            with contextlib.suppress(*self.trouble):
                self.container.remove(force=True, v=True)

    def _completed(self, *, timed_out: bool) -> ProgramResult:
        state: Mapping[str, Any] = {}
        with contextlib.suppress(*self.trouble):
            self.container.reload()
            state = self.container.attrs["State"]
        if self._reader is not None:
            self._reader.join(5.0)
        starved = bool(state.get("OOMKilled"))
        causes = [self._lost] if self._lost else []
        if starved:
            given = f"{self.memory_bytes / GIB:.1f} GiB"
            causes.append(
                Message(
                    english(
                        "container_memory_used",
                        "the container used up its memory ({size}), and the kernel ended a "
                        "process in it",
                    ),
                    {"size": given},
                )
            )
        code = NO_ANSWER if self._lost or "ExitCode" not in state else int(state["ExitCode"])
        return ProgramResult(
            argv=self.argv,
            # A session that continued after the kernel killed its load is not whole, whatever its
            # own exit code.
            returncode=KILLED if starved and code in (0, 1, 2) else code,
            stdout=bytes(self._output).decode("utf-8", errors="replace"),
            stderr=str(state.get("Error") or ""),
            seconds=time.monotonic() - self._began,
            timed_out=timed_out,
            truncated=self._dropped or (self._reader is not None and self._reader.is_alive()),
            log_error=self._log_error,
            causes=tuple(causes),
        )


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
            raise command.CommandError(
                english(
                    "container_not_started",
                    "the container could not be started: {why}; --station host goes without one",
                ),
                why=in_one_line(error),
            ) from error
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
                return Message(
                    english("engine_connection_mute", "it takes the connection and does not answer")
                )
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
