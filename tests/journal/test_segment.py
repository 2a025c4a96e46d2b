from __future__ import annotations

import errno
import json
import os
import resource
import typing
from collections.abc import Callable, Iterator
from pathlib import Path

import journals
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raising
from runs import machine_root, write_segment

from acceptance.core import evidence, record
from acceptance.core.evidence import Sample
from acceptance.core.finding import Waiver
from acceptance.core.message import Unmeasured
from acceptance.core.parts import CPU, Function, Gpu, Part
from acceptance.core.record import Body, CheckStarted, Measured, Note
from acceptance.journal import segment
from acceptance.journal.segment import JournalError, Writer, read_segment

EVERY: tuple[Body, ...] = (
    record.RunStarted(
        "run-1", journals.plan(waivers=[Waiver("known", skip="link")]), {"host": "bøx"}, "machine-1"
    ),
    evidence.Observed(
        {"cpu": {"model": 'a "quoted"\nname', "cores": 8, "share": 0.5, "none": None}}
    ),
    record.SessionStarted("load", "digest", ("cpu.gemm[f64]", "gpu.present")),
    record.CheckStarted("cpu.gemm[f64]"),
    record.Measured("cpu.gemm[f64]", "cpu_gemm_f64", CPU, "GFLOP/s", 412.25, "serial", "note"),
    record.Measured(
        "cpu.gemm[f64]", "cpu_gemm_f64", CPU, "GFLOP/s", None, note="the value was nan"
    ),
    evidence.Table(
        "gpu.gemm", Gpu(0), "gemm_f64_by_size", ("n", "TFLOP/s", "how"), ((128.0, 0.25, "a"),)
    ),
    record.Skipped("storage.health", "run it as root", "disk_faults", Part("disk", "sda")),
    record.Skipped("storage.health", "an I/O error", why=Unmeasured.NO_ANSWER),
    record.CheckEnded("cpu.gemm[f64]", "fail", "two\nlines", 30.5),
    evidence.ToolRan("cpu.stress_ng", ("stress-ng", "--cpu", "0"), -9, 8.5, "logs/x.log"),
    evidence.PartBegan("together.burn", Gpu(0), "logs/together.burn-1.log"),
    evidence.Scratch(
        path="/data",
        component=Part("disk", "md0"),
        mount="/data",
        kind="xfs",
        source="/dev/md0",
        disks=("nvme0n1", "nvme1n1"),
        layers=("raid1",),
        free_bytes=1 << 40,
        write_bytes=8 << 30,
        kept_bytes=1 << 30,
        keep=True,
        sealed_bytes=1 << 30,
    ),
    record.Event(
        "xid", "fatal", "NVRM: Xid 79", "gone", "reseat it", 79, Function("0000:01:00.0"), 12.5
    ),
    record.Event("Xid", "fatal", "t", "m", "a", code="79", boot_s=1.5, source="nvml"),
    record.Event(
        *("xid", "warning", "t", "m", "a", 45),
        suspicion=record.Suspicion(Gpu(0), 7, "x", consequence=True),
    ),
    record.Event(
        "oom", "error", "Out of memory", "no RAM left", "fill less", "oom", hardware=False
    ),
    evidence.Sample(
        {"cpu_temperature_c": 54.0}, 10.0, {"cpu_temperature_c": 50.0}, {"cpu_temperature_c": 61.0}
    ),
    evidence.Sample({"power_w": 612.5}, component=Gpu(0)),
    evidence.Refused(Gpu(0), {"power_w": "Unknown Error"}),
    record.ForeignProcess(Gpu(1), 125.5, None, None, None),
    record.Stopped(session="gpu-load"),
    record.RunClosed(None, False, {}, "killed"),
    record.Note("something", trouble=True),
    record.SessionEnded("load", False, "was ended by signal 9", 12.0),
    record.Postponed(("python3 holds gpu0",), 2, 8),
    record.ForeignProcess(Gpu(0), 12.5, 4242, "python3 train.py", 1 << 30, 14.0),
    record.GpuUser(Gpu(0), 12.5, 4243, "python3 load.py", own=True, until_s=14.0),
    record.Stopped("gpu.gemm", "load", ended=True, component=Gpu(0)),
    record.RunEnded(False, "stopped by SIGINT"),
    evidence.Sealed("ab", (evidence.SealedFile("journal.jsonl", 3, "cd"),)),
    record.RunClosed("cpu.gemm[f64]", True, {"cpu_temperature_c": 91.0}, "restarted"),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return machine_root(tmp_path / "root")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def test_every_record_comes_back_as_it_was(path: Path, root: Path) -> None:
    assert {type(body) for body in EVERY} == set(typing.get_args(evidence.AnyBody))
    write_segment(path, EVERY, root)
    found = read_segment(path)
    assert tuple(entry.body for entry in found.entries) == EVERY
    assert [entry.seq for entry in found.entries] == list(range(len(EVERY)))
    assert {entry.segment for entry in found.entries} == {"journal.jsonl"}
    assert found.head == segment.SegmentHead(
        3, "journal.jsonl", "boot-1", os.getpid(), "machine-1", "run-1"
    )
    assert found.torn is None


def test_each_line_is_one_json_object(path: Path, root: Path) -> None:
    write_segment(path, EVERY, root)
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_a_segment_has_one_writer(path: Path, root: Path) -> None:
    with Writer(path, root) as writer:
        with pytest.raises(
            JournalError,
            match=(
                r"journal\.jsonl: cannot be written \(File exists\): another rigproof is "
                r"writing "
                r"there: stop it, then start again"
            ),
        ):
            Writer(path, root)
        writer.write(Note("still mine"))
    assert len(read_segment(path).entries) == 1


def test_a_link_that_somebody_laid_is_not_followed(path: Path, root: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JournalError, match="File exists"):
        Writer(path, root)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_missing(tmp_path: Path, root: Path) -> None:
    with pytest.raises(JournalError, match="cannot be written \\(No such file or directory\\)"):
        Writer(tmp_path / "nowhere/journal.jsonl", root)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_json_has_no_number_for_is_refused(path: Path, root: Path, value: float) -> None:
    with Writer(path, root) as writer:
        with pytest.raises(ValueError, match=r"copy on gpu0 is .*: JSON has no such number"):
            writer.write(Measured("link.copy", "copy", Gpu(0), "GB/s", value))
        for sample in (
            Sample({"x": value}),
            Sample({}, 10.0, {"x": value}),
            Sample({}, 10.0, {}, {"x": value}),
        ):
            with pytest.raises(ValueError, match=r"x is .*: JSON has no such number"):
                writer.write(sample)
        with pytest.raises(
            ValueError, match=r"a cell of the table t is .*: JSON has no such number"
        ):
            writer.write(
                evidence.Table("gpu.gemm", Gpu(0), "t", ("n", "how"), ((1.0, "a"), (value, "b")))
            )
        writer.write(Note("and nothing of it was written"))
    assert [entry.seq for entry in read_segment(path).entries] == [0]


# --- damage ---


def test_nothing_and_half_a_head(path: Path) -> None:
    path.write_bytes(b"")
    assert read_segment(path) == segment.Segment(None, (), "nothing was written")
    path.write_bytes(b'{"rigproof_journal":1,"seg')
    assert read_segment(path) == segment.Segment(None, (), '{"rigproof_journal":1,"seg')


def test_a_torn_last_line_is_dropped_and_said(path: Path, root: Path) -> None:
    write_segment(path, EVERY, root)
    with path.open("ab") as file:
        file.write(b'{"seq":99,"boot_s":1.0,"u\xff')
    found = read_segment(path)
    assert len(found.entries) == len(EVERY)
    assert found.torn == '{"seq":99,"boot_s":1.0,"u\N{REPLACEMENT CHARACTER}'


def test_zeros_after_a_power_cut(path: Path, root: Path) -> None:
    # XFS may give a file its new length before its content.
    write_segment(path, EVERY, root)
    with path.open("ab") as file:
        file.write(bytes(4096))
    assert len(read_segment(path).entries) == len(EVERY)


def test_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"none\.jsonl: cannot be read \(No such file"):
        read_segment(tmp_path / "none.jsonl")


SPOILT: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "no head": (
        lambda lines: lines[1:],
        r"line 1: is not the head of a rigproof journal \(Object missing",
    ),
    "rubbish for a head": (
        lambda lines: [b"rubbish", *lines[1:]],
        r"line 1: is not the head .* \(JSON is malformed",
    ),
    "rubbish": (
        lambda lines: [lines[0], b"rubbish", *lines[2:]],
        r"line 2: is no record \(.*restore it from a copy",
    ),
    "no UTF-8": (lambda lines: [*lines[:3], b"\xff\xfe", *lines[4:]], r"line 4: is no record"),
    "an empty line": (lambda lines: [*lines[:3], b"", *lines[3:]], r"line 4: is no record"),
    "a line lost": (
        lambda lines: [*lines[:3], *lines[4:]],
        "line 4: record 3 stands where 2 is due",
    ),
    "a line twice": (
        lambda lines: [*lines[:3], lines[2], *lines[3:]],
        "line 4: record 1 stands where 2 is due",
    ),
    "another version": (
        lambda lines: [lines[0].replace(b'journal":3', b'journal":4'), *lines[1:]],
        "line 1: .*install a newer",
    ),
    "another version's head": (
        lambda lines: [b'{"rigproof_journal":7,"writer":{}}', *lines[1:]],
        r"line 1: written in format 7, newer than this rigproof reads \(3\)",
    ),
    "a record of another version": (
        lambda lines: [*lines[:3], lines[3].replace(b"session-started", b"made-up"), *lines[4:]],
        "line 4: is no record",
    ),
}


@pytest.mark.parametrize("how", list(SPOILT))
def test_damage_before_the_last_line(path: Path, root: Path, how: str) -> None:
    spoil, told = SPOILT[how]
    write_segment(path, EVERY, root)
    path.write_bytes(b"".join(line + b"\n" for line in spoil(path.read_bytes().split(b"\n")[:-1])))
    with pytest.raises(JournalError, match=rf"^{path}, {told}"):
        read_segment(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    return write_segment(folder / "journal.jsonl", EVERY, machine_root(folder / "root"))


@given(share=st.floats(0.0, 1.0))
def test_a_journal_cut_anywhere_reads_back_as_a_prefix(whole: Path, share: float) -> None:
    data = whole.read_bytes()
    cut = round(share * len(data))
    path = whole.with_name("cut.jsonl")
    path.write_bytes(data[:cut])
    found = read_segment(path)
    bodies = tuple(entry.body for entry in found.entries)
    assert bodies == EVERY[: len(bodies)]
    assert len(bodies) == max(0, data[:cut].count(b"\n") - 1)
    assert (found.torn is None) == data[:cut].endswith(b"\n")


@given(place=st.floats(0.0, 1.0, exclude_max=True), byte=st.integers(0, 255))
def test_a_spoilt_byte_is_told_in_one_way_or_not_at_all(
    whole: Path, place: float, byte: int
) -> None:
    data = bytearray(whole.read_bytes())
    data[int(place * len(data))] = byte
    path = whole.with_name("spoilt.jsonl")
    path.write_bytes(data)
    assert reads_or_tells(path)


def reads_or_tells(path: Path) -> bool:
    try:
        return len(read_segment(path).entries) in (
            len(EVERY),
            len(EVERY) - 1,
        )  # one less: the last line end was hit
    except JournalError as error:
        return str(error).startswith(f"{path}, line ")


# --- writing that goes wrong ---


@pytest.fixture
def full_at() -> Iterator[Callable[[int], None]]:
    """Lets no file of this process grow beyond a size: the kernel then takes a part of a write,
    as on a full disk.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 1, 50])
def test_a_full_disk_ends_the_segment(
    path: Path, root: Path, full_at: Callable[[int], None], room: int
) -> None:
    with Writer(path, root) as writer:
        writer.write(CheckStarted("a"))
        full_at(path.stat().st_size + room)
        with pytest.raises(
            JournalError,
            match=r"journal\.jsonl: cannot be written \(.*\): make room, then start again",
        ):
            writer.write(CheckStarted("b"))
        full_at(resource.RLIM_INFINITY)
        # There is room again, but a record is lost: nothing may come after it as if it were whole.
        with pytest.raises(JournalError, match="an earlier record could not be written"):
            writer.write(CheckStarted("c"))
        with pytest.raises(JournalError, match="an earlier record could not be written"):
            writer.write(CheckStarted("d"))
    found = read_segment(path)
    assert [entry.body for entry in found.entries] == [CheckStarted("a")]
    assert (found.torn is None) == (room == 0)


def test_a_disk_that_is_full_from_the_beginning(
    path: Path, root: Path, full_at: Callable[[int], None]
) -> None:
    full_at(10)
    with pytest.raises(JournalError, match="make room"):
        Writer(path, root)
    assert read_segment(path).head is None


def test_a_disk_that_fails_to_keep(path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Writer(path, root) as writer:
        monkeypatch.setattr(os, "fsync", raising(OSError(errno.EIO, os.strerror(errno.EIO))))
        writer.write(Sample({"x": 1.0}))
        with pytest.raises(JournalError, match="Input/output error"):
            writer.sync()
        monkeypatch.undo()
        with pytest.raises(JournalError, match="an earlier record"):
            writer.write(Note("x"))


def test_what_is_brought_to_the_disk_at_once(
    path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    at_once = set()
    with Writer(path, root) as writer:
        monkeypatch.setattr(os, "fsync", synced.append)
        for body in EVERY:
            before = len(synced)
            writer.write(body)
            if len(synced) > before:
                at_once.add(type(body).__name__)
    lazy = {"Measured", "Table", "Skipped", "ToolRan", "Sample", "Observed"}
    assert at_once == {type(body).__name__ for body in EVERY} - lazy


class Interrupt(BaseException):
    """What a signal handler raises, between any two steps."""


@pytest.mark.parametrize("written", ["nothing", "half", "whole"])
def test_an_interruption_costs_at_most_the_record_it_hit(
    path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    real = os.write

    def interrupted(descriptor: int, data: bytes) -> int:
        if written != "nothing":
            real(descriptor, data if written == "whole" else data[:20])
        raise Interrupt

    with Writer(path, root) as writer:
        writer.write(CheckStarted("a"))
        monkeypatch.setattr(os, "write", interrupted)
        with pytest.raises(Interrupt):
            writer.write(CheckStarted("b"))
        monkeypatch.undo()
        if written == "half":
            with pytest.raises(JournalError, match="an earlier record"):
                writer.write(CheckStarted("c"))
        else:
            writer.write(CheckStarted("c"))
    expected = {"nothing": "ac", "half": "a", "whole": "abc"}[written]
    assert [entry.body for entry in read_segment(path).entries] == [
        CheckStarted(name) for name in expected
    ]
