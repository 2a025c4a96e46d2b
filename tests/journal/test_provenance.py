from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from acceptance import resources
from acceptance.journal import provenance
from acceptance.station.image import build as image_build
from acceptance.station.image import inputs

REPOSITORY = Path(provenance.__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small package in a checkout."""
    package, data = tmp_path / "box/acceptance", tmp_path / "box/fixtures"
    (package / "suites/__pycache__").mkdir(parents=True)
    (package / "a.py").write_text("a")
    (package / "suites/b.py").write_text("b")
    (package / "suites/pytest.ini").write_text("c")
    data.mkdir()
    for name in provenance.DATA:
        if name.endswith(".toml"):
            (data / name).write_text(name)
        elif name != "locale":
            (data / name).mkdir(parents=True)
            (data / name / "x.toml").write_text(name)
    (data / "locale/zh_CN").mkdir(parents=True)
    (data / "locale/zh_CN/x.po").write_text("po")
    (data / "locale/x.json").write_text("{}")
    at(package, monkeypatch)
    return tmp_path / "box"


def at(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (provenance, resources):
        monkeypatch.setattr(module, "_PACKAGE", package)


def test_any_changed_file_changes_the_digest(checkout: Path) -> None:
    seen = {provenance.package_digest()}
    assert provenance.package_digest() in seen
    files = [path for path in checkout.rglob("*") if path.is_file()]
    assert len(files) == 4 + len(provenance.DATA)
    for number, path in enumerate(files, start=1):
        path.write_text(path.read_text() + " ")
        seen.add(provenance.package_digest())
        assert len(seen) == number + 1
    (checkout / "acceptance/new.py").write_text("")
    seen.add(provenance.package_digest())
    (checkout / "acceptance/new.py").rename(checkout / "acceptance/other.py")
    seen.add(provenance.package_digest())
    assert len(seen) == len(files) + 3


def test_all_data_of_the_wheel_is_in_the_digest() -> None:
    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    travels = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    inside = (place for place in travels.values() if place.startswith("acceptance/_fixtures/"))
    assert {place.removeprefix("acceptance/_fixtures/") for place in inside} == {*provenance.DATA}


def test_pythons_own_caches_change_nothing(checkout: Path) -> None:
    before = provenance.package_digest()
    for name in ("b.cpython-311.pyc", "b.cpython-311.pyc.140234567"):
        (checkout / "acceptance/suites/__pycache__" / name).write_bytes(b"x")
    (checkout / "README.md").write_text("")
    (checkout / "fixtures/recordings").mkdir()
    assert provenance.package_digest() == before


def test_a_wheel_has_the_digest_of_its_checkout(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = provenance.package_digest()
    installed = tmp_path / "site-packages/acceptance"
    shutil.copytree(checkout / "acceptance", installed)
    shutil.copytree(checkout / "fixtures", installed / "_fixtures")
    at(installed, monkeypatch)
    assert provenance.package_digest() == before
    (installed / "_fixtures/models/x.toml").write_text("changed")
    assert provenance.package_digest() != before


def committed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make it a repository of one commit; the beginning of a call of git in it."""
    monkeypatch.setenv("HOME", str(checkout))
    git = ["git", "-C", str(checkout), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    return git


def test_the_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert provenance.commit() is None
    git = committed(checkout, monkeypatch)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    assert provenance.commit() == head
    (checkout / "new.txt").write_text("x")  # not a part of it
    assert provenance.commit() == head
    (checkout / "acceptance/a.py").write_text("changed")
    assert provenance.commit() == f"{head}+changes"


def test_a_checkout_that_git_cannot_read(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / ".git").mkdir()
    assert provenance.commit() is None
    monkeypatch.setenv("PATH", str(checkout))
    assert provenance.commit() is None


def test_the_version_of_a_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its tags, as `scripts/version.py` has it for a wheel; elsewhere by the installation."""
    monkeypatch.setattr(importlib.metadata, "version", {"rigproof": "9.9"}.__getitem__)
    assert provenance.version() == "9.9"
    shutil.copytree(REPOSITORY / "acceptance/core", checkout / "acceptance/core")
    (checkout / "acceptance/__init__.py").write_text("")
    (checkout / "scripts").mkdir()
    shutil.copy(REPOSITORY / "scripts/version.py", checkout / "scripts/version.py")
    script = [sys.executable, "-B", str(checkout / "scripts/version.py")]

    def of_wheel() -> str:
        done = subprocess.run(script, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    assert of_wheel() == "0.0.0.dev0+unknown"
    git = committed(checkout, monkeypatch)
    assert provenance.version() == of_wheel()
    assert provenance.version().startswith("0.0.0.dev1+g")
    subprocess.run([*git, "tag", "v1.2.3"], check=True)
    assert provenance.version() == of_wheel() == "1.2.3"
    (checkout / "acceptance/a.py").write_text("changed")
    assert provenance.version() == of_wheel()
    assert provenance.version().startswith("1.2.4.dev0+g")
    subprocess.run([*git, "tag", "--delete", "v1.2.3"], check=True, capture_output=True)
    subprocess.run([*git, "tag", "v1.2.3-x"], check=True)
    assert provenance.version() == "9.9"  # no version, and no run fails for it
    (checkout / "acceptance/_source").mkdir()  # of a wheel: the .git beside it is somebody else's
    assert provenance.commit() is None


def test_without_git_and_installation_the_version_is_unknown(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert provenance.version() == "0.0.0.dev0+unknown"


def test_what_is_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_git", lambda *_: None)
    found = provenance.gather("digest", station="host", machine=None, note="")
    assert found["station"] == "host"
    assert found["package_digest"] == "digest"
    assert {"rigproof", "python", "numpy", "pytest", "kernel", "host"} <= set(found)
    assert not {"commit", "machine", "note"} & set(found)


def wheel_says(uv: str, source: Path, folder: Path) -> list[str]:
    """Install the wheel of this source; it says where it is, its digest, and its image's tag."""
    build = [uv, "build", "--wheel", "--out-dir", str(folder), str(source)]
    subprocess.run(build, check=True, capture_output=True)
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target"]
    site = folder / "site"
    wheel = str(next(folder.glob("*.whl")))
    subprocess.run([*install, str(site), wheel], check=True, capture_output=True)
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r})\n"
        "from acceptance.journal import provenance\n"
        "from acceptance.station.image import build\n"
        "print(provenance.__file__, provenance.package_digest(), build.wanted().tag)"
    )
    argv = [sys.executable, "-P", "-c", code]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.tools
def test_the_real_wheel(tmp_path: Path) -> None:
    """It wants the image of its checkout, and so does the one that the image is built with."""
    uv = shutil.which(
        "uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    if uv is None:
        pytest.skip("uv builds the wheel: pip install uv")
    want = image_build.wanted()
    inputs.lay_out(want.context, want.version, None, tmp_path / "context")
    expected = [provenance.package_digest(), want.tag]
    for number, source in enumerate((REPOSITORY, tmp_path / "context/source")):
        place, *found = wheel_says(uv, source, tmp_path / str(number))
        assert Path(place).is_relative_to(tmp_path)
        assert found == expected
