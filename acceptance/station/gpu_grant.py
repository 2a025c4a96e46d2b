"""How a container is given the GPUs that are due: by CDI, else by the nvidia runtime, else as
device nodes with the host's driver.

Pure: what the engine can do and what the host has go in, what to ask the engine for comes out.
Whether it was obeyed is measured inside the container (`gpu.granted`), because an engine may ignore
a request in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from acceptance.machine.gpu import Gpu

# Where the host's driver libraries appear inside the container: a folder of their own, so that
# nothing of the image is hidden.
LIBRARIES_INSIDE = "/opt/host-driver"
CDI_KIND = "nvidia.com/gpu"
# Control node and unified memory; each GPU has one of its own beside them. Without the tools node
# profilers do not work, and nothing else.
CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")
OPTIONAL_NODES = ("/dev/nvidia-uvm-tools",)
# The driver's user half, by soname: CUDA, NVML, and what CUDA loads by itself to compile PTX and to
# debug.
SONAMES = (
    "libcuda.so.1",
    "libnvidia-ml.so.1",
    "libnvidia-ptxjitcompiler.so.1",
    "libnvidia-nvvm.so.4",
    "libnvidia-nvvm70.so.4",
    "libcudadebugger.so.1",
)
VERSIONED = ("libnvidia-gpucomp.so.",)  # its soname ends in the driver's version
NEEDED = ("libcuda.so.1", "libnvidia-ml.so.1")
# Where the host's nvidia-smi appears inside: gpu-burn asks it for temperatures, and crashes where
# there is none.
SMI_INSIDE = "/usr/bin/nvidia-smi"
# To an engine whose default runtime is NVIDIA's: give nothing beside what was asked for in another
# way.
NO_HOOK: Mapping[str, str] = {"NVIDIA_VISIBLE_DEVICES": "void"}
MODPROBE = "run `sudo nvidia-modprobe -c=0 -u` (package nvidia-modprobe)"


_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_KIND = re.compile(
    rf"""(?:^|[{{,\s])["']?kind["']?\s*:\s*["']?{re.escape(CDI_KIND)}["']?\s*(?:[,}}#]|$)""",
    re.MULTILINE,
)


class GrantError(Exception):
    """The GPUs cannot be given to a container; the message is one sentence with the cure."""


def is_driver_library(soname: str) -> bool:
    """Whether a library belongs to the driver's user half."""
    return soname in SONAMES or soname.startswith(VERSIONED)


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What an engine says of itself: the names of its runtimes, and the text of every CDI
    specification that it reads.
    """

    runtimes: frozenset[str] = frozenset()
    cdi_specs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DriverFiles:
    """The driver on the host: device nodes that exist, each GPU's own by PCI address, libraries
    by soname, nvidia-smi (real paths).
    """

    nodes: frozenset[str] = frozenset()
    node_of: Mapping[str, str] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    smi: str | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """What to ask for.

    `files` of the driver are (path on the host, path inside) pairs, mounted read-only.
    """

    mode: Literal["none", "cdi", "nvidia", "devices"]
    cdi_devices: tuple[str, ...] = ()
    runtime: str | None = None
    nodes: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def choose(due: Sequence[Gpu], engine: EngineFacts, driver: DriverFiles) -> Grant:
    """The grant for the GPUs that are due.

    Raises GrantError when there is no way, naming what is missing.
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
    """The CDI names of the GPUs that are due, or None when no specification names them all.

    A specification may name devices by UUID or by NVML's index; the UUID goes first, because an
    index moves when a card is lost.
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
    """Whether a specification has a device of that name, in its YAML form or
    its JSON form, quoted or not.
    """
    pattern = rf"""(?:^|[{{,\s])["']?name["']?\s*:\s*["']?{re.escape(name)}["']?\s*(?:[,}}#]|$)"""
    return re.search(pattern, text, re.MULTILINE) is not None


def by_nodes(due: Sequence[Gpu], driver: DriverFiles) -> Grant:
    """Device nodes and libraries, for a machine with a driver and an engine and nothing of
    NVIDIA's between them.
    """
    own = [driver.node_of.get(gpu.pci_address) for gpu in due]
    lost = [
        gpu.name
        for gpu, node in zip(due, own, strict=True)
        if node is None or node not in driver.nodes
    ]
    if lost:
        raise GrantError(
            f"there is no device node for {', '.join(lost)}: run `nvidia-smi` as root, which "
            "makes them, then start again"
        )
    missing = [node for node in CONTROL_NODES if node not in driver.nodes]
    if missing:
        raise GrantError(
            f"{', '.join(missing)} is missing: {MODPROBE}; a fresh boot has it only after "
            "the first CUDA program"
        )
    absent = [soname for soname in NEEDED if soname not in driver.libraries]
    if absent:
        raise GrantError(
            f"the driver's library {', '.join(absent)} is not on this host: install the "
            "driver's user half (libcuda1, libnvidia-ml1)"
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
