"""What disk faults are made with: a preloaded library, folders at a scratch, an NVMe drive."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import each

from acceptance.machine.inventory import Disk
from acceptance.observe import filesystem, storage
from selftest import nvme_drive, scratch_folder, wrong_disk
from selftest.fault import NvmeDrive, Scratch, WrongDisk

KIB, MIB = 1 << 10, 1 << 20
# Writes 2 MiB of ones in pieces, drops the page cache, reads them back; prints what differs.
PROGRAM = """\
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
try:
    for at in range(0, 2 << 20, 65536):
        os.pwrite(file, b"\\1" * 65536, at)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    for turn in (1, 2):
        whole = bytearray(2 << 20)
        for at in range(0, 2 << 20, 65536):
            os.preadv(file, [memoryview(whole)[at:at + 65536]], at)
        wrong = [at for at, byte in enumerate(whole) if byte != 1]
        print(turn, len(wrong), wrong[0] if wrong else "", whole[wrong[0]] if wrong else "")
except OSError as error:
    print(error.errno)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, compiled once."""
    return wrong_disk.build(tmp_path_factory.mktemp("library"))


def played(library: Path, home: Path, wrong: WrongDisk, folder: str) -> list[str]:
    """What the program prints that works on a file in this folder."""
    (home / folder).mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM, str(home / folder / "file")],
        env={**os.environ, **wrong_disk.environment(library, wrong, home)},
        capture_output=True,
        text=True,
        timeout=60.0,
    )
    assert done.stderr == ""
    return [line.strip() for line in done.stdout.splitlines()]


@each(
    "kind, number, said",
    [
        ("rest", 70_000, ["1 1 70000 0", "2 1 70000 0"]),
        ("flight", 70_000, ["1 1 70000 0", "2 0"]),
        ("lost", 4096, ["1 1048576 4096 0", "2 1048576 4096 0"]),
        ("pace", 1000, ["1 0", "2 0"]),
        ("EIO", 3 * MIB, [str(errno.EIO)]),
        ("ENODEV", 100 * KIB, [str(errno.ENODEV)]),
        ("ENOSPC", 100 * KIB, [str(errno.ENOSPC)]),
        ("ENOSPC", 3 * MIB, ["1 0", "2 0"]),
        ("EROFS", 0, [str(errno.EROFS)]),
    ],
)
def test_what_the_library_does(
    library: Path, tmp_path: Path, kind: str, number: int, said: list[str]
) -> None:
    home = tmp_path / f"{kind}-{number}"
    wrong = WrongDisk(kind, number)  # type: ignore[arg-type]
    assert played(library, home, wrong, ".rigproof/run-1") == said
    # where a disk is gone, it is gone for the next program
    gone = home / "disk-is-gone"
    assert gone.exists() == (len(said) == 1)
    gone.unlink(missing_ok=True)


def test_another_folder_is_left_alone(library: Path, tmp_path: Path) -> None:
    for kind in ("rest", "EIO"):
        wrong = WrongDisk(kind, 100)  # type: ignore[arg-type]
        assert played(library, tmp_path, wrong, "users-own") == ["1 0", "2 0"]


@each(
    "kind",
    ["folder", "link", "file", "pipe", "tmpfs", "read-only", "missing", "occupied"],
)
def test_what_lies_at_a_scratch_is_seen_whole(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind / "scratch"
    path.parent.mkdir()
    mounts = scratch_folder.lay(path, Scratch(kind))  # type: ignore[arg-type]
    assert bool(mounts) == (kind in {"tmpfs", "read-only"})
    before = scratch_folder.listing(path)
    assert bool(before) == (kind != "missing")
    assert scratch_folder.listing(path) == before
    if path.is_dir():  # a link leads to a folder too
        (path / ".rigproof").mkdir(exist_ok=True)
        (path / ".rigproof" / "left").write_text("", encoding="ascii")
        assert scratch_folder.listing(path) != before


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder whose page cache can be emptied, which RAM has not."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="rigproof-test-") as made:
        if filesystem.read(Path(made)).kind in {"tmpfs", "overlay"}:
            pytest.skip("needs a disk under /var/tmp")
        yield Path(made)


def test_a_sealed_file_rots(on_disk: Path) -> None:
    sound, rotten = on_disk / "sound", on_disk / "rotten"
    scratch_folder.lay(sound, Scratch(sealed_mib=1))
    scratch_folder.lay(rotten, Scratch(sealed_mib=1, rot=MIB - 1))
    sizes = [(one / ".rigproof/kept/sealed").stat().st_size for one in (sound, rotten)]
    assert sizes == [MIB, MIB]
    assert (sound / ".rigproof/owner").read_text(encoding="ascii").startswith("rigproof\n")


def test_a_disk_is_shown_as_an_nvme_drive(tmp_path: Path) -> None:
    about = tmp_path.stat()
    if not Path(f"/sys/dev/block/{os.major(about.st_dev)}:{os.minor(about.st_dev)}").exists():
        with pytest.raises(nvme_drive.NvmeDriveError, match="is on no block device"):
            nvme_drive.lay(tmp_path / "root", tmp_path, NvmeDrive("Maker 1"))
        return
    nvme_drive.lay(tmp_path / "root", tmp_path, NvmeDrive("Maker 1", width=2))
    (disk,) = storage.read(tmp_path / "root")
    assert (disk.name, disk.model, disk.transport, disk.kind) == (
        nvme_drive.NAME,
        "Maker 1",
        "nvme",
        "nvme",
    )
    assert isinstance(disk, Disk)
    link = storage.read_link(disk, tmp_path / "root")
    assert link is not None
    assert getattr(link, "width", None) == 2
    assert getattr(link, "slot_max_width", None) == 4
