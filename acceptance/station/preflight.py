"""The choice of the station before a run: engine, image, GPU grant; errors name their cure."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from acceptance.core.evidence import Scratch
from acceptance.core.message import Message, english
from acceptance.core.message import known as known_values
from acceptance.core.plan import Plan
from acceptance.core.record import Note
from acceptance.journal import clock
from acceptance.machine import scratch_place
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, known
from acceptance.observe import presence, readiness
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.station.base import HostStation, Station
from acceptance.station.options import Options
from acceptance.wording.errors import WordedUserError

if TYPE_CHECKING:
    from acceptance.station import docker


BUILD_S = 2 * 3600.0  # a network of 10 Mbit/s takes an hour for the packages alone


@dataclass(frozen=True, slots=True)
class EngineProbe:
    """An engine that answered, and its address (None: the environment's), or why none did."""

    engine: docker.DockerEngine | None
    why: tuple[Message, ...]
    address: str | None = None


def addresses(environment: Mapping[str, str], uid: int) -> tuple[str | None, ...]:
    """Addresses of engines to try, in order.

    The one that the user named, and no other; else the sockets of Docker, of a rootless Docker, and
    of Podman. None stands for the address in the environment (DOCKER_HOST).
    """
    if environment.get("DOCKER_HOST"):
        return (None,)
    own = environment.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}"
    sockets = ["/var/run/docker.sock", f"{own}/docker.sock"]
    sockets += ["/run/podman/podman.sock"] if uid == 0 else [f"{own}/podman/podman.sock"]
    return tuple(f"unix://{path}" for path in sockets)


def engine(environment: Mapping[str, str] | None = None, uid: int | None = None) -> EngineProbe:
    """The first engine that answers and runs under this machine's kernel.

    An engine in a virtual machine would have that one tested.
    """
    from acceptance.station import (
        # imported here, because loading the engine's SDK takes time
        docker,
    )

    where = os.environ if environment is None else environment
    refusals: list[Message] = []
    for address in addresses(where, os.geteuid() if uid is None else uid):
        if address is not None and not os.path.exists(address.removeprefix("unix://")):  # noqa: PTH110 - never raises
            continue
        name = address or f"DOCKER_HOST={where.get('DOCKER_HOST')}"
        try:
            found = docker.connect(address)
        except docker.ENGINE_ERRORS as error:
            why = docker.in_one_line(error)
            forbidden = isinstance(why, str) and "ermission denied" in why
            code = (
                english("engine_forbidden", "{engine} runs and refuses this user ({why})")
                if forbidden
                else english("engine_silent", "{engine} does not answer ({why})")
            )
            refusals.append(Message(code, {"engine": name, "why": why}))
            continue
        if found.kernel in (None, os.uname().release):
            return EngineProbe(found, (), address)
        values = known_values(engine=name, kernel=found.kernel)
        refusals.append(
            Message(
                english(
                    "engine_of_other_kernel",
                    "{engine} runs under another kernel ({kernel}) than this machine's",
                ),
                values,
            )
        )
    return EngineProbe(
        None, tuple(refusals) or (Message(english("no_engine", "there is no container engine")),)
    )


def host_notice(why: tuple[Message, ...]) -> Message:
    """What the user must see when the loads run without a container."""
    return Message(
        english(
            "user_refused",
            "STATION: host, because {why}. The loads run in place, with your rights and no "
            "isolation. `sudo usermod -aG docker $USER`, then a new login, lets you in (members "
            "of this group are as good as root); --station host (make: STATION=host) goes without.",
        )
        if _refused(why)
        else english(
            "station_is_host",
            "STATION: host, because {why}. The loads run in place, with your rights and no "
            "isolation. `sudo apt install docker.io` (in a checkout: `sudo make engine`) installs "
            "and starts one; --station host (make: STATION=host) goes without.",
        ),
        {"why": why},
    )


def _refused(why: tuple[Message, ...]) -> bool:
    """Whether an engine runs that refuses this user: to install one would be no cure."""
    return any(one.code == "engine_forbidden" for one in why)


def probe_engine(name: str, reference: str | None) -> tuple[EngineProbe | None, Message | None]:
    """The engine for the station of this name, and a message that the user must see.

    The message is there where the host is taken instead. Raises WordedUserError where a
    container was requested and is not available.
    """
    if name == "host":
        return None, None
    found = engine()
    why = found.why if found.engine is None else ()
    if not why and reference is None:
        why = _no_client()
    if not why:
        return found, None
    if name == "docker":
        raise WordedUserError(
            english(
                "no_container_refused",
                "no container can be had: {why}: let yourself in with `sudo usermod -aG docker "
                "$USER`, then log in again (members of this group are as good as root); --station "
                "host (make: STATION=host) goes without",
            )
            if _refused(why)
            else english(
                "no_container",
                "no container can be had: {why}: `sudo apt install docker.io` (in a checkout: "
                "`sudo make engine`) installs and starts one; --station host (make: STATION=host) "
                "goes without",
            ),
            why=why,
        )
    return None, host_notice(why)


def _no_client() -> tuple[Message, ...]:
    """Why the image cannot be built although an engine answers; empty where it can.

    For example, only Podman's socket is there.
    """
    try:
        command.find("docker")
    except command.ProgramMissing:
        return (
            Message(
                english(
                    "no_client",
                    "an engine answers, but the command `docker`, which builds the image, is not "
                    "installed",
                )
            ),
        )
    return ()


def station_notice(name: str, reference: str | None = None) -> Message | None:
    """What the user must see about the station of this name, before anything is started.

    Raises WordedUserError.
    """
    return probe_engine(name, reference)[1]


def stops_at_the_gate(plan: Plan, inventory: Inventory, *, fail_fast: bool = False) -> bool:
    """Whether the run ends at a gate before any load.

    It does where a GPU is without its driver or not set up to be tested, and with `fail_fast` where
    one is missing or dead. That check must then report within seconds: to build an image would only
    delay it.
    """
    ready = any(check.id == "gpu.ready" for check in plan.checks)
    if ready and readiness.obstacles(inventory, gpus(inventory, plan.gpus)):
        return True
    present = next((check for check in plan.checks if check.id == "gpu.present"), None)
    if present is None:
        return False
    names = [due.component for due in present.due if due.measurement == "gpu_answers"]
    expected = gpus(inventory, names)
    unset = any(
        gpu.answers is None or presence.absence_kind(inventory, gpu) == "set-up" for gpu in expected
    )
    if unset or presence.paravirtualised(inventory):
        return True
    count = next((due.limit for due in present.due if due.measurement == "gpu_count"), None)
    return fail_fast and bool(presence.shortfalls(inventory, count, names))


def choose(
    options: Options,
    plan: Plan,
    inventory: Inventory,
    say: Callable[[str], None],
    scratches: Sequence[Scratch] = (),
) -> tuple[Station, Message | None]:
    """The station that the options name, and a message that the user must see about the choice.

    `auto` takes a container when an engine answers, else the host. The image is the one that
    `--image` names, else the one of this checkout, built where it is not here yet. A container
    sees our own folders of `scratches`. Raises SetupError or WordedError.
    """
    reference, root = options.image, options.root
    found, line = probe_engine(options.station, reference)
    if found is None or found.engine is None:
        return HostStation(line), line
    if stops_at_the_gate(plan, inventory, fail_fast=options.fail_fast):
        return HostStation(), Message(
            english(
                "container_not_prepared",
                "no container is prepared: a GPU that is due is not there as it should be, or not "
                "set up for a test, and the run stops there",
            )
        )
    from acceptance.station import container_args, container_owner, docker

    boot = clock.boot_id(root)
    try:
        for run_id in docker.sweep(found.engine.client, boot):
            say(f"a container of the run {run_id}, which is dead, was removed")
        identity = (
            docker.image_id(found.engine.client, reference) if reference is not None else None
        )
    except docker.ENGINE_ERRORS as error:
        raise WordedUserError(
            english(
                "engine_fails",
                "the container engine fails ({why}): `sudo apt install docker.io` (in a checkout: "
                "`sudo make engine`) installs and starts one; --station host (make: STATION=host) "
                "goes without",
            ),
            why=docker.in_one_line(error),
        ) from error
    text = _image(found, reference, identity, say, options.out / "image", root)
    due = gpus(inventory, plan.gpus)
    grant = container_args.choose(
        due, found.engine.facts, container_args.find(root) if due else container_args.DriverFiles()
    )
    return (
        docker.DockerStation(
            client=found.engine.client,
            settings=container_args.ContainerSettings(
                text["image_id"],
                grant,
                container_args.container_memory(known(inventory.memory.total_bytes)),
                container_owner.name(boot),
                found.engine.traits,
                tuple(Path(scratch_place.home(one.path)) for one in scratches),
            ),
            provenance={"engine": found.engine.version, "gpu_grant": grant.mode, **text},
            notes=(Note(custom_image_reason(reference), trouble=True),)
            if reference is not None
            else (),
        ),
        None,
    )


def custom_image_reason(reference: str) -> Message:
    """Why a run in an image that the user named proves nothing of the machine.

    Such an image may contain fakes of the tools.
    """
    return Message(
        english(
            "custom_image",
            "the loads ran in an image named with --image ({image}), which may hold anything: "
            "such a run never passes",
        ),
        {"image": reference},
    )


def _image(
    probe: EngineProbe,
    reference: str | None,
    identity: str | None,
    say: Callable[[str], None],
    logs: Path,
    root: Path,
) -> Mapping[str, str]:
    """The image's provenance, including its id. An image that the user named is marked as such."""
    if reference is not None:
        if identity is None:
            raise WordedUserError(
                english(
                    "no_image",
                    "there is no image {image} here: name one that `docker images` lists, or "
                    "leave --image (make: IMAGE) away, and rigproof builds its own",
                ),
                image=reference,
            )
        return {"image": f"{reference} (named by --image)", "image_id": identity}
    from acceptance.station.image import build

    with _told_to_the_client(probe.address):
        return build.build(
            log_dir=logs, say=say, deadline=Deadline.after(BUILD_S), root=root
        ).provenance()


@contextlib.contextmanager
def _told_to_the_client(address: str | None) -> Iterator[None]:
    """Make the engine's command-line client, which builds, use the engine that was found.

    Its own settings may name another.
    """
    if address is None:
        yield
        return
    os.environ["DOCKER_HOST"] = address
    try:
        yield
    finally:
        del os.environ["DOCKER_HOST"]
