"""How thorough the tests are: `make test` takes a minute, `make test-all` (RIGPROOF_TESTS=all) tries everything.

`make test` draws ten fixed examples of each property and leaves out what is marked `sweep`; `make test-all` draws hypothesis's own
number, or as many as the test names, and sweeps.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import pytest
from hypothesis import HealthCheck

ALL = os.environ.get("RIGPROOF_TESTS") == "all"
FEW = 10
# A busy machine draws slowly, and is no fault of the property's.
SLOW = (HealthCheck.too_slow,)

hypothesis.settings.register_profile("all", deadline=None, suppress_health_check=SLOW)
hypothesis.settings.register_profile(
    "few", deadline=None, suppress_health_check=SLOW, max_examples=FEW, derandomize=True, database=None
)
hypothesis.settings.load_profile("all" if ALL else "few")


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is kept between starts is kept for these tests alone, not in the home of who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
