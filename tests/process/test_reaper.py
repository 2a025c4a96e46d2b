from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from known import known
from runs import until

from acceptance.process import reaper


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
        "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'a) R 1 2 (', 0, 0, 0); "
        "print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
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


# --- in a container: standard input in place of a parent ---

FAMILY = "sleep 600 & trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 0.02; done"


class Contained:
    """The reaper as the first process of a container is called."""

    def __init__(self, script: str, seconds: float = 600.0) -> None:
        argv = [
            sys.executable,
            "-I",
            "-S",
            reaper.__file__,
            f"stdin:{seconds}",
            "1",
            "--",
            "sh",
            "-c",
            script,
        ]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.family: list[int] = []

    def ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"
        self.family = reaper.descendants(self.process.pid)
        assert len(self.family) >= 2

    def ended(self) -> tuple[int, bytes]:
        """Exit code and what it still printed; none of its family is left."""
        assert self.process.stdout is not None
        text = self.process.stdout.read()
        code = self.process.wait(30)
        for pid in self.family:
            assert (
                not Path(f"/proc/{pid}").exists() or ") Z " in Path(f"/proc/{pid}/stat").read_text()
            )
        return code, text


@pytest.fixture
def contained() -> Iterator[Callable[..., Contained]]:
    made: list[Contained] = []

    def make(script: str, seconds: float = 600.0) -> Contained:
        made.append(Contained(script, seconds))
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        with one.process:  # closes what is open of it
            continue


@pytest.mark.parametrize("why", ["its input closes", "its time is over", "it is told to"])
def test_it_ends_the_family(contained: Callable[..., Contained], why: str) -> None:
    found = contained(FAMILY, 1.0 if why == "its time is over" else 600.0)
    found.ready()
    if why == "its input closes":
        known(found.process.stdin).close()
    elif why == "it is told to":
        found.process.terminate()
    assert found.ended() == (143, b"told\n")


def test_what_comes_through_standard_input_is_forgotten(
    contained: Callable[..., Contained],
) -> None:
    found = contained(
        'echo ready; sleep 600 & read line; readlink /proc/$$/fd/0; echo "<$line>"; sleep '
        "0.5; kill $!"
    )
    assert found.process.stdin is not None
    found.process.stdin.write(b"x" * 60000)
    found.process.stdin.flush()
    assert found.ended() == (0, b"ready\n/dev/null\n<>\n")


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("exit 0", 0)])
def test_its_exit_code_is_the_programs(
    contained: Callable[..., Contained], script: str, code: int
) -> None:
    assert contained(script).ended() == (code, b"")


def test_a_program_that_is_missing(contained: Callable[..., Contained]) -> None:
    assert contained("exec /nowhere/program").ended()[0] == reaper.NOT_STARTED


def test_standard_input_that_is_closed_from_the_beginning() -> None:
    argv = [sys.executable, "-I", "-S", reaper.__file__, "stdin:600", "0.1", "--", "sleep", "600"]
    assert subprocess.run(argv, stdin=subprocess.DEVNULL, check=False, timeout=60).returncode == 143
