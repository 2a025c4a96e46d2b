"""The checks of disks as functions: reports before and after a run, self-tests, links and RAID."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gpu_machine
import pytest
from cases import each
from machine_tree import Tree
from suite_box import Box

from acceptance.core.message import Gap, Text, Unmeasured, not_permitted
from acceptance.core.parts import SYSTEM, Component, Part
from acceptance.machine.inventory import Disk
from acceptance.machine.thresholds import thresholds
from acceptance.observe import smart
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.session.check import Check, CheckSkipped
from acceptance.suites import storage
from acceptance.wording import words
from acceptance.wording.errors import WordedError

SDA: Component = Part("disk", "sda")
NVME: Component = Part("disk", "nvme0n1")
DISKS = (
    Disk("sda", "M", "S1", 1, "hdd", "sata", None),
    Disk("nvme0n1", "N", "S2", 1, "nvme", "nvme", None),
)
OVER = Deadline.after(0.0)


class Machine:
    """Stands for the inventory."""

    disks = DISKS
    writable: tuple[str, ...] | None = None


MACHINE: Any = Machine()


class Recorder(Check):
    """Stands for `check`: everything is due of both disks, and every call is remembered."""

    def __init__(self, *due: Component) -> None:
        self._due = frozenset(due or (SDA, NVME))
        self.readings: dict[Component, float] = {}
        self.skipped: dict[Component, str] = {}
        self.gaps: dict[Component, Unmeasured] = {}
        self.notes: dict[Component, str] = {}

    def components(self, _measurement: str) -> frozenset[Component]:
        return self._due

    def due(self, _measurement: str) -> list[Any]:
        return [type("Due", (), {"component": one}) for one in self._due]

    def __call__(
        self,
        _measurement: str,
        readings: Mapping[Component, float],
        *,
        skipped: Mapping[Component, Gap] | None = None,
        serials: object = None,
        notes: Mapping[Component, Text | None] | None = None,
        follows: str | None = None,
    ) -> None:
        self.readings.update(readings)
        self.skipped.update(
            {
                one: words.text(gap.reason)
                for one, gap in (skipped or {}).items()
                if one not in readings
            }
        )
        self.gaps.update(
            {one: gap.why for one, gap in (skipped or {}).items() if one not in readings}
        )
        self.notes.update({one: words.text(note) for one, note in (notes or {}).items() if note})


def report(status: int = 0, serial: str = "S2", media: int = 0, **parts: Any) -> ProgramResult:
    health = {"critical_warning": 0, "media_errors": media, "percentage_used": 1}
    sound = {
        "smart_status": {"passed": True},
        "serial_number": serial,
        "power_on_time": {"hours": 900},
        "nvme_smart_health_information_log": health,
    }
    return printed(status, **{**sound, **parts})


def printed(status: int = 0, **parts: Any) -> ProgramResult:
    text = json.dumps({"smartctl": {"exit_status": status}, **parts})
    return ProgramResult(("smartctl", "--json=o", "-a", "/dev/nvme0n1"), status, text, "", 0.1)


def gone() -> ProgramResult:
    why = "Smartctl open device: /dev/nvme0n1 failed: No such device"
    text = {"smartctl": {"exit_status": 2, "messages": [{"string": why}]}}
    return ProgramResult(("smartctl", "-a", "/dev/nvme0n1"), 2, json.dumps(text), "", 0.1)


def always(_path: str) -> bool:
    return True


def of_run(*ran: ProgramResult) -> storage.EarlierPrograms:
    return lambda _check: ran


def health(before: Sequence[ProgramResult], after: ProgramResult) -> Recorder:
    check: Any = Recorder(NVME)
    storage.test_health(MACHINE, lambda _disk: after, of_run(*before), always, check)
    found: Recorder = check
    return found


def told(why: str, status: int = 2) -> ProgramResult:
    text = {"smartctl": {"exit_status": status, "messages": [{"string": why}]}}
    return ProgramResult(("smartctl", "-a", "/dev/nvme0n1"), status, json.dumps(text), "", 0.1)


NO_REPORT = told("/dev/nvme0n1: Unable to detect device type", 1)
REFUSED = told("Smartctl open device: /dev/nvme0n1 failed: Permission denied")
BROKEN = told("Read NVMe Identify Controller failed: Input/output error")


def first_look(answer: ProgramResult, *files: str) -> Recorder:
    """What the check of the reports says where these files are there, and no others."""
    check: Any = Recorder()
    storage.test_smart_health(MACHINE, lambda _disk: answer, lambda path: path in files, check)
    found: Recorder = check
    return found


BLOCKS = ("sys/block/sda", "sys/block/nvme0n1")


@each(
    "answer, files, why",
    [
        (NO_REPORT, BLOCKS, Unmeasured.NOT_OFFERED),
        (REFUSED, BLOCKS, Unmeasured.NOT_PERMITTED),
        (BROKEN, BLOCKS, Unmeasured.NO_ANSWER),
        # of a container without device nodes smartctl says what it says of a disk that is gone
        (gone(), BLOCKS, Unmeasured.NOT_PERMITTED),
        (gone(), (*BLOCKS, "dev/sda"), Unmeasured.NO_ANSWER),
    ],
)
def test_a_disk_without_a_report_may_not_be_read_or_fails_to_answer(
    answer: ProgramResult, files: tuple[str, ...], why: Unmeasured
) -> None:
    check = first_look(answer, *files)
    assert check.readings == {}
    assert set(check.gaps.values()) == {why}


@each("answer", [NO_REPORT, BROKEN, gone()])
def test_a_disk_that_the_kernel_does_not_show_any_more_is_a_fault(answer: ProgramResult) -> None:
    check = first_look(answer, "sys/block/sda", "dev/sda")
    assert check.readings == {NVME: 1.0}
    assert "does not any more" in check.notes[NVME]


def test_smartctl_that_is_not_installed_is_a_cure_and_no_fault() -> None:
    def missing(_disk: Disk) -> ProgramResult:
        raise CheckSkipped(not_permitted("install smartctl"))

    check: Any = Recorder()
    storage.test_smart_health(MACHINE, missing, always, check)
    assert set(check.gaps.values()) == {Unmeasured.NOT_PERMITTED}


def failing(**parts: Any) -> ProgramResult:
    return report(**{"status": 8, "smart_status": {"passed": False}, **parts})


OTHER_DISK = printed(8, smart_status={"passed": False}, serial_number="S3")


@each(
    "before, after, fault, note",
    [
        (report(), report(), 0.0, None),
        (report(media=1), report(media=3), 1.0, "2 media errors since the run began"),
        (report(), gone(), 1.0, "it was there before the run and is gone now"),
        (report(), failing(), 1.0, "the disk's own SMART status is FAILED"),
        (failing(), failing(), 0.0, None),  # told before the run alone
        # evidence, whatever became of the rest of the report
        (report(), OTHER_DISK, 1.0, "no longer readable after the run"),
    ],
)
def test_what_became_of_a_disk(
    before: ProgramResult, after: ProgramResult, fault: float, note: str | None
) -> None:
    check = health([before], after)
    assert (check.readings, check.skipped) == ({NVME: fault}, {})
    assert (note or "") in check.notes.get(NVME, "")
    assert (note is None) == (check.notes == {})


UNTOLD = (
    "nvme_smart_health_information_log, power_on_time, critical_warning, media_errors, "
    "percentage_used, power_on_hours"
)
ANSWERED = "it answered earlier in this run"
BARE = printed(smart_status={"passed": True}, serial_number="S2")


@each(
    "before, after, why, text",
    [
        ([], report(), Unmeasured.NO_ANSWER, "there is no report of it from before the run"),
        ([gone()], report(), Unmeasured.NO_ANSWER, "the disk is not there"),
        # reports that cannot be compared
        ([report()], report(serial="S3"), Unmeasured.NO_ANSWER, "S2, the one after it of S3"),
        ([report()], ProgramResult(("x",), 0, "no", "", 0.1), Unmeasured.NO_ANSWER, "no JSON"),
        ([report()], report(status=2), Unmeasured.NO_ANSWER, "smartctl ended with exit code 2"),
        ([report()], BARE, Unmeasured.NO_ANSWER, UNTOLD),
        *(
            ([report()], one, Unmeasured.NO_ANSWER, ANSWERED)
            for one in (NO_REPORT, REFUSED, BROKEN)
        ),
        # disks without a report
        ([NO_REPORT], NO_REPORT, Unmeasured.NOT_OFFERED, ""),
        ([REFUSED], REFUSED, Unmeasured.NOT_PERMITTED, ""),
        ([BROKEN], BROKEN, Unmeasured.NO_ANSWER, ""),
        ([], NO_REPORT, Unmeasured.NOT_OFFERED, ""),
        ([], REFUSED, Unmeasured.NOT_PERMITTED, ""),
    ],
)
def test_growth_that_is_not_known(
    before: list[ProgramResult], after: ProgramResult, why: Unmeasured, text: str
) -> None:
    check = health(before, after)
    assert (check.readings, check.gaps) == ({}, {NVME: why})
    assert text in check.skipped[NVME]


@each("before", [[report()], [NO_REPORT], []])
def test_a_disk_that_went_is_a_fault_after_the_run(before: list[ProgramResult]) -> None:
    """Of a virtual disk smartctl says what it said before."""
    check: Any = Recorder(NVME)
    storage.test_health(
        MACHINE, lambda _disk: NO_REPORT, of_run(*before), lambda _path: False, check
    )
    assert check.readings == {NVME: 1.0}


# --- self-tests ---


def self_tested(*codes: int, running: int = 0) -> ProgramResult:
    rows = [
        {
            "self_test_code": {"value": 1, "string": "Short"},
            "self_test_result": {"value": code, "string": f"Result {code}"},
            "power_on_hours": 900,
        }
        for code in codes
    ]
    log: dict[str, Any] = {"current_self_test_operation": {"value": running}, "table": rows}
    if running:
        log["current_self_test_completion_percent"] = 40
    return report(nvme_self_test_log=log)


def started(status: int = 0) -> ProgramResult:
    text = json.dumps({"smartctl": {"exit_status": status}})
    return ProgramResult(("smartctl", "-j", "-t", "short", "/dev/nvme0n1"), status, text, "", 0.1)


@each(
    "answer, start, begun, note",
    [
        (self_tested(), started(), 1.0, "it takes up to 2 minutes by the disk's own word"),
        (self_tested(), started(4), 0.0, "a command to the disk failed"),
        (
            self_tested(running=1),
            started(),
            0.0,
            "a self-test of somebody else is running (40 % done)",
        ),
        (report(), started(), 0.0, "the disk has no self-test, or smartctl is too old"),
    ],
)
def test_self_tests_are_begun(
    answer: ProgramResult, start: ProgramResult, begun: float, note: str
) -> None:
    check: Any = Recorder(NVME)
    storage.test_self_test_begun(MACHINE, lambda _disk: answer, lambda _disk: start, always, check)
    assert check.readings == {NVME: begun}
    assert note in check.notes[NVME]


@each("answer, start", [(report(status=2), started()), (self_tested(), started(2))])
def test_a_disk_that_cannot_be_asked(answer: ProgramResult, start: ProgramResult) -> None:
    check: Any = Recorder(NVME)
    storage.test_self_test_begun(MACHINE, lambda _disk: answer, lambda _disk: start, always, check)
    assert check.readings == {}
    assert "exit code 2" in check.skipped[NVME]


def ended(
    before: Sequence[ProgramResult], *after: ProgramResult, waited: list[float] | None = None
) -> Recorder:
    check: Any = Recorder(NVME)
    answers = list(after)
    storage.test_self_test(
        MACHINE,
        lambda _disk: answers.pop(0) if len(answers) > 1 else answers[0],
        of_run(*before),
        OVER if len(after) == 1 else Deadline.after(1000.0),
        ([] if waited is None else waited).append,
        always,
        check,
    )
    found: Recorder = check
    return found


BEGUN = [self_tested(), started()]


@each(
    "before, after, faults, note",
    [
        (BEGUN, self_tested(0), 0.0, None),
        ([self_tested(0), started()], self_tested(7, 0), 1.0, "failed with code 7: Result 7"),
        ([report()], report(), 0.0, "no self-test was begun in this run"),
        ([self_tested(), started(4)], self_tested(), 0.0, "no self-test was begun in this run"),
        # what proves nothing
        (BEGUN, self_tested(running=1), None, "has not ended (40 % done)"),
        (BEGUN, self_tested(), None, "its log has no result of it"),
        (BEGUN, self_tested(2), None, "was aborted (Result 2)"),
        (BEGUN, gone(), None, ""),
        ([], self_tested(), None, "there is no report of it from before the run"),
        ([gone(), started()], self_tested(), None, "the disk is not there"),
    ],
)
def test_results(
    before: list[ProgramResult], after: ProgramResult, faults: float | None, note: str | None
) -> None:
    check = ended(before, after)
    assert check.readings == ({} if faults is None else {NVME: faults})
    assert check.gaps == ({NVME: Unmeasured.NO_ANSWER} if faults is None else {})
    told = check.skipped if faults is None else check.notes
    assert (note or "") in told.get(NVME, "")
    assert (note is None) == (told == {})


def test_a_self_test_that_still_runs_is_waited_for() -> None:
    waited: list[float] = []
    answers = self_tested(running=1), self_tested(running=1), self_tested(0)
    check = ended([self_tested(), started()], *answers, waited=waited)
    assert check.readings == {NVME: 0.0}
    assert waited == [storage.POLL_S] * 2


# --- links and RAID ---


def test_links(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    function = "sys/devices/pci0000:00/0000:00:01.0/0000:04:00.0"
    device = tree.disk("nvme0n1", "pci0000:00/0000:00:01.0/0000:04:00.0/nvme/nvme0")
    tree.link(f"{device}/device", function)
    tree.files(
        function,
        current_link_speed="16.0 GT/s PCIe",
        current_link_width=2,
        max_link_speed="16.0 GT/s PCIe",
        max_link_width=4,
    )
    check: Any = Recorder()
    storage.test_link(MACHINE, tmp_path, check)
    assert check.readings == {NVME: 0.5}
    assert "runs at generation 4 x2" in check.notes[NVME]
    assert "the kernel does not show the disk's link" in check.skipped[SDA]


def test_a_link_that_was_shown_before_the_run(tmp_path: Path) -> None:
    inventory: Any = Machine()
    inventory.disks = (replace(DISKS[1], shows_link=True),)
    check: Any = Recorder(NVME)
    storage.test_link(inventory, tmp_path, check)
    assert (check.readings, check.gaps) == ({}, {NVME: Unmeasured.NO_ANSWER})


@each(
    "before, mounted, count, note",
    [
        (("/dev/sda1",), "rw - ext4 /dev/sda1 rw", 0.0, None),
        (("/dev/sda1",), "rw - ext4 /dev/sda1 ro", 1.0, "read-only now: /dev/sda1"),
        ((), "rw - ext4 /dev/sda1 ro", 0.0, None),  # it was before
        (("/dev/sdb1",), "rw - ext4 /dev/sda1 rw", 0.0, "not mounted any more: /dev/sdb1"),
    ],
)
def test_filesystems(
    tmp_path: Path, before: tuple[str, ...], mounted: str, count: float, note: str | None
) -> None:
    Tree(tmp_path).write("proc/self/mountinfo", f"27 1 8:1 / / {mounted}\n")
    inventory, check = Machine(), Recorder(SYSTEM)
    inventory.writable = before
    storage.test_filesystems(inventory, tmp_path, check)  # type: ignore[arg-type]
    assert check.readings == {SYSTEM: count}
    assert check.notes.get(SYSTEM) == note


def raid_tree(root: Path, **files: str | int) -> Tree:
    """A sound array of two disks, beside a disk of none."""
    tree = Tree(root)
    tree.files("sys/block/sda", size=1)
    sound: dict[str, str | int] = {
        "level": "raid1",
        "array_state": "clean",
        "degraded": 0,
        "sync_action": "idle",
        "mismatch_cnt": 0,
    }
    tree.files("sys/block/md0/md", **{**sound, **files})
    for name in ("dev-sdb", "dev-sdc"):
        tree.files(f"sys/block/md0/md/{name}", state="in_sync", errors=0, bad_blocks="")
    return tree


def test_raid(tmp_path: Path) -> None:
    Tree(tmp_path / "none").files("sys/block/sda", size=1)
    sound: Any = Recorder()
    storage.test_raid(tmp_path / "none", sound)
    assert (sound.readings, sound.notes) == ({SYSTEM: 0.0}, {})
    raid_tree(tmp_path, degraded=1, sync_action="recover")
    broken: Any = Recorder()
    storage.test_raid(tmp_path, broken)
    assert broken.readings == {SYSTEM: 1.0}
    assert broken.notes[SYSTEM] == (
        "md0 (raid1) is degraded: members missing: 1; "
        "md0 (raid1) is busy with recover: disks are slower meanwhile"
    )


@pytest.mark.parametrize(("passes", "due"), [(True, 0.0), (False, 1.0)])
def test_a_raid_member_that_is_blocked_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: bool, due: float
) -> None:
    tree = raid_tree(tmp_path)
    tree.files("sys/block/md0/md/dev-sdb", state="in_sync,blocked")
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if passes:
            tree.files("sys/block/md0/md/dev-sdb", state="in_sync")

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", sleep)
    check: Any = Recorder()
    storage.test_raid(tmp_path, check)
    assert check.readings == {SYSTEM: due}
    assert now[0] == (storage.RAID_POLL_S if passes else thresholds().raid.blocked_s)


def test_a_zfs_pool_counts_as_an_array(tmp_path: Path) -> None:
    raid_tree(tmp_path).files("proc/spl/kstat/zfs/tank", state="DEGRADED")
    check: Any = Recorder()
    storage.test_raid(tmp_path, check)
    assert check.readings == {SYSTEM: 1.0}


def test_what_is_not_known_of_a_raid_is_an_error_beside_its_faults(tmp_path: Path) -> None:
    tree = raid_tree(tmp_path, degraded=1)
    tree.files("sys/block/md0/md/dev-sdb", state="in_sync,asleep")
    check: Any = Recorder()
    with pytest.raises(WordedError, match="asleep"):
        storage.test_raid(tmp_path, check)
    assert check.readings == {SYSTEM: 1.0}


def test_what_raid_members_counted_before_and_during_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts after the loads are held against those that the session before them kept."""
    box = Box(tmp_path, monkeypatch, gpu_machine.machine())
    tree = raid_tree(box.product.root)
    tree.files("sys/block/md0/md/dev-sdb", errors=7)
    before, growth = "storage.raid_before", "storage.raid_growth"
    assert box.run(before, growth, names=(), name="host-before") == {before: "pass"}
    assert box.measured("raid_errors") == {SYSTEM: 1.0}
    tree.files("sys/block/md0/md/dev-sdc", bad_blocks="64 8\n")
    assert box.run(before, growth, names=(), name="host-after") == {growth: "fail"}
    assert box.measured("raid_growth") == {SYSTEM: 1.0}


def test_growth_without_a_look_before_the_run_is_not_known(tmp_path: Path) -> None:
    raid_tree(tmp_path)
    check: Any = Recorder()
    with pytest.raises(WordedError) as caught:
        storage.test_raid_growth(tmp_path, lambda _: (), check)
    assert caught.value.message.code == "raid_unread_before"
    assert check.readings == {}


def test_a_disk_that_is_gone_before_the_run_is_only_not_read() -> None:
    with pytest.raises(smart.DiskVanished):
        smart.parse(gone().stdout, 2)
