from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from raising import raising

from acceptance.core.message import UserError
from acceptance.run import lock
from acceptance.run.lock import NAME, MachineBusy, MachineLock

HOLDER = """
import sys, time
from pathlib import Path
from acceptance.run.lock import MachineLock
with MachineLock(Path(sys.argv[1])) as held:
    held.claim(Path("/runs/of another"))
    print(flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def settled_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every holder here has written down who it is before anybody else asks."""
    monkeypatch.setattr(lock, "_SETTLED_S", 0.0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / NAME).parent.mkdir(parents=True)
    return tmp_path


@pytest.fixture
def holder(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(root)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_one_run_at_a_time(root: Path, holder: subprocess.Popen[bytes]) -> None:
    told = (
        rf"another rigproof run has this machine \(process {holder.pid}, writing to /runs/of "
        r"another\): .* wait for it"
    )
    for _ in range(2):
        with pytest.raises(MachineBusy, match=told), MachineLock(root):
            pass


def test_a_holder_that_is_killed_gives_it_back(root: Path, holder: subprocess.Popen[bytes]) -> None:
    holder.kill()
    holder.wait()
    with MachineLock(root) as held:
        assert held.last_run() == Path("/runs/of another")


def test_it_is_given_back_and_taken_again(root: Path) -> None:
    with MachineLock(root) as held:
        assert held.last_run() is None
        held.claim(Path("/runs/a rather long name"))
    with MachineLock(root) as held:
        assert held.last_run() == Path("/runs/a rather long name")
        held.claim(Path("/runs/b"))
        with pytest.raises(MachineBusy, match=r"writing to /runs/b\)"), MachineLock(root):
            pass
        assert held.last_run() == Path("/runs/a rather long name")
    with MachineLock(root) as held:
        assert held.last_run() == Path("/runs/b")


def test_a_holder_without_a_run_is_named_and_hides_no_earlier_run(root: Path) -> None:
    with MachineLock(root) as held:
        held.claim(Path("/runs/a"))
    for _ in range(2):  # as `rigproof history --prune` does
        with (
            MachineLock(root) as held,
            pytest.raises(
                MachineBusy, match=rf"has this machine \(process {os.getpid()}\): two loads"
            ),
            MachineLock(root),
        ):
            pass
        assert held.last_run() == Path("/runs/a")


def test_for_how_long_it_has_been_held(root: Path) -> None:
    (root / NAME).touch()
    os.utime(root / NAME, (0, 0))  # the night before, long ago
    with MachineLock(root):
        with pytest.raises(MachineBusy) as just_now, MachineLock(root):
            pass
        assert 0 < just_now.value.held_s < 60
        hours_ago = time.time() - 7200
        os.utime(root / NAME, (hours_ago, hours_ago))
        for _ in range(2):  # whoever finds it busy does not make it look new
            with pytest.raises(MachineBusy) as long, MachineLock(root):
                pass
            assert 7200 <= long.value.held_s < 7260


def test_every_user_may_take_it(root: Path) -> None:
    with MachineLock(root):
        assert (root / NAME).stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"rubbish",
        b"\xff",
        b"[1]",
        b'{"pid":1}',
        b'{"pid":"x","run_dir":"/x"}',
        b'{"pid":1,"run_dir":7}',
        b'{"pid":1,"run_dir":null}',
        b'{"pid":1,"run_dir":"/x","before":7}',
        b'{"pid":1,"run_dir":null,"before":"\\u001b[2J"}',
        json.dumps({"pid": 1, "run_dir": "\x1b[2J"}).encode(),
        b"[" * 60_000,
    ],
    ids=range(12),
)
def test_what_somebody_else_wrote_into_it(root: Path, text: bytes) -> None:
    (root / NAME).write_bytes(text)
    with MachineLock(root) as held:
        assert held.last_run() is None
        (root / NAME).write_bytes(text)
        with (
            pytest.raises(MachineBusy, match="another rigproof run has this machine: two loads"),
            MachineLock(root),
        ):
            pass


def test_a_link_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("text")
    (root / NAME).symlink_to(tmp_path / "precious")
    with (
        pytest.raises(
            UserError, match=r"rigproof\.lock: cannot be opened \(.*\): remove it or fix"
        ),
        MachineLock(root),
    ):
        pass
    assert (tmp_path / "precious").read_text() == "text"


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with (
        pytest.raises(
            UserError,
            match=rf"lock files is missing: create {tmp_path}/run/lock \(mode 1777\)",
        ),
        MachineLock(tmp_path),
    ):
        pass


def test_what_cannot_be_written(root: Path) -> None:
    (root / NAME).mkdir()
    with (
        pytest.raises(UserError, match=r"cannot be opened \(it is a folder, not a file\)"),
        MachineLock(root),
    ):
        pass


def test_a_disk_that_is_full(root: Path) -> None:
    with MachineLock(root) as held:
        held._file, real = 1 << 30, held._file
        with pytest.raises(
            UserError, match=r"rigproof\.lock: cannot be written \(Bad file descriptor\): make room"
        ):
            held.claim(Path("/x"))
        held._file = real


def test_a_disk_that_is_full_when_it_is_taken(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", lambda *_: 3)
        with (
            pytest.raises(UserError, match=r"cannot be written \(No space left on device\)"),
            MachineLock(root),
        ):
            pass
    with MachineLock(root):
        pass


def test_a_file_system_without_locks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", raising(OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))))
    with (
        pytest.raises(
            UserError, match=r"cannot be locked \(No locks available\): put it on a local disk"
        ),
        MachineLock(root),
    ):
        pass


def test_a_holder_without_a_run_leaves_no_file(root: Path) -> None:
    with MachineLock(root):
        assert (root / NAME).is_file()
    assert not (root / NAME).exists()
    with MachineLock(root) as held:
        held.claim(Path("/runs/a"))
    with MachineLock(root):
        pass
    with MachineLock(root) as held:  # a file that was there stays, with what it tells
        assert held.last_run() == Path("/runs/a")


def test_a_file_that_was_removed_meanwhile_is_not_the_lock(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another has opened the file, which its holder then removes: a third would make a new one."""
    taken, path = MachineLock(root), root / NAME
    opened = MachineLock._open
    tries: list[int] = []

    def open_and_lose(self: MachineLock) -> int:
        found = opened(self)
        tries.append(found)
        if len(tries) == 1:
            path.unlink()
        elif len(tries) == 2:
            path.unlink()
            path.write_text("")  # of somebody else
        return found

    monkeypatch.setattr(MachineLock, "_open", open_and_lose)
    with taken:
        assert len(tries) == 3
        with pytest.raises(MachineBusy), MachineLock(root):
            pass
