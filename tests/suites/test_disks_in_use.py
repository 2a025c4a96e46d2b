"""Reports of disks in sound use raise no alarm: each goes through the real checks, with their real
limits, as the index of fixtures/recordings/smartctl says.
"""

from __future__ import annotations

import functools
import json
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import gpu_machine
import suite_box
from cases import each
from suite_box import Said

from acceptance.core.plan import Plan
from acceptance.core.record import Measured
from acceptance.machine.inventory import Disk, Inventory
from acceptance.machine.machine_file import DeclaredDisk, Machine
from acceptance.observe import smart
from acceptance.process.command import ProgramResult
from acceptance.suites import storage

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings/smartctl"
ENTRIES: list[dict[str, Any]] = tomllib.loads((RECORDINGS / "INDEX.toml").read_text())["recording"]
# Of our own machines, in the index one folder up.
OWN = {"virtio_no_smart_7.3.json.txt", "virtio_permission_denied_7.3.json.txt"}
HEALTH, GROWTH = "storage.smart_health", "storage.health"


def printed(name: str) -> ProgramResult:
    """What smartctl printed, with the exit status that the report itself tells."""
    text = (RECORDINGS / name).read_text()
    document = json.loads(text)
    argv = ("smartctl", "--json=o", "-a", f"/dev/{disk_of(document).name}")
    return ProgramResult(argv, document["smartctl"]["exit_status"], text, "", 0.1)


def disk_of(document: dict[str, Any]) -> Disk:
    serial = document["serial_number"]
    if document["device"]["protocol"] == "NVMe":
        return Disk("nvme0n1", "M", serial, 1, "nvme", "nvme", None)
    return Disk("sda", "M", serial, 1, "hdd", "sata", None)


@functools.cache
def plan_for(kind: str, *, new: bool = False) -> Plan:
    name = "nvme0n1" if kind == "nvme" else "sda"
    disk = Disk(name, "M", "S", 1, kind, None, None)
    declared = Machine(schema=1, name="m", disk=(DeclaredDisk("M", new=True),)) if new else None
    return suite_box.planned(machine_with(disk), (), (HEALTH, GROWTH), "digest", declared)


def machine_with(disk: Disk) -> Inventory:
    return replace(gpu_machine.machine(), disks=(disk,))


def asked(report: ProgramResult, *, new: bool = False) -> Said:
    """What the check of the report says of a disk, which may be declared as new."""
    disk = disk_of(json.loads(report.stdout))
    return suite_box.ask(
        plan_for(str(disk.kind), new=new),
        HEALTH,
        storage.test_smart_health,
        inventory=machine_with(disk),
        smart_report=lambda _disk: report,
        exists=lambda _path: True,
    )


def judged(before: ProgramResult, after: ProgramResult) -> tuple[Disk, Said, Said]:
    """What the check of the report, and that of its growth during the run, say of a disk."""
    disk = disk_of(json.loads(before.stdout))
    inventory, plan = machine_with(disk), plan_for(str(disk.kind))
    health = asked(before)
    growth = suite_box.ask(
        plan,
        GROWTH,
        storage.test_health,
        inventory=inventory,
        smart_report=lambda _disk: after,
        earlier_programs=lambda _check: (before,),
        exists=lambda _path: True,
    )
    return disk, health, growth


def test_the_index_names_every_report_once() -> None:
    named = [path for one in ENTRIES for path in (one["path"], one.get("later")) if path]
    found = sorted(path.name for path in RECORDINGS.iterdir())
    assert found == sorted([*named, *OWN, "INDEX.toml"])
    for entry in ENTRIES:
        assert entry["outcome"] in {"pass", "no report"}
        assert all(entry[key] for key in ("source", "disk", "age", "sound", "expect"))


@each("entry", ENTRIES, told=lambda entry: entry["path"])
def test_a_disk_in_sound_use_raises_no_alarm(entry: dict[str, Any]) -> None:
    before = printed(entry["path"])
    disk, health, growth = judged(before, printed(entry.get("later", entry["path"])))
    assert (health.outcome, growth.outcome) == ("pass", "pass"), (health, growth)
    found = (health.measured("disk_faults"), growth.measured("disk_growth"))
    if entry["outcome"] == "no report":
        assert found == ({}, {})
        assert ("disk_faults", disk.component) in health.skipped()
        assert ("disk_growth", disk.component) in growth.skipped()
        return
    assert found == ({disk.component: 0.0}, {disk.component: 0.0})
    assert health.measured("disk_warnings") == {disk.component: 0.0}
    assert health.measured("disk_lifetime_faults") == {}
    read = smart.parse(before.stdout, before.returncode)
    known = {field.name for field in fields(read)}
    assert entry["reads"].keys() <= known
    told = {name: None if value == "absent" else value for name, value in entry["reads"].items()}
    assert {name: getattr(read, name) for name in told} == told
    assert read.passed


# --- declared as new ---

LIKE_NEW = (
    "nvme_micron_7450_7.3.json.txt",
    "sas_wd_hc530_new_decimal_commas_7.3.json.txt",
    "sata_wd_14tb_new_self_test_in_progress_7.0.json.txt",
)
NOT_NEW = (
    "nvme_intel_p3700_six_years_half_worn_7.3.json.txt",
    "sata_seagate_7200.12_five_years_one_reallocated_7.3.json.txt",
    "sata_samsung_860_evo_device_statistics_7.0.json.txt",
)


@each("name", [*LIKE_NEW, *NOT_NEW])
def test_a_disk_that_is_declared_as_new(name: str) -> None:
    said = asked(printed(name), new=True)
    used = name in NOT_NEW
    assert said.outcome == ("fail" if used else "pass")
    assert list(said.measured("disk_lifetime_faults").values()) == [float(used)]
    assert list(said.measured("disk_faults").values()) == [0.0]


@each("new", [False, True])
def test_a_report_of_the_status_alone_proves_nothing_of_a_new_disk(new: bool) -> None:
    name = LIKE_NEW[1]
    document = json.loads((RECORDINGS / name).read_text())
    kept = ("smartctl", "smart_status", "device", "serial_number")
    text = json.dumps({key: document[key] for key in kept})
    said = asked(replace(printed(name), stdout=text), new=new)
    (disk,) = said.measured("disk_faults")
    assert said.outcome == ("error" if new else "pass")
    assert said.measured("disk_warnings") == {disk: 1.0}
    assert said.measured("disk_lifetime_faults") == {}
    assert (("disk_lifetime_faults", disk) in said.skipped()) is new


@each("used, grew, told", [(99, "pass", 0), (100, "pass", 1)])
def test_what_warns_after_the_run_alone_is_said(used: int, grew: str, told: int) -> None:
    before = printed(LIKE_NEW[0])
    document = json.loads(before.stdout)
    document["nvme_smart_health_information_log"]["percentage_used"] = used
    _, _, growth = judged(before, replace(before, stdout=json.dumps(document)))
    assert growth.outcome == grew
    notes = [body.note for body in growth.written if isinstance(body, Measured)]
    assert len([note for note in notes if note is not None]) == told
