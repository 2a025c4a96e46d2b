"""The version of this checkout, by its tags: `python scripts/version.py` prints it.

hatchling asks `version()` when it builds from a checkout. Sources without git (an sdist, the
image's build context) have a PKG-INFO with their version, which hatchling takes instead.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from acceptance.core.version import COMMITS, DESCRIBE, UNKNOWN, of_checkout  # noqa: E402


def _git(*words: str) -> str:
    argv = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def version() -> str:
    """The version of this checkout; UNKNOWN where there is no git."""
    if not (ROOT / ".git").exists():
        return UNKNOWN
    try:
        described, commits = _git(*DESCRIBE), _git(*COMMITS)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"rigproof: git does not tell the version: {error}", file=sys.stderr)
        return UNKNOWN
    return of_checkout(described, commits)


if __name__ == "__main__":
    print(version())
