"""A site's own checks: their names, the digest of their files, and what a plan holds. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import msgspec

# Shipped checks and measurements never have these names (tests/core/test_site.py), so no update of
# rigproof can take the name of a site's check or measurement.
SUBJECT = "site"  # of the ids of its checks: site.<file>.<function>
PREFIX = "site_"  # of the names of its measurements
FILE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)  # of a file with checks, less .py
MEASUREMENT = re.compile(r"site_[a-z0-9][a-z0-9_]{0,63}", re.ASCII)


class FamilyFile(msgspec.Struct, frozen=True):
    """A TOML file of the site: its name, and its text as the run had it."""

    name: str
    text: str


class SiteChecks(msgspec.Struct, frozen=True):
    """The site's own checks of a run.

    `folder` is where they were, `digest` the `folder_digest` of its files. `families` are its TOML
    files: what a report says of a measurement of theirs must come from the run itself.
    """

    folder: str
    digest: str
    families: tuple[FamilyFile, ...]


def folder_digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over the name and the content of every file, in the order of the names."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()
