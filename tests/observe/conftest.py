from __future__ import annotations

from pathlib import Path

import pytest
from machine_tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """The kernel's files of a machine that shows nothing yet."""
    return Tree(tmp_path)
