"""Runs whose commit and digest are asked for once, and whose records need not
outlive a power cut.
"""

from __future__ import annotations

import os

import pytest
import thoroughness
from runs import known_provenance


@pytest.fixture(autouse=True)
def provenance_known(monkeypatch: pytest.MonkeyPatch) -> None:
    known_provenance(monkeypatch)


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the disk is most of the time of some, and no test can see it:
    `make test-all` waits.
    """
    if not thoroughness.ALL:
        monkeypatch.setattr(os, "fsync", lambda _file: None)
