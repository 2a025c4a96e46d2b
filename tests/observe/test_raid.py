from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cases import each
from machine_tree import Tree
from refusal import raised

from acceptance.core.message import Listed, Message
from acceptance.observe import raid
from acceptance.observe.raid import RaidArray, RaidMember
from acceptance.observe.sysfs import SysfsError

SOUND = RaidArray(
    "md0",
    "raid5",
    "clean",
    0,
    "idle",
    0,
    (
        RaidMember("sda1", ("in_sync",), 0, ()),
        RaidMember("sdb1", ("in_sync", "write_mostly"), 0, ()),
    ),
)


def codes(messages: tuple[Message, ...]) -> list[str]:
    return [message.code for message in messages]


def only(root: Path) -> RaidArray:
    """The only array, of which everything is known."""
    state = raid.read(root)
    assert state.troubles == ()
    (found,) = state.arrays
    return found


def array(root: Path, **files: str | int) -> Tree:
    tree = Tree(root)
    sound: dict[str, str | int] = {
        "level": "raid5",
        "array_state": "clean",
        "degraded": 0,
        "sync_action": "idle",
        "mismatch_cnt": 0,
        "metadata_version": "1.2",
    }
    tree.files("sys/block/md0/md", **{**sound, **files})
    tree.files("sys/block/md0/md/dev-sda1", state="in_sync", errors=0, bad_blocks="")
    tree.files("sys/block/md0/md/dev-sdb1", state="in_sync,write_mostly", errors=0, bad_blocks="")
    tree.files("sys/block/sda", size=1)
    return tree


def test_a_sound_array(tmp_path: Path) -> None:
    array(tmp_path)
    assert only(tmp_path) == SOUND
    assert raid.faults(SOUND) == raid.remarks(SOUND) == raid.unknown(SOUND) == ()
    assert raid.stuck(SOUND, 5.0) == ()
    assert raid.counted((SOUND,)) == ()


def test_no_array(tmp_path: Path) -> None:
    Tree(tmp_path).files("sys/block/md0", size=0)
    assert raid.read(tmp_path) == raid.RaidState(())


def test_without_sysfs_nothing_is_known(tmp_path: Path) -> None:
    assert "sys/block" in raised(SysfsError, raid.read, tmp_path)


@each("level", ["raid0", "linear", "multipath"])
def test_levels_without_redundancy(tmp_path: Path, level: str) -> None:
    tree = array(tmp_path, level=level)
    for name in ("degraded", "sync_action", "mismatch_cnt"):
        (tmp_path / "sys/block/md0/md" / name).unlink()
    found = only(tmp_path)
    assert (found.degraded, found.action, found.mismatches) == (None, None, None)
    assert raid.faults(found) == ()
    tree.files("sys/block/md0/md", array_state="broken")
    tree.files("sys/block/md0/md/dev-sdb1", state="faulty")
    assert codes(raid.faults(only(tmp_path))) == ["raid_not_working", "raid_faulty"]


@each(
    "files",
    [{"metadata_version": "external:imsm", "array_state": "inactive"}, {"array_state": "clear"}],
)
def test_what_is_no_array(tmp_path: Path, files: dict[str, str]) -> None:
    array(tmp_path, level="", **files)
    assert raid.read(tmp_path) == raid.RaidState(())


@each("metadata", ["1.2", "external:/md127/0", "external:-md127/0"])
def test_an_array_that_was_not_started(tmp_path: Path, metadata: str) -> None:
    array(tmp_path, level="", array_state="inactive", metadata_version=metadata)
    assert raid.faults(only(tmp_path)) == (
        Message("raid_not_working", {"array": "md0", "state": "inactive"}),
    )


@each(
    "files, faults, remarks",
    [
        ({"degraded": 1}, ["raid_degraded"], []),
        ({"mismatch_cnt": 8}, ["raid_mismatches"], []),
        ({"mismatch_cnt": 8, "last_sync_action": "check"}, ["raid_mismatches"], []),
        ({"array_state": "broken"}, ["raid_not_working"], []),
        ({"consistency_policy": "journal"}, ["raid_without_journal"], []),
        ({"level": "raid1", "mismatch_cnt": 128}, [], ["raid_may_differ"]),
        ({"level": "raid10", "mismatch_cnt": 128}, [], ["raid_may_differ"]),
        (
            {"level": "raid6", "mismatch_cnt": 4096, "last_sync_action": "resync"},
            [],
            ["raid_made_alike"],
        ),
        # the first resync of a RAID6, while it runs
        (
            {"level": "raid6", "mismatch_cnt": 4096, "sync_action": "resync"},
            [],
            ["raid_busy", "raid_made_alike"],
        ),
        ({"sync_action": "recover"}, [], ["raid_busy"]),
        ({"array_state": "readonly"}, [], ["raid_read_only"]),
    ],
)
def test_faults_and_remarks(
    tmp_path: Path, files: dict[str, str | int], faults: list[str], remarks: list[str]
) -> None:
    array(tmp_path, **files)
    found = only(tmp_path)
    assert (codes(raid.faults(found)), codes(raid.remarks(found))) == (faults, remarks)


@each(
    "state, due",
    [
        ("faulty", ["raid_faulty"]),
        ("in_sync,write_error,want_replacement", ["raid_write_error", "raid_want_replacement"]),
        ("faulty,journal,write_error", ["raid_faulty", "raid_write_error"]),
        ("in_sync,blocked,external_bbl,failfast", []),
        ("spare,replacement", []),
    ],
)
def test_what_the_state_of_a_member_proves(tmp_path: Path, state: str, due: list[str]) -> None:
    array(tmp_path).files("sys/block/md0/md/dev-sdb1", state=state)
    found = only(tmp_path)
    assert codes(raid.faults(found)) == due
    assert all(one.values["members"] == Listed(("sdb1",)) for one in raid.faults(found))
    assert raid.unknown(found) == ()


def test_a_journal_that_is_there(tmp_path: Path) -> None:
    tree = array(tmp_path, consistency_policy="journal")
    tree.files("sys/block/md0/md/dev-sdc1", state="journal", errors=0, bad_blocks="")
    assert raid.faults(only(tmp_path)) == ()


def test_a_member_that_is_blocked(tmp_path: Path) -> None:
    array(tmp_path).files("sys/block/md0/md/dev-sdb1", state="in_sync,blocked")
    found = only(tmp_path)
    assert (raid.is_blocked(found), raid.is_blocked(SOUND)) == (True, False)
    assert codes(raid.stuck(found, 5.0)) == ["raid_blocked"]


def test_a_state_that_nobody_knows_is_named_and_hides_no_fault(tmp_path: Path) -> None:
    tree = array(tmp_path)
    tree.files("sys/block/md0/md/dev-sda1", state="in_sync,asleep")
    tree.files("sys/block/md0/md/dev-sdb1", state="faulty,asleep")
    found = only(tmp_path)
    assert codes(raid.faults(found)) == ["raid_faulty"]
    values = {"array": "md0", "members": Listed(("sda1", "sdb1")), "state": "asleep"}
    assert raid.unknown(found) == (Message("raid_state_unknown", values),)


@each("name", ["array_state", "sync_action", "degraded", "mismatch_cnt"])
@each("text", ["nonsense", ""])
def test_a_state_that_is_missing_or_unknown_is_a_trouble(
    tmp_path: Path, name: str, text: str
) -> None:
    array(tmp_path, **{name: text}).files("sys/block/md0/md/dev-sdb1", state="faulty")
    state = raid.read(tmp_path)
    (trouble,) = state.troubles
    assert str(trouble.values["path"]).endswith(f"md0/md/{name}")
    assert codes(raid.faults(state.arrays[0])) == ["raid_faulty"]


@each("name", ["state", "errors"])
def test_a_file_of_a_member_that_cannot_be_read_is_a_trouble(tmp_path: Path, name: str) -> None:
    array(tmp_path).files("sys/block/md0/md/dev-sda1", **{name: ""})
    (trouble,) = raid.read(tmp_path).troubles
    assert (trouble.code, str(trouble.values["path"])[-12 - len(name) :]) == (
        "sys_unread",
        f"md/dev-sda1/{name}",
    )


@each("text", ["2048\n", "-1 8\n", "2048 8\n4096", "2048 8\n" * 600])
def test_a_list_of_bad_blocks_that_is_not_whole_is_a_trouble(tmp_path: Path, text: str) -> None:
    array(tmp_path).files("sys/block/md0/md/dev-sda1", bad_blocks=text)
    assert codes(raid.read(tmp_path).troubles) == ["no_bad_blocks_in_file"]


def test_a_list_of_bad_blocks_that_cannot_be_read_is_a_trouble(tmp_path: Path) -> None:
    array(tmp_path)
    place = tmp_path / "sys/block/md0/md/dev-sda1/bad_blocks"
    place.unlink()
    place.mkdir()
    assert codes(raid.read(tmp_path).troubles) == ["sys_unread"]


def test_kernels_without_these_files(tmp_path: Path) -> None:
    array(tmp_path)
    for name in ("errors", "bad_blocks"):
        (tmp_path / "sys/block/md0/md/dev-sda1" / name).unlink()
    member = only(tmp_path).members[0]
    assert (member.errors, member.bad_blocks) == (None, None)


# --- what members count ---


def counts(errors: int | None, *bad: tuple[int, int]) -> RaidArray:
    first, second = SOUND.members
    return replace(SOUND, members=(replace(first, errors=errors, bad_blocks=bad), second))


def test_older_counts(tmp_path: Path) -> None:
    tree = array(tmp_path)
    tree.files("sys/block/md0/md/dev-sda1", errors=3, bad_blocks="8 8\n64 1\n")
    values = {"array": "md0", "member": "sda1", "errors": "3", "bad": "9"}
    assert raid.counted((only(tmp_path),)) == (Message("raid_counted", values),)


UNREAD = replace(SOUND, members=(replace(SOUND.members[0], bad_blocks=None),))
READ = replace(SOUND, members=SOUND.members[:1])


@each(
    "before, after, faults, troubles",
    [
        (counts(3, (8, 8)), counts(3, (8, 8)), [], []),
        (counts(3), counts(4), ["raid_errors_grew"], []),
        (counts(3), counts(2), [], ["raid_errors_fell"]),
        (counts(0, (8, 8)), counts(0, (8, 9)), ["raid_bad_blocks_grew"], []),
        # The kernel forgets a block that could be written again: one less and one more.
        (counts(0, (8, 8)), counts(0, (64, 8)), ["raid_bad_blocks_grew"], []),
        (counts(0, (8, 8)), counts(0), [], []),
        (counts(0), counts(None), [], ["raid_count_unread"]),
        (counts(None), counts(0), [], ["raid_count_unread"]),
        (counts(None), counts(None), [], []),
        (SOUND, READ, ["raid_member_vanished"], []),
        (READ, SOUND, [], ["raid_member_new"]),
        (UNREAD, READ, [], ["raid_count_unread"]),
        (READ, UNREAD, [], ["raid_count_unread"]),
        (SOUND, None, ["raid_vanished"], []),
    ],
)
def test_growth(
    before: RaidArray, after: RaidArray | None, faults: list[str], troubles: list[str]
) -> None:
    found = raid.growth(raid.rows((before,)), (after,) if after else ())
    assert (codes(found.faults), codes(found.troubles)) == (faults, troubles)


def test_how_much_grew() -> None:
    found = raid.growth(raid.rows((counts(3, (8, 8)),)), (counts(5, (0, 32)),))
    assert [one.values["count"] for one in found.faults] == ["2", "24"]


KSTAT = "proc/spl/kstat/zfs"


def test_no_pool_and_sound_pools(tmp_path: Path) -> None:
    assert raid.read_pools(tmp_path) == ((), ())
    tree = Tree(tmp_path)
    tree.files(KSTAT, arcstats="1 2 3")
    tree.files(f"{KSTAT}/tank", state="ONLINE\n", txgs="")
    tree.files(f"{KSTAT}/older", io="")
    assert raid.read_pools(tmp_path) == ((), ())


@each("state", ["DEGRADED", "FAULTED", "SUSPENDED", "UNAVAIL", "REMOVED", "OFFLINE", "SPLIT"])
def test_a_pool_that_is_not_sound(tmp_path: Path, state: str) -> None:
    Tree(tmp_path).files(f"{KSTAT}/tank", state=f"{state}\n")
    ((fault,), troubles) = raid.read_pools(tmp_path)
    assert (fault.code, dict(fault.values)) == ("zfs_pool_faulty", {"pool": "tank", "state": state})
    assert troubles == ()


@each("text, code", [("", "sys_unread"), ("TRANSITIONING", "zfs_pool_state_unknown")])
def test_a_state_that_is_not_known_hides_no_fault(tmp_path: Path, text: str, code: str) -> None:
    tree = Tree(tmp_path)
    tree.files(f"{KSTAT}/tank", state=text)
    tree.files(f"{KSTAT}/tub", state="DEGRADED")
    faults, (trouble,) = raid.read_pools(tmp_path)
    assert [one.values["pool"] for one in faults] == ["tub"]
    assert trouble.code == code
