"""The parts of our GPU loads that need torch, tried in the image on tensors of the processor: no
GPU is needed for their arithmetic.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from acceptance.process.deadline import Deadline
from acceptance.station.image import build
from acceptance.station.image import engine as image_engine

pytestmark = [pytest.mark.docker, pytest.mark.timeout(3600)]
TESTS = Path(__file__).resolve().parents[1]
MOUNT = "/tried"
FOLDER = f"{MOUNT}/loads"
# Where these files and what they import find each other.
PYTHONPATH = ":".join((MOUNT, *(f"{MOUNT}/{room}" for room in ("tools", "diagnosis"))))
# The longest first.
NAMES = (
    "torch_train_parallel.py",
    "torch_train_step.py",
    "torch_collective.py",
    "torch_train_layers.py",
    "torch_train_digest.py",
    "torch_burn.py",
    "torch_kernels.py",
    "torch_gpu_gemm.py",
)
AT_ONCE = 2  # some of them wait for ranks that hang
GRANTS = (
    *("--rm", "--network", "none", "--read-only", "--cap-drop", "ALL", "--tmpfs", "/tmp"),
    *("--user", "12345:12345"),
    # Threads of small products that wait by spinning take the processors from everything beside
    # them, and from each other: five sixths of these files' processor time went there.
    *("--env", "OMP_WAIT_POLICY=PASSIVE"),
)

Files = dict[str, "Future[subprocess.CompletedProcess[str]]"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    """Each file's pytest, in a container of its own."""
    engine = image_engine.find()
    built = build.build(
        log_dir=tmp_path_factory.mktemp("logs"), say=print, deadline=Deadline.after(3000.0)
    )

    def run(name: str) -> subprocess.CompletedProcess[str]:
        told = ("-c", "/dev/null", f"--rootdir={FOLDER}", f"--confcutdir={FOLDER}", "-q")
        told = (*told, "-p", "no:cacheprovider")
        argv = ("python", "-B", "-W", "error", "-m", "pytest", *told, f"{FOLDER}/{name}")
        volume = ("--volume", f"{TESTS}:{MOUNT}:ro", "--env", f"PYTHONPATH={PYTHONPATH}")
        return subprocess.run(
            [engine.docker, "run", *GRANTS, *volume, built.tag, *argv],
            capture_output=True,
            text=True,
            timeout=2400.0,
        )

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(run, name) for name in NAMES}


def test_every_file_is_run() -> None:
    assert sorted(NAMES) == sorted(file.name for file in (TESTS / "loads").glob("torch_*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_torch_does_what_the_load_takes_it_to_do(files: Files, name: str) -> None:
    done = files[name].result()
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-4000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
