"""The storage checks in real sessions: a program `fio` on the PATH that prints what its own command
line asks for and moves the kernel's counters, on filesystems that are folders of the tests.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gpu_machine
import pytest
import storage_printed
import suite_box
from journals import entries
from load_texts import printed
from machine_tree import Tree
from storage_printed import RATES, options
from suite_box import Box

from acceptance.core.evidence import PartBegan, Scratch, Table
from acceptance.core.fold import fold
from acceptance.core.limit import GIB, MIB
from acceptance.core.parts import Component, Part
from acceptance.core.record import RunEnded, RunStarted, SessionEnded
from acceptance.core.verdict import Verdict
from acceptance.expect import disk_sheet
from acceptance.journal import segment
from acceptance.loads import asks
from acceptance.loads.asks import AnyAsk
from acceptance.loads.storage.contract import OnDisk
from acceptance.machine import scratch_place
from acceptance.machine.inventory import Disk
from acceptance.run import planning
from acceptance.suites.fixtures import storage as storage_fixtures

NVME: Component = Part("disk", "nvme0n1")
SDA: Component = Part("disk", "sda")
DISKS = (
    Disk("nvme0n1", "Samsung SSD 990 PRO 2TB", "S1", 2_000_398_934_016, "nvme", "nvme", None),
    Disk("sda", "Some disk", "S2", 1 << 40, "ssd", "sata", None),
)
LOADS = ("kept", "keep", "memmap", "feed", "checkpoint")
TIMED = ("storage_memmap", "storage_feed")  # these take their whole time
LOADS_S = dict.fromkeys(
    (*storage_fixtures.LOADS.values(), *(f"storage_{one}" for one in LOADS)), 2.0
)
LOADS_S |= dict.fromkeys(TIMED, 0.1)
WRITE_BYTES = 112 * MIB  # of which fio has 32, and 4 for the first of them
FIO = ("storage.write", "storage.verify", "storage.read", "storage.write_random")
LINK = "sys/devices/pci0000:00/0000:00:01.0/0000:04:00.0"


class Disks:
    """A machine with two disks, a filesystem on each, and what fio and the loads say there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(suite_box, "LOADS_S", LOADS_S)
        self.box = Box(folder, monkeypatch, replace(gpu_machine.machine(), disks=DISKS))
        self.tree = Tree(self.box.product.root)
        device = self.tree.disk("nvme0n1", f"{LINK.removeprefix('sys/devices/')}/nvme/nvme0")
        self.tree.link(f"{device}/device", LINK)
        self.link(4)
        self.tree.disk("sda", "pci0000:00/0000:00:17.0/ata1/host1")
        self.folder, self.state = folder, folder / "state.json"
        self.told: dict[str, Any] = {"answers": [], "rates": {}, "stats": {}}
        program = self.box.bin / "fio"
        command = [sys.executable, "-S", storage_printed.__file__, str(self.state), "fio"]
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)

    def link(self, width: int) -> None:
        """The link of the NVMe disk as it is now."""
        speed = "16.0 GT/s PCIe"
        self.tree.files(
            LINK,
            current_link_speed=speed,
            current_link_width=width,
            max_link_speed=speed,
            max_link_width=4,
        )

    def scratch(self, component: Component, **changed: Any) -> Scratch:
        """A filesystem on a disk of which the kernel counts what fio moves there."""
        name = str(component).partition(":")[2]
        place = Path(changed.get("path", self.folder / name))
        Path(scratch_place.run_folder(str(place), self.box.product.run_dir.name)).mkdir(
            mode=0o700, parents=True, exist_ok=True
        )
        stat = f"sys/class/block/{name}/stat"
        self.tree.write(stat, " ".join(["0"] * 17))
        self.told["stats"][str(place)] = str(self.tree.root / stat)
        values: dict[str, Any] = {
            "path": str(place),
            "component": component,
            "mount": str(place),
            "kind": "ext4",
            "source": f"/dev/{name}",
            "disks": (name,),
            "layers": (),
            "free_bytes": 900 * GIB,
            "write_bytes": WRITE_BYTES,
            "kept_bytes": 0,
            "keep": True,
            "sealed_bytes": 0,
        }
        return Scratch(**values | changed)

    def answer(self, kind: str, out: str, error: str, code: int, file: str = "") -> None:
        """What a kind of job, or of load, prints in the place of figures, and how it ends."""
        self.told["answers"].append((kind, file, (out, error, code)))

    def run(
        self,
        *only: str,
        on: Sequence[Scratch],
        made: Sequence[Scratch] | None = None,
        limited: bool = True,
    ) -> dict[str, str]:
        """Run these checks on filesystems, of which the run has `made` its folders on these.

        They are `limited` by their links and sheets, or by what the test has set.
        """
        self.box.scratches = tuple(on)
        self.box.product.scratches = tuple(on if made is None else made)
        if limited:
            self.box.of_disks = self.disk_limits(on)
        self.state.write_text(json.dumps(self.told))
        return self.box.run(*only, names=())

    def disk_limits(self, on: Sequence[Scratch]) -> Any:
        """The limits of these filesystems by the links and sheets of their disks."""
        links = planning.read_disk_links(on, self.box.inventory, self.tree.root)
        return planning.disk_limits(on, self.box.inventory, links, disk_sheet.shipped())

    def measured(self, *names: str) -> list[dict[Any, float | None]]:
        """The values of measurements by component."""
        return [self.box.measured(name) for name in names]

    def asked(self) -> list[dict[str, str]]:
        """The options of each run of fio."""
        text = self.state.with_suffix(".saw").read_text()
        return [options(json.loads(line)) for line in text.splitlines()]

    def verdict(self) -> Verdict:
        """What the fold makes of the session."""
        assert self.box.plan is not None
        path = self.box.product.run_dir / "journal-load.jsonl"
        bodies = [one.body for one in segment.read_segment(path).entries]
        start = RunStarted("run", self.box.plan, {}, "machine-1")
        ends = [SessionEnded("load", True, "", 1.0), RunEnded(True, "")]
        return fold(entries([start, *bodies, *ends]))

    def findings(self) -> set[tuple[str, str, str | None]]:
        """The verdict's findings: kind, code and measurement."""
        return {
            (one.kind, one.code, one.measurement)
            for one in self.verdict().of_kind("fail", "error", "warn")
        }


@pytest.fixture
def disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disks:
    return Disks(tmp_path, monkeypatch)


def gbs(kind: str) -> float:
    """The rate that fio prints for a kind of job."""
    return RATES[kind] / 1e9


# --- sound disks ---


def test_a_sound_disk(disks: Disks) -> None:
    disks.told["seconds"] = 0.3  # so that the link is seen
    assert disks.run(*FIO, on=[disks.scratch(NVME)]) == dict.fromkeys(FIO, "pass")
    write, read, failed = disks.measured("storage_write", "storage_read", "storage_failed")
    assert write == {NVME: pytest.approx(gbs("write"), rel=0.05)}
    assert read == {NVME: pytest.approx(gbs("read"), rel=1e-3)}
    assert failed == {NVME: 0.0}
    requests, late, wrong, link = disks.measured(
        "storage_read_random", "storage_read_random_p99", "storage_wrong_blocks", "disk_link_share"
    )
    assert requests == {NVME: pytest.approx(RATES["randread"] / 4096, rel=1e-3)}
    assert (late, wrong, link) == ({NVME: 80.0}, {NVME: 0.0}, {NVME: 1.0})
    (random,) = disks.measured("storage_write_random")
    assert random == {NVME: pytest.approx(RATES["randwrite"] / 4096, rel=0.05)}
    # The file is written twice: the first of it says how fast the disk is.
    ran = [(one["name"], int(one["size"]) // MIB) for one in disks.asked()]
    assert ran == [
        ("write", 4),
        ("write", 32),
        ("verify", 32),
        ("read", 32),
        ("randread", 32),
        ("randwrite", 8),
    ]
    seeds = {one["randseed"] for one in disks.asked()}
    assert len(seeds) == 1
    tables = [one for one in disks.box.product.journalled() if isinstance(one, Table)]
    assert [one.name for one in tables if one.name != "storage_over_time"] == [
        f"storage_{one}" for one in ("write", "read", "randread", "randwrite")
    ]
    assert disks.findings() == set()


def test_two_filesystems_have_a_file_and_figures_each(disks: Disks) -> None:
    on = [disks.scratch(NVME), disks.scratch(SDA)]
    disks.told["rates"] = {on[1].path: [400e6, 400e6, 500e6, 500e6, 200e6, 100e6]}
    assert disks.run(*FIO, on=on) == dict.fromkeys(FIO, "pass")
    write, read = disks.measured("storage_write", "storage_read")
    assert write == {NVME: pytest.approx(2.0, rel=0.05), SDA: pytest.approx(0.4, rel=0.05)}
    assert read == {NVME: pytest.approx(6.0, rel=1e-3), SDA: pytest.approx(0.5, rel=1e-2)}
    files = {one["filename"] for one in disks.asked()}
    assert files == {f"{one.path}/.rigproof/run-run/fio" for one in on}
    # They share the seconds of the profile.
    assert {one["runtime"] for one in disks.asked() if one["name"] == "read"} == {"1"}


def test_a_check_by_itself_writes_the_file_first(disks: Disks) -> None:
    assert disks.run("storage.verify", on=[disks.scratch(NVME)]) == {"storage.verify": "pass"}
    assert [one["name"] for one in disks.asked()] == ["write", "write", "verify"]


def test_a_repeat_writes_the_file_anew(disks: Disks) -> None:
    on = disks.scratch(NVME)
    file = Path(scratch_place.run_folder(on.path, disks.box.product.run_dir.name)) / "fio"
    file.write_bytes(b"x" * 4096)
    assert disks.run("storage.write", on=[on]) == {"storage.write": "pass"}
    assert file.stat().st_size == 32 * MIB


def test_a_night_reads_the_kept_file(disks: Disks) -> None:
    """A kept file that somebody cut is read up to its last whole block."""
    on = disks.scratch(NVME, write_bytes=0, sealed_bytes=64 * MIB + 5)
    assert disks.run("storage.read", on=[on]) == {"storage.read": "pass"}
    assert [(one["name"], one["filename"]) for one in disks.asked()] == [
        (name, f"{on.path}/.rigproof/kept/sealed") for name in ("read", "randread")
    ]
    assert all("readonly" in one for one in disks.asked())
    (read,) = disks.measured("storage_read")
    assert read == {NVME: pytest.approx(6.0, rel=1e-3)}


def test_a_slow_disk_has_smaller_files(disks: Disks) -> None:
    on = disks.scratch(NVME, write_bytes=448 * MIB)
    disks.told["rates"] = {on.path: [25e6, 25e6]}
    disks.run("storage.write", on=[on])
    sizes = [int(one["size"]) for one in disks.asked()]
    # Three seconds of the rate that the first part had, of 128 MiB that it may be.
    assert sizes[0] == 16 * MIB
    assert sizes[1] == pytest.approx(3 * 25e6, abs=MIB)
    (write,) = disks.measured("storage_write")
    assert write == {NVME: pytest.approx(0.025, rel=0.01)}


# --- faults of a disk ---


def wrong(*offsets: int) -> str:
    return "".join(
        f"crc32c: verify failed at file /data/.rigproof/run-run/fio offset {one}, length 1048576 "
        f"(requested block: offset={one}, length=1048576, flags=8)\n"
        for one in offsets
    )


def failed(operation: str, what: str = "Input/output error") -> str:
    return (
        f"fio: io_u error on file /data/.rigproof/run-run/fio: {what}: {operation} offset=4096, "
        "buflen=1048576\n"
    )


NO_ROOM = failed("write", "No space left on device")
NO_ENGINE = "fio: engine libaio not loadable\n"


@pytest.mark.parametrize(
    ("kind", "answer", "check", "outcome", "counted"),
    [
        ("verify", (wrong(3 * MIB, 3 * MIB, 5 * MIB), 0), "verify", "fail", ({NVME: 2.0}, 0.0)),
        ("write", (failed("write"), 1), "write", "fail", ({}, 1.0)),
        ("verify", (failed("read"), 1), "verify", "fail", ({}, 1.0)),
        ("read", (failed("read"), 1), "read", "fail", ({}, 1.0)),
        ("randread", (failed("read"), 1), "read", "fail", ({}, 1.0)),
        ("randwrite", (failed("write"), 1), "write_random", "fail", ({}, 1.0)),
        # what proves nothing
        ("write", (NO_ROOM, 1), "write", "error", ({}, None)),
        ("write", ("", -9), "write", "error", ({}, None)),
        ("write", (NO_ENGINE, 1), "write", "error", ({}, None)),
        ("write", ("", 0), "write", "error", ({}, None)),
    ],
)
def test_what_fio_may_say(
    disks: Disks,
    kind: str,
    answer: tuple[str, int],
    check: str,
    outcome: str,
    counted: tuple[dict[Component, float], float | None],
) -> None:
    error, code = answer
    disks.answer(kind, "{" if not (error or code) else "", error, code)
    assert disks.run(f"storage.{check}", on=[disks.scratch(NVME)]) == {f"storage.{check}": outcome}
    blocks, lost = disks.measured("storage_wrong_blocks", "storage_failed")
    assert (blocks, lost.get(NVME)) == counted
    failures = {one for one in disks.findings() if one[0] == "fail"}
    name = "storage_wrong_blocks" if counted[0] else "storage_failed"
    assert failures == ({("fail", "outside_limit", name)} if outcome == "fail" else set())


def test_a_file_that_cannot_be_written_is_not_read(disks: Disks) -> None:
    disks.answer("write", "", failed("write", "No such device"), 1)
    on = [disks.scratch(NVME)]
    assert disks.run(*FIO, on=on) == dict.fromkeys(FIO, "fail")
    assert {one["name"] for one in disks.asked()} == {"write"}
    assert {name for name, _ in disks.box.skipped()} >= {"storage_read", "storage_wrong_blocks"}


def test_one_disk_that_fails_leaves_the_other_one_measured(disks: Disks) -> None:
    on = [disks.scratch(NVME), disks.scratch(SDA)]
    disks.answer("write", "", failed("write"), 1, file=on[1].path)
    assert disks.run("storage.write", on=on) == {"storage.write": "fail"}
    write, lost = disks.measured("storage_write", "storage_failed")
    assert set(write) == {NVME}
    assert lost == {NVME: 0.0, SDA: 1.0}


@pytest.mark.parametrize(("read", "outcome"), [(1e9, "fail"), (9e9, "error")])
def test_a_disk_that_is_slower_than_its_sheet_or_faster_than_its_link(
    disks: Disks, read: float, outcome: str
) -> None:
    on = disks.scratch(NVME)
    disks.told["rates"] = {on.path: [2e9, 2e9, read]}
    assert disks.run("storage.read", on=[on]) == {"storage.read": outcome}


def test_a_link_that_is_not_understood_is_an_error(disks: Disks) -> None:
    disks.told["seconds"] = 0.4
    on = [disks.scratch(NVME)]
    disks.box.of_disks = disks.disk_limits(on)
    disks.tree.files(LINK, current_link_speed="fast")
    assert disks.run("storage.read", on=on, limited=False) == {"storage.read": "error"}
    assert "current_link_speed" in disks.box.message()


@pytest.mark.parametrize(
    ("check", "changed", "outcome"),
    [
        ("storage.write", {}, "error"),  # what was measured is a cache
        ("storage.read", {"write_bytes": 0, "sealed_bytes": 64 * MIB}, "error"),
        ("storage.write", {"disks": ()}, "pass"),
    ],
)
def test_counters_that_do_not_grow(
    disks: Disks, check: str, changed: dict[str, Any], outcome: str
) -> None:
    on = disks.scratch(NVME, **changed)
    disks.told["stats"] = {}
    assert disks.run(check, on=[on]) == {check: outcome}


def test_a_folder_that_could_not_be_made_is_skipped_with_the_reason(disks: Disks) -> None:
    on = [disks.scratch(NVME), disks.scratch(SDA)]
    found = disks.run("storage.write", "storage.memmap", on=on, made=on[:1])
    assert found == {"storage.write": "skip", "storage.memmap": "skip"}
    assert all("disk:sda" in one.message for one in disks.box.ended())
    assert disks.verdict().verdict == "UNJUDGED"


# --- our own loads ---


@pytest.fixture
def loads(disks: Disks, monkeypatch: pytest.MonkeyPatch) -> Disks:
    """Loads that print what is due, or what they are to answer, in the place of the real ones."""
    made = asks.argv

    def argv(_python: str, ask: AnyAsk) -> tuple[str, ...]:
        whole = printed(ask, {}), "", 0
        text, _, code = storage_printed.answered(disks.told, ask.load) or whole
        name = f"load-{len(list(disks.box.bin.iterdir()))}"
        disks.box.tool(name, text, code=code, seconds=str(getattr(ask, "seconds", 0.0)))
        return made(str(disks.box.bin / name), ask)

    monkeypatch.setattr(asks, "argv", argv)
    return disks


def file_bytes(loads: Disks) -> list[int]:
    """How much each of our loads was to write or to read."""
    asked = [asks.of_argv(argv) for argv in loads.box.commands()]
    return [one.bytes for one in asked if isinstance(one, OnDisk)]


OURS = ("storage.memmap", "storage.feed", "storage.checkpoint")


def test_loads_on_a_sound_disk(loads: Disks) -> None:
    on = loads.scratch(NVME, kept_bytes=MIB, sealed_bytes=MIB)
    due = (*OURS, "storage.kept", "storage.keep")
    assert loads.run(*due, on=[on]) == dict.fromkeys(due, "pass")
    cold, host, save, rot = loads.measured(
        "storage_memmap_cold",
        "storage_feed_host",
        "storage_checkpoint_write",
        "storage_kept_errors",
    )
    assert (cold, host, save, rot) == ({NVME: 1.0}, {NVME: 1.0}, {NVME: 1.0}, {NVME: 0.0})
    tables = [one for one in loads.box.product.journalled() if isinstance(one, Table)]
    assert "storage_memmap" in [one.name for one in tables]
    # A disk that was named would hide that the end of a feed made its GPU report an error.
    assert not [one for one in loads.box.product.journalled() if isinstance(one, PartBegan)]
    assert Path(scratch_place.kept_folder(on.path)).is_dir()


def test_files_of_the_loads_follow_the_rate_of_the_disk(loads: Disks) -> None:
    on = loads.scratch(NVME, write_bytes=2 * GIB)
    loads.told["rates"] = {on.path: [25e6, 25e6]}
    loads.run("storage.write", *OURS, on=[on])
    assert file_bytes(loads) == [75_000_000 // MIB * MIB] * 3


def test_no_more_is_written_than_the_run_may(loads: Disks) -> None:
    on = loads.scratch(NVME, write_bytes=WRITE_BYTES + MIB, kept_bytes=MIB)
    loads.run("storage", on=[on])
    written = [
        int(one.get("io_size", one["size"])) * int(one["numjobs"])
        for one in loads.asked()
        if "write" in one["rw"]
    ]
    written += file_bytes(loads)
    assert len(written) == 3 + 4  # fio's; of map, feed, checkpoint and the kept file
    assert 0.9 * on.write_bytes < sum(written) <= on.write_bytes


FAILED = {
    "miscompare": {
        "component": "disk:nvme0n1",
        "check": "file",
        "operation": "read",
        "file": "storage_memmap",
        "error": "EIO",
        "offset": 4096,
    }
}


def test_a_load_whose_disk_failed_is_a_fail_of_the_disk(loads: Disks) -> None:
    """It says which operation failed, and dies: no figure of it counts, and the disk is judged."""
    loads.answer("storage_memmap", json.dumps(FAILED), "", 1)
    assert loads.run("storage.memmap", on=[loads.scratch(NVME)]) == {"storage.memmap": "fail"}
    counted, cold = loads.measured("storage_memmap_miscompares", "storage_memmap_cold")
    assert (counted, cold) == ({}, {})
    (failed,) = loads.measured("storage_failed")
    assert failed == {NVME: 1.0}
    verdict = loads.verdict()
    assert verdict.verdict == "FAIL"
    (found,) = verdict.of_kind("fail")
    assert (found.code, found.measurement) == ("outside_limit", "storage_failed")
