"""Where a run came from: version, commit, digest of the package, and the software under it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from acceptance import resources
from acceptance.core import version as versions
from acceptance.process import command
from acceptance.process.deadline import Deadline

_PACKAGE = Path(__file__).resolve().parents[1]
# Folders of the package that only a wheel has: data files, and what the image is made from.
WHEEL_ONLY = ("_fixtures", "_source")
# As pyproject.toml has them for the wheel.
DATA = (
    "causes.toml",
    "changes.toml",
    "derived.toml",
    "disks",
    "drift.toml",
    "events",
    "injections.toml",
    "limits.toml",
    "loosest.toml",
    "locale",
    "machines",
    "measurements",
    "models",
    "noise.toml",
    "pairs.toml",
    "profiles.toml",
    "sheets.toml",
    "thresholds.toml",
)


def _tree(folder: str, left_out: tuple[str, ...]) -> Iterator[str]:
    for one in os.scandir(folder):
        if one.is_dir(follow_symlinks=False):
            # Python may write its caches during the walk, under temporary names.
            if one.name not in left_out:
                yield from _tree(one.path, ("__pycache__",))
        elif one.is_file():
            yield one.path


def _files() -> Iterator[tuple[str, str]]:
    # By strings, as every process of a run does this: paths would take twice as long.
    top = str(_PACKAGE)
    for path in _tree(top, ("__pycache__", *WHEEL_ONLY)):
        yield f"acceptance{path[len(top) :]}", path
    for name in DATA:
        place = resources.locate(name)
        for one in [place] if place.is_file() else place.rglob("*"):
            if one.suffix in (".toml", ".po", ".json"):
                yield f"fixtures/{one.relative_to(place.parent).as_posix()}", str(one)


def package_digest() -> str:
    """SHA-256 over every file of the package and its data, the same in a checkout and in a wheel.

    A session whose digest differs from the plan's would run other checks than the planned ones.
    """
    digest = hashlib.sha256()
    for name, path in sorted(_files()):
        digest.update(f"{name}\0{hashlib.sha256(Path(path).read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _git(*words: str) -> str | None:
    """What git says of the checkout; None outside a checkout, and where git fails."""
    root = _PACKAGE.parent
    if (_PACKAGE / "_source").exists() or not (root / ".git").exists():
        return None
    argv = ["git", "--no-optional-locks", "-c", f"safe.directory={root}", "-C", str(root), *words]
    try:
        done = command.run(argv, deadline=Deadline.after(5.0))
    except command.CommandError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def commit() -> str | None:
    """The checkout's commit, with `+changes` when files differ from it; None outside a checkout."""
    return versions.commit_of(_git(*versions.DESCRIBE) or "")


def version() -> str:
    """The version of rigproof: a checkout's by its tags, else that of the installation."""
    return _version(_git(*versions.DESCRIBE))


def _version(described: str | None) -> str:
    commits = described and _git(*versions.COMMITS)
    if described and commits:
        with contextlib.suppress(ValueError):
            return versions.of_checkout(described, commits)

    import importlib.metadata  # not at the top: a tenth of a plan's import time

    try:
        return importlib.metadata.version("rigproof")
    except importlib.metadata.PackageNotFoundError:
        return versions.UNKNOWN


def gather(digest: str, **more: str | None) -> dict[str, str]:
    """Provenance as text by key, with `more` added; an unknown value is left out.

    `digest` is the package's, which the plan has already.
    """
    import importlib.metadata  # as above

    described = _git(*versions.DESCRIBE)
    known: dict[str, str | None] = {
        "rigproof": _version(described),
        "commit": versions.commit_of(described or ""),
        "package_digest": digest,
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
        "pytest": importlib.metadata.version("pytest"),
        "kernel": platform.release(),
        "host": platform.node(),
        **more,
    }
    return {key: value for key, value in known.items() if value}
