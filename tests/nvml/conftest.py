from __future__ import annotations

from pathlib import Path

import fake_driver
import pytest


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake driver library."""
    return fake_driver.shared(tmp_path_factory)
