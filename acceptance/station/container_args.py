"""The engine's arguments for a session's container: the least privilege that works.

Pure; tested as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from acceptance.core.limit import GIB, MIB
from acceptance.station.gpu_grant import Grant

# The run directory inside the container, the only writable place except for its tmpfs.
RUN_DIR_INSIDE = PurePosixPath("/rigproof")
LABEL = "rigproof.run"
LABEL_HOLDER = "rigproof.holder"  # the container's owner: see acceptance.station.container_owner
TMP_BYTES = GIB
PIDS = 16384


@dataclass(frozen=True, slots=True)
class ContainerMemory:
    """The container's memory limits, in bytes."""

    memory_bytes: int
    shm_bytes: int


def container_memory(total_bytes: int) -> ContainerMemory:
    """The memory limits of a container on a machine with this much memory.

    All memory except a reserve for the host (a GiB, or 3 %). An eighth of it, at most 8 GiB, is for
    /dev/shm: the engine's own default of 64 MB is too small for torch and NCCL.
    """
    memory = total_bytes - min(max(GIB, total_bytes * 3 // 100), total_bytes // 2)
    return ContainerMemory(memory_bytes=memory, shm_bytes=min(8 * GIB, max(64 * MIB, memory // 8)))


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """What all containers of a run have in common.

    `traits` are the engine's own security options by name. `scratch` are our own folders on the
    tested filesystems, which have the same path inside.
    """

    image: str
    grant: Grant
    memory: ContainerMemory
    holder: str
    traits: frozenset[str] = frozenset()
    scratch: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerJob:
    """The session that a container is for.

    `owner` is the run directory's (uid, gid): uid 0 without capabilities could not write to another
    owner's folder. `session` tells the containers of a run apart, two of which may run side by
    side.
    """

    argv: list[str]
    run_dir: Path
    run_id: str
    session: str
    owner: tuple[int, int]
    environment: Mapping[str, str]


def environment(run_id: str, grant: Grant, extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a session in the container."""
    return {
        "HOME": "/tmp",
        "LC_ALL": "C.UTF-8",
        "LANG": "C.UTF-8",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        # rigproof checks the driver itself, with a message that says what to do
        "NVIDIA_DISABLE_REQUIRE": "1",
        "RIGPROOF_RUN": run_id,
        **extra,
        **grant.environment,
    }


def create_arguments(
    settings: ContainerSettings, job: ContainerJob, *, memlock: bool = True
) -> dict[str, Any]:
    """Keyword arguments for the SDK's `containers.create`.

    Ulimits, device requests and mounts are plain; `docker.to_sdk` gives them their own types.
    `memlock` asks for unlimited locked memory, which an engine may refuse. A `rootless` engine maps
    its user to root inside and everybody else to nobody. One that maps users (`userns`) is asked
    not to. Under `selinux` labels are switched off, because neither the run directory nor a GPU has
    a container's label.
    """
    grant, memory, traits = settings.grant, settings.memory, settings.traits
    user, group = (0, 0) if "rootless" in traits else job.owner
    arguments: dict[str, Any] = {
        "image": settings.image,
        "command": job.argv,
        "entrypoint": [],
        "name": f"rigproof-{job.run_id}-{job.session}",
        "hostname": "rigproof",
        "labels": {LABEL: job.run_id, LABEL_HOLDER: settings.holder},
        "user": f"{user}:{group}",
        "working_dir": str(RUN_DIR_INSIDE),
        "environment": environment(job.run_id, grant, job.environment),
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges", *(["label=disable"] if "selinux" in traits else [])],
        "ipc_mode": "private",
        "pids_limit": PIDS,
        "mem_limit": memory.memory_bytes,
        "memswap_limit": memory.memory_bytes,  # no swap, which would make it a test of a disk
        "shm_size": memory.shm_bytes,
        "tmpfs": {"/tmp": f"rw,nosuid,nodev,noexec,size={TMP_BYTES},mode=1777"},
        "ulimits": [{"name": "core", "soft": 0, "hard": 0}],
        "mounts": [
            {"source": str(job.run_dir), "target": str(RUN_DIR_INSIDE), "read_only": False},
            *(
                {"source": str(one), "target": str(one), "read_only": False}
                for one in settings.scratch
            ),
            *(
                {"source": host, "target": inside, "read_only": True}
                for host, inside in grant.files
            ),
        ],
        "devices": [f"{node}:{node}:rw" for node in grant.nodes],
        "cdi_devices": list(grant.cdi_devices),
        # The engine closes the session's standard input when the harness ends, for whatever reason,
        # and the reaper inside then ends the session. The container is not detached, because the
        # SDK would then ask for a standard input that stays open for the next client.
        "stdin_open": True,
        "detach": False,
    }
    if "userns" in traits:
        arguments["userns_mode"] = "host"
    if memlock:
        arguments["ulimits"].append({"name": "memlock", "soft": -1, "hard": -1})
    if grant.runtime:
        arguments["runtime"] = grant.runtime
    return arguments
