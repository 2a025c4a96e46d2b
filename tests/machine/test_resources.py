from __future__ import annotations

from pathlib import Path

import pytest

from acceptance import resources
from acceptance.core.message import SetupError


def test_the_checkouts_own_data() -> None:
    for name in (
        "disks",
        "models",
        "machines",
        "events",
        "causes.toml",
        "locale",
        "measurements",
    ):
        assert resources.locate(name).exists()


def test_what_travels_in_the_package_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "acceptance")
    with pytest.raises(SetupError, match=r"data file 'models' is missing: install rigproof again"):
        resources.locate("models")
    (tmp_path / "fixtures/models").mkdir(parents=True)
    assert resources.locate("models") == tmp_path / "fixtures/models"
    (tmp_path / "acceptance/_fixtures/models").mkdir(parents=True)
    assert resources.locate("models") == tmp_path / "acceptance/_fixtures/models"
