"""A corner for each end-to-end test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    corner = Rig(tmp_path)
    yield corner
    corner.clear()
