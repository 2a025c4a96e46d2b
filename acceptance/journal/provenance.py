"""Where a run came from: version, commit, digest of the package, and the software under it."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from pathlib import Path

from acceptance import __version__, resources
from acceptance.process import command
from acceptance.process.deadline import Deadline

_PACKAGE = Path(__file__).resolve().parents[1]
# Folders of the package that only a wheel has: data files, and what the image is made from.
WHEEL_ONLY = ("_fixtures", "_source")
_DATA = (
    "causes.toml",
    "changes.toml",
    "disks",
    "drift.toml",
    "events",
    "limits.toml",
    "locale",
    "machines",
    "measurements",
    "models",
    "noise.toml",
    "pairs.toml",
    "profiles.toml",
)


def _files() -> Iterator[tuple[str, Path]]:
    for path in _PACKAGE.rglob("*"):
        relative = path.relative_to(_PACKAGE)
        # Python may write its caches during the walk, under temporary names.
        if (
            path.is_file()
            and "__pycache__" not in relative.parts
            and relative.parts[0] not in WHEEL_ONLY
        ):
            yield f"acceptance/{relative.as_posix()}", path
    for name in _DATA:
        place = resources.locate(name)
        for path in [place] if place.is_file() else place.rglob("*"):
            if path.suffix in (".toml", ".po"):
                yield f"fixtures/{path.relative_to(place.parent).as_posix()}", path


def package_digest() -> str:
    """SHA-256 over every file of the package and its data, the same in a checkout and in a wheel.

    A session whose digest differs from the plan's would run other checks than the planned ones.
    """
    digest = hashlib.sha256()
    for name, path in sorted(_files()):
        digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def commit() -> str | None:
    """The checkout's commit, with `+changes` when files differ from it; None outside a checkout."""
    if not (_PACKAGE.parent / ".git").exists():
        return None
    deadline = Deadline.after(5.0)
    git = [
        "git",
        "--no-optional-locks",
        "-c",
        f"safe.directory={_PACKAGE.parent}",
        "-C",
        str(_PACKAGE.parent),
    ]
    try:
        head = command.run([*git, "rev-parse", "HEAD"], deadline=deadline)
        status = command.run(
            [*git, "status", "--porcelain", "--untracked-files=no"], deadline=deadline
        )
    except command.CommandError:
        return None
    if head.returncode != 0 or status.returncode != 0:
        return None
    return head.stdout.strip() + ("+changes" if status.stdout.strip() else "")


def gather(**more: str | None) -> dict[str, str]:
    """Provenance as text by key, with `more` added; an unknown value is left out."""
    import importlib.metadata  # not at the top: a tenth of a plan's import time

    known: dict[str, str | None] = {
        "rigproof": __version__,
        "commit": commit(),
        "package_digest": package_digest(),
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
        "pytest": importlib.metadata.version("pytest"),
        "kernel": platform.release(),
        "host": platform.node(),
        **more,
    }
    return {key: value for key, value in known.items() if value}
