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
import suite_box
from cases import each
from machine_tree import Tree
from suite_box import Box

from acceptance.core.message import Text
from acceptance.core.parts import SYSTEM, Component, Part
from acceptance.core.unmeasured import Gap, Unmeasured, not_permitted
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


def test_a_disk_that_stayed_as_it_was() -> None:
    check = health([report()], report())
    assert (check.readings, check.notes, check.skipped) == ({NVME: 0.0}, {}, {})


def test_what_grew_is_counted_and_told() -> None:
    check = health([report(media=1)], report(media=3))
    assert check.readings == {NVME: 1.0}
    assert check.notes == {NVME: "2 media errors since the run began"}


def test_a_disk_that_vanished_is_a_fault() -> None:
    check = health([report()], gone())
    assert check.readings == {NVME: 1.0}
    assert check.notes[NVME].startswith("it was there before the run and is gone now")


@each(
    "before, after, why",
    [
        ([], report(), "there is no report of it from before the run"),
        ([gone()], report(), "the disk is not there"),
    ],
)
def test_a_report_that_is_missing(
    before: list[ProgramResult], after: ProgramResult, why: str
) -> None:
    check = health(before, after)
    assert check.readings == {}
    assert why in check.skipped[NVME]


@each(
    "after, why",
    [
        (report(serial="S3"), "serial number S2, the one after it of S3"),
        (ProgramResult(("smartctl",), 0, "nothing", "", 0.1), "no JSON"),
        (report(status=2), "smartctl ended with exit code 2"),
        (
            printed(smart_status={"passed": True}, serial_number="S2"),
            "nvme_smart_health_information_log, power_on_time, critical_warning, media_errors, "
            "percentage_used, power_on_hours",
        ),
    ],
)
def test_reports_that_cannot_be_compared(after: ProgramResult, why: str) -> None:
    check = health([report()], after)
    assert check.readings == {}
    assert check.gaps == {NVME: Unmeasured.NO_ANSWER}
    assert why in check.skipped[NVME]


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


@each("after", [NO_REPORT, REFUSED, BROKEN])
def test_a_report_that_was_readable_before_the_run_failed_to_answer(after: ProgramResult) -> None:
    check = health([report()], after)
    assert check.readings == {}
    assert check.gaps == {NVME: Unmeasured.NO_ANSWER}
    assert "it answered earlier in this run" in check.skipped[NVME]


@each(
    "before, after, why",
    [
        ([NO_REPORT], NO_REPORT, Unmeasured.NOT_OFFERED),
        ([REFUSED], REFUSED, Unmeasured.NOT_PERMITTED),
        ([BROKEN], BROKEN, Unmeasured.NO_ANSWER),
        ([], NO_REPORT, Unmeasured.NOT_OFFERED),
        ([], REFUSED, Unmeasured.NOT_PERMITTED),
        ([], report(), Unmeasured.NO_ANSWER),
    ],
)
def test_growth_of_a_disk_without_a_report(
    before: list[ProgramResult], after: ProgramResult, why: Unmeasured
) -> None:
    assert health(before, after).gaps == {NVME: why}


@each("before", [[report()], [NO_REPORT], []])
def test_a_disk_that_went_is_a_fault_after_the_run(before: list[ProgramResult]) -> None:
    """Of a virtual disk smartctl says what it said before."""
    check: Any = Recorder(NVME)
    storage.test_health(
        MACHINE, lambda _disk: NO_REPORT, of_run(*before), lambda _path: False, check
    )
    assert check.readings == {NVME: 1.0}


def failing(**parts: Any) -> ProgramResult:
    return report(**{"status": 8, "smart_status": {"passed": False}, **parts})


def test_a_disk_that_was_sound_before_the_run_is_judged_by_the_same_rules_after_it() -> None:
    check = health([report()], failing())
    assert check.readings == {NVME: 1.0}
    assert check.notes == {NVME: "the disk's own SMART status is FAILED"}


def test_a_fault_from_before_the_run_is_told_there_alone() -> None:
    check = health([failing()], failing())
    assert (check.readings, check.notes) == ({NVME: 0.0}, {})


def test_a_fault_is_evidence_whatever_became_of_the_rest_of_the_report() -> None:
    check = health([report()], printed(8, smart_status={"passed": False}, serial_number="S3"))
    assert check.readings == {NVME: 1.0}
    assert "no longer readable after the run" in check.notes[NVME]


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


@each(
    "before, after, faults, note",
    [
        ([self_tested(), started()], self_tested(0), 0.0, None),
        ([self_tested(0), started()], self_tested(7, 0), 1.0, "failed with code 7: Result 7"),
        ([report()], report(), 0.0, "no self-test was begun in this run"),
        ([self_tested(), started(4)], self_tested(), 0.0, "no self-test was begun in this run"),
    ],
)
def test_results(
    before: list[ProgramResult], after: ProgramResult, faults: float, note: str | None
) -> None:
    check = ended(before, after)
    assert check.readings == {NVME: faults}
    assert (note or "") in check.notes.get(NVME, "")
    assert (note is None) == (NVME not in check.notes)


@each(
    "before, after, why",
    [
        ([self_tested(), started()], self_tested(running=1), "has not ended (40 % done)"),
        ([self_tested(), started()], self_tested(), "its log has no result of it"),
        ([self_tested(), started()], self_tested(2), "was aborted (Result 2)"),
    ],
)
def test_a_self_test_that_proves_nothing_is_an_error(
    before: list[ProgramResult], after: ProgramResult, why: str
) -> None:
    check = ended(before, after)
    assert check.readings == {}
    assert check.gaps == {NVME: Unmeasured.NO_ANSWER}
    assert why in check.skipped[NVME]


@each(
    "before, after, why",
    [
        ([], self_tested(), "there is no report of it from before the run"),
        ([gone(), started()], self_tested(), "the disk is not there"),
    ],
)
def test_self_tests_of_a_disk_that_was_not_asked(
    before: list[ProgramResult], after: ProgramResult, why: str
) -> None:
    check = ended(before, after)
    assert check.readings == {}
    assert why in check.skipped[NVME]


def test_a_disk_that_does_not_answer_any_more_has_no_result() -> None:
    check = ended([self_tested(), started()], gone())
    assert (check.readings, check.gaps) == ({}, {NVME: Unmeasured.NO_ANSWER})


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
    with pytest.raises(WordedError):
        storage.test_raid_growth(tmp_path, lambda _: (), check)
    assert check.readings == {}


def test_a_disk_that_is_gone_before_the_run_is_only_not_read() -> None:
    with pytest.raises(smart.DiskVanished):
        smart.parse(gone().stdout, 2)


# --- real sessions ---


def test_the_sessions_before_and_after_the_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the session after the loads compares is what the one before them kept."""
    monkeypatch.setattr(suite_box, "LOADS_S", {"disk_self_test": 1.0})
    disk = replace(DISKS[1], serial="S2")
    box = Box(tmp_path, monkeypatch, replace(gpu_machine.machine(), disks=(disk,)))
    before = self_tested().stdout
    after = self_tested(7).stdout.replace('"media_errors": 0', '"media_errors": 3')
    box.tool("smartctl", before, before, started().stdout, after, after)
    begun = "storage.self_test_begun"
    only = ("storage.smart_health", begun, "storage.self_test", "storage.health")
    assert box.run(*only, names=(), name="host-before") == {only[0]: "pass", begun: "pass"}
    assert box.measured("disk_self_test_begun") == {NVME: 1.0}
    assert box.run(*only, names=(), name="host-after") == {only[2]: "fail", only[3]: "fail"}
    assert box.measured("disk_growth") == box.measured("disk_self_test_faults") == {NVME: 1.0}
