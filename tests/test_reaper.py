from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from runs import until

from acceptance import reaper


@pytest.fixture
def family() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sh", "-c", "sleep 600 & sleep 600 & wait"]) as process:
        until(lambda: len(reaper.descendants(process.pid)) == 2, "the family is there")
        yield process
        for pid in [*reaper.descendants(process.pid), process.pid]:
            os.kill(pid, 9)


def test_the_family_of_a_process(family: subprocess.Popen[bytes]) -> None:
    assert family.pid in reaper.children_by_parent()[os.getpid()]
    assert set(reaper.descendants(os.getpid())) >= {family.pid, *reaper.descendants(family.pid)}
    assert reaper.descendants(reaper.descendants(family.pid)[0]) == []


def test_names_that_look_like_fields() -> None:
    # /proc/PID/stat holds the name in parentheses, and a process may call itself whatever it likes.
    code = (
        "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'a) R 1 2 (', 0, 0, 0); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process.pid in reaper.children_by_parent()[os.getpid()]
        process.kill()


def test_an_option_that_the_kernel_does_not_know() -> None:
    with pytest.raises(OSError, match="prctl"):
        reaper.prctl(-1, 0)


def test_it_starts_nothing_for_a_parent_that_is_gone() -> None:
    argv = [sys.executable, "-I", "-S", reaper.__file__, "1", "0.1", "--", "echo", "started"]
    done = subprocess.run(argv, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (reaper.NOT_STARTED, b"")
