"""Software RAID arrays (md), from sysfs: the faults that their state proves, and what their members
counted.

Words and files: Documentation/admin-guide/md.rst of Linux, and `state_show` of drivers/md/md.c.

The state of the ZFS pools, one word of the kernel's module for each.

OpenZFS, `spa_state_to_name` in module/zfs/spa_misc.c: /proc/spl/kstat/zfs/POOL/state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from acceptance.core.message import Listed, Message, english, known
from acceptance.observe import sysfs
from acceptance.observe.sysfs import SysfsError

_T = TypeVar("_T")

_WORKING = frozenset({"readonly", "read-auto", "clean", "active", "write-pending", "active-idle"})
_BROKEN = frozenset({"clear", "inactive", "suspended", "broken"})
_ACTIONS = frozenset({"resync", "recover", "idle", "check", "repair", "reshape", "frozen"})
# States of a member that prove no fault by themselves. `blocked` is one while it passes.
_SOUND = frozenset(
    {"in_sync", "journal", "write_mostly", "blocked", "spare", "replacement", "external_bbl"}
    | {"failfast"}
)
# States that prove one.
_FAULTY = frozenset({"faulty", "write_error", "want_replacement"})
BLOCKED = "blocked"
# md(4): on these levels blocks that differ are no proof of a fault. A page that changes while it is
# written (swap above all) may reach the copies in two forms. On others they are none after a
# resync, as that of a new raid6, which counts the blocks that it makes fit.
_MAY_DIFFER = frozenset({"raid1", "raid10"})
# Levels without redundancy have no such files.
_WITHOUT_COPIES = frozenset({"raid0", "linear", "multipath", "faulty"})
# md shows a list of bad blocks up to a page, whose size is at least this: a list of that length may
# be cut.
_PAGE = 4096
COLUMNS = ("array", "member", "corrected errors", "bad blocks")
_UNREAD = "not told"


@dataclass(frozen=True, slots=True)
class RaidMember:
    """A disk or partition of an array, and what md says of it (`in_sync`, `faulty`, `spare`).

    `errors` counts the read errors that md corrected. `bad_blocks` are ranges of sectors, as
    (first, how many), acknowledged or not. Both are None where the kernel has no such file.
    """

    name: str
    states: tuple[str, ...]
    errors: int | None = None
    bad_blocks: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class RaidArray:
    """A software RAID array.

    `level` is None for one that was not started: its members are too few. `degraded` counts members
    that are missing, `mismatches` sectors that differed at the last check or resync (`last_action`
    says which); these and `action` are None for a level without redundancy. `state` is None where
    it was not read. `wants_journal` says whether the array keeps its consistency by a journal.
    """

    name: str
    level: str | None
    state: str | None
    degraded: int | None
    action: str | None
    mismatches: int | None
    members: tuple[RaidMember, ...]
    last_action: str | None = None
    wants_journal: bool = False


@dataclass(frozen=True, slots=True)
class RaidState:
    """The arrays of the machine, by name, and why some of it is not known.

    What is not known hides no fault of what is.
    """

    arrays: tuple[RaidArray, ...]
    troubles: tuple[Message, ...] = ()


@dataclass(slots=True)
class _Attempts:
    troubles: list[Message] = field(default_factory=list)

    def read(self, read: Callable[[Path], _T], path: Path) -> _T | None:
        """What `read` makes of a file; None, with the reason kept, where it raises SysfsError."""
        try:
            return read(path)
        except SysfsError as error:
            self.troubles.append(error.message)
            return None


def read(root: Path = Path("/")) -> RaidState:
    """The arrays of the machine, by name.

    Containers of the firmware's metadata, which hold arrays and no data of their own, are left out,
    and devices of arrays that were stopped. A word that md does not have, and a file that cannot be
    read, is a trouble.
    Raises SysfsError where there is no list of disks.
    """
    blocks = root / "sys/block"
    if not blocks.is_dir():
        raise SysfsError("sys_unread", path=str(blocks))
    attempts = _Attempts()
    found = [
        _array(block, attempts)
        for block in sysfs.entries(blocks)
        if re.fullmatch(r"md.+", block.name) and (block / "md").is_dir()
    ]
    arrays = tuple(one for one in found if one is not None)
    return RaidState(arrays, tuple(attempts.troubles))


def _array(block: Path, attempts: _Attempts) -> RaidArray | None:
    folder = block / "md"
    level, state = sysfs.text(folder / "level"), sysfs.text(folder / "array_state")
    metadata = sysfs.text(folder / "metadata_version") or ""
    # The metadata of an array in a container names that: external:/md127/0.
    container = metadata.startswith("external:") and metadata[9:10] not in {"/", "-"}
    if level is None and (container or state == "clear"):
        return None
    members = tuple(
        _member(entry, attempts) for entry in sysfs.entries(folder) if entry.name.startswith("dev-")
    )
    state = attempts.read(_state, folder / "array_state")
    if level is None or level in _WITHOUT_COPIES:
        return RaidArray(block.name, level, state, None, None, None, members)
    return RaidArray(
        block.name,
        level,
        state,
        attempts.read(_number, folder / "degraded"),
        attempts.read(_action, folder / "sync_action"),
        attempts.read(_number, folder / "mismatch_cnt"),
        members,
        sysfs.text(folder / "last_sync_action"),
        sysfs.text(folder / "consistency_policy") == "journal",
    )


def _member(entry: Path, attempts: _Attempts) -> RaidMember:
    return RaidMember(
        entry.name.removeprefix("dev-"),
        attempts.read(_states, entry / "state") or (),
        attempts.read(_count, entry / "errors"),
        attempts.read(_ranges, entry / "bad_blocks"),
    )


def _states(path: Path) -> tuple[str, ...]:
    """The states of a member; a member that went away has none to read, and is no sound one."""
    return tuple(sysfs.needed(sysfs.text, path).split(","))


def _state(path: Path) -> str:
    return _word(path, _WORKING | _BROKEN)


def _action(path: Path) -> str:
    return _word(path, _ACTIONS)


def _word(path: Path, words: frozenset[str]) -> str:
    value = sysfs.needed(sysfs.text, path)
    if value not in words:
        raise sysfs.unexpected(
            english(
                "no_raid_state_in_file",
                "{path} holds {value}, which is no state of a RAID array: the kernel or rigproof "
                "is at fault: please report it",
            ),
            path,
            value,
        )
    return value


def _number(path: Path) -> int:
    return sysfs.needed(sysfs.number, path)


def _count(path: Path) -> int | None:
    """A number; None only where there is no such file."""
    return _number(path) if path.exists() else None


def _ranges(path: Path) -> tuple[tuple[int, int], ...] | None:
    """The ranges of a list of bad blocks; None only where there is no such file."""
    try:
        content = path.read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SysfsError("sys_unread", path=str(path)) from error
    lines = [re.fullmatch(r"(\d+) (\d+)", line) for line in content.split("\n") if line]
    found = tuple((int(one[1]), int(one[2])) for one in lines if one is not None)
    if len(content) >= _PAGE - 1 or len(found) < len(lines):
        raise sysfs.unexpected(
            english(
                "no_bad_blocks_in_file",
                "{path} holds {value}, which is no whole list of bad blocks, or one too long for "
                "its page: look at it with mdadm --examine-badblocks",
            ),
            path,
            content,
        )
    return found


def faults(array: RaidArray) -> tuple[Message, ...]:
    """Every fault that the state of an array proves; empty if there is none."""
    about = known(array=array.name, level=array.level)
    found = []
    if array.state in _BROKEN:
        found.append(
            Message(
                english(
                    "raid_not_working",
                    "{array}[ ({level})] is {state}: no data can be read from it",
                ),
                {**about, "state": array.state},
            )
        )
    if array.degraded:
        found.append(
            Message(
                english(
                    "raid_degraded", "{array}[ ({level})] is degraded: members missing: {count}"
                ),
                {**about, "count": str(array.degraded)},
            )
        )
    if members := _in_state(array, "faulty"):
        found.append(
            Message(
                english("raid_faulty", "{array}[ ({level})] has faulty members: {members}"),
                {**about, "members": members},
            )
        )
    if members := _in_state(array, "write_error"):
        found.append(
            Message(
                english(
                    "raid_write_error",
                    "{array}[ ({level})] has members on which a write failed: {members}",
                ),
                {**about, "members": members},
            )
        )
    if members := _in_state(array, "want_replacement"):
        found.append(
            Message(
                english(
                    "raid_want_replacement",
                    "{array}[ ({level})] has members that md wants to be replaced: {members}",
                ),
                {**about, "members": members},
            )
        )
    if array.wants_journal and not _in_state(array, "journal"):
        found.append(
            Message(
                english(
                    "raid_without_journal",
                    "{array}[ ({level})] keeps its consistency by a journal, and has no journal "
                    "device",
                ),
                about,
            )
        )
    if array.mismatches and not _harmless_mismatches(array):
        found.append(
            Message(
                english(
                    "raid_mismatches",
                    "{array}[ ({level})] has {count} sectors whose copies or parity differ",
                ),
                {**about, "count": str(array.mismatches)},
            )
        )
    return tuple(found)


def stuck(array: RaidArray, seconds: float) -> tuple[Message, ...]:
    """The fault of an array whose members stay blocked for this long: nobody writes down that they
    failed, and writes to them wait.
    """
    if not (members := _in_state(array, BLOCKED)):
        return ()
    about = known(array=array.name, level=array.level)
    return (
        Message(
            english(
                "raid_blocked",
                "{array}[ ({level})] has members that were blocked for {seconds} s: {members}",
            ),
            {**about, "members": members, "seconds": f"{seconds:g}"},
        ),
    )


def is_blocked(array: RaidArray) -> bool:
    """Whether md waits at this moment for something to be written down of a member."""
    return _in_state(array, BLOCKED) is not None


def _in_state(array: RaidArray, state: str) -> Listed | None:
    found = tuple(member.name for member in array.members if state in member.states)
    return Listed(found) if found else None


def _harmless_mismatches(array: RaidArray) -> bool:
    return array.level in _MAY_DIFFER or "resync" in (array.action, array.last_action)


def unknown(array: RaidArray) -> tuple[Message, ...]:
    """The states of members that rigproof does not know: not sound, and no fault either."""
    found = {
        state: Message(
            english(
                "raid_state_unknown",
                "{members} of {array} is in the state {state}, which rigproof does not know: "
                "please report it",
            ),
            {"array": array.name, "members": members, "state": state},
        )
        for member in array.members
        for state in member.states
        if state not in _SOUND | _FAULTY and (members := _in_state(array, state)) is not None
    }
    return tuple(found.values())


def remarks(array: RaidArray) -> tuple[Message, ...]:
    """What the reader of a speed should know of an array: it is being rebuilt or checked."""
    about = known(array=array.name, level=array.level)
    found = []
    if array.action not in (None, "idle"):
        found.append(
            Message(
                english(
                    "raid_busy",
                    "{array}[ ({level})] is busy with {action}: disks are slower meanwhile",
                ),
                {**about, "action": str(array.action)},
            )
        )
    if array.state == "readonly":
        found.append(
            Message(
                english(
                    "raid_read_only",
                    "{array}[ ({level})] is read-only: nothing can be written to it",
                ),
                about,
            )
        )
    if array.mismatches and _harmless_mismatches(array):
        code = (
            english(
                "raid_may_differ",
                "{array}[ ({level})]: {count} sectors differ between its copies, which proves "
                "nothing on this level (md(4))",
            )
            if array.level in _MAY_DIFFER
            else english(
                "raid_made_alike",
                "{array}[ ({level})]: {count} sectors were made to fit by its last resync, which "
                "is no fault on a new array; `echo check` into its sync_action compares them again",
            )
        )
        found.append(Message(code, {**about, "count": str(array.mismatches)}))
    return tuple(found)


def counted(arrays: Sequence[RaidArray]) -> tuple[Message, ...]:
    """What each member counts that counts anything: read errors that md corrected, and sectors that
    it knows as bad.
    """
    notes = []
    for array in arrays:
        for member in array.members:
            errors, bad = member.errors or 0, len(_sectors(member.bad_blocks or ()))
            if errors or bad:
                values = {"array": array.name, "member": member.name}
                notes.append(
                    Message(
                        english(
                            "raid_counted",
                            "{member} of {array}: {errors} corrected read errors, {bad} bad "
                            "sectors",
                        ),
                        {**values, "errors": str(errors), "bad": str(bad)},
                    )
                )
    return tuple(notes)


def rows(arrays: Sequence[RaidArray]) -> tuple[tuple[float | str, ...], ...]:
    """What the members count, as rows of COLUMNS."""
    return tuple(
        (
            array.name,
            member.name,
            _UNREAD if member.errors is None else float(member.errors),
            _UNREAD
            if member.bad_blocks is None
            else " ".join(f"{first}+{count}" for first, count in member.bad_blocks),
        )
        for array in arrays
        for member in array.members
    )


@dataclass(frozen=True, slots=True)
class Growth:
    """What members counted between two looks, and what of it is not known."""

    faults: tuple[Message, ...]
    troubles: tuple[Message, ...]


def growth(before: Sequence[Sequence[float | str]], arrays: Sequence[RaidArray]) -> Growth:
    """What grew or vanished since these rows were written."""
    first = {(str(row[0]), str(row[1])): row[2:] for row in before}
    last = {(array.name, member.name): member for array in arrays for member in array.members}
    faults: list[Message] = []
    troubles: list[Message] = []
    there = {array.name for array in arrays}
    for array in dict.fromkeys(name for name, _ in first):
        if array not in there:
            faults.append(
                Message(
                    english("raid_vanished", "{array} was there before the run, and is not now"),
                    {"array": array},
                )
            )
    for name, cells in first.items():
        member, about = last.get(name), {"array": name[0], "member": name[1]}
        if member is None:
            if name[0] in there:
                faults.append(
                    Message(
                        english(
                            "raid_member_vanished",
                            "{member} is no member of {array} any more: it was before the run",
                        ),
                        about,
                    )
                )
            continue
        if (cells[0] == _UNREAD) != (member.errors is None) or (
            (cells[1] == _UNREAD) != (member.bad_blocks is None)
        ):
            troubles.append(
                Message(
                    english(
                        "raid_count_unread",
                        "{member} of {array}: its errors or bad blocks could be read only before "
                        "the run or only after it, so their growth is not known",
                    ),
                    about,
                )
            )
        if member.errors is not None and cells[0] != _UNREAD:
            more = member.errors - float(cells[0])
            if more > 0:
                faults.append(
                    Message(
                        english(
                            "raid_errors_grew",
                            "{member} of {array} had read errors during the run, which md "
                            "corrected: {count}",
                        ),
                        {**about, "count": f"{more:.0f}"},
                    )
                )
            elif more < 0:
                troubles.append(
                    Message(
                        english(
                            "raid_errors_fell",
                            "{member} of {array} has fewer corrected read errors than before the "
                            "run: somebody reset the count, so its growth is not known",
                        ),
                        about,
                    )
                )
        if member.bad_blocks is not None and cells[1] != _UNREAD:
            new = _sectors(member.bad_blocks) - _sectors(_written(str(cells[1])))
            if new:
                faults.append(
                    Message(
                        english(
                            "raid_bad_blocks_grew",
                            "{member} of {array} has new bad blocks since the run began: {count} "
                            "sectors",
                        ),
                        {**about, "count": str(len(new))},
                    )
                )
    troubles += [
        Message(
            english(
                "raid_member_new",
                "{member} of {array} was not there before the run, so what it counted during the "
                "run is not known",
            ),
            {"array": array, "member": member},
        )
        for array, member in last
        if (array, member) not in first
    ]
    return Growth(tuple(faults), tuple(troubles))


def _written(cell: str) -> tuple[tuple[int, int], ...]:
    parts = (one.partition("+") for one in cell.split())
    return tuple((int(first), int(count)) for first, _, count in parts)


def _sectors(ranges: Sequence[tuple[int, int]]) -> set[int]:
    return {sector for first, count in ranges for sector in range(first, first + count)}


_SOUND_POOL = "ONLINE"
# A pool that lost redundancy, or data, or that waits for its disks.
_FAULTY_POOL = frozenset(
    {"DEGRADED", "FAULTED", "SUSPENDED", "UNAVAIL", "REMOVED", "OFFLINE", "SPLIT"}
)


def read_pools(root: Path = Path("/")) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The faults of pools, and why the state of one is not known; both empty without a pool."""
    faults: list[Message] = []
    troubles: list[Message] = []
    for pool in sysfs.entries(root / "proc/spl/kstat/zfs"):
        path = pool / "state"
        if not path.exists():  # counters of the module itself, and modules before 0.8
            continue
        state = sysfs.text(path)
        if state is None:
            troubles.append(
                Message(
                    english("sys_unread", "{path} cannot be read: mount /sys"), {"path": str(path)}
                )
            )
        elif state in _FAULTY_POOL:
            faults.append(
                Message(
                    english(
                        "zfs_pool_faulty",
                        "the ZFS pool {pool} is {state}: `zpool status {pool}` names the disk",
                    ),
                    {"pool": pool.name, "state": state},
                )
            )
        elif state != _SOUND_POOL:
            troubles.append(
                Message(
                    english(
                        "zfs_pool_state_unknown",
                        "the ZFS pool {pool} is in the state {state}, which rigproof does not "
                        "know: see `zpool status`, and run again",
                    ),
                    {"pool": pool.name, "state": repr(state[:80])},
                )
            )
    return tuple(faults), tuple(troubles)
