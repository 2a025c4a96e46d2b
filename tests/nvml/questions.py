"""Children that have the fake library, and descriptions of a test's own."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import fake_driver
from forks import Forks

GPU_IS_LOST = 15


@functools.cache
def forks(library: Path) -> Forks:
    """Where the children come from; the loader reads where the library is as it starts."""
    return Forks(
        ["acceptance.observe.nvml"],
        {**os.environ, **fake_driver.environment(library, library)},
    )


def write(folder: Path, document: Any) -> Path:
    """A description of a test's own."""
    path = folder / "machine.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
