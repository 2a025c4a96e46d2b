from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cases import each

from acceptance import resources
from acceptance.core.message import SetupError
from acceptance.expect import limit_version
from acceptance.machine.thresholds import FILE, Thresholds, thresholds

SHIPPED = resources.locate(FILE).read_text(encoding="utf-8")


def numbers(table: dict[str, Any], *above: str) -> Iterator[tuple[str, ...]]:
    """The place of every number of the file."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from numbers(value, *above, key)
        elif key != "basis":
            yield (*above, key)


@each("place", lambda: list(numbers(tomllib.loads(SHIPPED))), told=".".join)
def test_every_number_is_read_and_in_the_digest(tmp_path: Path, place: tuple[str, ...]) -> None:
    table = tomllib.loads(SHIPPED)
    inner, read = table, thresholds()
    for key in place[:-1]:
        inner, read = inner[key], getattr(read, key)
    was, before = inner[place[-1]], limit_version.digest()
    assert getattr(read, place[-1]) == (tuple(was) if isinstance(was, list) else was)
    inner[place[-1]] = (
        [was[0], was[1] + 1]
        if isinstance(was, list)
        else was + 1
        if isinstance(was, int)
        else was * 1.01
    )
    path = tmp_path / FILE
    path.write_bytes(msgspec.toml.encode(table))
    found = resources.read(path, Thresholds)
    for key in place:
        found = getattr(found, key)
    assert found != was
    locate = resources.locate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resources, "locate", lambda name: path if name == FILE else locate(name))
        assert limit_version.digest() != before


@each(
    "old, new",
    [
        ("missing = 0.1", "missing = 1"),
        ("missing = 0.1", "missing = 0"),
        ("blocked_s = 5", "blocked_s = -1"),
        ("blocked_s = 5", "blocked_s = inf"),
        ("load_s = ", "load_s = inf # "),
        ("missing = 0.1", "missing = 0.1\nbasis_of = 1"),
        ("most_used_percent = 1", "most_used_percent = 100"),
        ("most_used_percent = 1", "most_used_percent = -1"),
        ("most_used_percent = 1", "most_used_percent = 1.5"),
        ("between = [1, 126]", "between = [126, 1]"),
        ("between = [1, 126]", "between = [-inf, inf]"),
        ("between = [1, 126]", "between = [1, inf]"),
        ("clock = 1.05", "clock = 0.5"),
        ("clock = 1.05", "clock = inf"),
        ("clock = 1.05", "clock = nan"),
        ("[range.cpu_c]", "[range.cpu]"),
    ],
)
def test_a_threshold_that_judges_nothing_is_refused(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / FILE
    path.write_text(SHIPPED.replace(old, new), encoding="utf-8")
    with pytest.raises(SetupError, match=FILE):
        resources.read(path, Thresholds)
