"""A described GPU machine around a real rigproof: the fake NVML library, replayed tools on PATH,
and its /sys, /proc and /dev.

rigproof runs in a mount namespace of its own, in which the described files lie over this machine's.
Nothing outside of it changes.
"""

from __future__ import annotations

import copy
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import described
import fake_driver
import load_texts
import nccl_texts
import plain_comparator
import pulse_program
import sound_loads
import sound_values
import wrong_results
from machine_root import sysfs_tree
from rig import Rig, still_proc
from run_left import Run

PROGRAMS = {
    "gpu-burn": "burn.py",
    "deviceQuery": "query.py",
    "nvbandwidth": "copies.py",
    "bandwidthTest": "bandwidth.py",
    "p2pBandwidthLatencyTest": "peers.py",
}
# What was logged before is this machine's own; collectives need torch.
GPU_CHECKS = "gpu,link.[!c]*,burn,watch,kernel_log.during_run"
ACCEPT = ("--profile", "accept")  # smoke runs no gpu-burn
# What a faked load is made of.
LOAD_MODULES = (
    load_texts,
    nccl_texts,
    pulse_program,
    sound_loads,
    sound_values,
    plain_comparator,
    wrong_results,
)
Document = dict[str, Any]
Edit = Callable[[Document], None]
# $1: the described root. An overlay hides what is mounted inside: of /dev that is shared memory and
# terminals.
MOUNTS = """
set -e
root=$1; shift
mkdir -p "$root/kept"
mount --rbind /dev "$root/kept"
mount -t overlay described -o "lowerdir=$root/sys:/sys" /sys
mount -t overlay described -o "lowerdir=$root/dev:/dev" /dev
for folder in shm pts; do mount --rbind "$root/kept/$folder" "/dev/$folder"; done
for file in "$root"/proc/*; do mount --bind "$file" "/proc/${file##*/}"; done
exec "$@"
"""


def working(document: Document) -> Document:
    """The machine in full use: a description shows it idle.

    Its power swings a little, and its energy counter goes by its power.
    """
    found = copy.deepcopy(document)
    for gpu in found["gpus"]:
        said = {**found.get("every_gpu", {}), **gpu}
        gpu["link_gen"] = min(said["max_link_gen"], said["max_link_gen_here"])
        gpu |= {
            "clock_event_reasons": ["sw-power-cap"],
            "performance_state": 0,
            "temperature_c": 61,
        }
        gpu |= {
            "sm_clock_mhz": said["max_sm_clock_mhz"] - 300,
            "memory_clock_mhz": said["max_memory_clock_mhz"],
        }
        gpu |= {
            "power_w": said["power_limit_w"],
            "power_swing_w": 3.0,
            "energy_follows_power": True,
        }
        if said.get("temperature_margin_c") is not None:
            gpu["temperature_margin_c"] = 22
        if said.get("utilisation_percent") is not None:
            gpu["utilisation_percent"] = 100
    return found


def document(name: str, edit: Edit | None = None) -> Document:
    """A description in full use, with what a test changes in it."""
    found = working(json.loads(fake_driver.description(name).read_text(encoding="utf-8")))
    if edit:
        edit(found)
    return found


def install(
    folder: Path, python: str, faults: Mapping[str, str], inside: Path | None = None
) -> None:
    """Put the tools into a folder, which their callers see as `inside`."""
    home = inside or folder
    replay = folder / "replay"
    shutil.copytree(
        Path(__file__).with_name("replay"), replay, ignore=shutil.ignore_patterns("__pycache__")
    )
    for module in (*LOAD_MODULES, described):
        shutil.copy(str(module.__file__), replay)
    (replay / "faults.json").write_text(json.dumps(dict(faults)), encoding="utf-8")
    for name, file in PROGRAMS.items():
        script = folder / name
        command = shlex.join([python, f"{home}/replay/{file}"])
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    # gpu-burn asks it for temperatures; the fake one does not.
    (folder / "nvidia-smi").write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    (folder / "nvidia-smi").chmod(0o755)


def hide_real_gpus(root: Path) -> None:
    """Whiteouts of the overlay for the GPUs that this machine has itself."""
    folder = root / "sys/bus/pci/devices"
    for real in Path("/sys/bus/pci/devices").iterdir():
        if (real / "vendor").read_text().strip() == "0x10de" and not (
            folder / real.name
        ).is_symlink():
            os.mknod(folder / real.name, 0o020000, os.makedev(0, 0))
    for node in Path("/dev").glob("nvidia*"):
        if not (root / "dev" / node.name).exists():
            os.mknod(root / "dev" / node.name, 0o020000, os.makedev(0, 0))


class GpuBox:
    """One described machine in one rig.

    `faults` says how tools misbehave; `library` is the folder of the fake library.
    """

    def __init__(
        self,
        rig: Rig,
        library: Path,
        name: str,
        *,
        edit: Edit | None = None,
        faults: Mapping[str, str] | None = None,
    ) -> None:
        self.rig = rig
        self.document = document(name, edit)
        self.path = rig.home / "described.json"
        self.path.write_text(json.dumps(self.document), encoding="utf-8")
        self.root = rig.home / "root"
        sysfs_tree(self.root, self.path)
        hide_real_gpus(self.root)
        still_proc(self.root)
        install(rig.fakes, sys.executable, faults or {})
        rig.variables |= fake_driver.environment(library, self.path)

    @property
    def program(self) -> list[str]:
        """rigproof on the described machine, as the beginning of a command line."""
        rigproof = str(Path(sys.executable).with_name("rigproof"))
        return ["unshare", "--mount", "sh", "-c", MOUNTS, "sh", str(self.root), rigproof]

    def accept(
        self,
        *more: str,
        only: str | None = GPU_CHECKS,
        burn: int | None = 2,
        machine: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> Run:
        """`rigproof accept` with the profile accept, to its end."""
        argv = self.rig.argv(*ACCEPT, *more, only=only, burn=burn, machine=machine)
        return self.rig.run(argv, program=self.program, variables=variables)
