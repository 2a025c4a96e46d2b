"""A corner for each end-to-end test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fake_driver
import pytest
from rig import Rig


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake driver library."""
    return fake_driver.shared(tmp_path_factory)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    corner = Rig(tmp_path)
    yield corner
    corner.clear()
