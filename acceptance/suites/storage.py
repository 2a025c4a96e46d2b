"""The disks: their own reports on their health, their self-tests and links, software RAID; and what
fio and our own loads write to them and read from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from acceptance.core.evidence import Scratch, Table
from acceptance.core.message import (
    Gap,
    Listed,
    Message,
    Quantity,
    Text,
    Values,
    after_fault,
    english,
    no_answer,
    not_permitted,
)
from acceptance.core.message import known as known_values
from acceptance.core.parts import SYSTEM, Component
from acceptance.loads.miscompare import FailedFile
from acceptance.loads.storage.contract import (
    CHECKPOINT,
    CHECKPOINT_MISCOMPARES,
    FEED,
    FEED_MISCOMPARES,
    KEPT_ERRORS,
    LATENCY_COLUMNS,
    MEMMAP,
    MEMMAP_MISCOMPARES,
    OVER_TIME_WARM,
    STORAGE_FULL_CACHE,
    STORAGE_OVER_TIME,
    Canary,
    Checkpoint,
    Feed,
    Memmap,
)
from acceptance.machine import disk_link
from acceptance.machine.gpu import Gpu
from acceptance.machine.inventory import Disk, Inventory, known
from acceptance.machine.thresholds import thresholds
from acceptance.observe import disk_counts, filesystem, raid, self_test, smart, storage
from acceptance.observe.raid import RaidState
from acceptance.observe.self_test import SelfTestResult, SelfTests
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.process.unreadable import UnreadableOutput
from acceptance.session.check import Check, CheckSkipped, Figures
from acceptance.session.loads import Results
from acceptance.session.programs import Programs
from acceptance.suites.fixtures import full_cache
from acceptance.suites.fixtures.disk_watch import POLL_S as LOOK_S
from acceptance.suites.fixtures.disk_watch import WARM_S, DiskWatch
from acceptance.suites.fixtures.storage import (
    STORAGE_WRITE_FULL,
    FillCache,
    RunFio,
    RunOnDisks,
    WriteTable,
    latencies,
    wrong_blocks,
)
from acceptance.tools import fio
from acceptance.wording.errors import NotMeasurable, WordedError, each_once, said

_T = TypeVar("_T")
AskDisk = Callable[[Disk], ProgramResult]
EarlierTables = Callable[[str], Sequence[Table]]
EarlierPrograms = Callable[[str], Sequence[ProgramResult]]
Tested = Callable[[str], tuple[Scratch, ...]]
Exists = Callable[[str], bool]

# A waiver of its skip, for disks without a report, covers those of the checks that build on it.
REPORT = "storage.smart_health"
SELF_TEST_BEGUN = "storage.self_test_begun"
# What the disk failed has a finding of its own.
UNREAD_FILE = after_fault(
    Message(english("storage_not_read", "the disk failed before it was measured"))
)
RAID_BEFORE = "storage.raid_before"
RAID_MEMBERS = "raid_members"  # the table of it
RAID_POLL_S = 0.5
POLL_S = 5.0  # how often a self-test that still runs is asked for its progress


@pytest.fixture
def smart_report(programs: Programs) -> AskDisk:
    """Asks a disk for its report."""
    return lambda disk: storage.report(
        disk, deadline=programs.deadline, run=programs.run, find=programs.find
    )


@pytest.fixture
def start_self_test(programs: Programs) -> AskDisk:
    """Asks a disk to begin its short self-test."""
    return lambda disk: storage.start_self_test(
        disk, deadline=programs.deadline, run=programs.run, find=programs.find
    )


@pytest.fixture
def until(programs: Programs) -> Deadline:
    """The time until which a self-test is waited for."""
    return programs.deadline


@dataclass(frozen=True, slots=True)
class _Answers:
    """What the disks answered; `skipped` says of each that did not why."""

    exists: Exists
    disks: Sequence[Disk]
    skipped: dict[Component, Gap] = field(default_factory=dict)

    def of(self, disk: Disk, ask: Callable[..., _T], *given: object) -> _T | None:
        """What `ask` makes of what is given to it, or None, with the reason kept."""
        try:
            return ask(*given)
        except CheckSkipped as missing:
            self.skipped[disk.component] = missing.gap
        except smart.DiskVanished as error:
            self.skipped[disk.component] = self._absence(error)
        except NotMeasurable as error:
            self.skipped[disk.component] = error.gap
        except (UnreadableOutput, smart.SmartInterrupted, smart.ReportsDiffer) as error:
            self.skipped[disk.component] = no_answer(said(error))
        return None

    def again(self, disk: Disk, ask: Callable[..., _T], *given: object) -> _T | None:
        """The same of a disk that has answered before: whatever it lacks now, it had then."""
        found = self.of(disk, ask, *given)
        if found is None:
            why = Message(
                english(
                    "answered_before", "it answered earlier in this run, and does not now: {why}"
                ),
                {"why": self.skipped[disk.component].reason},
            )
            self.skipped[disk.component] = no_answer(why)
        return found

    def _absence(self, error: smart.DiskVanished) -> Gap:
        """A disk of which smartctl found no device node: in a container that was given none."""
        if any(self.exists(f"dev/{disk.name}") for disk in self.disks):
            return error.gap
        return not_permitted(
            Message(
                english(
                    "disk_nodes_absent",
                    "no disk has its device node in /dev, so smartctl cannot ask any ({why}): in "
                    "a container, run this check on the host, or give the container the device "
                    "nodes",
                ),
                {"why": error.message},
            )
        )


def _health(done: ProgramResult) -> smart.Health:
    return smart.parse(done.stdout, done.returncode)


def _self_tests(done: ProgramResult) -> SelfTests:
    return self_test.parse(done.stdout, done.returncode)


def _is_gone(disk: Disk, exists: Exists) -> bool:
    """Whether the kernel does not show a disk any more that it showed when the run was planned."""
    return not exists(f"sys/block/{disk.name}")


def _asked(parse: Callable[[ProgramResult], _T], ask: AskDisk, disk: Disk) -> _T:
    return parse(ask(disk))


def _due(inventory: Inventory, check: Check, measurement: str) -> list[Disk]:
    due = check.components(measurement)
    return [disk for disk in known(inventory.disks) if disk.component in due]


def _serials(inventory: Inventory) -> dict[Component, str | None]:
    return {disk.component: disk.serial for disk in known(inventory.disks)}


def _of_disk(ran: Sequence[ProgramResult], disk: Disk, *words: str) -> ProgramResult | None:
    """The first run of smartctl for a disk with these words in its command, or None."""
    device = f"/dev/{disk.name}"
    return next(
        (one for one in ran if one.argv[-1] == device and set(words) <= set(one.argv)), None
    )


@pytest.mark.session("host-before")
@pytest.mark.costs(1.0)
@pytest.mark.measures("disk_faults", "disk_warnings", "disk_lifetime_faults", "disk_wear")
def test_smart_health(
    inventory: Inventory, smart_report: AskDisk, exists: Exists, check: Check
) -> None:
    """The SMART report of every disk: overall health, critical warnings, media errors, spare, its
    own thresholds; of NVMe disks how far they are worn; of disks declared as new what they have
    counted.

    Measured: faults that the drive itself reports, what is past a threshold, and the used share of
    its rated life. Not measured: its speed, what it hides, and what the note says that its report
    does not have.
    """
    disks, new = known(inventory.disks), check.components("disk_lifetime_faults")
    answers = _Answers(exists, disks)
    faults, warnings, beyond, worn = Figures(), Figures(), Figures(), Figures()
    for disk in disks:
        name, health = disk.component, answers.of(disk, _asked, _health, smart_report, disk)
        if health is None:
            if _is_gone(disk, exists):
                faults.count(
                    name,
                    [
                        Message(
                            english(
                                "disk_not_shown",
                                "the kernel showed this disk when the run was planned and does "
                                "not any more: look at the kernel log for what it said of the "
                                "disk, reseat it and its cables, and run again",
                            )
                        )
                    ],
                )
                answers.skipped[name] = after_fault(Message("disk_not_shown"))
            continue
        faults.count(name, smart.faults(health), *disk_counts.shown(health))
        warnings.count(name, disk_counts.warnings(health))
        if not disk_counts.offered(health):
            beyond.skip(
                name,
                no_answer(
                    Message(
                        english(
                            "disk_counts_none",
                            "the disk is declared as new, and its report has no count that could "
                            "show it: ask it with the device type of its bridge or controller, or "
                            "remove `new` from its table in the machine file",
                        )
                    )
                ),
            )
        elif name in new:
            most = thresholds().new_disk.most_used_percent
            beyond.count(name, disk_counts.beyond_new(health, most))
        if disk.kind == "nvme" and health.percentage_used is None:
            # every NVMe disk has it (NVMe base specification)
            worn.skip(
                name,
                no_answer(
                    Message(
                        english(
                            "wear_not_told",
                            "its health log does not tell how far it is worn: update smartmontools",
                        )
                    )
                ),
            )
        elif disk.kind == "nvme" and health.percentage_used is not None:
            worn.add(name, health.percentage_used / 100)
    unread, serials = answers.skipped, _serials(inventory)
    check.take("disk_faults", faults, skipped=unread, serials=serials)
    check.take("disk_warnings", warnings, skipped=unread, serials=serials)
    check.take("disk_lifetime_faults", beyond, skipped=unread, serials=serials)
    nvme = {disk.component for disk in disks if disk.kind == "nvme"}
    unread_wear = {name: why for name, why in unread.items() if name in nvme}
    check.take("disk_wear", worn, skipped=unread_wear, serials=serials)


@pytest.mark.session("host-after")
@pytest.mark.costs(1.0)
@pytest.mark.follows(REPORT)
@pytest.mark.measures("disk_growth")
def test_health(
    inventory: Inventory,
    smart_report: AskDisk,
    earlier_programs: EarlierPrograms,
    exists: Exists,
    check: Check,
) -> None:
    """What grew in every disk's SMART report since the run began: media errors, bad sectors, CRC
    errors, losses of power, minutes above its own temperatures, throttling by heat; and faults that
    it reports now and did not before.

    Measured: the report after the run against the one before it, of the same serial number. A disk
    that is gone counts as a fault; a log or value that is gone was not measured, which is an error.
    Not measured: what the drive does not report.
    """
    before, begun = earlier_programs(REPORT), earlier_programs(SELF_TEST_BEGUN)
    grown, answers = Figures(), _Answers(exists, known(inventory.disks))
    for disk in _due(inventory, check, "disk_growth"):
        kept = _of_disk(before, disk)
        if kept is None:
            _unread_before(answers, disk, _health, smart_report)
            continue
        first = answers.of(disk, _health, kept)
        if first is None:
            continue
        try:
            last = answers.again(disk, _asked, _present, smart_report, disk)
        except _Gone as gone:
            grown.count(disk.component, [gone.message])
            continue
        if last is None:
            continue
        grew = answers.of(disk, smart.growth, first, last)
        new = smart.new_faults(first, last, grew or ())
        if _of_disk(begun, disk, "-t"):  # storage.self_test says how that test ended
            new = tuple(one for one in new if one.values.get("what") != smart.SELF_TESTS_FAILED)
        found = (*(grew or ()), *new)
        missing = smart.lost(first, last)
        lost = [Message("reading_lost", {"what": Listed(missing)})] if missing else []
        if lost and not found:
            answers.skipped[disk.component] = no_answer(lost[0])
        elif found or grew is not None:
            warned = _new_warnings(first, last, found)
            remarks = (*lost, *warned, *smart.remarks(first, last))
            grown.count(disk.component, found, *remarks)
    for disk in known(inventory.disks):
        # a disk that never had a report too
        if disk.component in answers.skipped and _is_gone(disk, exists):
            grown.count(disk.component, [Message("disk_not_shown")])
    check.take(
        "disk_growth",
        grown,
        skipped=answers.skipped,
        serials=_serials(inventory),
        follows=REPORT,
    )


def _new_warnings(
    first: smart.Health, last: smart.Health, found: Sequence[Message]
) -> tuple[Message, ...]:
    """What warns after the run and did not before it, and is not found as a fault."""
    known_codes = {one.code for one in (*disk_counts.warnings(first), *found)}
    return tuple(one for one in disk_counts.warnings(last) if one.code not in known_codes)


def _unread_before(
    answers: _Answers, disk: Disk, parse: Callable[[ProgramResult], object], smart_report: AskDisk
) -> None:
    """Keep why there is no report of a disk from before the run: why there is none now, if so."""
    if answers.of(disk, _asked, parse, smart_report, disk) is not None:
        answers.skipped[disk.component] = no_answer(
            Message(
                english(
                    "disk_unread_before",
                    "there is no report of it from before the run: run the checks "
                    "storage.smart_health and storage.self_test_begun with this one",
                )
            )
        )


class _Gone(WordedError):
    """A disk that answered before the run is not on the machine any more."""


def _present(done: ProgramResult) -> smart.Health:
    try:
        return _health(done)
    except smart.DiskVanished as error:
        raise _Gone(
            english("disk_vanished", "it was there before the run and is gone now: {why}"),
            why=said(error),
        ) from error


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("raid_errors")
def test_raid_before(root: Path, table: WriteTable, check: Check) -> None:
    """What the members of every software RAID array (md) counted before the run: read errors that
    md corrected, and sectors in their lists of bad blocks.

    Measured: md's own counts; 0 where there is no array. Not measured: the state of the arrays,
    which storage.raid reads after the run.
    """
    found = raid.read(root)
    table(SYSTEM, RAID_MEMBERS, raid.COLUMNS, raid.rows(found.arrays))
    _count(check, "raid_errors", raid.counted(found.arrays))
    _understood(found.troubles)


@pytest.mark.session("host-after")
@pytest.mark.costs(0.1)
@pytest.mark.measures("filesystems_read_only")
def test_filesystems(inventory: Inventory, root: Path, check: Check) -> None:
    """Filesystems on this machine's disks that could be written to before the run and are read-only
    after it.

    Measured: how the kernel has them mounted. It makes one read-only when its disk gives errors.
    Not measured: errors in a filesystem that nobody has read yet.
    """
    before, now = inventory.writable or (), filesystem.local(root)
    found = tuple(name for name in before if not now.get(name, True))
    gone = tuple(name for name in before if name not in now)
    told = (
        [
            Message(
                english("filesystems_fell", "read-only now: {sources}"), {"sources": Listed(found)}
            )
        ]
        if found
        else []
    )
    told += (
        [
            Message(
                english("filesystems_gone", "not mounted any more: {sources}"),
                {"sources": Listed(gone)},
            )
        ]
        if gone
        else []
    )
    note = Message("clauses", {"why": tuple(told)}) if told else None
    check.single("filesystems_read_only", SYSTEM, len(found), note=note)


@pytest.mark.session("host-after")
@pytest.mark.costs(0.1)
@pytest.mark.measures("raid_faults")
def test_raid(root: Path, check: Check) -> None:
    """The state of every software RAID array (md): members that are missing, faulty, failed a write
    or are to be replaced, and blocks whose copies or parity differ; and of every ZFS pool.

    Measured: what md and ZFS say after the run; 0 where there is neither. A member that is blocked
    is asked again for some seconds. Not measured: RAID in a controller and in btrfs, and what the
    disks of a ZFS pool counted.
    """
    longest_s = thresholds().raid.blocked_s
    state = _unblocked(root, longest_s)
    arrays = state.arrays
    found = [
        fault for array in arrays for fault in (*raid.faults(array), *raid.stuck(array, longest_s))
    ]
    pools, untold = raid.read_pools(root)
    found += pools
    remarks = [remark for array in arrays for remark in raid.remarks(array)]
    _count(check, "raid_faults", found, *remarks)
    unknown = (one for array in arrays for one in raid.unknown(array))
    _understood((*state.troubles, *unknown, *untold))


@pytest.mark.session("host-after")
@pytest.mark.costs(0.1)
@pytest.mark.follows(RAID_BEFORE)
@pytest.mark.measures("raid_growth")
def test_raid_growth(root: Path, earlier_tables: EarlierTables, check: Check) -> None:
    """What the members of every software RAID array (md) counted during the run, and whether all
    arrays and members are still there.

    Measured: md's counts after the run against those before it. Not measured: errors that md does
    not count, as those that the disk itself corrects.
    """
    tables = earlier_tables(RAID_BEFORE)
    if not tables:
        raise WordedError(
            english(
                "raid_unread_before",
                "the RAID arrays were not read before the run (storage.raid_before), so what they "
                "counted during it is not known",
            )
        )
    before = [row for one in tables for row in one.rows]
    state = _unblocked(root, thresholds().raid.blocked_s)
    grown = raid.growth(before, state.arrays)
    _count(check, "raid_growth", grown.faults)
    _understood(grown.troubles)


def _unblocked(root: Path, longest_s: float) -> RaidState:
    """The arrays once md waits for none of their members, or after the longest time of that."""
    until = Deadline.after(longest_s)
    while True:
        found = raid.read(root)
        if until.passed() or not any(map(raid.is_blocked, found.arrays)):
            return found
        time.sleep(RAID_POLL_S)


def _count(check: Check, measurement: str, faults: Sequence[Message], *remarks: Message) -> None:
    """Journal how many faults the system has, and what they say."""
    figures = Figures()
    figures.count(SYSTEM, faults, *remarks)
    check.take(measurement, figures)


def _understood(troubles: Sequence[Message]) -> None:
    if troubles:
        raise WordedError("clauses", why=each_once(troubles))


@pytest.mark.session("host-after")
@pytest.mark.costs(0.1)
@pytest.mark.measures("disk_link_share")
def test_link(inventory: Inventory, root: Path, check: Check) -> None:
    """The link of every NVMe and SATA disk after the run, against the most that disk and slot can
    have together.

    Measured: generation and lanes, or the SATA speed, as a share of the data rate. A link that was
    made slower after errors of the run shows here; one that was shown before the run and is not
    after it is an error. Not measured: data over the link.
    """
    shares = Figures()
    for disk in _due(inventory, check, "disk_link_share"):
        link = storage.read_link(disk, root)
        found = None if link is None else disk_link.share(link)
        if found is not None:
            shares.add(disk.component, found.share, found.told)
        elif disk.shows_link:
            lost = Message("reading_lost", {"what": "disk_link_share"})
            shares.skip(disk.component, no_answer(lost))
        else:
            why = storage.lack(disk, root)
            shares.skip(disk.component, Gap(why, Message("disk_link_unread")))
    check.take("disk_link_share", shares, serials=_serials(inventory))


@pytest.mark.session("host-after")
@pytest.mark.costs(0.1)
@pytest.mark.measures("disk_temperature_margin")
def test_temperature(
    inventory: Inventory, root: Path, load_tables: tuple[Table, ...], check: Check
) -> None:
    """How far every disk stayed below its own warning temperature.

    Measured: the highest of its temperature after the run, and of those once a second while the
    storage tests were at work on it. It is due where the kernel shows a temperature and a threshold
    of the drive. A temperature that is missing from more than one sample in ten of a storage test
    was not measured. Not measured: what it was between them.
    """
    troubles: list[Message] = []
    margins = Figures()
    # A disk that showed no temperature and threshold before the run is not due.
    for disk in _due(inventory, check, "disk_temperature_margin"):
        found = storage.find_thermometer(disk.name, root)
        now = None if found is None else found.now()
        troubles += _patches(load_tables, disk.component)
        if now is None or found is None or found.limit_c is None:
            what = Message("reading_lost", {"what": "disk_temperature_margin"})
            margins.skip(disk.component, no_answer(what))
        shown = [*([] if now is None else [now]), *_celsius(load_tables, disk.component)]
        if found is None or found.limit_c is None or not shown:
            continue
        most, limit = Quantity(max(shown), "degC"), Quantity(found.limit_c, "degC")
        note = Message(
            english("disk_temperature", "at most {most}, and the drive's own threshold is {limit}"),
            {"most": most, "limit": limit},
        )
        margins.add(disk.component, found.limit_c - most.value, note)
    check.take("disk_temperature_margin", margins, serials=_serials(inventory))
    if troubles:
        raise WordedError("clauses", why=each_once(troubles))


def _of_disk_over_time(tables: Sequence[Table], disk: Component) -> Iterator[Table]:
    """The tables with the temperature of a disk: of a filesystem that lies on it alone."""
    for table in tables:
        of_disk = table.name == STORAGE_OVER_TIME and table.component == disk
        if of_disk and table.columns == OVER_TIME_WARM:
            yield table


def _celsius(tables: Sequence[Table], disk: Component) -> Iterator[float]:
    for table in _of_disk_over_time(tables, disk):
        yield from (row[-1] for row in table.rows if not isinstance(row[-1], str))


def _patches(tables: Sequence[Table], disk: Component) -> Iterator[Message]:
    """The checks in which too many samples lack the disk's temperature.

    A single sample, which several rows show, is excused.
    """
    for table in _of_disk_over_time(tables, disk):
        missing, due = sum(isinstance(row[-1], str) for row in table.rows), len(table.rows)
        if missing > max(WARM_S / LOOK_S, thresholds().sensor.missing * due):
            values: Values = {
                "disk": str(disk),
                "check": table.check,
                "share": f"{100 * missing / due:.0f}",
                "most": f"{100 * thresholds().sensor.missing:g}",
            }
            yield Message(
                english(
                    "disk_temperature_patches",
                    "the temperature of {disk} was not measured in {check}: {share} % of its "
                    "samples are missing or such as no disk can have, more than {most} %: see "
                    "whether `sensors` shows it under load, and run again",
                ),
                values,
            )


@pytest.mark.session("host-before")
@pytest.mark.costs(1.0, load="disk_self_test")
@pytest.mark.measures("disk_self_test_begun")
def test_self_test_begun(
    inventory: Inventory,
    smart_report: AskDisk,
    start_self_test: AskDisk,
    exists: Exists,
    check: Check,
) -> None:
    """Begins the short self-test of every disk that has one; the disks test themselves beside the
    other checks.

    Measured: whether it began; the note has the time that it takes by the disk's own word. A test
    that runs already is left alone.
    """
    begun, answers = Figures(), _Answers(exists, known(inventory.disks))
    for disk in _due(inventory, check, "disk_self_test_begun"):
        tests = answers.of(disk, _asked, _self_tests, smart_report, disk)
        if tests is None:
            continue
        refusal: Message | None = Message(
            english(
                "self_test_not_offered",
                "not begun: the disk has no self-test, or smartctl is too old to start it (NVMe "
                "needs 7.4)",
            )
        )
        if tests.percent is not None:
            refusal = Message(
                english(
                    "self_test_runs_already",
                    "not begun: a self-test of somebody else is running ({percent} % done)",
                ),
                {"percent": tests.percent},
            )
        elif tests.supported:
            started = answers.again(disk, _asked, _start, start_self_test, disk)
            if started is None:
                continue
            (refusal,) = started
        takes = Message(
            english("self_test_takes", "it takes up to {minutes} minutes by the disk's own word"),
            {"minutes": tests.minutes or 0},
        )
        begun.add(disk.component, float(refusal is None), refusal or takes)
    check.take("disk_self_test_begun", begun, skipped=answers.skipped, follows=REPORT)


@pytest.mark.session("host-after")
# a disk does its own work first: a test of two minutes may take longer beside the loads
@pytest.mark.costs(1.0, load="disk_self_test", slack=300.0)
@pytest.mark.follows(SELF_TEST_BEGUN)
@pytest.mark.measures("disk_self_test_faults")
def test_self_test(
    inventory: Inventory,
    smart_report: AskDisk,
    earlier_programs: EarlierPrograms,
    until: Deadline,
    pause: Callable[[float], None],
    exists: Exists,
    check: Check,
) -> None:
    """The results of the short self-tests that were begun before the loads.

    Measured: tests of this run that failed, of each disk; 0 where none was begun. A test that was
    aborted, or that does not end, is an error and no fault. Not measured: what a short test leaves
    out, above all most of the media.
    """
    ran = earlier_programs(SELF_TEST_BEGUN)
    failed, answers = Figures(), _Answers(exists, known(inventory.disks))
    for disk in _due(inventory, check, "disk_self_test_faults"):
        first, start = _of_disk(ran, disk, "-a"), _of_disk(ran, disk, "-t")
        if first is None:
            _unread_before(answers, disk, _self_tests, smart_report)
            continue
        before = answers.of(disk, _self_tests, first)
        if before is None:
            continue
        after = answers.again(disk, _ended, smart_report, disk, until, pause)
        if after is None:
            continue
        if start is None or start.returncode & smart.NOT_DONE:
            failed.add(
                disk.component,
                0.0,
                Message(english("self_test_not_begun", "no self-test was begun in this run")),
            )
            continue
        result = self_test.result(before, after)
        if (lack := _lack(after, result)) is not None:
            answers.skipped[disk.component] = no_answer(lack)
        else:
            assert result is not None
            failed.count(disk.component, self_test.faults(result))
    check.take("disk_self_test_faults", failed, skipped=answers.skipped, follows=REPORT)


def _start(done: ProgramResult) -> tuple[Message | None]:
    return (self_test.start_refusal(done.stdout, done.returncode),)


def _ended(
    smart_report: AskDisk, disk: Disk, until: Deadline, pause: Callable[[float], None]
) -> SelfTests:
    """A disk's self-tests once none runs, or when the time is over."""
    found = _self_tests(smart_report(disk))
    while found.percent is not None and until.remaining() > POLL_S + storage.SMARTCTL_S:
        pause(POLL_S)
        found = _self_tests(smart_report(disk))
    return found


def _lack(after: SelfTests, result: SelfTestResult | None) -> Message | None:
    """Why a self-test that was begun proves nothing; None where it passed or failed."""
    if after.percent is not None:
        return Message(
            english(
                "self_test_runs_still",
                "its self-test has not ended ({percent} % done): wait, read it with `smartctl "
                "-a`, and run again on an idle disk",
            ),
            {"percent": after.percent},
        )
    if result is None:
        return Message(
            english(
                "self_test_lost",
                "its self-test was begun, and its log has no result of it: read the log with "
                "`smartctl -a`, and run again",
            )
        )
    if result.state == "aborted":
        return Message(
            english(
                "self_test_aborted",
                "its self-test was aborted ({text}): run again, with nothing else that tests or "
                "resets disks",
            ),
            {"text": result.text},
        )
    return None


@pytest.mark.session("host-load")
@pytest.mark.costs(1.0, load="storage_kept", slack=300.0)
@pytest.mark.measures("storage_kept_errors", "storage_failed")
def test_kept(run_on_disks: RunOnDisks, check: Check) -> None:
    """The file that the accepting run wrote and sealed, read back and compared: rot at rest.

    Measured: blocks of 4 KiB that are not what was written. Not measured: the rest of the disk. It
    is due only where such a file lies.
    """
    results = run_on_disks(
        lambda room: Canary(
            way="read",
            folder=room.kept,
            component=room.disk,
            bytes=room.scratch.sealed_bytes,
            machine=room.machine,
        ),
        KEPT_ERRORS,
    )
    _files(results, check)


@pytest.mark.session("load")
@pytest.mark.costs(2.0, load="storage_write", slack=300.0)
@pytest.mark.measures("storage_write", "storage_write_ratio", "storage_failed")
def test_write(tested: Tested, run_fio: RunFio, table: WriteTable, check: Check) -> None:
    """A file written by fio in order, past the page cache, with checksums, until the last flush.

    Measured: bytes over time, also as a ratio to the tested filesystems on equal disks; the disk's
    own counters must show them. Not measured: a drive whose fast cache is full, and a filesystem's
    own cache.
    """
    started = "storage_failed", tested, run_fio
    failed = _fio(started, "write", {"storage_write": "fio_write"}, table, check)
    _ratio("storage_write_ratio", failed, check)


@pytest.mark.session("load")
@pytest.mark.costs(1.0, load="storage_verify", slack=300.0)
@pytest.mark.measures("storage_wrong_blocks", "storage_failed")
def test_verify(tested: Tested, run_fio: RunFio, check: Check) -> None:
    """That file read back past the page cache, every block compared with its checksum.

    Measured: blocks of 1 MiB that are not what this run wrote there. Not measured: what lies
    elsewhere on the disk, and what its own cache still holds.
    """
    counts, failed = Figures(), Figures()
    for scratch in tested("storage_failed"):
        run = run_fio(scratch, "verify")
        name, wrong = scratch.component, wrong_blocks(run)
        if run.fault is not None and not wrong:
            # Whatever else fio says is an operation that failed.
            failed.add(name, 1.0, run.fault)
            counts.skip(name, UNREAD_FILE)
        else:
            failed.add(name, 0.0)
            counts.add(name, float(wrong), run.fault)
    check.take("storage_wrong_blocks", counts)
    check.take("storage_failed", failed)


@pytest.mark.session("load")
@pytest.mark.costs(2.0, load="storage_read", slack=300.0)
@pytest.mark.measures(
    "storage_read",
    "storage_read_ratio",
    "storage_read_random",
    "storage_read_random_p99",
    "storage_failed",
    "disk_link_share",
)
def test_read(
    tested: Tested,
    run_fio: RunFio,
    disk_watch: DiskWatch,
    table: WriteTable,
    check: Check,
) -> None:
    """A file read by fio past the page cache, in order and at random places, and the link of the
    disk meanwhile.

    Measured: bytes (also as a ratio to equal disks) and requests over time, the time in which 99 of
    100 requests were answered, and the least generation and width that the link had under this
    load. Without a file of this run the one that the accepting run kept is read. Not measured: what
    comes back, which storage.verify compares.
    """
    started = "storage_failed", tested, run_fio
    rates = {"storage_read": "fio_read"}
    requests = {
        "storage_read_random": "fio_read_iops",
        "storage_read_random_p99": "fio_read_latency_p99",
    }
    failed = _fio(started, "read", rates, table, check, conclude=False)
    _ratio("storage_read_ratio", failed, check)
    _fio(started, "randread", requests, table, check, failed=failed)
    least = disk_watch.least
    check(
        "disk_link_share",
        {name: one.share for name, one in least.items()},
        notes={name: one.told for name, one in least.items()},
        skipped=disk_watch.unseen(),
    )


@pytest.mark.session("load")
@pytest.mark.costs(1.0, load="storage_write_random", slack=300.0)
@pytest.mark.measures("storage_write_random", "storage_write_random_p99", "storage_failed")
def test_write_random(tested: Tested, run_fio: RunFio, table: WriteTable, check: Check) -> None:
    """Blocks of 4 KiB written by fio at random places of its file, past the page cache, until the
    last flush.

    Measured: requests over time, and the time in which 99 of 100 were answered. Not measured: a
    drive that has been written to for long.
    """
    readings = {
        "storage_write_random": "fio_write_iops",
        "storage_write_random_p99": "fio_write_latency_p99",
    }
    _fio(("storage_failed", tested, run_fio), "randwrite", readings, table, check)


@pytest.mark.session("load")
@pytest.mark.costs(2.0, load="storage_keep", slack=300.0)
@pytest.mark.measures("storage_kept_errors", "storage_failed")
def test_keep(run_on_disks: RunOnDisks, check: Check) -> None:
    """A file of 1 GiB written, flushed, read back and sealed, which stays for the nights in the
    place of an earlier one.

    Measured: blocks of 4 KiB that are wrong when they are read back at once. Not measured: rot,
    which later runs look for in this file.
    """
    results = run_on_disks(
        lambda room: Canary(
            way="write",
            folder=room.kept,
            component=room.disk,
            bytes=room.scratch.kept_bytes,
            machine=room.machine,
        ),
        KEPT_ERRORS,
    )
    _files(results, check)


@pytest.mark.session("load")
@pytest.mark.costs(4.0, load="storage_memmap", slack=300.0)
@pytest.mark.measures(
    "storage_memmap_cold",
    "storage_memmap_cold_random",
    "storage_memmap_warm",
    "storage_memmap_warm_random",
    "storage_memmap_miscompares",
    "storage_failed",
)
def test_memmap(run_on_disks: RunOnDisks, check: Check) -> None:
    """Random windows of a memory-mapped token file, as a training loader reads them: cold and warm,
    with and without read-ahead, every window verified.

    Measured: tokens over the time of copying them, one process. Not measured: a data set larger
    than memory, and many readers at once.
    """
    results = run_on_disks(
        lambda room: Memmap(
            folder=room.folder,
            component=room.disk,
            bytes=room.bytes(MEMMAP),
            seconds=room.seconds[MEMMAP],
        ),
        MEMMAP_MISCOMPARES,
    )
    _files(results, check)


@pytest.mark.session("load")
@pytest.mark.costs(4.0, load="storage_feed", slack=300.0)
@pytest.mark.measures(
    "storage_feed_host", "storage_feed_gpu", "storage_feed_miscompares", "storage_failed"
)
def test_feed(run_on_disks: RunOnDisks, due_gpus: tuple[Gpu, ...], check: Check) -> None:
    """Tokens read in order from the disk into the first GPU (without GPUs into host memory), every
    one verified where it arrived.

    Measured: tokens from the first read until the last token is there, from an empty page cache.
    Not measured: several readers, and GPUDirect Storage, which goes past host memory.
    """
    results = run_on_disks(
        lambda room: Feed(
            folder=room.folder,
            component=room.disk,
            bytes=room.bytes(FEED),
            seconds=room.seconds[FEED],
            gpu=bool(due_gpus),
        ),
        FEED_MISCOMPARES,
        due_gpus[:1],
    )
    _files(results, check)


@pytest.mark.session("load")
@pytest.mark.costs(4.0, load="storage_checkpoint", slack=300.0)
@pytest.mark.measures(
    "storage_checkpoint_write",
    "storage_checkpoint_read",
    "storage_checkpoint_miscompares",
    "storage_failed",
)
def test_checkpoint(run_on_disks: RunOnDisks, check: Check) -> None:
    """A checkpoint of 16 bytes a parameter in four shards: written, flushed, renamed, read back and
    compared.

    Measured: seconds for a billion parameters, each way. Not measured: a checkpoint written beside
    training, or by several machines.
    """
    results = run_on_disks(
        lambda room: Checkpoint(
            folder=room.folder, component=room.disk, bytes=room.bytes(CHECKPOINT)
        ),
        CHECKPOINT_MISCOMPARES,
    )
    _files(results, check)


@pytest.mark.session("load")
@pytest.mark.costs(2.0, load="storage_full_cache", slack=300.0)
@pytest.mark.measures("storage_write_first", "storage_write_full", "storage_failed")
def test_full_cache(tested: Tested, fill_cache: FillCache, table: WriteTable, check: Check) -> None:
    """Chunk after chunk written by fio, until the machine file's budget or the time is over: how
    far the rate drops when the drive's fast cache is full.

    Measured: the rate of the first chunk, the median of the last quarter of them, and the curve
    between. It is due only where the machine file allows a soak to write 12 GiB or more. Not
    measured: a cache that is larger than that.
    """
    first, full, failed = Figures(), Figures(), Figures()
    for scratch in tested(STORAGE_WRITE_FULL):
        name, filled = scratch.component, fill_cache(scratch)
        failed.add(name, float(filled.fault is not None), filled.fault)
        if filled.fault is not None:
            first.skip(name, UNREAD_FILE)
            full.skip(name, UNREAD_FILE)
        if not filled.chunks:
            continue
        rows = full_cache.rows(filled.chunks)
        table(name, STORAGE_FULL_CACHE, full_cache.columns(filled.chunks), rows)
        first.add(name, filled.chunks[0].rate_gbs)
        if filled.fault is None:
            rate = full_cache.last_rate(filled.chunks)
            full.add(name, rate, full_cache.drop(filled.chunks))
    check.take("storage_write_first", first)
    check.take(STORAGE_WRITE_FULL, full)
    check.take("storage_failed", failed)


def _files(results: Results, check: Check) -> None:
    """Journal what one of our loads measured, and raise where it did not run whole.

    What the disk failed is journalled as such, and nothing else of that disk is due any more.
    """
    faults: dict[Component, Text | None] = {
        name: _failed_file(one)
        for name, failure in results.failed.items()
        for one in failure.miscompares
        if isinstance(one, FailedFile)
    }
    ran = (*results.outputs, *faults)
    check("storage_failed", {one: float(one in faults) for one in ran}, notes=faults)
    unread = dict.fromkeys(faults, UNREAD_FILE)
    check.all(results, but=("storage_failed",), skipped=unread)


def _failed_file(one: FailedFile) -> Message:
    """An operation that the disk failed, as the load words it."""
    values = known_values(
        operation=one.operation, file=one.file, error=one.error, offset=one.offset
    )
    return Message(
        english(
            "storage_disk_failed",
            "the disk failed: {operation} of {file} ended with {error}[ at byte {offset}]; see "
            "the kernel's log for the disk's own words",
        ),
        values,
    )


def _fio(
    started: tuple[str, Tested, RunFio],
    kind: fio.Kind,
    readings: Mapping[str, str],
    table: WriteTable,
    check: Check,
    *,
    conclude: bool = True,
    failed: Mapping[Component, Text] | None = None,
) -> dict[Component, Text]:
    """Run one job of fio on every filesystem, and journal its figures by their measurements.

    Returns the faults of the disks, those of `failed` among them, on which nothing more is run;
    they are journalled unless `conclude` is false.
    """
    failures, tested, run_fio = started
    faults: dict[Component, Text] = dict(failed or {})
    found: dict[str, dict[Component, float]] = {name: {} for name in readings}
    due = tested(failures)
    for scratch in due:
        if scratch.component in faults:
            continue
        run = run_fio(scratch, kind)
        if run.fault is not None:
            faults[scratch.component] = run.fault
            continue
        for name, reading in readings.items():
            found[name][scratch.component] = run.value(reading)
        table(scratch.component, f"storage_{kind}", LATENCY_COLUMNS, latencies(run, kind))
    unread = dict.fromkeys(faults, UNREAD_FILE)
    for name, values in found.items():
        check(name, values, skipped=unread)
    if conclude:
        counts = {one.component: float(one.component in faults) for one in due}
        check(failures, counts, notes=dict(faults))
    return faults


def _ratio(name: str, failed: Mapping[Component, Text], check: Check) -> None:
    """Journal a ratio between equal disks; where one failed, it may be the only other one."""
    equal = after_fault(
        Message(
            english(
                "storage_no_equal",
                "an equal disk failed: there is none left to compare this one with",
            )
        )
    )
    lone = dict.fromkeys(check.components(name), equal) if failed else {}
    check.ratio(name, skipped=lone | dict.fromkeys(failed, UNREAD_FILE))
