"""The engine's arguments for a session's container: the least privilege that works.

A container gets the due GPUs by CDI, else the nvidia runtime, else device nodes; with these also
the host's driver: its device nodes and user-space libraries. A check inside the container
(`gpu.granted`) verifies the result, because an engine may ignore a request in silence.

The arguments are pure, the engine's abilities and the host's files go in; tested as a table.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from acceptance.core.limit import GIB, MIB
from acceptance.core.message import Listed, english
from acceptance.machine.gpu import Gpu
from acceptance.observe import board, sysfs
from acceptance.process import command
from acceptance.process.command import CommandError, ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.wording.errors import WordedError

# The folder for the host's driver libraries inside the container. It is a folder of its own, so
# that it hides nothing of the image.
LIBRARIES_INSIDE = "/opt/host-driver"
CDI_KIND = "nvidia.com/gpu"
# Control node and unified memory; each GPU also has its own node. Without the tools node only
# profilers do not work.
CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")
OPTIONAL_NODES = ("/dev/nvidia-uvm-tools",)
# The driver's user-space libraries by soname: CUDA, NVML, and those that CUDA loads by itself to
# compile PTX and to debug.
SONAMES = (
    "libcuda.so.1",
    "libnvidia-ml.so.1",
    "libnvidia-ptxjitcompiler.so.1",
    "libnvidia-nvvm.so.4",
    "libnvidia-nvvm70.so.4",
    "libcudadebugger.so.1",
)
VERSIONED = ("libnvidia-gpucomp.so.",)  # its soname ends with the driver's version
NEEDED = ("libcuda.so.1", "libnvidia-ml.so.1")
# The host's nvidia-smi inside the container: gpu-burn reads temperatures with it, and crashes
# without it.
SMI_INSIDE = "/usr/bin/nvidia-smi"
# Tells an engine whose default runtime is NVIDIA's to add nothing to what was requested otherwise.
NO_HOOK: Mapping[str, str] = {"NVIDIA_VISIBLE_DEVICES": "void"}


_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_KIND = re.compile(
    rf"""(?:^|[{{,\s])["']?kind["']?\s*:\s*["']?{re.escape(CDI_KIND)}["']?\s*(?:[,}}#]|$)""",
    re.MULTILINE,
)


def is_driver_library(soname: str) -> bool:
    """Whether a library is one of the driver's user-space libraries."""
    return soname in SONAMES or soname.startswith(VERSIONED)


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """An engine's own report: names of its runtimes, and texts of its CDI specifications."""

    runtimes: frozenset[str] = frozenset()
    cdi_specs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DriverFiles:
    """The driver's files on the host, as real paths.

    `nodes` are the device nodes that exist, `node_of` each GPU's own by PCI address, `libraries`
    are by soname, `smi` is nvidia-smi.
    """

    nodes: frozenset[str] = frozenset()
    node_of: Mapping[str, str] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    smi: str | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """The request for GPUs.

    `files` of the driver are (path on the host, path inside) pairs, mounted read-only.
    """

    mode: Literal["none", "cdi", "nvidia", "devices"]
    cdi_devices: tuple[str, ...] = ()
    runtime: str | None = None
    nodes: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def choose(due: Sequence[Gpu], engine: EngineFacts, driver: DriverFiles) -> Grant:
    """The grant for the due GPUs.

    Raises WordedError where none is possible, naming what is missing.
    """
    if not due:
        return Grant("none", environment=NO_HOOK)
    names = cdi_names(due, engine.cdi_specs)
    if names is not None:
        return Grant("cdi", cdi_devices=names, environment=NO_HOOK)
    uuids = [gpu.uuid for gpu in due if gpu.uuid is not None]
    if "nvidia" in engine.runtimes and len(uuids) == len(due):
        visible = {
            "NVIDIA_VISIBLE_DEVICES": ",".join(uuids),
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        }
        return Grant("nvidia", runtime="nvidia", environment=visible)
    return by_nodes(due, driver)


def cdi_names(due: Sequence[Gpu], specs: Sequence[str]) -> tuple[str, ...] | None:
    """The CDI names of the due GPUs; None where the specifications do not name them all.

    A specification may name devices by UUID or by NVML's index. The UUID has precedence, because an
    index changes when a card is lost.
    """
    texts = [_COMMENT.sub("", spec) for spec in specs]
    text = "\n".join(one for one in texts if _KIND.search(one))
    names = []
    for gpu in due:
        known = [gpu.uuid, None if gpu.nvml_index is None else str(gpu.nvml_index)]
        name = next((one for one in known if one is not None and _has_device(text, one)), None)
        if name is None:
            return None
        names.append(f"{CDI_KIND}={name}")
    return tuple(names)


def _has_device(text: str, name: str) -> bool:
    """Whether a specification has a device of that name, in YAML or JSON form, quoted or not."""
    pattern = rf"""(?:^|[{{,\s])["']?name["']?\s*:\s*["']?{re.escape(name)}["']?\s*(?:[,}}#]|$)"""
    return re.search(pattern, text, re.MULTILINE) is not None


def by_nodes(due: Sequence[Gpu], driver: DriverFiles) -> Grant:
    """A grant of device nodes and libraries.

    For a machine with a driver and an engine, but without NVIDIA's container toolkit.
    """
    own = [driver.node_of.get(gpu.pci_address) for gpu in due]
    lost = [
        gpu.name
        for gpu, node in zip(due, own, strict=True)
        if node is None or node not in driver.nodes
    ]
    if lost:
        raise WordedError(
            english(
                "no_device_node",
                "there is no device node for {gpus}: run `nvidia-smi` as root, which makes them, "
                "then start again",
            ),
            gpus=Listed(tuple(map(str, lost))),
        )
    missing = [node for node in CONTROL_NODES if node not in driver.nodes]
    if missing:
        raise WordedError(
            english(
                "no_control_node",
                "{nodes} is missing: run `sudo nvidia-modprobe -c=0 -u` (package "
                "nvidia-modprobe); a fresh boot has it only after the first CUDA program",
            ),
            nodes=Listed(tuple(missing)),
        )
    absent = [soname for soname in NEEDED if soname not in driver.libraries]
    if absent:
        raise WordedError(
            english(
                "no_driver_library",
                "the driver's library {libraries} is not on this host: install the driver's user "
                "half (libcuda1, libnvidia-ml1)",
            ),
            libraries=Listed(tuple(absent)),
        )
    nodes = (
        *(node for node in own if node),
        *CONTROL_NODES,
        *(node for node in OPTIONAL_NODES if node in driver.nodes),
    )
    files = [
        (path, f"{LIBRARIES_INSIDE}/{name}") for name, path in sorted(driver.libraries.items())
    ]
    files += [(driver.smi, SMI_INSIDE)] if driver.smi is not None else []
    environment = {**NO_HOOK, "LD_LIBRARY_PATH": LIBRARIES_INSIDE}
    return Grant("devices", nodes=nodes, files=tuple(files), environment=environment)


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


ASK_S = 10.0
# `ldconfig -p`: soname (kind, hardware) => path.
_LIBRARY = re.compile(r"^\s*(?P<soname>\S+) \((?P<kind>[^)]*)\) => (?P<path>/.+)$")
_UVM = re.compile(r"^\s*(?P<major>\d+) nvidia-uvm$", re.MULTILINE)


def libraries(listing: str, machine: str) -> dict[str, str]:
    """The driver's libraries in the output of `ldconfig -p`: soname to path.

    Only those of this machine's architecture.
    """
    marks = {"x86_64": "x86-64", "aarch64": "AArch64"}
    found: dict[str, str] = {}
    for line in listing.splitlines():
        match = _LIBRARY.match(line)
        if (
            match
            and is_driver_library(match["soname"])
            and marks.get(machine, machine) in match["kind"]
        ):
            found.setdefault(match["soname"], match["path"])
    return found


def make_uvm(root: Path = Path("/"), run: Callable[..., ProgramResult] = command.run) -> None:
    """Create /dev/nvidia-uvm where it does not exist yet, as after a fresh boot.

    The first CUDA program would create it, but one in a container may not. NVIDIA's own helper is
    used where it is installed (it may be set-uid root); otherwise, as root, the module is loaded
    and the node made with the number that the kernel lists. Where neither works, the grant names
    what is missing.
    """
    if (root / "dev/nvidia-uvm").exists():
        return
    with contextlib.suppress(CommandError):
        run([command.find("nvidia-modprobe"), "-c=0", "-u"], deadline=Deadline.after(ASK_S))
    if (root / "dev/nvidia-uvm").exists() or os.geteuid() != 0:
        return
    major = _uvm_major(root)
    if major is None:
        with contextlib.suppress(CommandError):
            run([command.find("modprobe"), "nvidia-uvm"], deadline=Deadline.after(ASK_S))
        major = _uvm_major(root)
    if major is not None:
        for number, name in ((0, "nvidia-uvm"), (1, "nvidia-uvm-tools")):
            with contextlib.suppress(OSError):  # it exists already, or may not be created here
                os.mknod(root / "dev" / name, stat.S_IFCHR | 0o600, os.makedev(major, number))
                (root / "dev" / name).chmod(0o666)  # mknod's mode is reduced by the umask


def _uvm_major(root: Path) -> int | None:
    found = _UVM.search(sysfs.text(root / "proc/devices") or "")
    return int(found["major"]) if found else None


def find(root: Path = Path("/"), run: Callable[..., ProgramResult] = command.run) -> DriverFiles:
    """The driver's files on this host. A host without `ldconfig` has no libraries."""
    make_uvm(root, run)
    listing = ""
    with contextlib.suppress(CommandError):
        listing = run([command.find("ldconfig"), "-p"], deadline=Deadline.after(ASK_S)).stdout
    nodes = [
        f"/dev/{entry.name}"
        for entry in sysfs.entries(root / "dev")
        if entry.name.startswith("nvidia")
    ]
    found = libraries(listing, os.uname().machine)
    # Engines mount the file, not the symbolic link to it.
    real = {soname: os.path.realpath(path) for soname, path in found.items()}
    smi = None
    with contextlib.suppress(CommandError):  # the driver's packages may lack it
        smi = os.path.realpath(command.find("nvidia-smi"))
    return DriverFiles(frozenset(nodes), board.nodes_by_address(root), real, smi)
