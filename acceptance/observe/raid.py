"""Software RAID arrays (md), from sysfs, and the faults that their state proves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from acceptance.core.message import Listed, Message, known
from acceptance.observe import sysfs
from acceptance.observe.sysfs import SysfsError

# Documentation/admin-guide/md.rst of Linux, `array_state` and `sync_action`.
_WORKING = frozenset({"readonly", "read-auto", "clean", "active", "write-pending", "active-idle"})
_BROKEN = frozenset({"clear", "inactive", "suspended", "broken"})
_ACTIONS = frozenset({"resync", "recover", "idle", "check", "repair", "reshape", "frozen"})
# md(4): on these levels blocks that differ are no proof of a fault. A page that changes while it is
# written (swap above all) may reach the copies in two forms.
_MAY_DIFFER = frozenset({"raid1", "raid10"})
# Levels without redundancy have no such files.
_WITHOUT_COPIES = frozenset({"raid0", "linear"})


@dataclass(frozen=True, slots=True)
class RaidMember:
    """A disk or partition of an array, and what md says of it (`in_sync`, `faulty`, `spare`)."""

    name: str
    states: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RaidArray:
    """A software RAID array.

    `level` is None for one that was not started: its members are too few. `degraded` counts members
    that are missing, `mismatches` sectors that differed at the last
    check; both, and `action`, are None for a level without redundancy.
    """

    name: str
    level: str | None
    state: str
    degraded: int | None
    action: str | None
    mismatches: int | None
    members: tuple[RaidMember, ...]


def read(root: Path = Path("/")) -> tuple[RaidArray, ...]:
    """The arrays of the machine, by name.

    Containers of the firmware's metadata, which hold arrays and no data of their own, are left out,
    and devices of arrays that were stopped.
    Raises SysfsError for a state that md does not have, or that cannot be read.
    """
    blocks = root / "sys/block"
    if not blocks.is_dir():
        raise SysfsError("sys_unread", path=str(blocks))
    found = [
        _array(block)
        for block in sysfs.entries(blocks)
        if re.fullmatch(r"md.+", block.name) and (block / "md").is_dir()
    ]
    return tuple(one for one in found if one is not None)


def _array(block: Path) -> RaidArray | None:
    folder = block / "md"
    level, state = sysfs.text(folder / "level"), _word(folder / "array_state", _WORKING | _BROKEN)
    external = (sysfs.text(folder / "metadata_version") or "").startswith("external:")
    if level is None and (external or state == "clear"):
        return None
    members = tuple(
        RaidMember(
            entry.name.removeprefix("dev-"),
            _states(entry / "state"),
        )
        for entry in sysfs.entries(folder)
        if entry.name.startswith("dev-")
    )
    if level is None or level in _WITHOUT_COPIES:
        return RaidArray(block.name, level, state, None, None, None, members)
    return RaidArray(
        block.name,
        level,
        state,
        _number(folder / "degraded"),
        _word(folder / "sync_action", _ACTIONS),
        _number(folder / "mismatch_cnt"),
        members,
    )


def _states(path: Path) -> tuple[str, ...]:
    """The states of a member; a member that went away has none to read, and is no sound one."""
    value = sysfs.text(path)
    if value is None:
        raise SysfsError("sys_unread", path=str(path))
    return tuple(value.split(","))


def _word(path: Path, words: frozenset[str]) -> str:
    value = sysfs.text(path)
    if value is None:
        raise SysfsError("sys_unread", path=str(path))
    if value not in words:
        raise sysfs.unexpected("no_raid_state_in_file", path, value)
    return value


def _number(path: Path) -> int:
    value = sysfs.number(path)
    if value is None:
        raise SysfsError("sys_unread", path=str(path))
    return value


def faults(array: RaidArray) -> tuple[Message, ...]:
    """Every fault that the state of an array proves; empty if there is none."""
    about = known(array=array.name, level=array.level)
    found = []
    if array.state in _BROKEN:
        found.append(Message("raid_not_working", {**about, "state": array.state}))
    if array.degraded:
        found.append(Message("raid_degraded", {**about, "count": str(array.degraded)}))
    faulty = tuple(member.name for member in array.members if "faulty" in member.states)
    if faulty:
        found.append(Message("raid_faulty", {**about, "members": Listed(faulty)}))
    if array.mismatches and array.level not in _MAY_DIFFER:
        found.append(Message("raid_mismatches", {**about, "count": str(array.mismatches)}))
    return tuple(found)


def remarks(array: RaidArray) -> tuple[Message, ...]:
    """What the reader of a speed should know of an array: it is being rebuilt or checked."""
    about = known(array=array.name, level=array.level)
    found = []
    if array.action not in (None, "idle"):
        found.append(Message("raid_busy", {**about, "action": str(array.action)}))
    if array.mismatches and array.level in _MAY_DIFFER:
        found.append(Message("raid_may_differ", {**about, "count": str(array.mismatches)}))
    return tuple(found)
