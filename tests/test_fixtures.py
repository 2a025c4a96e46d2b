from __future__ import annotations

from pathlib import Path

import pytest

from acceptance import fixtures


def test_the_checkouts_own_data() -> None:
    for name in ("models", "machines", "events", "causes", "profiles.toml", "models/host.toml"):
        assert fixtures.locate(name).exists()


def test_what_travels_in_the_package_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixtures, "_PACKAGE", tmp_path / "acceptance")
    with pytest.raises(fixtures.FixtureMissing, match=r"data file 'models' is missing: install rigproof again"):
        fixtures.locate("models")
    (tmp_path / "fixtures/models").mkdir(parents=True)
    assert fixtures.locate("models") == tmp_path / "fixtures/models"
    (tmp_path / "acceptance/_fixtures/models").mkdir(parents=True)
    assert fixtures.locate("models") == tmp_path / "acceptance/_fixtures/models"
