"""The data files that come with rigproof."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest
from cases import each
from refusal import assert_raises, raised

from acceptance import resources
from acceptance.core.message import SetupError

ROOT = Path(__file__).resolve().parents[2]


class Shape(msgspec.Struct, forbid_unknown_fields=True):
    number: int


class WrongFileError(Exception):
    pass


def test_a_file_is_read_into_its_shape(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("number = 5\n", encoding="utf-8")
    assert resources.read(tmp_path / "own.toml", Shape, WrongFileError) == Shape(5)
    assert resources.read(tmp_path / "own.toml", dict[str, int], WrongFileError) == {"number": 5}


@each(
    "text, told",
    [
        (b"number = 'x'", "Expected `int`, got `str`"),
        (b"number = 5\nother = 1", "unknown field `other`"),
        (b"number", "Expected .=. after a key"),
        (b"number = \xff", "utf-8"),
    ],
)
def test_what_is_not_exactly_right_is_named(text: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_bytes(text)
    assert_raises(
        WrongFileError,
        resources.read,
        tmp_path / "own.toml",
        Shape,
        WrongFileError,
        match=rf"^own\.toml: .*{told}",
    )


def test_a_file_that_cannot_be_read_names_the_cure(tmp_path: Path) -> None:
    assert_raises(
        WrongFileError,
        resources.read,
        tmp_path / "own.toml",
        Shape,
        WrongFileError,
        match=r"^own\.toml: cannot be read \(No such file.*\): install rigproof again$",
    )


def test_every_table_is_in_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    tables = {f"fixtures/{one.name}" for one in (ROOT / "fixtures").glob("*.toml")}
    assert tables
    assert {one: wheel.get(one) for one in tables} == {one: f"acceptance/_{one}" for one in tables}


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
    assert "data file 'models' is missing: install rigproof again" in raised(
        SetupError, resources.locate, "models"
    )
    (tmp_path / "fixtures/models").mkdir(parents=True)
    assert resources.locate("models") == tmp_path / "fixtures/models"
    (tmp_path / "acceptance/_fixtures/models").mkdir(parents=True)
    assert resources.locate("models") == tmp_path / "acceptance/_fixtures/models"
