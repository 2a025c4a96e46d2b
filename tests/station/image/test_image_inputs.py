from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from acceptance.core.message import SetupError
from acceptance.station.image import inputs
from acceptance.station.image.inputs import Pin


def test_pins_are_read_with_comments_and_blank_lines() -> None:
    text = (
        "# a comment\n\ntrixie  gpu-burn 1.0  # "
        "why\r\nsid\tnvbandwidth\t0.9+ds-2\nubuntu:24.04 "
        "python3 3.12.3-*\n"
    )
    assert inputs.read_pins(text) == (
        Pin("trixie", "gpu-burn", "1.0"),
        Pin("sid", "nvbandwidth", "0.9+ds-2"),
        Pin("ubuntu:24.04", "python3", "3.12.3-*"),
    )


@pytest.mark.parametrize("line", ["trixie gpu-burn", "trixie gpu-burn 1 2", "bookworm gpu-burn 1"])
def test_a_line_of_another_form_is_quoted(line: str) -> None:
    with pytest.raises(SetupError, match=f"line 2: expected .*{line}"):
        inputs.read_pins(f"\n{line}\n")


def test_nothing_is_pinned_twice() -> None:
    with pytest.raises(SetupError, match="line 2: gpu-burn is pinned twice for trixie"):
        inputs.read_pins("trixie gpu-burn 1\ntrixie gpu-burn 2\n")


def test_a_pin_is_found_by_place_and_name() -> None:
    pins = (Pin("trixie", "a", "1"), Pin("sid", "a", "2"))
    assert inputs.pinned_version(pins, "sid", "a") == "2"
    with pytest.raises(SetupError, match="b is not pinned for sid"):
        inputs.pinned_version(pins, "sid", "b")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with the least that the image is made from."""
    root = tmp_path / "checkout"
    for name in inputs._RECIPE:
        place = root / "containers" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(name)
    for name in (
        "README.md",
        "LICENSE",
        "acceptance/a.py",
        "acceptance/sub/b.py",
        "fixtures/profiles.toml",
        "fixtures/other.toml",
    ):
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(name)
    (root / "pyproject.toml").write_text(
        "[tool.hatch.build.targets.wheel.force-include]\n"
        + "".join(
            f'"{name}" = "x"\n'
            for name in ("fixtures/profiles.toml", "README.md", "LICENSE", "pyproject.toml")
        )
    )
    return root


def test_the_context_is_the_recipe_and_what_the_wheel_is_made_from(tree: Path) -> None:
    (tree / "acceptance/__pycache__").mkdir()
    (tree / "acceptance/__pycache__/a.cpython-311.pyc").write_bytes(b"")
    (tree / "acceptance/stray.pyc").write_bytes(b"")
    names = [name for name in inputs.files(tree) if name.startswith("source/")]
    assert names == [
        "source/LICENSE",
        "source/README.md",
        "source/acceptance/a.py",
        "source/acceptance/sub/b.py",
        "source/fixtures/profiles.toml",
        "source/pyproject.toml",
    ]
    assert "containers/Dockerfile" in inputs.files(tree)


def test_a_missing_input_is_named(tree: Path) -> None:
    (tree / "containers/take").unlink()
    with pytest.raises(SetupError, match="containers/take: is missing"):
        inputs.files(tree)
    (tree / "pyproject.toml").write_text("")
    with pytest.raises(
        SetupError, match=r"pyproject.toml: cannot be read for what goes into the wheel"
    ):
        inputs.files(tree)


def test_the_digest_changes_with_every_input_and_with_nothing_else(tree: Path) -> None:
    def digest(**settings: str) -> str:
        return inputs.digest(inputs.files(tree), settings)

    seen = [digest(base="a")]
    assert digest(base="a") == seen[0]
    (tree / "fixtures/other.toml").write_text("not in the wheel")
    (tree / "acceptance/a.py").chmod(0o600)
    assert digest(base="a") == seen[0]
    seen.append(digest(base="b"))
    (tree / "acceptance/a.py").write_text("changed")
    seen.append(digest(base="a"))
    (tree / "containers/pins.txt").write_text("changed")
    seen.append(digest(base="a"))
    (tree / "acceptance/new.py").write_text("")
    seen.append(digest(base="a"))
    (tree / "containers/take").chmod(0o755)
    seen.append(digest(base="a"))
    assert len(set(seen)) == len(seen)


def test_the_context_is_laid_out_readable_whatever_the_umask_was(
    tree: Path, tmp_path: Path
) -> None:
    (tree / "containers/take").chmod(0o700)
    (tree / "acceptance/a.py").chmod(0o600)
    bundle = tmp_path / "bundle.crt"
    bundle.write_bytes(b"certificates")
    target = tmp_path / "context"
    inputs.lay_out(inputs.files(tree), "1.2.3", bundle, target)
    assert (target / "build/ca.crt").read_bytes() == b"certificates"
    metadata = (target / inputs.METADATA).read_text().splitlines()
    assert {"Name: rigproof", "Version: 1.2.3"} <= set(metadata)
    assert (target / "containers/take").stat().st_mode & 0o777 == 0o755
    assert (target / "source/acceptance/a.py").stat().st_mode & 0o777 == 0o644


def test_without_certificates_an_empty_file_stands_for_them(tree: Path, tmp_path: Path) -> None:
    inputs.lay_out(inputs.files(tree), "1.2.3", None, tmp_path / "context")
    assert (tmp_path / "context/build/ca.crt").read_bytes() == b""


def test_an_installed_wheel_gives_the_same_context(tree: Path, tmp_path: Path) -> None:
    """Whoever installed rigproof has the recipe too, and the same image."""
    recipe = [f"containers/{name}" for name in inputs._RECIPE]
    source = (*recipe, "README.md", "LICENSE", "pyproject.toml")
    added = {name: f"acceptance/_source/{name}" for name in source}
    added["fixtures/profiles.toml"] = "acceptance/_fixtures/profiles.toml"
    lines = "".join(f'"{key}" = "{value}"\n' for key, value in added.items())
    table = "[tool.hatch.build.targets.wheel.force-include]\n"
    (tree / "pyproject.toml").write_text(table + lines)
    (tree / "containers/take").chmod(0o755)
    (tree / "containers/README.md").write_text("not in the wheel")
    site = tmp_path / "site-packages"
    shutil.copytree(tree / "acceptance", site / "acceptance")
    for key, value in added.items():
        (site / value).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tree / key, site / value)
    (site / "README.md").write_text("another package's")
    ours, theirs = inputs.files(tree), inputs.files(site)
    assert list(ours) == list(theirs)
    assert inputs.digest(ours, {}) == inputs.digest(theirs, {})
    (site / "acceptance/_source/containers/take").write_text("changed")
    assert inputs.digest(inputs.files(site), {}) != inputs.digest(ours, {})
    (site / "acceptance/_source/LICENSE").unlink()
    with pytest.raises(SetupError, match=r"LICENSE: is missing.*install rigproof again"):
        inputs.files(site)


def test_the_whole_recipe_is_in_the_wheel() -> None:
    """The image's own wheel is built from the context, so the context holds what it adds."""
    found = inputs.files()
    for name in inputs._RECIPE:
        assert found[f"containers/{name}"] == found[f"source/containers/{name}"]
