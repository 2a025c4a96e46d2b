"""fixtures/limits.toml: gives changed limits another version.

python tests/expect/limits_version.py
"""

from __future__ import annotations

from datetime import UTC, datetime

from acceptance import resources
from acceptance.expect import limit_version
from acceptance.expect.limit_version import FILE, Recorded


def text(recorded: Recorded) -> str:
    """The content of the file."""
    return (
        "# The version of the limits and its digest. `make measurements` writes this file: limits\n"
        "# that changed get another version (acceptance/expect/limit_version.py).\n"
        f'version = "{recorded.version}"\n'
        f'digest = "{recorded.digest}"\n'
    )


def main() -> None:
    """Write the file anew."""
    path = resources.locate(FILE)
    recorded = resources.read(path, Recorded)
    today = datetime.now(UTC).date()
    path.write_text(text(limit_version.following(recorded, limit_version.digest(), today)))


if __name__ == "__main__":
    main()
