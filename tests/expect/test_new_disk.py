"""What a disk that is declared as new may have used up."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import each

from acceptance import resources
from acceptance.expect import new_disk


def test_the_shipped_file() -> None:
    assert 0 <= new_disk.shipped().most_used_percent <= 5


@each("most, sound", [(0, True), (99, True), (-1, False), (100, False), (1.5, False)])
def test_a_share_that_would_fit_any_disk_is_refused(
    most: float, sound: bool, tmp_path: Path
) -> None:
    path = tmp_path / "new_disk.toml"
    path.write_text(f"most_used_percent = {most}\n")
    if sound:
        assert new_disk.read(path).most_used_percent == most
        return
    with pytest.raises(resources.DataFileError, match=r"new_disk.toml"):
        new_disk.read(path)
