"""The version of rigproof, which only tags name: v1.2.3, or v1.2.3rc1 before it. Pure.

`scripts/version.py` asks git when a wheel is built, `journal.provenance` when a run begins.
"""

from __future__ import annotations

import re

# The newest tag of a release, how many commits ago, and the commit; without a tag only the commit.
DESCRIBE = (
    "describe",
    "--tags",
    "--long",
    "--dirty",
    "--always",
    "--abbrev=40",  # whole: the record of a run names it
    "--match=v[0-9]*.[0-9]*.[0-9]*",
)
COMMITS = ("rev-list", "--count", "HEAD")
# Sources without git and without a version of their own: an archive of the files alone.
UNKNOWN = "0.0.0.dev0+unknown"

_DESCRIBED = re.compile(
    r"(?:v(?P<start>\d+\.\d+\.(?:\d+rc)?)(?P<last>\d+)-(?P<since>\d+)-g)?"
    r"(?P<commit>[0-9a-f]{12,})(?P<changes>-dirty)?"
)
_COMMIT = re.compile(r"(?:^|-g)(?P<commit>[0-9a-f]{12,})(?P<changes>-dirty)?$")
# Of the commit, in a version: a fixed length, so that a shallow clone gives that of a whole one.
_ABBREVIATED = 12


def of_checkout(described: str, commits: str) -> str:
    """The version by PEP 440, from what git prints for DESCRIBE and COMMITS.

    A tagged commit has its tag's version, and later ones are on the way to the next:
    1.2.4.dev5+g0123456789ab. Without a tag (a shallow clone may have none) it begins with 0.0.0.
    `.changes` follows if files differ from the commit. Raises ValueError for any other text.
    """
    found = _DESCRIBED.fullmatch(described.strip())
    if found is None or not commits.strip().isdecimal():
        raise ValueError(
            f"git describes the checkout as {described.strip()!r} ({commits.strip()} commits): a "
            "tag of a release has the form v1.2.3 or v1.2.3rc1"
        )
    local = f"+g{found['commit'][:_ABBREVIATED]}{'.changes' if found['changes'] else ''}"
    if found["start"] is None:
        return f"0.0.0.dev{int(commits)}{local}"
    if int(found["since"]) == 0 and not found["changes"]:
        return f"{found['start']}{int(found['last'])}"
    return f"{found['start']}{int(found['last']) + 1}.dev{int(found['since'])}{local}"


def commit_of(described: str) -> str | None:
    """The commit in what git prints for DESCRIBE, with `+changes` if files differ from it."""
    found = _COMMIT.search(described.strip())
    return found and found["commit"] + ("+changes" if found["changes"] else "")


def of_image(version: str) -> str:
    """The version of the harness in an image: without commit and count, which alter nothing in it.

    Commits between two releases that change only documents then share one image.
    """
    return re.sub(r"\.dev.*", ".dev0", version)
