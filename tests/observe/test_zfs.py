from __future__ import annotations

from pathlib import Path

from cases import each
from machine_tree import Tree

from acceptance.observe import zfs

KSTAT = "proc/spl/kstat/zfs"


def test_no_pool_and_sound_pools(tmp_path: Path) -> None:
    assert zfs.read(tmp_path) == ((), ())
    tree = Tree(tmp_path)
    tree.files(KSTAT, arcstats="1 2 3")
    tree.files(f"{KSTAT}/tank", state="ONLINE\n", txgs="")
    tree.files(f"{KSTAT}/older", io="")
    assert zfs.read(tmp_path) == ((), ())


@each("state", ["DEGRADED", "FAULTED", "SUSPENDED", "UNAVAIL", "REMOVED", "OFFLINE", "SPLIT"])
def test_a_pool_that_is_not_sound(tmp_path: Path, state: str) -> None:
    Tree(tmp_path).files(f"{KSTAT}/tank", state=f"{state}\n")
    ((fault,), troubles) = zfs.read(tmp_path)
    assert (fault.code, dict(fault.values)) == ("zfs_pool_faulty", {"pool": "tank", "state": state})
    assert troubles == ()


@each("text, code", [("", "sys_unread"), ("TRANSITIONING", "zfs_pool_state_unknown")])
def test_a_state_that_is_not_known_hides_no_fault(tmp_path: Path, text: str, code: str) -> None:
    tree = Tree(tmp_path)
    tree.files(f"{KSTAT}/tank", state=text)
    tree.files(f"{KSTAT}/tub", state="DEGRADED")
    faults, (trouble,) = zfs.read(tmp_path)
    assert [one.values["pool"] for one in faults] == ["tub"]
    assert trouble.code == code
