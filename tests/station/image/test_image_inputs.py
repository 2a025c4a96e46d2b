from __future__ import annotations

from pathlib import Path

import pytest

from acceptance.station.image import inputs
from acceptance.station.image.engine import ImageError
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
    with pytest.raises(ImageError, match=f"line 2: expected .*{line}"):
        inputs.read_pins(f"\n{line}\n")


def test_nothing_is_pinned_twice() -> None:
    with pytest.raises(ImageError, match="line 2: gpu-burn is pinned twice for trixie"):
        inputs.read_pins("trixie gpu-burn 1\ntrixie gpu-burn 2\n")


def test_a_pin_is_found_by_place_and_name() -> None:
    pins = (Pin("trixie", "a", "1"), Pin("sid", "a", "2"))
    assert inputs.pinned_version(pins, "sid", "a") == "2"
    with pytest.raises(ImageError, match="b is not pinned for sid"):
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
        '[tool.hatch.build.targets.wheel.force-include]\n"fixtures/profiles.toml" = "x"\n'
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
    with pytest.raises(ImageError, match="containers/take: is missing"):
        inputs.files(tree)
    (tree / "pyproject.toml").write_text("")
    with pytest.raises(
        ImageError, match=r"pyproject.toml: cannot be read for what goes into the wheel"
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
    inputs.lay_out(inputs.files(tree), bundle, target)
    assert (target / "build/ca.crt").read_bytes() == b"certificates"
    assert (target / "containers/take").stat().st_mode & 0o777 == 0o755
    assert (target / "source/acceptance/a.py").stat().st_mode & 0o777 == 0o644


def test_without_certificates_an_empty_file_stands_for_them(tree: Path, tmp_path: Path) -> None:
    inputs.lay_out(inputs.files(tree), None, tmp_path / "context")
    assert (tmp_path / "context/build/ca.crt").read_bytes() == b""


def test_this_checkout_is_found_and_an_installed_package_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert (inputs.checkout() / "containers" / "pins.txt").is_file()
    monkeypatch.setattr(inputs, "_ROOT", tmp_path / "site-packages")
    assert not inputs.in_checkout()
    with pytest.raises(ImageError, match="installed package: run `make image` in a checkout"):
        inputs.checkout()
