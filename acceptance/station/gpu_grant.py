"""How a container gets the due GPUs: CDI, else the nvidia runtime, else device nodes.

With device nodes it also gets the host's driver. Pure: the engine's abilities and the host's files
go in, the request to the engine comes out. A check inside the container (`gpu.granted`) verifies
the result, because an engine may ignore a request in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from acceptance.core.message import Listed
from acceptance.machine.gpu import Gpu
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
        raise WordedError("no_device_node", gpus=Listed(tuple(map(str, lost))))
    missing = [node for node in CONTROL_NODES if node not in driver.nodes]
    if missing:
        raise WordedError("no_control_node", nodes=Listed(tuple(missing)))
    absent = [soname for soname in NEEDED if soname not in driver.libraries]
    if absent:
        raise WordedError("no_driver_library", libraries=Listed(tuple(absent)))
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
