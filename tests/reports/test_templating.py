from __future__ import annotations

import sys
from pathlib import Path

import jinja2
import pytest

from acceptance.reports import templating


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The templates that were compiled, by their sources; `a.txt` says one."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates/a.txt").write_text("one")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    found: list[str] = []

    def compile_(self: jinja2.Environment, source: str, *more: object) -> str:
        found.append(source)
        return _generate(self, source, *more)

    _generate = jinja2.Environment._parse
    monkeypatch.setattr(jinja2.Environment, "_parse", compile_)
    return found


def says(folder: Path) -> str:
    """What the template says in a new process, as it were."""
    loader = jinja2.FileSystemLoader(folder / "templates")
    found = jinja2.Environment(loader=loader, bytecode_cache=templating.Bytecode())
    return found.get_template("a.txt").render()


def kept(folder: Path) -> list[Path]:
    return list((folder / "__pycache__").glob("*"))


def test_a_template_is_compiled_once(tmp_path: Path, compiled: list[str]) -> None:
    assert [says(tmp_path), says(tmp_path)] == ["one", "one"]
    assert compiled == ["one"]
    assert [path.name.partition(".cpython")[0] for path in kept(tmp_path)] == ["a.txt"]


def test_it_is_compiled_again_once_it_is_changed(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    says(tmp_path)
    (tmp_path / "templates/a.txt").write_text("two")
    assert says(tmp_path) == "two"
    (tmp_path / "other.py").write_text("another templating")
    monkeypatch.setattr(templating, "__file__", str(tmp_path / "other.py"))
    assert says(tmp_path) == "two"
    assert compiled == ["one", "two", "two"]


@pytest.mark.parametrize("keep", [0, 3, 20, 40, -1])
def test_damaged_bytecode_is_compiled_again(tmp_path: Path, compiled: list[str], keep: int) -> None:
    says(tmp_path)
    (path,) = kept(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:keep])
    assert says(tmp_path) == "one"
    assert compiled == ["one", "one"]
    assert path.read_bytes() == whole


@pytest.mark.parametrize("wanted", [True, False])
def test_where_python_keeps_no_bytecode_none_is_kept(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch, *, wanted: bool
) -> None:
    if wanted:  # but no folder can be made there
        (tmp_path / "__pycache__").write_text("")
    else:
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert [says(tmp_path), says(tmp_path)] == ["one", "one"]
    assert compiled == ["one", "one"]
    assert not kept(tmp_path)
