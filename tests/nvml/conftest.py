from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fake_driver
import pytest
import questions


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the fake driver library."""
    folder = fake_driver.shared(tmp_path_factory)
    yield folder
    questions.forks(folder).end()
