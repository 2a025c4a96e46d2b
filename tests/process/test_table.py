from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from runs import until

from acceptance.process import orphans

STAT = "7 (a (b) c) S 5 " + "0 " * 40


def process(root: Path, pid: int, stat: str = STAT, statm: str = "3 2 1 0 0 0 0\n") -> None:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(stat)
    (folder / "statm").write_text(statm)


def test_this_machines_processes() -> None:
    assert {os.getpid(), os.getppid()} <= set(orphans.pids())
    own = orphans.entry(os.getpid())
    assert own is not None
    assert own.parent == os.getppid()
    assert own.memory_bytes > 1 << 20


def test_one_that_has_ended_has_a_parent_still_and_no_memory() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    child.send_signal(signal.SIGKILL)
    until(lambda: orphans.entry(child.pid) == orphans.Entry(os.getpid(), 0), "it is a zombie")
    child.wait()
    assert orphans.entry(child.pid) is None


def test_another_root_is_read_and_this_machines_own_afterwards(tmp_path: Path) -> None:
    process(tmp_path, 7)
    (tmp_path / "proc/cpuinfo").write_text("")
    assert orphans.pids(tmp_path) == (7,)
    assert orphans.entry(7, tmp_path) == orphans.Entry(5, 3 * os.sysconf("SC_PAGE_SIZE"))
    assert psutil.PROCFS_PATH == "/proc"
    assert os.getpid() in orphans.pids()


def test_a_root_without_processes(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        orphans.pids(tmp_path)
    assert psutil.PROCFS_PATH == "/proc"
    (tmp_path / "proc").mkdir()
    assert orphans.pids(tmp_path) == ()


@pytest.mark.parametrize("pid", [7, 8, 9, 0, 1 << 31, (1 << 32) - 1, 1 << 70])
def test_a_process_that_is_not_there_or_cannot_be_read(tmp_path: Path, pid: int) -> None:
    (tmp_path / "proc/8/stat").mkdir(parents=True)  # root may read whatever has no rights
    process(tmp_path, 9, stat="9 (sh) S 5 0\n")  # cut short
    assert orphans.entry(pid, tmp_path) is None
