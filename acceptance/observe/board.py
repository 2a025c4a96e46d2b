"""The board, its firmware, its operating system, and the state of NVIDIA's driver."""

from __future__ import annotations

import os
import re
from pathlib import Path

from acceptance.core.message import english
from acceptance.machine.inventory import Board, DeviceNode
from acceptance.observe import sysfs
from acceptance.observe.sysfs import SysfsError

# Values of firmware whose maker filled nothing in.
_PLACEHOLDERS = frozenset(
    {
        "to be filled by o.e.m.",
        "default string",
        "system product name",
        "system manufacturer",
        "system serial number",
    }
    | {"not specified", "not applicable", "none", "unknown", "0123456789", "o.e.m."}
)
# The nodes that a GPU program opens: one per GPU, the control node, and unified memory.
_NODE = re.compile(r"nvidia(?:\d+|ctl|-uvm)")
_NVRM = re.compile(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)*)\s", re.MULTILINE)
# UEFI specification, global variables: four bytes of attributes, then 1 when Secure Boot is on.
_SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def read(root: Path = Path("/")) -> Board:
    """Read the board. Raises SysfsError for an unknown form of the driver's version."""
    dmi = root / "sys/class/dmi/id"
    kernel = root / "proc/sys/kernel"
    secure = sysfs.content(root / _SECURE_BOOT)
    machine_id = sysfs.text(root / "etc/machine-id")
    return Board(
        vendor=_filled_in(dmi / "board_vendor"),
        name=_filled_in(dmi / "board_name"),
        product=_filled_in(dmi / "product_name"),
        serial=_filled_in(dmi / "product_serial") or _filled_in(dmi / "board_serial"),
        bios_vendor=_filled_in(dmi / "bios_vendor"),
        bios_version=_filled_in(dmi / "bios_version"),
        bios_date=_filled_in(dmi / "bios_date"),
        secure_boot=None if secure is None else secure[-1] == 1,
        kernel=sysfs.text(kernel / "osrelease"),
        os=_os(root),
        hostname=sysfs.text(kernel / "hostname"),
        machine_id=None if machine_id == "uninitialized" else machine_id,
        boot_id=sysfs.text(kernel / "random/boot_id"),
        nouveau_loaded=_loaded(root, "nouveau"),
        nvidia_driver=_nvidia_driver(root),
        device_nodes=_device_nodes(root),
        gpu_nodes=nodes_by_address(root),
    )


def nodes_by_address(root: Path = Path("/")) -> dict[str, str]:
    """The device node of each GPU by PCI address, as the driver numbers them."""
    minor = re.compile(r"^Device Minor:\s*(\d+)\s*$", re.MULTILINE)
    return {
        folder.name.lower(): f"/dev/nvidia{match[1]}"
        for folder in sysfs.entries(root / "proc/driver/nvidia/gpus")
        if (match := minor.search(sysfs.text(folder / "information") or ""))
    }


def _filled_in(path: Path) -> str | None:
    value = sysfs.text(path)
    return None if value is None or value.lower() in _PLACEHOLDERS else value


def _os(root: Path) -> str | None:
    text = sysfs.text(root / "etc/os-release") or sysfs.text(root / "usr/lib/os-release") or ""
    match = re.search(r"^PRETTY_NAME=(['\"]?)(.+)\1$", text, re.MULTILINE)
    return match[2].strip() if match else None


def _loaded(root: Path, module: str) -> bool:
    modules = sysfs.text(root / "proc/modules") or ""
    return (root / "sys/module" / module).exists() or re.search(
        rf"^{module} ", modules, re.MULTILINE
    ) is not None


def _nvidia_driver(root: Path) -> str | None:
    if version := sysfs.text(root / "sys/module/nvidia/version"):
        return version
    path = root / "proc/driver/nvidia/version"
    text = sysfs.text(path)
    if text is None:
        return None
    match = _NVRM.search(text)
    if match is None:
        raise SysfsError(
            english(
                "no_driver_version_in_file",
                "{path} holds {value}, which names no driver version: the driver, the kernel or "
                "rigproof is at fault: please report it",
            ),
            path=str(path),
            value=repr(text[:120]),
        )
    return match[1]


def _device_nodes(root: Path) -> tuple[DeviceNode, ...]:
    nodes = [node for node in sysfs.entries(root / "dev") if _NODE.fullmatch(node.name)]
    return tuple(
        DeviceNode(f"/dev/{node.name}", os.access(node, os.R_OK | os.W_OK)) for node in nodes
    )
