"""The version of the limits: no limit changes without it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import limits_version
import pytest
from cases import each
from refusal import raised

from acceptance import resources
from acceptance.core.message import SetupError
from acceptance.core.plan import SiteSheet
from acceptance.expect import limit_version
from acceptance.expect.limit_version import CHANGED, Recorded

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the limits, in the place of the installed ones."""
    data = tmp_path / "box" / "fixtures"
    for name in (*limit_version.LIMITS, limit_version.FILE):
        copy = shutil.copytree if (FIXTURES / name).is_dir() else shutil.copy
        data.mkdir(parents=True, exist_ok=True)
        copy(FIXTURES / name, data / name)
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "box" / "acceptance")
    limit_version.shipped.cache_clear()
    yield data
    limit_version.shipped.cache_clear()


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_recorded_version_is_that_of_these_limits() -> None:
    recorded = resources.read(FIXTURES / limit_version.FILE, Recorded)
    assert recorded.digest == limit_version.digest(), (
        "limits were changed: run `make measurements`, which gives them another version"
    )
    assert (FIXTURES / limit_version.FILE).read_text() == limits_version.text(recorded)
    assert limit_version.shipped() == (recorded.version, recorded.digest)


CHANGES = (
    ("models/geforce-rtx-4090.toml", "tdp_w = 450", "tdp_w = 451", True),
    ("disks/samsung-990-pro.toml", "read_gbs = 7.45", "read_gbs = 7.46", True),
    ("models/architectures.toml", "copy = 0.", "copy = 0.0", True),
    ("noise.toml", "share = 0.", "share = 0.0", True),
    ("drift.toml", "factor = 4.5", "factor = 4.6", True),
    ("changes.toml", 'means = "fail"', 'means = "warn"', True),
    ("pairs.toml", "share = 0.10", "share = 0.11", True),
    ("measurements/stressapptest.toml", "high = 0", "high = 1", True),
    ("measurements/stressapptest.toml", "basis = ", "basis = 'x'  # ", True),
    # words of advice, comments and layout limit nothing
    ("measurements/gemm.toml", "Even cool and for a moment", "Cool, and for a moment", False),
    ("measurements/gemm.toml", "title = ", "title =   ", False),
    ("models/geforce-rtx-4090.toml", "tdp_w = 450", "tdp_w = 450 # of the board", False),
)


def test_what_changes_the_digest(copied: Path) -> None:
    before = limit_version.digest()
    for file, old, new, changes in CHANGES:
        text = (copied / file).read_text(encoding="utf-8")
        change(copied / file, old, new)
        assert (limit_version.digest() != before) is changes, file
        (copied / file).write_text(text, encoding="utf-8")
    assert limit_version.digest() == before


def test_limits_that_somebody_changed_have_no_version_of_ours(copied: Path) -> None:
    version, digest = limit_version.shipped()
    limit_version.shipped.cache_clear()
    change(copied / "models/geforce-rtx-4090.toml", "tdp_w = 450", "tdp_w = 451")
    changed, other = limit_version.shipped()
    assert (changed, other != digest) == (version + CHANGED, True)
    (copied / "noise.toml").write_text("x = [", encoding="utf-8")
    assert "noise.toml: " in raised(SetupError, limit_version.digest)


def test_the_script_writes_another_version(copied: Path) -> None:
    file = copied / limit_version.FILE
    before = file.read_text(encoding="utf-8")
    limits_version.main()
    assert file.read_text(encoding="utf-8") == before
    change(copied / "models/geforce-rtx-4090.toml", "tdp_w = 450", "tdp_w = 451")
    limits_version.main()
    recorded = resources.read(file, Recorded)
    assert recorded.version not in before
    assert recorded.digest == limit_version.digest()


@each(
    "version, found, today, following",
    [
        ("2026-11-27.1", "a", "2026-11-28", "2026-11-27.1"),
        ("2026-11-27.1", "b", "2026-11-28", "2026-11-28.1"),
        ("2026-11-27.9", "b", "2026-11-27", "2026-11-27.10"),
        ("2026-11-27.2", "b", "2026-11-20", "2026-11-27.3"),
    ],
)
def test_a_version_follows_the_day_and_never_goes_back(
    version: str, found: str, today: str, following: str
) -> None:
    recorded = Recorded(version, "a")
    made = limit_version.following(recorded, found, date.fromisoformat(today))
    assert made == Recorded(following, found)


def test_the_sheets_of_a_site_are_in_the_digest() -> None:
    one = SiteSheet("models/x.toml", "X", "1" * 64, "", replaces=False)
    other = SiteSheet("models/x.toml", "X", "2" * 64, "", replaces=False)
    found = [limit_version.with_sheets("a", sheets) for sheets in ([], [one], [other])]
    assert found[0] == "a"
    assert len(set(found)) == 3


def test_the_digest_of_a_recorded_version_needs_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    version, digest = limit_version.shipped()
    monkeypatch.setattr(limit_version, "shipped", lambda: (version + CHANGED, "of changed files"))
    assert limit_version.digest_of(version) == digest
    assert limit_version.digest_of(version + CHANGED) == "of changed files"
