"""The storage loads from their command line to their last line, on files of a real disk."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from cases import each
from load_texts import by_name
from raising import raising

from acceptance.core.message import Message
from acceptance.core.parts import Part
from acceptance.loads import asks, contract, protocol
from acceptance.loads.__main__ import main, parsed
from acceptance.loads.miscompare import FailedFile, WrongFile
from acceptance.loads.protocol import LoadOutput, Output, ProtocolError, parse
from acceptance.loads.storage import canary, checkpoint, feed, memmap, scratch_file, tokens
from acceptance.loads.storage.contract import KINDS, Kind, Memmap
from acceptance.loads.storage.job import Job, read_bytes, require_memory
from acceptance.loads.storage.scratch_file import ScratchFile, StorageError, open_folder, refused
from acceptance.wording import words

DISK = Part("disk", "vda")
SIZE = 1 << 18
WRITE, READ = ("way=write", "machine=m1"), ("way=read", "machine=m1")


@pytest.fixture(scope="module")
def on_disk() -> Iterator[Path]:
    """A folder on a disk: RAM disks prove nothing of one."""
    made = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="rigproof-test-"))
    try:
        try:
            with opened(made, 4096) as (_, probe):
                probe.write(0, memoryview(b"x" * 4096))
                probe.drop()
                before = read_bytes()
                probe.read_into(0, memoryview(bytearray(4096)))
                assert read_bytes() > before
        except (StorageError, AssertionError):
            pytest.skip("needs a disk under /var/tmp")
        yield made
    finally:
        shutil.rmtree(made)


@contextmanager
def opened(folder: Path, size: int) -> Iterator[tuple[int, ScratchFile]]:
    """The folder, and a file of this size in it."""
    descriptor = open_folder(folder)
    try:
        with ScratchFile.create(descriptor, "f", size) as file:
            yield descriptor, file
    finally:
        os.close(descriptor)


@pytest.fixture
def folder(on_disk: Path) -> Path:
    """An empty folder there, of this test alone."""
    return Path(tempfile.mkdtemp(dir=on_disk))


@dataclass(frozen=True)
class Done:
    ask: asks.AnyAsk
    status: int
    out: str
    err: str

    @property
    def output(self) -> LoadOutput:
        assert (self.status, self.err) == (0, "")
        found = parse(self.out)
        if found.injected is None:
            contract.prove(self.ask, found, {}, self.ask.least_s(found))
        assert {one.component for one in found.readings} == {DISK}
        return found

    @property
    def trouble(self) -> Message:
        assert self.status == 1
        assert "Traceback" not in self.err
        assert len(self.err.splitlines()) == 1
        with pytest.raises(ProtocolError, match="load_trouble"):
            parse(self.out)
        found = protocol.trouble(self.out)
        assert found is not None
        assert words.text(found)
        return found

    @property
    def failed(self) -> FailedFile:
        (found,) = protocol.salvage(self.out)
        assert isinstance(found, FailedFile)
        assert self.trouble.code == "storage_disk_failed"
        return found


Run = Callable[..., Done]


@pytest.fixture
def run(folder: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run a load in this process, in the folder."""
    before = signal.getsignal(signal.SIGINT)

    def started(load: str, *more: str, where: Path = folder, seconds: str = "0.02") -> Done:
        words = [f"storage_{load}", f"folder={where}", f"component={DISK}", f"bytes={SIZE}", *more]
        words += [f"seconds={seconds}"] if load in ("memmap", "feed") else []
        status = main(words)
        told = capfd.readouterr()
        return Done(parsed(words), status, told.out, told.err)

    yield started
    signal.signal(signal.SIGINT, before)


def wrong_of(output: LoadOutput) -> list[WrongFile]:
    found = [one for one in output.miscompares if isinstance(one, WrongFile)]
    assert len(found) == len(output.miscompares)
    return found


# --- clean runs ---


def test_windows_of_a_map_are_measured_cold_and_warm(run: Run, folder: Path) -> None:
    output = run("memmap").output
    *rates, wrong = by_name(output).values()
    assert wrong == 0
    assert min(rates) > 0
    (table,) = output.tables
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["arm"] for row in rows] == ["cold", "cold_random", "warm", "warm_random"]
    assert all(float(row["disk bytes"]) >= 4096 for row in rows[:2])
    assert list(folder.iterdir()) == []


@each(
    "load, more, names",
    [
        ("feed", (), ["storage_feed_host"]),
        ("feed", ("gpu=true",), ["storage_feed_gpu"]),
        ("checkpoint", (), ["storage_checkpoint_write", "storage_checkpoint_read"]),
        ("kept", WRITE, []),
        ("kept", READ, []),
    ],
)
def test_clean_runs(
    run: Run,
    folder: Path,
    torch: Callable[..., None],
    load: str,
    more: Sequence[str],
    names: list[str],
) -> None:
    torch()
    before = [one.read_bytes() for one in folder.iterdir()]
    output = run(load, *more).output
    *rates, wrong = by_name(output).values()
    assert wrong == 0
    assert all(rate > 0 for rate in rates)
    assert [*by_name(output)][:-1] == names
    assert output.parameters.get("gpu") == ("Fake GPU" if more == ("gpu=true",) else None)
    left = [(one.name, one.stat().st_size) for one in folder.iterdir()]
    assert left == ([("sealed", SIZE)] if load == "kept" else [])
    assert more != READ or [(folder / "sealed").read_bytes()] == before


def test_a_file_that_is_sealed_again_has_another_seed(run: Run, folder: Path) -> None:
    first, second = (run("kept", *WRITE) and (folder / "sealed").read_bytes() for _ in range(2))
    assert first != second


def test_tokens_that_do_not_reach_the_gpu_are_found(run: Run, torch: Callable[..., None]) -> None:
    torch(lose="cuda")
    wrong = wrong_of(run("feed", "gpu=true").output)[0]
    assert (wrong.offset, wrong.words, wrong.unwritten) == (SIZE - 8, 1, 1)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"fail": "1"}, "CUDA error: an illegal memory access"),
        ({"gpus": "0"}, "torch sees no GPU"),
        ({}, f"{SIZE} bytes are due on the GPU, and {SIZE - 1} are free there"),
    ],
)
def test_a_gpu_that_fails_is_not_there_or_has_too_little_memory_ends_the_load(
    run: Run, torch: Callable[..., None], monkeypatch: pytest.MonkeyPatch, asked: Any, said: str
) -> None:
    torch(**asked)
    if not asked:
        monkeypatch.setattr("acceptance.loads.card.CudaCard.free_bytes", lambda card: SIZE - 1)
    done = run("feed", "gpu=true")
    assert (done.status, protocol.trouble(done.out)) == (1, None)
    assert done.err.startswith(f"storage_feed: {said}")


def test_a_billion_parameters_have_16_bytes_each() -> None:
    assert checkpoint.BYTES == 16
    assert checkpoint.shard_parameters(1 << 30) == (1 << 26) // 4
    assert checkpoint.shard_parameters((1 << 30) - 1) * 64 < 1 << 30


# --- faults made on purpose ---

LOADS: dict[str, tuple[str, ...]] = {
    "memmap": (),
    "feed": (),
    "checkpoint": (),
    "kept": WRITE,
}


def require_fault(kind: Kind, first: WrongFile) -> None:
    """The first wrong place is the one that the fault made."""
    assert int(first.want, 16) ^ int(first.got, 16) == int(first.xor, 16)
    if kind in ("rest", "flight"):
        assert (first.words, int(first.xor, 16).bit_count(), first.of_offset) == (1, 1, None)
    elif kind == "stale":
        assert (first.of_offset, first.of_turn) == (first.offset, 0)
    else:
        assert first.of_turn == 1
        assert first.of_offset is not None
        assert abs(first.of_offset - first.offset) == 4096


def require_found(run: Run, folder: Path, load: str, kind: Kind) -> None:
    done = run(load, *LOADS[load], f"inject={kind}")
    assert f'"inject": "{kind}"' in done.out.splitlines()[0]
    assert list(folder.iterdir()) == []
    if kind == "short":
        assert (done.failed.operation, done.failed.error) == ("read", "short")
        return
    assert done.output.injected == kind
    assert by_name(done.output).popitem()[1] >= 1
    require_fault(kind, wrong_of(done.output)[0])


# The map's worker takes its four arms whatever the fault is: the others are made in this process.
IN_WORKER: tuple[Kind, ...] = ("rest", "short")


@each("load", list(LOADS))
def test_every_fault_made_on_purpose_is_found(run: Run, folder: Path, load: str) -> None:
    for kind in IN_WORKER if load == "memmap" else KINDS:
        require_found(run, folder, load, kind)


def test_a_fault_in_flight_reaches_the_gpu(run: Run, torch: Callable[..., None]) -> None:
    torch()
    for kind in ("flight", "rest"):
        first = wrong_of(run("feed", "gpu=true", f"inject={kind}").output)[0]
        assert (first.check, first.words, int(first.xor, 16).bit_count()) == ("feed", 1, 1)


# --- rot at rest ---


def rot(folder: Path, *places: int) -> None:
    with (folder / "sealed").open("r+b") as file:
        for place in places:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 4]))


@each(
    "places",
    [(140,), (canary.header_bytes(SIZE), canary.header_bytes(SIZE) + 4097, SIZE - 1)],
)
def test_every_block_that_rots_is_found_with_its_offset(
    run: Run, folder: Path, places: tuple[int, ...]
) -> None:
    assert run("kept", *WRITE).status == 0
    rot(folder, *places)
    in_header = places[0] < canary.header_bytes(SIZE)
    due = [(0 if in_header else place // 8 * 8, place // 4096) for place in places]
    output = run("kept", *READ).output
    assert [(one.offset, one.block) for one in wrong_of(output)] == due
    assert by_name(output) == {"storage_kept_errors": len(due)}
    if not in_header:  # a fault in flight is in the first block, as the rot
        again = run("kept", *READ, "inject=flight").output
        assert by_name(again) == {"storage_kept_errors": len(due)}


def torn(folder: Path) -> None:
    rot(folder, 3)


def emptied(folder: Path) -> None:
    (folder / "sealed").write_bytes(b"")


def linked(folder: Path) -> None:
    (folder / "sealed").unlink()
    (folder / "sealed").symlink_to("/etc/passwd")


def piped(folder: Path) -> None:
    (folder / "sealed").unlink()
    os.mkfifo(folder / "sealed")


def other_size(folder: Path) -> None:
    digests = ("0" * 32,) * 128
    header = msgspec.structs.replace(HEADER, bytes=1 << 27, machine="m1", digests=digests)
    (folder / "sealed").write_bytes(canary.encode(header, 8192).ljust(SIZE, b"\0"))


@each(
    "done, way, code",
    [
        (lambda folder: (folder / "sealed").unlink(), READ, "storage_missing"),
        (lambda _: None, ("way=read", "machine=m2"), "kept_of_another"),
        (torn, READ, "kept_unknown"),
        (emptied, READ, "kept_unknown"),
        (linked, READ, "storage_no_folder"),
        (piped, READ, "storage_not_ours"),
        (other_size, READ, "kept_other_size"),
        (
            lambda folder: os.truncate(folder / "sealed", canary.header_bytes(SIZE) + 4096),
            READ,
            "storage_disk_failed",
        ),
    ],
)
def test_what_is_no_sealed_file_of_this_machine_is_no_evidence(
    run: Run, folder: Path, done: Callable[[Path], object], way: Sequence[str], code: str
) -> None:
    for one in folder.iterdir():
        one.unlink()
    assert run("kept", *WRITE).status == 0
    done(folder)
    told = run("kept", *way).trouble
    assert (told.code, told.values.get("machine")) == (code, "m1" if "another" in code else None)


HEADER = canary.Header(1, 5, 1 << 20, "m", ("0" * 32,))


def test_a_header_is_read_as_it_was_written() -> None:
    room = canary.header_bytes((1 << 20) + 8192)
    assert room == 8192
    assert canary.decode(canary.encode(HEADER, room), "sealed") == HEADER
    assert canary.header_bytes(1 << 30) == 40960
    with pytest.raises(ValueError, match="more than the 4096 of its room"):
        canary.encode(msgspec.structs.replace(HEADER, machine="m" * 4096), 4096)


@each(
    "header",
    [
        msgspec.structs.replace(HEADER, version=2),
        msgspec.structs.replace(HEADER, digests=()),
        msgspec.structs.replace(HEADER, seed=0),
    ],
)
def test_a_header_of_another_version_or_form_is_unknown(header: canary.Header) -> None:
    with pytest.raises(StorageError, match="kept_unknown"):
        canary.decode(canary.encode(header, 8192), "sealed")


# --- trouble ---


@contextmanager
def failing(call: str, number: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, call, raising(OSError(number, os.strerror(number))))
        yield


@each("load", ["memmap", "checkpoint", "kept"])
def test_a_disk_that_fails_a_write_is_at_fault_in_every_load(
    run: Run, folder: Path, load: str
) -> None:
    with failing("pwrite", errno.EIO):
        done = run(load, *LOADS[load])
    assert (done.failed.operation, done.failed.error) == ("write", "EIO")
    assert list(folder.iterdir()) == []


@each(
    "call, number, code, fault",
    [
        ("posix_fallocate", errno.ENOSPC, "storage_full", False),
        ("posix_fallocate", errno.EDQUOT, "storage_full", False),
        ("posix_fallocate", errno.EOPNOTSUPP, "storage_refused", False),
        ("posix_fallocate", errno.EROFS, "storage_read_only", False),
        ("pwrite", errno.ENOSPC, "storage_full", False),
        ("pwrite", errno.EIO, "storage_disk_failed", True),
        ("pwrite", errno.EROFS, "storage_disk_failed", True),
        ("fsync", errno.EIO, "storage_disk_failed", True),
        ("preadv", errno.EIO, "storage_disk_failed", True),
        ("preadv", errno.ENODEV, "storage_disk_failed", True),
        ("preadv", errno.EUCLEAN, "storage_disk_failed", True),
        ("preadv", errno.EPERM, "storage_denied", False),
        ("posix_fadvise", errno.EINVAL, "storage_refused", False),
    ],
)
def test_an_error_of_the_kernel_is_said_by_its_code(
    run: Run, folder: Path, call: str, number: int, code: str, fault: bool
) -> None:
    with failing(call, number):
        done = run("feed")
    assert done.trouble.code == code
    assert done.trouble.values["error"] == errno.errorcode[number]
    assert len(protocol.salvage(done.out)) == fault
    if fault:
        assert done.failed.error == errno.errorcode[number]
    assert list(folder.iterdir()) == []


def test_a_page_that_the_disk_cannot_give_is_told_by_its_error(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with failing("preadv", errno.EIO):  # the parent's read of the page that ended the worker
        assert run("memmap", "inject=short").failed.error == "EIO"
    monkeypatch.setattr(os, "preadv", lambda _descriptor, buffers, _offset: len(buffers[0]))
    found = run("memmap", "inject=short").failed
    assert (found.operation, found.error) == ("map", "SIGBUS")


def test_a_worker_that_dies_of_something_else_is_said(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memmap, "work", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    done = run("memmap")
    assert (done.status, protocol.trouble(done.out)) == (1, None)
    assert done.err.startswith("storage_memmap: the worker on disk:vda was ended by signal 9")


def test_a_ram_disk_gives_no_figures(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_file, "_DROPS", 2)
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("needs a RAM disk at /dev/shm")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        for load in ("memmap", "feed"):
            assert run(load, where=Path(name)).trouble.code == "storage_cached"


def test_what_a_cache_gave_is_no_reading(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScratchFile, "drop", lambda file: None)
    for load, more in LOADS.items():
        found = run(load, *more).trouble
        assert found.code == "storage_not_from_disk"
        assert float(str(found.values["counted"])) < float(str(found.values["asked"]))


def test_buffers_that_would_fill_the_memory_are_not_made(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for load, module in (("feed", feed), ("checkpoint", checkpoint)):
        monkeypatch.setattr(module, "available_bytes", lambda: SIZE)
        assert run(load).trouble.code == "storage_no_memory"
    require_memory(SIZE, 2 * SIZE)
    assert list(folder.iterdir()) == []


@each(
    "name, code",
    [
        ("gone", "storage_missing"),
        ("file", "storage_no_folder"),
        ("link", "storage_no_folder"),
    ],
)
def test_a_folder_that_is_none_is_refused(run: Run, folder: Path, name: str, code: str) -> None:
    (folder / "file").touch()
    (folder / "link").unlink(missing_ok=True)
    (folder / "link").symlink_to(folder)
    assert run("feed", where=folder / name).trouble.code == code


@each(
    "load, name",
    [
        ("memmap", "storage_memmap"),
        ("feed", "storage_feed"),
        ("checkpoint", "shard-0.tmp"),
    ],
)
def test_a_file_that_is_there_is_left_as_it_is(
    run: Run, folder: Path, load: str, name: str
) -> None:
    (folder / name).write_text("a user's")
    assert run(load).trouble.code == "storage_exists"
    assert (folder / name).read_text() == "a user's"


def test_a_map_of_a_file_that_lost_its_end_is_a_fault(folder: Path) -> None:
    with opened(folder, 8192) as (_, file):
        file.shorten(4096)
        with pytest.raises(StorageError) as caught:
            file.map(random=False)
    assert caught.value.fault is not None
    assert (caught.value.fault.error, caught.value.fault.offset) == ("short", 4096)


def test_an_error_without_a_name_keeps_its_number() -> None:
    assert refused(OSError(), "read", "f").message.values["error"] == "0"


@each("text", ["", "rchar: 5\n", "read_bytes: many\n", None])
def test_reads_that_the_kernel_does_not_count_are_an_error(
    tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "proc/self").mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc/self/io").write_text(text)
    with pytest.raises(StorageError, match="storage_reads_uncounted"):
        read_bytes(tmp_path)


@each(
    "windows, counted, due",
    [
        (4, 0, (8, True)),
        (512, 0, (512, True)),
        (4, 100, (4, True)),  # twice as many would bring in too much
        (4, 129, (2, False)),
        (1, 1024, (1, True)),
    ],
)
def test_cold_rounds_bring_in_an_eighth_of_the_file(
    windows: int, counted: int, due: tuple[int, bool]
) -> None:
    assert memmap.next_round(windows, counted, 1024) == due


# --- the worker of the memory map, in this process ---


def mapped(folder: Path, inject: Kind | None) -> list[tuple[str, Any]]:
    sent: list[tuple[str, Any]] = []
    pipe: Any = SimpleNamespace(send=sent.append)
    ask = Memmap(folder=".", component=str(DISK), bytes=SIZE, seconds=0.02, inject=inject)
    place = memmap.new_place()
    with opened(folder, SIZE) as (descriptor, file):
        memmap.work(ask, Job(descriptor, 7, Output(sys.stdout)), file, place, pipe)
    assert struct.unpack_from("q", place) == (-1,)
    return sent


def test_the_worker_of_the_map_says_its_arms(folder: Path) -> None:
    ((kind, (tallies, wrong)),) = mapped(folder, None)
    assert (kind, wrong, len(tallies)) == ("done", 0, 4)
    for tally in tallies:
        assert tally.asked == 2050 * len(tally.seconds)
        assert tally.microseconds(0.0) <= tally.microseconds(0.5) <= tally.microseconds(1.0)
        assert tally.rate == 1025 * len(tally.seconds) / sum(tally.seconds) / 1e6
    assert tallies[1].counted >= 4096


@each("kind", [kind for kind in KINDS if kind not in IN_WORKER])
def test_the_worker_of_the_map_finds_a_fault(folder: Path, kind: Kind) -> None:
    (said, first), *_, (_, (_, wrong)) = mapped(folder, kind)
    assert said == "miscompare"
    assert wrong >= 1
    assert isinstance(first, WrongFile)
    require_fault(kind, first)


def test_the_worker_of_the_map_tells_a_few_wrong_windows_and_counts_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memmap, "LISTED", 1)
    *told, (_, (_, wrong)) = mapped(folder, "stale")
    assert [kind for kind, _ in told] == ["miscompare"]
    assert wrong > 1


@pytest.mark.parametrize(
    ("patched", "code"),
    [
        ((ScratchFile, "resident", lambda file: 0.5), "storage_cached"),
        # a file that the kernel drops again is never warm
        ((tokens, "read_whole", lambda file: file.drop()), "storage_not_in_memory"),
    ],
)
def test_the_worker_of_the_map_hands_its_trouble_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, patched: Any, code: str
) -> None:
    monkeypatch.setattr(scratch_file, "_DROPS", 1)
    monkeypatch.setattr(*patched)
    ((kind, error),) = mapped(folder, None)
    assert (kind, error.message.code) == ("trouble", code)


def test_a_warm_round_that_read_from_the_disk_does_not_count(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other work took pages of the file: they are brought in again, and it goes on."""
    whole, calls = tokens.read_whole, []

    def lost_once(file: ScratchFile) -> None:
        calls.append(file.name)
        if len(calls) == 1:
            file.drop()
        else:
            whole(file)

    monkeypatch.setattr(tokens, "read_whole", lost_once)
    ((kind, (tallies, wrong)),) = mapped(folder, None)
    assert (kind, wrong) == ("done", 0)
    assert len(calls) == 3  # before each warm arm, and once more
    assert [tally.counted for tally in tallies[2:]] == [0, 0]
    assert all(tally.seconds for tally in tallies)


@each("load", ["feed", "checkpoint", "kept"])
def test_a_load_that_finds_much_lists_the_first_and_counts_all(run: Run, load: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acceptance.loads.storage.job.LISTED", 0)
        output = run(load, *LOADS[load], "inject=rest").output
    assert output.miscompares == ()
    assert by_name(output).popitem()[1] >= 1


def test_what_is_read_of_a_file_comes_in_parts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel may write and read less than it was asked to."""
    write, read = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:1000], at))
    monkeypatch.setattr(os, "preadv", lambda fd, into, at: read(fd, [into[0][:700]], at))
    data, got = os.urandom(4096), bytearray(4096)
    with opened(folder, 4096) as (_, file):
        file.write(0, memoryview(data))
        file.read_into(0, memoryview(got))
    assert got == data


class Libc:
    """A C library whose mincore(2) fails."""

    def __init__(self) -> None:
        self.mmap = cast("Any", lambda *_: 4096)

    def mincore(self, *_: object) -> int:
        ctypes.set_errno(errno.ENOMEM)
        return -1

    def munmap(self, *_: object) -> int:
        return 0


def test_a_cache_that_the_kernel_does_not_show_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(folder, 4096) as (descriptor, file):
        good = file.descriptor
        file.descriptor = descriptor  # a folder cannot be mapped
        with pytest.raises(StorageError, match="ENODEV"):
            file.resident()
        file.descriptor = good
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Libc())
        with pytest.raises(StorageError, match="storage_refused: map: f: ENOMEM"):
            file.resident()


def test_a_slow_disk_is_fed_from_for_no_longer_than_it_may(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "PIECE", 65536)
    output = run("feed", seconds="0.000001").output
    assert output.notes[0].startswith(f"1 passes over {SIZE} bytes, 32768 tokens in ")
