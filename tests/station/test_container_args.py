"""What the engine is asked for, as a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import each

from acceptance.core.limit import GIB
from acceptance.station import container_args
from acceptance.station.container_args import (
    ContainerJob,
    ContainerMemory,
    ContainerSettings,
    Grant,
)

RUN_DIR = Path("/runs/a b, c:d/run-1")
NODES = Grant(
    "devices",
    nodes=("/dev/nvidia0", "/dev/nvidiactl"),
    files=(("/usr/lib/libcuda.so.570", "/opt/host-driver/libcuda.so.1"),),
    environment={"LD_LIBRARY_PATH": "/opt/host-driver"},
)


def arguments(**other: Any) -> dict[str, Any]:
    memlock = other.pop("memlock", True)
    memory, holder = ContainerMemory(8 * GIB, GIB), "boot/pid:[1]/7/99"
    settings = replace(ContainerSettings("sha256:1", Grant("none"), memory, holder), **other)
    given = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    job = ContainerJob(["python", "x"], RUN_DIR, "run-1", "load", (1000, 985), given)
    return container_args.create_arguments(settings, job, memlock=memlock)


WRITABLE = {"source": str(RUN_DIR), "target": "/rigproof", "read_only": False}
CORE = {"name": "core", "soft": 0, "hard": 0}
MEMLOCK = {"name": "memlock", "soft": -1, "hard": -1}


ASKED: dict[str, object] = {
    "image": "sha256:1",
    "command": ["python", "x"],
    "entrypoint": [],
    "name": "rigproof-run-1-load",
    "labels": {"rigproof.run": "run-1", "rigproof.holder": "boot/pid:[1]/7/99"},
    "user": "1000:985",
    "working_dir": "/rigproof",
    "network_mode": "none",
    "read_only": True,
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
    "ipc_mode": "private",
    "pids_limit": 16384,
    "mem_limit": 8 * GIB,
    "memswap_limit": 8 * GIB,
    "shm_size": GIB,
    "tmpfs": {"/tmp": f"rw,nosuid,nodev,noexec,size={GIB},mode=1777"},
    "mounts": [WRITABLE],
    "devices": [],
    "cdi_devices": [],
    "ulimits": [CORE, MEMLOCK],
    "stdin_open": True,
    "detach": False,
}


@each("key, asked", ASKED.items())
def test_the_least_privilege(key: str, asked: object) -> None:
    assert arguments()[key] == asked


def test_nothing_else_is_asked_for() -> None:
    """No privileged mode, no capability, no host namespace, no port, no volume, no restart: a
    new key needs a line in the table above.
    """
    known = {*ASKED, "hostname", "environment"}
    assert set(arguments()) == known
    assert set(arguments(grant=NODES, traits=frozenset({"seccomp", "cgroupns"}))) == known


def test_device_nodes_and_the_drivers_libraries() -> None:
    asked = arguments(grant=NODES)
    assert asked["devices"] == ["/dev/nvidia0:/dev/nvidia0:rw", "/dev/nvidiactl:/dev/nvidiactl:rw"]
    library = {
        "source": "/usr/lib/libcuda.so.570",
        "target": "/opt/host-driver/libcuda.so.1",
        "read_only": True,
    }
    assert asked["mounts"] == [WRITABLE, library]
    assert asked["environment"]["LD_LIBRARY_PATH"] == "/opt/host-driver"
    assert "runtime" not in asked


def test_the_nvidia_runtime_and_cdi() -> None:
    assert arguments(grant=Grant("nvidia", runtime="nvidia"))["runtime"] == "nvidia"
    assert arguments(grant=Grant("cdi", cdi_devices=("nvidia.com/gpu=0",)))["cdi_devices"] == [
        "nvidia.com/gpu=0"
    ]


def test_without_unlimited_locked_memory() -> None:
    assert arguments(memlock=False)["ulimits"] == [CORE]


@pytest.mark.parametrize(
    ("trait", "key", "asked"),
    [
        ("rootless", "user", "0:0"),
        ("userns", "userns_mode", "host"),
        ("selinux", "security_opt", ["no-new-privileges", "label=disable"]),
    ],
)
def test_what_an_engine_of_another_kind_is_asked(trait: str, key: str, asked: object) -> None:
    assert arguments(traits=frozenset({trait}))[key] == asked


def test_the_environment() -> None:
    grant = Grant("none", environment={"NVIDIA_VISIBLE_DEVICES": "void"})
    assert arguments(grant=grant)["environment"] == {
        "HOME": "/tmp",
        "LC_ALL": "C.UTF-8",
        "LANG": "C.UTF-8",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NVIDIA_DISABLE_REQUIRE": "1",
        "RIGPROOF_RUN": "run-1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "NVIDIA_VISIBLE_DEVICES": "void",
    }


@pytest.mark.parametrize(
    ("total", "memory", "shm"),
    [
        (GIB, GIB // 2, GIB // 16),
        (4 * GIB, 3 * GIB, 3 * GIB // 8),
        (100 * GIB, 97 * GIB, 8 * GIB),
        (2048 * GIB, 2048 * GIB - 2048 * GIB * 3 // 100, 8 * GIB),
    ],
)
def test_room_is_left_for_the_host(total: int, memory: int, shm: int) -> None:
    assert container_args.container_memory(total) == ContainerMemory(memory, shm)


def test_a_folder_on_a_tested_filesystem_has_its_own_path_inside() -> None:
    mounts = arguments(scratch=[Path("/da ta/.rigproof")])["mounts"]
    assert mounts == [
        WRITABLE,
        {"source": "/da ta/.rigproof", "target": "/da ta/.rigproof", "read_only": False},
    ]
