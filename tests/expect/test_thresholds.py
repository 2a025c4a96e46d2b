from __future__ import annotations

from pathlib import Path

import pytest
from cases import each

from acceptance import resources
from acceptance.expect.thresholds import FILE, Thresholds, thresholds
from acceptance.resources import DataFileError

SHIPPED = resources.locate(FILE).read_text(encoding="utf-8")


def test_the_shipped_thresholds() -> None:
    found = thresholds()
    assert (found.sensor.missing, found.raid.blocked_s) == (0.1, 5.0)
    assert found.sensor.basis
    assert found.raid.basis


@each(
    "old, new",
    [
        ("missing = 0.1", "missing = 1"),
        ("missing = 0.1", "missing = 0"),
        ("blocked_s = 5", "blocked_s = -1"),
        ("missing = 0.1", "missing = 0.1\nbasis_of = 1"),
    ],
)
def test_a_threshold_that_judges_nothing_is_refused(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / FILE
    path.write_text(SHIPPED.replace(old, new), encoding="utf-8")
    with pytest.raises(DataFileError, match=FILE):
        resources.read(path, Thresholds)
