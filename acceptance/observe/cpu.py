"""The processors: model, sockets, cores, threads, caches, governor."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

from acceptance.core.message import english
from acceptance.core.parts import Socket
from acceptance.machine.inventory import Cache, CoreGroup, Cpu
from acceptance.observe import sysfs
from acceptance.observe.sysfs import SysfsError

_SIZE = re.compile(r"(\d+)([KMG])")
_KIB = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
# What boards write where a processor shall have no limit: 15 bits in steps of 1/8 W
# (MSR_PKG_POWER_LIMIT, Intel's manual, volume 3B) hold at most 4095.9 W.
UNLIMITED_W = 4095.0
# Maker or product of a virtual machine in the firmware's tables. They are asked where /proc/cpuinfo
# has no flag for it (Arm). Cloud providers use their names for bare machines too: not here.
_VIRTUAL = re.compile(r"QEMU|KVM Virtual Machine|Virtual Machine|VMware.*|Parallels.*")
# Devices under which a hybrid Intel processor lists its kinds of cores.
_HYBRID = (("performance", "cpu_core"), ("efficiency", "cpu_atom"))


def read(root: Path = Path("/")) -> Cpu:
    """Read the processors.

    Raises SysfsError when the kernel lists no CPU or shows an unknown value.
    """
    system = root / "sys/devices/system/cpu"
    info = _cpuinfo(root / "proc/cpuinfo")
    online = sysfs.cpus(system / "online") or tuple(
        int(block["processor"]) for block in info if "processor" in block
    )
    if not online:
        raise SysfsError(
            english("no_cpu_named", "neither {path} nor {other} names a CPU: mount /sys and /proc"),
            path=str(system / "online"),
            other=str(root / "proc/cpuinfo"),
        )
    first = info[0] if info else {}
    cores = _cores(system, online)
    return Cpu(
        model=_model(first),
        vendor=first.get("vendor_id") or first.get("CPU implementer"),
        sockets=_sockets(system, online),
        cores=len(cores) or None,
        threads=len(online),
        core_groups=_groups(root, cores),
        caches=_caches(system, online),
        governor=_governor(system, online),
        max_mhz=_max_mhz(system, online),
        virtualised=_virtualised(root, first.get("flags")),
        socket_cores=_socket_cores(root, cores),
    )


def power_limit_w(root: Path = Path("/")) -> float | None:
    """The power in W that the processors together may draw for long.

    None where the kernel does not show it (powercap has it for Intel processors), or the firmware
    sets no limit.
    """
    limits: dict[str, float] = {}
    for zone in sysfs.entries(root / "sys/class/powercap"):
        name = sysfs.text(zone / "name") or ""
        if not re.fullmatch(r"package-\d+(-die-\d+)?", name):
            continue  # a part of a processor, or something else that draws power
        for number in range(3):
            if sysfs.text(zone / f"constraint_{number}_name") == "long_term":
                limit = sysfs.number(zone / f"constraint_{number}_power_limit_uw")
                watts = limit / 1e6 if limit and limit / 1e6 < UNLIMITED_W else math.inf
                # two interfaces (MSR and MMIO) may set a limit: the lower one holds
                limits[name] = min(watts, limits.get(name, math.inf))
    total = sum(limits.values())
    return total if limits and math.isfinite(total) else None


def _cpuinfo(path: Path) -> list[dict[str, str]]:
    blocks = re.split(r"\n\s*\n", sysfs.text(path) or "")
    read = [
        {
            key.strip(): value.strip()
            for key, colon, value in (line.partition(":") for line in block.splitlines())
            if colon and value.strip()
        }
        for block in blocks
    ]
    return [block for block in read if block]


def _model(block: dict[str, str]) -> str | None:
    if "model name" in block:
        return " ".join(block["model name"].split())
    if "CPU implementer" in block and "CPU part" in block:  # Arm gives numbers only
        return f"Arm implementer {block['CPU implementer']} part {block['CPU part']}"
    return None


def _virtualised(root: Path, flags: str | None) -> bool | None:
    if flags is not None:
        return "hypervisor" in flags.split()
    dmi = root / "sys/class/dmi/id"
    names = (sysfs.text(dmi / "sys_vendor"), sysfs.text(dmi / "product_name"))
    return True if any(name and _VIRTUAL.fullmatch(name) for name in names) else None


def _cores(system: Path, online: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    found: set[tuple[int, ...]] = set()
    unknown: list[int] = []
    for cpu in online:
        topology = system / f"cpu{cpu}" / "topology"
        siblings = sysfs.cpus(topology / "core_cpus_list") or sysfs.cpus(
            topology / "thread_siblings_list"
        )
        if siblings is None:
            unknown.append(cpu)
        else:
            found.add(tuple(sibling for sibling in siblings if sibling in online))
    if found and unknown:
        raise SysfsError(
            english(
                "online_cpu_unknown",
                "{path} says nothing of an online CPU: was it switched off just now?",
            ),
            path=str(system / f"cpu{unknown[0]}/topology"),
        )
    return tuple(sorted(found))


def _sockets(system: Path, online: tuple[int, ...]) -> int | None:
    packages = {
        sysfs.number(system / f"cpu{cpu}" / "topology/physical_package_id") for cpu in online
    }
    # -1 means "not known" to the kernel, usual on small Arm machines.
    return len(packages) if not packages & {None, -1} else None


def _socket_cores(root: Path, cores: tuple[tuple[int, ...], ...]) -> tuple[CoreGroup, ...]:
    """The cores by socket, where every core's NUMA node belongs to one socket; else as one."""
    system = root / "sys/devices/system"
    nodes = {
        cpu: node.name
        for node in sysfs.entries(system / "node")
        if re.fullmatch(r"node\d+", node.name)
        for cpu in sysfs.cpus(node / "cpulist") or ()
    }
    of = {
        core: sysfs.number(system / f"cpu/cpu{core[0]}/topology/physical_package_id")
        for core in cores
    }
    places = {(nodes.get(core[0]), of[core]) for core in cores}
    split = len(places) == len({node for node, _ in places}) and None not in {
        part for place in places for part in place
    }
    if not split:
        of = dict.fromkeys(cores, 0)
    sockets = sorted({package for package in of.values() if package is not None})
    return tuple(
        CoreGroup(str(Socket(number)), tuple(core for core in cores if of[core] == package))
        for number, package in enumerate(sockets)
    )


def _groups(root: Path, cores: tuple[tuple[int, ...], ...]) -> tuple[CoreGroup, ...]:
    if not cores:
        return ()
    kinds = [
        (name, set(sysfs.cpus(root / "sys/devices" / device / "cpus") or ()))
        for name, device in _HYBRID
    ]
    of = {
        core: next((name for name, members in kinds if members.issuperset(core)), "other")
        for core in cores
    }
    if len(set(of.values())) == 1:
        return (CoreGroup("all", cores),)
    names = ("performance", "efficiency", "other")
    groups = (CoreGroup(name, tuple(core for core in cores if of[core] == name)) for name in names)
    return tuple(group for group in groups if group.cores)


def _caches(system: Path, online: tuple[int, ...]) -> tuple[Cache, ...]:
    found: set[tuple[int, str, int, tuple[int, ...]]] = set()
    for cpu in online:
        for index in sysfs.entries(system / f"cpu{cpu}" / "cache"):
            level, kind = sysfs.number(index / "level"), sysfs.text(index / "type")
            shared = sysfs.cpus(index / "shared_cpu_list")
            if level is not None and kind is not None and shared is not None:
                found.add((level, kind.lower(), _size(index / "size"), shared))
    count = Counter((level, kind, size) for level, kind, size, _shared in found)
    return tuple(
        Cache(level, kind, size or None, count[level, kind, size])
        for level, kind, size in sorted(count)
    )


def _size(path: Path) -> int:
    """Size in bytes; 0 if the kernel does not know it."""
    match = sysfs.matched(
        english(
            "no_cache_size_in_file",
            "{path} holds {value}, which is not a cache size: the driver, the kernel or rigproof "
            "is at fault: please report it",
        ),
        path,
        _SIZE,
    )
    return 0 if match is None else int(match[1]) * _KIB[match[2]]


def _governor(system: Path, online: tuple[int, ...]) -> str | None:
    read = {sysfs.text(system / f"cpu{cpu}" / "cpufreq/scaling_governor") for cpu in online}
    governors = sorted(governor for governor in read if governor is not None)
    if len(governors) > 1:
        return f"mixed: {', '.join(governors)}"
    return governors[0] if governors else None


def _max_mhz(system: Path, online: tuple[int, ...]) -> float | None:
    read = (sysfs.number(system / f"cpu{cpu}" / "cpufreq/cpuinfo_max_freq") for cpu in online)
    return max((khz / 1000 for khz in read if khz), default=None)
