"""The version of rigproof's own limits, and the digest over them.

Limits are what values are held against: the families, the sheets of GPUs and disks with the
architectures, the shares and ceilings of what a machine has, the rules for noise, drift, changes
and pairs of nodes, and the thresholds. Not among them are causes and kernel messages (which say
what a finding means), profiles (how much is tested, and for how long), translations and examples:
these have the digest of the package, and so has the code that calculates limits from these numbers.
The digest is over the data, not over the text of the files: comments and the words of advice do not
change it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import msgspec

from acceptance import resources
from acceptance.core.plan import SiteSheet
from acceptance.core.strict import Strict

FILE = "limits.toml"
LIMITS = (
    "changes.toml",
    "derived.toml",
    "disks",
    "drift.toml",
    "loosest.toml",
    "measurements",
    "models",
    "noise.toml",
    "pairs.toml",
    "sheets.toml",
    "thresholds.toml",
)
# Keys of the families that tell of a measurement and limit nothing.
_WORDS = frozenset({"title", "is_not", "what", "advice"})
# After the version of limits that somebody changed in the installed files.
CHANGED = "+changes"


class Recorded(Strict, frozen=True):
    """`limits.toml`: a version is the day of its limits and a number, from 1 on each day."""

    version: Annotated[str, msgspec.Meta(pattern=r"^20\d\d-\d\d-\d\d\.[1-9]\d*$")]
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


def _files() -> Iterator[tuple[str, Path]]:
    for name in LIMITS:
        place = resources.locate(name)
        if place.is_file():
            yield name, place
        else:
            yield from ((f"{name}/{path.name}", path) for path in sorted(place.glob("*.toml")))


def _without_words(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """A file's data without its sentences, and of a family without its words."""
    if not name.startswith("measurements/"):
        return {key: value for key, value in table.items() if key != "wording"}
    rows = [
        {key: value for key, value in row.items() if key not in _WORDS}
        for row in table.get("measurement", ())
    ]
    return {key: value for key, value in table.items() if key not in _WORDS} | {"measurement": rows}


def _digest(parts: Iterable[tuple[str, str]]) -> str:
    text = "".join(f"{name}\0{digest}\n" for name, digest in parts)
    return hashlib.sha256(text.encode()).hexdigest()


def digest() -> str:
    """SHA-256 over the data of all files that are limits, the same in a checkout and in a wheel.

    Raises SetupError where one cannot be read.
    """
    return _digest(
        (name, hashlib.sha256(_encoded(name, path)).hexdigest()) for name, path in _files()
    )


def _encoded(name: str, path: Path) -> bytes:
    table = _without_words(name, resources.read_table(path))
    return msgspec.json.encode(table, order="deterministic")


def with_sheets(own: str, sheets: Iterable[SiteSheet]) -> str:
    """The digest of rigproof's own limits together with sheets of the site."""
    parts = [(one.file, one.sha256) for one in sheets]
    return _digest([("rigproof", own), *parts]) if parts else own


def _recorded() -> Recorded:
    return resources.read(resources.locate(FILE), Recorded)


def digest_of(version: str) -> str:
    """The digest of limits of this version, which the installed files are known to have.

    Only limits that were changed have to be read for it. Raises SetupError.
    """
    recorded = _recorded()
    return recorded.digest if version == recorded.version else shipped()[1]


@functools.cache
def shipped() -> tuple[str, str]:
    """Version and digest of the installed limits.

    The version ends in CHANGED where the files are not those that it was given to. Raises
    SetupError.
    """
    recorded, found = _recorded(), digest()
    return recorded.version + ("" if recorded.digest == found else CHANGED), found


def following(recorded: Recorded, found: str, today: date) -> Recorded:
    """What is to be recorded for limits with the digest `found`.

    The version stays as long as the digest does, and never goes back.
    """
    if recorded.digest == found:
        return recorded
    day, _, number = recorded.version.rpartition(".")
    version = f"{today}.1" if f"{today}" > day else f"{day}.{int(number) + 1}"
    return Recorded(version, found)
