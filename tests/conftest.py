"""How thorough the tests are: `make test` is the quick part, `make test-all` (RIGPROOF_TESTS=all)
all.

`make test` draws ten fixed examples of each property and leaves out what is marked `sweep`; `make
test-all` draws hypothesis's own number, or as many as the test names, and sweeps.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

ALL = os.environ.get("RIGPROOF_TESTS") == "all"
FEW = 10
# Threads that wait for products by spinning take the processors from the tests beside them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# `make test-gpu` runs where torch and pytest are, and nothing else need be
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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """A worker for each processor that we may use: by psutil xdist counts the machine's cores."""
    return None if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else len(os.sched_getaffinity(0))


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is kept between starts is kept for these tests alone, not in the
    home of who runs them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
