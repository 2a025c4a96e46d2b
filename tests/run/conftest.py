"""Runs whose commit and digest are asked for once."""

from __future__ import annotations

import pytest
from runs import known_provenance


@pytest.fixture(autouse=True)
def provenance_known(monkeypatch: pytest.MonkeyPatch) -> None:
    known_provenance(monkeypatch)
