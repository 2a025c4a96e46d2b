"""The command line of a fleet, called in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command import answer
from fleet_verdicts import Call


@pytest.fixture
def fleet(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Call:
    """Call `rigproof fleet` in `tmp_path`: exit code, lines on standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(*arguments: str) -> tuple[int, list[str], str]:
        code, out, err = answer(capsys, "fleet", *arguments)
        return code, out.splitlines(), err

    return run
