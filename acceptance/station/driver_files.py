"""The NVIDIA driver's files on this host: device nodes, and user-space libraries.

They are for a container that gets them one by one.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

from acceptance.observe import board, sysfs
from acceptance.process import command
from acceptance.process.command import CommandError, ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.station.gpu_grant import DriverFiles, is_driver_library

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
