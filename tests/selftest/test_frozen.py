"""The frozen verdicts of the self-test's runs: none is of a run that is no longer played."""

from __future__ import annotations

from selftest import clean, frozen
from selftest.__main__ import WHOLE
from selftest.fault import read


def test_every_frozen_run_is_still_played() -> None:
    played = {f"{one.family}/{one.name}" for one in (*read(), *clean.runs(max(WHOLE)))}
    assert set(frozen._frozen()) <= played
