"""The fake libnvidia-ml.so.1: building it, and the environment in which a program finds it instead
of a driver's.

The product knows nothing of it. A program that is started with `environment` loads it through the
same binding as the real one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

SOURCES = Path(__file__).with_name("fake")
DESCRIPTIONS = Path(__file__).resolve().parents[2] / "fixtures/nvml"
LIBRARY = "libnvidia-ml.so.1"
_FLAGS = (
    "-shared",
    "-fPIC",
    "-std=c11",
    "-O0",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror",
)


def build(folder: Path) -> Path:
    """Compile the library into a folder, which is given back.

    Fails the test where there is no compiler, or it refuses.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.fail(
            "no C compiler: the tests of NVML build a library of their own; install gcc (apt "
            "install gcc libc6-dev)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{LIBRARY}.part"
    sources = sorted(map(str, SOURCES.glob("*.c")))
    done = subprocess.run(
        [compiler, *_FLAGS, "-o", str(made), *sources, "-lm"], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.fail(f"{compiler} refuses tests/nvml/fake:\n{done.stderr}")
    made.replace(folder / LIBRARY)
    return folder


def shared(factory: pytest.TempPathFactory) -> Path:
    """The folder of the library, built once for all workers of a test session."""
    base = factory.getbasetemp()
    home = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = home / "fake-nvml"
    with (home / "fake-nvml.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return folder if (folder / LIBRARY).exists() else build(folder)


def description(name: str) -> Path:
    """The description of that name in fixtures/nvml, or the file itself."""
    return Path(name) if name.endswith(".json") else DESCRIPTIONS / f"{name}.json"


def environment(library: Path, described: Path, *, age_s: float | None = None) -> dict[str, str]:
    """What to add to a program's environment.

    With `age_s` the machine's timeline began that many seconds ago, for every program that gets
    this environment; without, it begins in each program when it first asks.
    """
    paths = [str(library), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    variables = {"LD_LIBRARY_PATH": os.pathsep.join(paths), "RIGPROOF_FAKE_NVML": str(described)}
    if age_s is not None:
        variables["RIGPROOF_FAKE_NVML_EPOCH"] = repr(
            time.clock_gettime(time.CLOCK_BOOTTIME) - age_s
        )
    return variables
