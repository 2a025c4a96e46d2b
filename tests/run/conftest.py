"""Runs whose commit and digest are asked for once, whose records need not outlive a power cut,
and that are looked at often.
"""

from __future__ import annotations

import os

import pytest
import thoroughness
from runs import known_provenance

from acceptance.run import supervisor


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


@pytest.fixture(autouse=True)
def looked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """These sessions end within milliseconds."""
    monkeypatch.setattr(supervisor, "POLL_S", 0.01)
