"""The container of a session, as arguments for the engine: the least privilege that works.

Pure; tested as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from acceptance.core.limit import GIB, MIB
from acceptance.station.gpu_grant import Grant

# The run directory as the session sees it: the only place that it can write, but for its tmpfs.
RUN_DIR_INSIDE = PurePosixPath("/rigproof")
LABEL = "rigproof.run"
LABEL_HOLDER = "rigproof.holder"  # whose it is: see acceptance.station.container_owner
TMP_BYTES = GIB
PIDS = 16384


@dataclass(frozen=True, slots=True)
class ContainerMemory:
    """What the container may use of the machine, in bytes."""

    memory_bytes: int
    shm_bytes: int


def container_memory(total_bytes: int) -> ContainerMemory:
    """All memory but what keeps the host alive (a GiB, or 3 %), and an eighth of it, at most 8 GiB,
    for /dev/shm.

    The engine's own default of 64 MB for /dev/shm is too small for torch and NCCL.
    """
    memory = total_bytes - min(max(GIB, total_bytes * 3 // 100), total_bytes // 2)
    return ContainerMemory(memory_bytes=memory, shm_bytes=min(8 * GIB, max(64 * MIB, memory // 8)))


def environment(run_id: str, grant: Grant, extra: Mapping[str, str]) -> dict[str, str]:
    """The session's environment inside."""
    return {
        "HOME": "/tmp",
        "LC_ALL": "C.UTF-8",
        "LANG": "C.UTF-8",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        # the driver is checked by us, with a message that says what to do
        "NVIDIA_DISABLE_REQUIRE": "1",
        "RIGPROOF_RUN": run_id,
        **extra,
        **grant.environment,
    }


def create_arguments(
    *,
    image: str,
    argv: list[str],
    run_dir: Path,
    run_id: str,
    holder: str,
    owner: tuple[int, int],
    room: ContainerMemory,
    grant: Grant,
    session_environment: Mapping[str, str],
    traits: frozenset[str] = frozenset(),
    memlock: bool = True,
) -> dict[str, Any]:
    """Keyword arguments for the SDK's `containers.create`, but for what needs its own types
    (ulimits, device requests, mounts).

    `owner` is the run directory's (uid, gid): uid 0 without capabilities could not write another
    owner's folder. `memlock` asks for unlimited locked memory, which an engine may refuse. `traits`
    are the engine's own security options by name: a `rootless` one maps its user to root inside and
    everybody else to nobody; one that maps users (`userns`) is asked not to; under `selinux`
    nothing that is not labelled for containers could be used, neither the run directory nor a GPU.
    """
    user, group = (0, 0) if "rootless" in traits else owner
    arguments: dict[str, Any] = {
        "image": image,
        "command": argv,
        "entrypoint": [],
        "name": f"rigproof-{run_id}",
        "hostname": "rigproof",
        "labels": {LABEL: run_id, LABEL_HOLDER: holder},
        "user": f"{user}:{group}",
        "working_dir": str(RUN_DIR_INSIDE),
        "environment": environment(run_id, grant, session_environment),
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges", *(["label=disable"] if "selinux" in traits else [])],
        "ipc_mode": "private",
        "pids_limit": PIDS,
        "mem_limit": room.memory_bytes,
        "memswap_limit": room.memory_bytes,  # none of it in swap: a test of a disk is another one
        "shm_size": room.shm_bytes,
        "tmpfs": {"/tmp": f"rw,nosuid,nodev,noexec,size={TMP_BYTES},mode=1777"},
        "ulimits": [{"name": "core", "soft": 0, "hard": 0}],
        "mounts": [{"source": str(run_dir), "target": str(RUN_DIR_INSIDE), "read_only": False}],
        "devices": [f"{node}:{node}:rw" for node in grant.nodes],
        "cdi_devices": list(grant.cdi_devices),
        # The engine closes the session's standard input when the harness goes away, however it
        # goes: the reaper inside ends with it. Not detached, because the SDK would then ask for a
        # standard input that stays open for the next one who attaches.
        "stdin_open": True,
        "detach": False,
    }
    if "userns" in traits:
        arguments["userns_mode"] = "host"
    if memlock:
        arguments["ulimits"].append({"name": "memlock", "soft": -1, "hard": -1})
    if grant.runtime:
        arguments["runtime"] = grant.runtime
    arguments["mounts"] += [
        {"source": host, "target": inside, "read_only": True} for host, inside in grant.files
    ]
    return arguments
