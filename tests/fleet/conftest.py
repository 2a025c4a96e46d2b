"""The command line of a fleet, called in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fleet_verdicts import Call

from acceptance.__main__ import main


@pytest.fixture
def fleet(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Call:
    """Call `rigproof fleet` in `tmp_path`: exit code, lines on standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(*arguments: str) -> tuple[int, list[str], str]:
        try:
            code = main(["fleet", *arguments])
        except SystemExit as left:  # argparse
            code = int(left.code or 0)
        captured = capsys.readouterr()
        return code, captured.out.splitlines(), captured.err

    return run
