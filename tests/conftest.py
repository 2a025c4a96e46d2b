"""How thorough the tests are: `make test` is the quick part, `make test-all` (RIGPROOF_TESTS=all)
all.

`make test` draws ten fixed examples of each property and leaves out what is marked `sweep`; `make
test-all` draws hypothesis's own number, or as many as the test names, and sweeps.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from thoroughness import ALL, FEW, tries_more

# Threads that wait for products by spinning take the processors from the tests beside them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What is imported and collected stays to the end: to look through it for cycles costs a tenth of
# it.
gc.disable()

MEMORY = Path("/dev/shm")
MEMORY_LEAST = 2**30


def memory_disk() -> Path | None:
    """A RAM disk for the tests' temporary files, where programs may be run from it and it has room.

    On a disk every journal and every database that is written waits for it.
    """
    try:
        room = os.statvfs(MEMORY)
    except OSError:
        return None
    fit = room.f_bavail * room.f_frsize >= MEMORY_LEAST and not room.f_flag & (
        os.ST_NOEXEC | os.ST_RDONLY
    )
    return MEMORY if fit and os.access(MEMORY, os.W_OK | os.X_OK) else None


# `make test-gpu` runs where torch and pytest are, and nothing else need be.
if find_spec("hypothesis"):
    from hypothesis import HealthCheck, settings

    # A busy machine draws slowly, and is no fault of the property's.
    slow = (HealthCheck.too_slow,)
    settings.register_profile("all", deadline=None, suppress_health_check=slow)
    settings.register_profile(
        "few",
        deadline=None,
        suppress_health_check=slow,
        max_examples=FEW,
        derandomize=True,
        database=None,
    )
    settings.load_profile("all" if ALL else "few")


def pytest_configure(config: pytest.Config) -> None:
    """Put temporary files on the RAM disk where there is one.

    Not those of the end-to-end tests: their machines have a /dev/shm of their own. Pytest reads the
    variable when it makes the first folder, gives it to its workers, and removes the folder when
    all tests passed.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Coverage counts what tests run themselves; in each program that they start it would cost
        # more than the program.
        os.environ.pop("COVERAGE_PROCESS_START", None)
    disk = memory_disk() if "not e2e" in config.option.markexpr else None
    if disk is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(disk))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rest` is `make test-rest`: only what `make test` left out of `make test-all`."""
    parser.addoption("--rest", action="store_true", help="only what `make test` left out")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--rest`: leave out what `make test` has run as it would run here."""
    if not config.option.rest:
        return
    left_out = []
    for item in list(items):
        assert isinstance(item, pytest.Function)
        drawn = getattr(item.obj, "is_hypothesis_test", False)
        if not (drawn or item.get_closest_marker("sweep") or tries_more(item.module)):
            items.remove(item)
            left_out.append(item)
    config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """A worker for each processor that we may use: by psutil xdist counts the machine's cores."""
    return None if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else len(os.sched_getaffinity(0))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """From here on cycles are looked for, among what the tests themselves make.

    Less often than Python does: most of that is trees of thousands of objects without a cycle.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is kept between starts is kept for these tests alone, all workers of them, not in the
    home of who runs them.
    """
    base = tmp_path_factory.getbasetemp()
    home = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    home.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(home))
        yield
