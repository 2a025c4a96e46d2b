"""The processors: model, sockets, cores, threads, caches, governor."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from acceptance.machine.inventory import Cache, CoreGroup, Cpu
from acceptance.observe import sysfs
from acceptance.observe.sysfs import KERNEL_CURE, SysfsError

_KIB = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
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
            f"neither {system / 'online'} nor {root / 'proc/cpuinfo'} names a CPU: mount "
            "/sys and /proc"
        )
    first = info[0] if info else {}
    cores = _cores(system, online)
    flags = first.get("flags")
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
        virtualised=None if flags is None else "hypervisor" in flags.split(),
    )


def _cpuinfo(path: Path) -> list[dict[str, str]]:
    blocks = re.split(r"\n\s*\n", sysfs.text(path) or "")
    read = [
        {
            key.strip(): value.strip()
            for key, colon, value in map(_split, block.splitlines())
            if colon and value.strip()
        }
        for block in blocks
    ]
    return [block for block in read if block]


def _split(line: str) -> tuple[str, str, str]:
    return line.partition(":")


def _model(block: dict[str, str]) -> str | None:
    if "model name" in block:
        return " ".join(block["model name"].split())
    if "CPU implementer" in block and "CPU part" in block:  # Arm gives numbers only
        return f"Arm implementer {block['CPU implementer']} part {block['CPU part']}"
    return None


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
            f"{system / f'cpu{unknown[0]}/topology'} says nothing of an online CPU: was it "
            "switched off just now?"
        )
    return tuple(sorted(found))


def _sockets(system: Path, online: tuple[int, ...]) -> int | None:
    packages = {
        sysfs.number(system / f"cpu{cpu}" / "topology/physical_package_id") for cpu in online
    }
    # -1 means "not known" to the kernel, usual on small Arm machines.
    return len(packages) if not packages & {None, -1} else None


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
    value = sysfs.text(path)
    if value is None:
        return 0
    match = re.fullmatch(r"(\d+)([KMG])", value)
    if match is None:
        raise SysfsError(f"{path} holds {value[:80]!r}, which is not a cache size: {KERNEL_CURE}")
    return int(match[1]) * _KIB[match[2]]


def _governor(system: Path, online: tuple[int, ...]) -> str | None:
    read = {sysfs.text(system / f"cpu{cpu}" / "cpufreq/scaling_governor") for cpu in online}
    governors = sorted(governor for governor in read if governor is not None)
    if len(governors) > 1:
        return f"mixed: {', '.join(governors)}"
    return governors[0] if governors else None


def _max_mhz(system: Path, online: tuple[int, ...]) -> float | None:
    read = (sysfs.number(system / f"cpu{cpu}" / "cpufreq/cpuinfo_max_freq") for cpu in online)
    return max((khz / 1000 for khz in read if khz), default=None)
