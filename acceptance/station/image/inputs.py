"""The inputs of the image: the files of its build context, their digest, and the pins."""

from __future__ import annotations

import hashlib
import os
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from acceptance.core import regular_file
from acceptance.core.message import SetupError
from acceptance.journal import provenance

_ROOT = Path(__file__).resolve().parents[3]
PINS = "containers/pins.txt"
CA_BUNDLE = "build/ca.crt"
METADATA = "source/PKG-INFO"  # hatchling takes the version from it, as in an sdist
_RECIPE = (
    "Dockerfile",
    "clean",
    "pins.txt",
    "pip",
    "prove.py",
    "requirements-build.txt",
    "requirements.txt",
    "sources",
    "take",
    "tools",
)
_PLACES = ("image", "trixie", "sid", "debian:13", "ubuntu:24.04", "pypi")


@dataclass(frozen=True, slots=True)
class Pin:
    """One line of pins.txt: a source, a name, and a version (which may end in `*`)."""

    place: str
    name: str
    version: str


def read_pins(text: str) -> tuple[Pin, ...]:
    """The lines of pins.txt.

    Raises SetupError for a malformed line, quoting it, and for a duplicate.
    """
    pins: dict[tuple[str, str], Pin] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 3 or words[0] not in _PLACES:
            raise SetupError(
                f"{PINS} line {number}: expected `PLACE NAME VERSION` with PLACE one of "
                f"{', '.join(_PLACES)}: {line!r}"
            )
        pin = Pin(*words)
        if (pin.place, pin.name) in pins:
            raise SetupError(
                f"{PINS} line {number}: {pin.name} is pinned twice for {pin.place}: {line!r}"
            )
        pins[pin.place, pin.name] = pin
    return tuple(pins.values())


def pinned_version(pins: tuple[Pin, ...], place: str, name: str) -> str:
    """The version pinned for one name. Raises SetupError where there is none."""
    for pin in pins:
        if (pin.place, pin.name) == (place, name):
            return pin.version
    raise SetupError(f"{PINS}: {name} is not pinned for {place}")


def files(root: Path = _ROOT) -> dict[str, Path]:
    """The build context: path in the context (POSIX, relative) to the file that is copied there.

    `root` is a checkout, or the folder in which a wheel is installed; both give the same context.
    The host's certificates are not included. `source/` has the inputs of the wheel: the package,
    and what pyproject.toml adds to it. Raises SetupError where a file is missing.
    """
    inside = root / "acceptance"
    source = inside / "_source"
    installed = source.is_dir()
    pyproject = (source if installed else root) / "pyproject.toml"
    try:
        added: dict[str, str] = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"][
            "hatch"
        ]["build"]["targets"]["wheel"]["force-include"]
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise SetupError(
            f"{pyproject}: cannot be read for what goes into the wheel: {error!r}"
        ) from error
    found = {
        f"source/acceptance/{PurePosixPath(path.relative_to(inside))}": path
        for path in _below(inside)
        if path.relative_to(inside).parts[0] not in provenance.WHEEL_ONLY
    }
    for name, place_in_wheel in added.items():
        place = root / (place_in_wheel if installed else name)
        for path in _below(place):
            found[f"source/{PurePosixPath(name) / path.relative_to(place)}"] = path
    for name in _RECIPE:
        found[f"containers/{name}"] = found.get(
            f"source/containers/{name}", root / "containers" / name
        )
    for path in found.values():
        if not path.is_file():
            raise SetupError(
                f"{path}: is missing, and the image is made from it: check the checkout with "
                "`git status`, or install rigproof again"
            )
    return dict(sorted(found.items()))


def _below(place: Path) -> Iterator[Path]:
    if not place.is_dir():
        yield place
        return
    for path in place.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
            yield path


def digest(context: Mapping[str, Path], settings: Mapping[str, str]) -> str:
    """SHA-256 over names, contents and execute bits of the context's files, and over the settings.

    Images with different digests differ.
    """
    whole = hashlib.sha256()
    for name, path in sorted(context.items()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{name}\0{_mode(path):o}\0{content}\n".encode())
    for key, value in sorted(settings.items()):
        whole.update(f"{key}={value}\n".encode())
    return whole.hexdigest()


def _mode(path: Path) -> int:
    """One of two modes.

    So a checkout under another umask gives the same image, readable by every user in it.
    """
    return 0o755 if os.access(path, os.X_OK) else 0o644


def lay_out(
    context: Mapping[str, Path], version: str, ca_bundle: Path | None, target: Path
) -> None:
    """Copy the context's files to `target`, with the host's certificates beside them.

    The file of certificates is empty where there are none. `version` is that of the wheel built
    there, where there is no git.
    """
    for name, path in context.items():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        place.chmod(_mode(path))
    metadata = f"Metadata-Version: 2.4\nName: rigproof\nVersion: {version}\n"
    (target / METADATA).write_text(metadata, encoding="utf-8")
    place = target / CA_BUNDLE
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(regular_file.read(ca_bundle, regular_file.SMALL_RECORD) if ca_bundle else b"")
