"""Running a load as the real program it is, for the tests of this folder."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from forks import Forks

import acceptance
from acceptance.core.parts import Core
from acceptance.loads.protocol import LoadOutput, parse

ROOT = Path(acceptance.__file__).resolve().parent.parent
CPUS = sorted(os.sched_getaffinity(0))[:2]  # one core is enough where there are no two
CORES = {"all": tuple((cpu,) for cpu in CPUS)}
ON_CORES = f"cores={json.dumps(CORES)}"
COMPONENTS = [Core(cpu) for cpu in CPUS]


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=60
    )


@cache
def _forks() -> Forks:
    """A Python that has loaded what starting a load costs, for all tests of this process."""
    modules = ("gemm", "memory_bandwidth", "memory_random")
    found = Forks(
        [
            "numpy",
            "acceptance.loads.__main__",
            *(f"acceptance.loads.cpu.{name}" for name in modules),
            "load_program",
        ],
        os.environ,
    )
    atexit.register(found.end)
    return found


def forked(
    *arguments: str, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What `run` gives, of a fork of a Python that has loaded the load: `-m MODULE` calls its
    `main`.
    """
    kind, what, *rest = arguments
    module = "acceptance.loads.__main__" if what == "acceptance.loads" else what
    call, given = (f"{module}:main", rest) if kind == "-m" else ("load_program:execute", arguments)
    done = _forks().run(call, os.environ if environ is None else environ, list(given))
    return subprocess.CompletedProcess(arguments, done.returncode, done.out, done.err)


def execute(argv: list[str]) -> None:
    """Be a Python that was started with `-c TEXT` and more."""
    sys.argv = ["-c", *argv[2:]]
    exec(argv[1], {"__name__": "__main__"})


def whole(done: subprocess.CompletedProcess[str]) -> LoadOutput:
    """What a program printed that ended well."""
    assert done.returncode == 0, done.stderr
    return parse(done.stdout)


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it did not happen within 30 s"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Whether a process has ended; in a container without an init it may stay
    as a zombie for ever.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
