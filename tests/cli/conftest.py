"""The command line, called in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import product_session
import pytest
from command import Call, answer


@pytest.fixture
def call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Call:
    """Runs the command line in a folder of its own: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    product_session.known_machine(monkeypatch)
    return lambda *arguments: answer(capsys, *arguments)
